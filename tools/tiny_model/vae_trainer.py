"""One training step of the VAE at a time; everything a later run needs to go on."""

from dataclasses import dataclass
from math import cos, pi

import torch
from torch import Tensor, nn
from torch.optim import AdamW, Optimizer

from sanawm_cli.vae.autoencoder import CausalVae
from tools.tiny_model.checkpoint import State
from tools.tiny_model.muon import Muon
from tools.tiny_model.pca import psnr
from tools.tiny_model.vae_loss import picture_loss, spread_loss

# First and last layers, whose rows or columns are pixels.
OUTER = ("encoder.conv_in.", "decoder.conv_out.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Step sizes. They rise over `warm_up` steps, and fall as a cosine from `hold` of all on."""

    muon: float = 0.005
    adam: float = 1e-3
    warm_up: int = 30
    hold: float = 0.3
    floor: float = 0.02
    noise: float = 0.05  # added to latents
    average: float = 0.99  # of weights, for the ones that are kept

    def scale(self, step: int, steps: int) -> float:
        """Factor on both rates at a step of so many."""
        done = min(step / steps, 1.0)
        fall = max(done - self.hold, 0.0) / (1 - self.hold)
        cosine = self.floor + (1 - self.floor) * (1 + cos(pi * fall)) / 2
        return min(1.0, (step + 1) / self.warm_up) * cosine


@dataclass(frozen=True, slots=True, kw_only=True)
class StepReport:
    """What a step found before it changed anything."""

    loss: float
    psnr: float
    gradient: float


class VaeTrainer:
    """A VAE, a slow average of its weights, and the optimizers' memories.

    Computes in bfloat16 with channels last: on a CPU with AMX several times as quick as float32.
    """

    def __init__(self, vae: CausalVae, rates: Rates) -> None:
        self.vae = vae.to(memory_format=torch.channels_last_3d)
        self.rates = rates
        self.step_count = 0
        self.average = [p.detach().clone() for p in self.vae.parameters()]
        self.optimizers = _optimizers(self.vae, rates)

    def step(self, pixels: Tensor, *, steps: int) -> StepReport:
        """Learn from b 3 t h w in [-1, 1]; `steps` is how many there will be in all."""
        self._set_rates(self.rates.scale(self.step_count, steps))
        pixels = pixels.to(memory_format=torch.channels_last_3d)
        with torch.autocast("cpu", torch.bfloat16):
            latents = self.vae.encode(pixels)
            noise = torch.randn(latents.shape, generator=_noise_source(self.step_count))
            seen = latents + self.rates.noise * noise.to(latents.dtype)
            frames, _ = self.vae.decoder(seen, self.vae.empty_memory())
        loss = picture_loss(frames.float(), pixels) + spread_loss(latents)
        loss.backward()
        gradient = nn.utils.clip_grad_norm_(self.vae.parameters(), 1.0)
        for optimizer in self.optimizers:
            optimizer.step()
            optimizer.zero_grad()
        self.step_count += 1
        self._follow()
        return StepReport(
            loss=float(loss), psnr=psnr(frames.detach().float(), pixels), gradient=float(gradient)
        )

    def averaged(self) -> CausalVae:
        """A copy of the VAE with the averaged weights."""
        vae = CausalVae(self.vae.config)
        with torch.no_grad():
            for parameter, average in zip(vae.parameters(), self.average, strict=True):
                parameter.copy_(average)
        return vae.eval().requires_grad_(False)

    def state(self) -> State:
        """All that changes, for a checkpoint."""
        return {
            "step": self.step_count,
            "vae": self.vae.state_dict(),
            "average": self.average,
            "optimizers": [optimizer.state_dict() for optimizer in self.optimizers],
        }

    def restore(self, state: State) -> None:
        """Go on from what `state` returned."""
        self.step_count = state["step"]
        self.vae.load_state_dict(state["vae"])
        self.average = list(state["average"])
        for optimizer, saved in zip(self.optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(saved)

    def _set_rates(self, scale: float) -> None:
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group["lr"] = group["peak"] * scale

    def _follow(self) -> None:
        count = self.step_count
        keep = min(self.rates.average, (1 + count) / (10 + count))
        current = [p.detach() for p in self.vae.parameters()]
        torch._foreach_lerp_(self.average, current, 1 - keep)


def _optimizers(vae: CausalVae, rates: Rates) -> tuple[Optimizer, ...]:
    inner = [p for name, p in vae.named_parameters() if p.ndim > 1 and not name.startswith(OUTER)]
    taken = set(map(id, inner))
    rest = [p for p in vae.parameters() if id(p) not in taken]
    muon = Muon(inner, lr=rates.muon)
    adam = AdamW(rest, lr=rates.adam, betas=(0.9, 0.98), weight_decay=1e-3, fused=True)
    for optimizer, peak in ((muon, rates.muon), (adam, rates.adam)):
        for group in optimizer.param_groups:
            group["peak"] = peak
    return muon, adam


def _noise_source(step: int) -> torch.Generator:
    # One source per step: a run that was interrupted draws what it would have drawn.
    return torch.Generator().manual_seed(step)
