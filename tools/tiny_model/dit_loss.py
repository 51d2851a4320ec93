"""The loss of the network, through its own two verbs, chunk after chunk.

Teacher forcing: memory comes from the true earlier chunks (a little noise on them, so that the
network learns to forgive its own mistakes). Self-forcing: memory comes from chunks that the
network made itself, without gradient, and each step still aims at the truth.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from sanawm_cli.cache.window import WindowMemory
from sanawm_cli.model.context import CameraInputs, ChunkContext, TextContext
from sanawm_cli.model.dit import Network
from sanawm_cli.plan.chunks import Chunk
from sanawm_cli.rollout.schedule import TIMESTEPS
from tools.tiny_model.dit_batch import Batch


@dataclass(frozen=True, slots=True, kw_only=True)
class LossSettings:
    """Shares and sizes of what makes a training step.

    sampler_steps: the timesteps that the renders use; `sampler_share` of draws are from them.
    context_noise: largest noise on remembered chunks. own_context: whether to self-force.
    """

    sampler_steps: tuple[int, ...] = (1000, 960, 889, 727)
    sampler_share: float = 0.75
    context_noise: float = 0.2
    own_context: bool = False


def clip_loss(
    network: Network,
    text: TextContext,
    batch: Batch,
    chunks: tuple[Chunk, ...],
    settings: LossSettings,
    weights: Tensor,
    random: torch.Generator,
) -> Tensor:
    """Mean over chunks (n,) of the weighted squared error of the predicted clean latents.

    weights: one per latent channel, mean 1. Latent 0 is given and does not count.
    """
    rows, columns = batch.latents.shape[3:]
    empty = network.empty_memory(batch.latents.shape[0], rows * columns)
    memory = WindowMemory(empty, segments={})
    losses = []
    for chunk in chunks:
        context = network.chunk_context(
            text,
            CameraInputs(
                batch.camera.raymap[:, chunk.start : chunk.stop],
                batch.camera.plucker[:, :, chunk.start : chunk.stop],
            ),
            latents=range(chunk.start, chunk.stop),
            size=(rows, columns),
        )
        truth = batch.latents[:, :, chunk.start : chunk.stop]
        loss, own = _denoise(network, truth, chunk, context, memory, settings, random)
        losses.append(_weighted(loss, weights, chunk))
        if chunk is not chunks[-1]:
            remembered = own if settings.own_context else truth
            memory = _remember(
                network, remembered, chunk, context, memory, chunks, settings, random
            )
    return torch.stack(losses)


def _denoise(
    network: Network,
    truth: Tensor,
    chunk: Chunk,
    context: ChunkContext,
    memory: WindowMemory,
    settings: LossSettings,
    random: torch.Generator,
) -> tuple[Tensor, Tensor]:
    """Squared error of the clean latents predicted from one noise level, and the prediction."""
    timesteps = _timesteps(truth.shape[0], settings, random)  # b
    per_frame = timesteps[:, None].repeat(1, chunk.latents)
    if chunk.start == 0:
        per_frame[:, 0] = 0
    sigma = (per_frame / TIMESTEPS)[:, None, :, None, None]
    noise = torch.randn(truth.shape, generator=random)
    noisy = (1 - sigma) * truth + sigma * noise
    velocity = network.velocity(
        noisy, network.time_vectors(per_frame), context, memory.view(chunk.context)
    )
    clean = noisy - sigma * velocity
    return (clean - truth).square(), clean.detach()


def _remember(
    network: Network,
    latents: Tensor,
    chunk: Chunk,
    context: ChunkContext,
    memory: WindowMemory,
    chunks: tuple[Chunk, ...],
    settings: LossSettings,
    random: torch.Generator,
) -> WindowMemory:
    """The clean pass over a chunk with a little noise on it (never on the given latent)."""
    amount = settings.context_noise * torch.rand((latents.shape[0], 1, 1, 1, 1), generator=random)
    noisy = latents + amount * torch.randn(latents.shape, generator=random)
    if chunk.start == 0:
        noisy = torch.cat((latents[:, :, :1], noisy[:, :, 1:]), 2)
    clean = torch.zeros((latents.shape[0], chunk.latents), dtype=torch.long)
    absorbed = network.absorb(
        noisy, network.time_vectors(clean), context, memory.view(chunk.context)
    )
    return memory.extend(chunk.index, absorbed, keep=chunks[chunk.index + 1].context)


def _timesteps(count: int, settings: LossSettings, random: torch.Generator) -> Tensor:
    """One timestep per clip: mostly those that renders use, else any."""
    steps = torch.tensor(settings.sampler_steps)
    picked = steps[torch.randint(len(steps), (count,), generator=random)]
    other = torch.randint(1, TIMESTEPS + 1, (count,), generator=random)
    mostly = torch.rand(count, generator=random) < settings.sampler_share
    return torch.where(mostly, picked, other)


def _weighted(squares: Tensor, weights: Tensor, chunk: Chunk) -> Tensor:
    """Mean over all but the given latent."""
    if chunk.start == 0:
        squares = squares[:, :, 1:]
    return (squares * weights[:, None, None, None]).mean()
