"""Train the miniature network, unattended and resumable.

    OMP_WAIT_POLICY=PASSIVE python -m tools.tiny_model.train_dit --latents .train/latents \
        --state .train/dit --minutes 60

The network computes in bfloat16 exactly as a render does; the optimizer keeps float32 copies.
Stops after the given minutes, or on SIGTERM, with its state saved; started again it goes on.
"""

import argparse
import json
import signal
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from sanawm_cli.conditioning.text import WordTextEncoder
from sanawm_cli.configs import NetworkConfig, TextConfig
from sanawm_cli.grid import FrameGrid
from sanawm_cli.model.dit import Network
from sanawm_cli.plan.chunks import Chunk, cut
from sanawm_cli.preset.settings import StreamSettings, Window
from sanawm_cli.weights.keymaps import keeps_float32
from tools.tiny_model.checkpoint import load_checkpoint, save_checkpoint
from tools.tiny_model.dit_batch import Batch, collate
from tools.tiny_model.dit_loss import LossSettings, clip_loss
from tools.tiny_model.dit_start import start_network
from tools.tiny_model.latents import Shard, read_shard
from tools.tiny_model.muon import Muon

NETWORK = NetworkConfig(
    latent_channels=128,
    width=256,
    heads=8,
    blocks=8,
    softmax_every=4,
    ffn_ratio=3.0,
    text_channels=128,
)
TEXT = TextConfig(kind="words", tokens=64, channels=128)
WINDOWS: tuple[Window, ...] = (1, 2, 4, 8, "all")
SIZES = (4, 3, 3, 3)
HELD_OUT_SHARDS = 1
CHECKPOINT_SECONDS = 240
EMA = 0.998


class Trainer:
    """Float32 masters, their bfloat16 shadow that computes, optimizers and averages."""

    def __init__(self, *, matrix_lr: float, other_lr: float) -> None:
        self.network, self.encoder = Network(NETWORK), WordTextEncoder(TEXT)
        start_network(self.network, seed=1)
        self.shadow = Network(NETWORK)
        for name, weight in self.shadow.named_parameters():
            if not keeps_float32(name):
                weight.data = weight.data.bfloat16()
        matrices, others = [], list(self.encoder.parameters())
        for name, weight in self.network.named_parameters():
            inner = weight.dim() >= 2 and name.startswith("blocks.") and ".conv" not in name
            (matrices if inner and "table" not in name else others).append(weight)
        self.muon = Muon(matrices, lr=matrix_lr, weight_decay=0.01)
        self.adam = torch.optim.AdamW(others, lr=other_lr, betas=(0.9, 0.98), weight_decay=0.01)
        self.average = [p.detach().clone() for p in self.parameters()]
        self.rates = (matrix_lr, other_lr)
        self.step = 0

    def parameters(self) -> list[nn.Parameter]:
        """The masters, network first."""
        return [*self.network.parameters(), *self.encoder.parameters()]

    def load_shadow(self) -> None:
        """Round the masters into the network that computes."""
        with torch.no_grad():
            pairs = zip(self.shadow.parameters(), self.network.parameters(), strict=True)
            for shadow, master in pairs:
                shadow.copy_(master)
                shadow.grad = None

    def update(self, scale: float) -> float:
        """One step from the shadow's gradients; returns their norm. `scale` is of the rates."""
        for shadow, master in zip(self.shadow.parameters(), self.network.parameters(), strict=True):
            master.grad = None if shadow.grad is None else shadow.grad.float()
        norm = float(nn.utils.clip_grad_norm_(self.parameters(), 1.0))
        for optimizer, rate in ((self.muon, self.rates[0]), (self.adam, self.rates[1])):
            for group in optimizer.param_groups:
                group["lr"] = rate * scale
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        self.step += 1
        fade = min(EMA, (1 + self.step) / (10 + self.step))
        with torch.no_grad():
            torch._foreach_lerp_(self.average, self.parameters(), 1 - fade)
        return norm

    def state(self) -> dict[str, object]:
        """All that a later run goes on from."""
        return {
            "network": self.network.state_dict(),
            "encoder": self.encoder.state_dict(),
            "average": self.average,
            "muon": self.muon.state_dict(),
            "adam": self.adam.state_dict(),
            "step": self.step,
        }

    def restore(self, state: dict[str, object]) -> None:
        """Go on from `state()`."""
        self.network.load_state_dict(state["network"])  # type: ignore[arg-type]
        self.encoder.load_state_dict(state["encoder"])  # type: ignore[arg-type]
        self.average = state["average"]  # type: ignore[assignment]
        self.muon.load_state_dict(state["muon"])  # type: ignore[arg-type]
        self.adam.load_state_dict(state["adam"])  # type: ignore[arg-type]
        self.step = state["step"]  # type: ignore[assignment]


