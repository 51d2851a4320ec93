"""A toy network and all that conditions it: small, seeded, and no weight zero."""

from dataclasses import fields
from typing import cast

import torch
from torch import Tensor

from sanawm_cli.cache.window import WindowMemory, WindowView
from sanawm_cli.conditioning.clip import Clip, TensorCamera, TextEmbeds
from sanawm_cli.configs import NetworkConfig
from sanawm_cli.grid import FrameGrid
from sanawm_cli.model.context import CameraInputs, ChunkContext, TimeVectors
from sanawm_cli.model.dit import PLUCKER_CHANNELS, Network
from sanawm_cli.model.memory import BlockMemory, KeyValue
from sanawm_cli.plan.chunks import Plan, cut
from sanawm_cli.preset.settings import StreamSettings, Window
from sanawm_cli.rollout.loop import Sampler, StepDone
from sanawm_cli.rollout.noise import Noise, TensorNoise
from sanawm_cli.rollout.schedule import schedule
from sanawm_cli.rollout.session import RenderedChunk, RolloutSession

Size = tuple[int, int]

CONFIG = NetworkConfig(
    latent_channels=8, width=48, heads=2, blocks=4, ffn_ratio=1.5, text_channels=20
)
SIZE = (2, 3)
STEPS = (1000, 727, 0)


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def toy_network(
    config: NetworkConfig = CONFIG, *, dtype: torch.dtype = torch.float64, seed: int = 0
) -> Network:
    """Every weight drawn: matrices keep a vector's length, the others are of order 1 or 1/3."""
    network = Network(config).requires_grad_(False)
    source = generator(seed)
    for name, weight in sorted(network.named_parameters()):
        drawn = torch.randn(weight.shape, generator=source, dtype=torch.float64)
        if name.endswith("weight") and weight.dim() > 1:
            drawn /= weight[0].numel() ** 0.5
        elif name.endswith("weight"):  # norms
            drawn = 1 + drawn / 5
        else:
            drawn /= 3
        weight.copy_(drawn)
    return network.to(dtype)


def toy_camera(batch: int, latents: int, size: Size, *, seed: int = 1) -> TensorCamera:
    """Poses turned and placed at random, wide lenses, any Plücker numbers; float64."""
    source = generator(seed)
    turn = torch.linalg.qr(
        torch.randn(batch, latents, 3, 3, generator=source, dtype=torch.float64)
    ).Q
    turn = turn * torch.linalg.det(turn)[..., None, None]  # no mirrors
    pose = torch.eye(4, dtype=torch.float64).repeat(batch, latents, 1, 1)
    pose[..., :3, :3] = turn
    pose[..., :3, 3] = torch.randn(batch, latents, 3, generator=source, dtype=torch.float64)
    lens = torch.rand(batch, latents, 4, generator=source, dtype=torch.float64) * 2 + 0.5
    plucker = torch.randn(
        batch, PLUCKER_CHANNELS, latents, *size, generator=source, dtype=torch.float64
    )
    return TensorCamera(torch.cat((pose.flatten(2), lens), -1), plucker)


def toy_text(*used: int, tokens: int = 6, seed: int = 2) -> TextEmbeds:
    """One row of `tokens` tokens per number; the row's first `used` of them are text; float64."""
    embeds = torch.randn(
        len(used), tokens, CONFIG.text_channels, generator=generator(seed), dtype=torch.float64
    )
    return TextEmbeds(embeds, torch.arange(tokens) < torch.tensor(used)[:, None])


def toy_latents(
    batch: int, latents: int, size: Size, *, channels: int = CONFIG.latent_channels, seed: int = 3
) -> Tensor:
    return torch.randn(
        batch, channels, latents, *size, generator=generator(seed), dtype=torch.float64
    )


