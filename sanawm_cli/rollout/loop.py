"""One chunk, from noise to clean latents to memory. Pure: state goes in and comes out."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

from sanawm_cli.errors import NumericsError
from sanawm_cli.model.context import ChunkContext, TimeTable
from sanawm_cli.model.dit import Network
from sanawm_cli.model.memory import BlockMemory, Past
from sanawm_cli.plan.chunks import Chunk
from sanawm_cli.rollout.schedule import Schedule, euler, levels


@dataclass(frozen=True, slots=True)
class StepDone:
    """A chunk has passed a noise step; `step` counts from 0 of `steps`.

    output is the network's raw output, latents what the step made of it; both b c t h w, the
    former with a batch of [negative, positive] under guidance.
    """

    chunk: Chunk
    step: int
    steps: int
    output: Tensor
    latents: Tensor


OnStep = Callable[[StepDone], None]


@dataclass(frozen=True, slots=True)
class Sampler:
    """How a chunk is denoised. Any `cfg_scale` but 1 makes the batch [negative, positive]."""

    schedule: Schedule
    cfg_scale: float

    @property
    def copies(self) -> int:
        """Rows of the network's batch per video."""
        return 2 if self.cfg_scale != 1.0 else 1

    def guide(self, velocity: Tensor) -> Tensor:
        """v_neg + s·(v_pos − v_neg) of a batch [negative, positive]; without guidance, itself."""
        if self.copies == 1:
            return velocity
        negative, positive = velocity.chunk(2)
        return negative + self.cfg_scale * (positive - negative)


def pinned_frames(chunk: Chunk) -> tuple[bool, ...]:
    """Which latents of a chunk are given and must not move: the clip's first."""
    return tuple(latent == 0 for latent in range(chunk.start, chunk.stop))


def denoise(
    network: Network,
    noise: Tensor,
    chunk: Chunk,
    *,
    sampler: Sampler,
    times: TimeTable,
    context: ChunkContext,
    past: Past,
    on_step: OnStep,
) -> Tensor:
    """Noise (b c t h w) → clean latents of a chunk, against the past.

    Where a latent is pinned, `noise` holds the clean latent; it is put back bit for bit after
    every step. Raises NumericsError naming chunk and step when a value is not finite.
    """
    pinned = pinned_frames(chunk)
    fixed = torch.tensor(pinned, device=noise.device)[:, None, None]
    sigmas = sampler.schedule.sigmas
    steps = len(sampler.schedule.timesteps)
    x = noise
    for step, (timestep, (now, then)) in enumerate(
        zip(sampler.schedule.timesteps, pairwise(sigmas), strict=True)
    ):
        time = times.frames([0 if given else timestep for given in pinned])
        batch = x.repeat(sampler.copies, 1, 1, 1, 1)
        output = network.velocity(batch, time, context, past)
        x = euler(x, sampler.guide(output), levels(now, pinned, x), levels(then, pinned, x))
        x = torch.where(fixed, noise, x)
        if not bool(torch.isfinite(x).all()):
            raise NumericsError(
                f"latents of chunk {chunk.index} are not finite after step {step + 1} of {steps} "
                f"(timestep {timestep})",
                hint="try --dtype float32; if it stays, the weights are damaged",
            )
        on_step(StepDone(chunk, step, steps, output, x))
    return x


def absorb(
    network: Network,
    latents: Tensor,
    *,
    sampler: Sampler,
    times: TimeTable,
    context: ChunkContext,
    past: Past,
) -> tuple[BlockMemory, ...]:
    """The clean pass over a finished chunk (b c t h w): what its blocks will remember."""
    time = times.frames([0] * latents.shape[2])
    return network.absorb(latents.repeat(sampler.copies, 1, 1, 1, 1), time, context, past)