def chunks_for(window: Window, sink: bool) -> tuple[Chunk, ...]:
    """The plan of a training clip."""
    stream = StreamSettings(chunk_latents=3, window=window, sink=sink, grid="remainder")
    return cut(SIZES, stream=stream, frame_grid=FrameGrid())


def batch_loss(
    trainer: Trainer,
    batch: Batch,
    chunks: tuple[Chunk, ...],
    settings: LossSettings,
    weights: Tensor,
    random: torch.Generator,
) -> Tensor:
    """Losses per chunk of a batch, by the bfloat16 shadow and the float32 encoder."""
    embeds, mask = trainer.encoder.encode_batch(batch.captions)
    text = trainer.shadow.text_context(embeds, mask)
    # The CPU's fused attention is many times slower backward than plain products.
    with sdpa_kernel(SDPBackend.MATH):
        return clip_loss(trainer.shadow, text, batch, chunks, settings, weights, random)


class Data:
    """Shards as they appear on disk; the first ones are kept for measuring."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.shards: list[Shard] = []
        self.names: list[str] = []
        self.refresh()

    def refresh(self) -> None:
        """Take in shards that are new."""
        for path in sorted(self.folder.glob("*.safetensors")):
            if path.name not in self.names:
                self.names.append(path.name)
                self.shards.append(read_shard(path))

    def draw(self, count: int, random: np.random.Generator) -> Batch:
        """Random training clips."""
        usable = range(HELD_OUT_SHARDS, len(self.shards))
        picks = []
        for _ in range(count):
            shard = int(random.choice(usable))
            picks.append((shard, int(random.integers(len(self.shards[shard].captions)))))
        return collate(self.shards, picks)

    def held_out(self, count: int) -> Batch:
        """Always the same clips, which are not trained on."""
        return collate(self.shards, [(0, row) for row in range(count)])


def measure(trainer: Trainer, batch: Batch, weights: Tensor) -> list[float]:
    """Losses per chunk on held-out clips, window 2 with sink, always the same noise."""
    random = torch.Generator().manual_seed(0)
    with torch.no_grad():
        settings = LossSettings(context_noise=0.0)
        losses = batch_loss(trainer, batch, chunks_for(2, True), settings, weights, random)
    return [round(float(loss), 4) for loss in losses]


def main() -> None:
    """Train for some minutes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--latents", type=Path, required=True)
    parser.add_argument("--state", type=Path, required=True)
    parser.add_argument("--minutes", type=float, required=True)
    parser.add_argument("--planned-steps", type=int, default=20_000)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--self-forcing", type=float, default=0.0)
    parser.add_argument("--matrix-lr", type=float, default=0.02)
    parser.add_argument("--other-lr", type=float, default=2e-3)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    stop = []
    signal.signal(signal.SIGTERM, lambda *_: stop.append(True))
    trainer = Trainer(matrix_lr=given.matrix_lr, other_lr=given.other_lr)
    checkpoint = given.state / "checkpoint.pt"
    if (saved := load_checkpoint(checkpoint)) is not None:
        trainer.restore(saved)
    data = Data(given.latents)
    spread = torch.cat([s.latents.float().flatten(2).var(-1).mean(0)[None] for s in data.shards])
    weights = spread.mean(0) / spread.mean()
    began = last_saved = time.monotonic()
    numbers, draws = np.random.default_rng(trainer.step), torch.Generator()
    draws.manual_seed(trainer.step)
    log = (given.state / "log.jsonl").open("a", encoding="utf-8")
    recent: list[list[float]] = []
    while not stop and time.monotonic() - began < given.minutes * 60:
        window = WINDOWS[int(numbers.integers(len(WINDOWS)))]
        chunks = chunks_for(window, bool(numbers.integers(2)))
        settings = replace(LossSettings(), own_context=numbers.random() < given.self_forcing)
        trainer.load_shadow()
        losses = batch_loss(
            trainer, data.draw(given.batch, numbers), chunks, settings, weights, draws
        )
        losses.mean().backward()
        progress = min(trainer.step / given.planned_steps, 1.0)
        warm = min(1.0, (trainer.step + 1) / 50)
        trainer.update(warm * (0.02 + 0.98 * 0.5 * (1 + np.cos(np.pi * progress))))
        recent.append(losses.tolist())
        if trainer.step % 25 == 0:
            entry: dict[str, object] = {
                "step": trainer.step,
                "seconds": round(time.monotonic() - began, 1),
                "loss": [round(float(v), 4) for v in np.mean(recent, 0)],
                "clips": 64 * len(data.shards),
            }
            recent = []
            if trainer.step % 200 == 0:
                trainer.load_shadow()
                entry["held_out"] = measure(trainer, data.held_out(16), weights)
                data.refresh()
            print(json.dumps(entry), file=log, flush=True)
        if time.monotonic() - last_saved > CHECKPOINT_SECONDS:
            save_checkpoint(checkpoint, trainer.state())
            last_saved = time.monotonic()
    save_checkpoint(checkpoint, trainer.state())


if __name__ == "__main__":
    main()