def toy_clip(
    latents: int,
    *,
    size: Size = SIZE,
    dtype: torch.dtype = torch.float64,
    camera: bool = True,
    negative: TextEmbeds | None = None,
    seed: int = 4,
) -> Clip:
    """A clip of one video. Its camera reaches `latents` far."""
    seen = None
    if camera:
        full = toy_camera(1, latents, size, seed=seed)
        seen = TensorCamera(full.raymap.to(dtype), full.plucker.to(dtype))
    first = toy_latents(1, 1, size, seed=seed + 1).to(dtype)
    return Clip(first, toy_text(5, seed=seed + 2), negative, seen)


def toy_plan(*sizes: int, window: Window = 2, sink: bool = True) -> Plan:
    grid = FrameGrid()
    stream = StreamSettings(chunk_latents=sizes[-1], window=window, sink=sink, grid="remainder")
    latents = sum(sizes)
    return Plan(
        source="chunk plan",
        requested=grid.frames(latents),
        frames=grid.frames(latents),
        latents=latents,
        fps=16,
        grid="by hand",
        chunks=cut(sizes, stream=stream, frame_grid=grid),
    )


def toy_noise(plan: Plan, *, size: Size = SIZE, dtype: torch.dtype = torch.float64) -> TensorNoise:
    return TensorNoise(toy_latents(1, plan.latents, size, seed=6).to(dtype))


def toy_session(
    network: Network,
    *,
    steps: tuple[float, ...] = STEPS,
    cfg_scale: float = 1.0,
    weights: str = "toy",
) -> RolloutSession:
    return RolloutSession(network, Sampler(schedule(steps), cfg_scale), weights=weights)


# --- running things -----------------------------------------------------------------------------


def render(
    session: RolloutSession, clip: Clip, plan: Plan, noise: Noise
) -> tuple[list[RenderedChunk], list[StepDone]]:
    """All chunks of a clip, and all steps on the way."""
    steps: list[StepDone] = []
    session.start(clip, plan, noise)
    return [session.step(steps.append) for _ in plan.chunks], steps


def nothing_yet(network: Network, batch: int, size: Size) -> WindowView:
    """What the first chunk sees of the past."""
    return WindowMemory(network.empty_memory(batch, size[0] * size[1]), {}).view(())


def contexts(
    network: Network,
    text: TextEmbeds,
    camera: TensorCamera | None,
    latents: range,
    size: Size = SIZE,
) -> ChunkContext:
    """The context of a chunk whose camera is a part of `camera`."""
    seen: CameraInputs | None = None
    if camera is not None:
        seen = camera.chunk(latents.start, latents.stop)
    embedded = network.text_context(text.embeds, text.mask)
    return network.chunk_context(embedded, seen, latents=latents, size=size)


def at_timestep(network: Network, timestep: int, frames: int) -> TimeVectors:
    return network.time_vectors(torch.full((1, frames), timestep))


# --- comparing things ---------------------------------------------------------------------------


def tensors_of(memory: BlockMemory | KeyValue, prefix: str = "") -> dict[str, Tensor]:
    """All tensors of a block's memory by name."""
    found: dict[str, Tensor] = {}
    for field in fields(memory):
        value = getattr(memory, field.name)
        if isinstance(value, Tensor):
            found[prefix + field.name] = value
        else:
            found.update(tensors_of(cast(KeyValue, value), f"{prefix}{field.name}."))
    return found


def all_tensors(memories: tuple[BlockMemory, ...]) -> dict[str, Tensor]:
    return {
        f"{index}.{name}": tensor
        for index, memory in enumerate(memories)
        for name, tensor in tensors_of(memory).items()
    }


def assert_same(got: dict[str, Tensor], want: dict[str, Tensor]) -> None:
    """Bit for bit."""
    assert got.keys() == want.keys()
    for name, tensor in want.items():
        assert got[name].dtype == tensor.dtype, name
        assert torch.equal(got[name], tensor), name


def error(got: Tensor, want: Tensor) -> float:
    """Largest difference; the shapes must be the same."""
    assert got.shape == want.shape
    return float((got - want).abs().max()) if want.numel() else 0.0
