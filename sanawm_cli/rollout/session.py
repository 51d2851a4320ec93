"""A rollout in progress: everything that lives between chunks of a clip.

    session = RolloutSession(network, sampler, weights=fingerprint)
    session.start(clip, plan, noise)
    for _ in plan.chunks:
        rendered = session.step()

There is no other way to render: offline, resumed and extended clips all go through `step`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from sanawm_cli.cache.window import WindowMemory
from sanawm_cli.conditioning.clip import Clip, tensor_fingerprint
from sanawm_cli.errors import NumericsError, SessionError
from sanawm_cli.model.context import ChunkContext, TextContext, TimeTable
from sanawm_cli.model.dit import Network
from sanawm_cli.model.memory import BlockMemory
from sanawm_cli.plan.chunks import Chunk, Plan
from sanawm_cli.rollout.conditions import chunk_context, clip_text
from sanawm_cli.rollout.loop import OnStep, Sampler, StepDone, absorb, denoise
from sanawm_cli.rollout.noise import Noise

STATE_VERSION = 1


@dataclass(frozen=True, slots=True)
class RenderedChunk:
    """A finished chunk: clean, normalised latents b c t h w, and what the blocks took from it."""

    chunk: Chunk
    latents: Tensor
    absorbed: tuple[BlockMemory, ...]


@dataclass(frozen=True, slots=True)
class SessionState:
    """A session between two chunks: tensors by name, and facts that must match to go on."""

    tensors: Mapping[str, Tensor]
    facts: Mapping[str, str]
    next_chunk: int


@dataclass(frozen=True, slots=True)
class _Running:
    clip: Clip
    plan: Plan
    noise: Noise
    text: TextContext
    times: TimeTable
    memory: WindowMemory
    facts: Mapping[str, str]
    next_chunk: int


def ignore_step(done: StepDone) -> None:
    """For callers that do not follow the steps."""


class RolloutSession:
    """Renders a clip chunk by chunk. `weights` is the fingerprint of the network's weights."""

    def __init__(self, network: Network, sampler: Sampler, *, weights: str) -> None:
        self._network = network
        self._sampler = sampler
        self._weights = weights
        self._running: _Running | None = None

    def start(self, clip: Clip, plan: Plan, noise: Noise) -> None:
        """Begin at chunk 0; a clip in progress is dropped first, with its memory.

        Raises SessionError when clip and network do not fit each other.
        """
        self._running = None
        self._check(clip)
        like = clip.first_latent
        batch = like.shape[0] * self._sampler.copies
        memory = WindowMemory(
            self._network.empty_memory(batch, like.shape[3] * like.shape[4]), segments={}
        )
        with torch.inference_mode():
            self._running = _Running(
                clip,
                plan,
                noise,
                clip_text(self._network, clip, self._sampler),
                self._network.time_table((0, *self._sampler.schedule.timesteps)),
                memory,
                self._facts(clip, plan, noise),
                next_chunk=0,
            )

    def step(self, on_step: OnStep = ignore_step) -> RenderedChunk:
        """Render the next chunk. Raises SessionError when there is none."""
        running = self._in_progress()
        chunk = self._next(running)
        with torch.inference_mode():
            context = self._context(running, chunk)
            latents = denoise(
                self._network,
                self._noise(running, chunk),
                chunk,
                sampler=self._sampler,
                times=running.times,
                context=context,
                past=running.memory.view(chunk.context),
                on_step=on_step,
            )
            absorbed = self._absorb(running, chunk, latents, context)
        return RenderedChunk(chunk, latents, absorbed)

    def replay(self, latents: Tensor) -> None:
        """Take the next chunk's clean latents (b c t h w) as given: only the clean pass runs.

        The memory is bit for bit the one that `step` would have left.
        """
        running = self._in_progress()
        chunk = self._next(running)
        shape = list(running.clip.first_latent.shape)
        shape[2] = chunk.latents
        if list(latents.shape) != shape:
            raise SessionError(
                f"chunk {chunk.index} has latents {tuple(shape)}, {tuple(latents.shape)} were given"
            )
        if not bool(torch.isfinite(latents).all()):
            raise NumericsError(f"the latents given for chunk {chunk.index} are not finite")
        with torch.inference_mode():
            context = self._context(running, chunk)
            self._absorb(running, chunk, latents, context)

    def close(self) -> None:
        """Drop the clip in progress and its memory."""
        self._running = None

    @property
    def next_chunk(self) -> int:
        """Index of the chunk that `step` would render."""
        return self._in_progress().next_chunk

    @property
    def memory(self) -> WindowMemory:
        """What the network's blocks remember at this moment."""
        return self._in_progress().memory

    def state(self) -> SessionState:
        """The session between two chunks, for `restore`."""
        running = self._in_progress()
        return SessionState(dict(running.memory.named_tensors()), running.facts, running.next_chunk)

    def restore(self, clip: Clip, plan: Plan, noise: Noise, state: SessionState) -> None:
        """Go on from `state`. Raises SessionError naming what differs from when it was taken.

        The camera's numbers are not compared: a clip that is extended brings a longer path.
        """
        self.start(clip, plan, noise)
        running = self._in_progress()
        for name in sorted({*running.facts, *state.facts}):
            then, now = state.facts.get(name, "nothing"), running.facts.get(name, "nothing")
            if then != now:
                self.close()
                raise SessionError(f"the session was started with {name} {then}, now it is {now}")
        self.close()  # a state that is refused leaves no half-started session behind
        memory = running.memory.with_tensors(state.tensors)
        if not 0 <= state.next_chunk <= len(plan.chunks):
            raise SessionError(f"the session's state is of chunk {state.next_chunk}, of no plan")
        needed = plan.kept_after(state.next_chunk - 1) if state.next_chunk else ()
        if tuple(memory.segments) != needed:
            raise SessionError(
                f"the session's state holds chunks {tuple(memory.segments)}, "
                f"chunk {state.next_chunk} needs {needed}"
            )
        self._running = replace(running, memory=memory, next_chunk=state.next_chunk)

    # --- the parts of a step ------------------------------------------------------------------

    def _noise(self, running: _Running, chunk: Chunk) -> Tensor:
        """The chunk's noise; the clip's first latent is the encoded first frame instead."""
        first = running.clip.first_latent
        noise = running.noise.latents(chunk.start, chunk.stop).to(first.device)
        if chunk.start == 0:
            noise = torch.cat((first.to(noise.dtype), noise[:, :, 1:]), 2)
        return noise

    def _context(self, running: _Running, chunk: Chunk) -> ChunkContext:
        return chunk_context(self._network, running.clip, running.text, chunk, self._sampler)

    def _absorb(
        self, running: _Running, chunk: Chunk, latents: Tensor, context: ChunkContext
    ) -> tuple[BlockMemory, ...]:
        """The clean pass; moves the session past the chunk."""
        absorbed = absorb(
            self._network,
            latents,
            sampler=self._sampler,
            times=running.times,
            context=context,
            past=running.memory.view(chunk.context),
        )
        keep = running.plan.kept_after(chunk.index)
        memory = running.memory.extend(chunk.index, absorbed, keep=keep)
        self._running = replace(running, memory=memory, next_chunk=chunk.index + 1)
        return absorbed

    # --- the checks ---------------------------------------------------------------------------

    def _in_progress(self) -> _Running:
        if self._running is None:
            raise SessionError("the session has no clip in progress; call start() first")
        return self._running

    def _next(self, running: _Running) -> Chunk:
        if running.next_chunk >= len(running.plan.chunks):
            raise SessionError(f"all {len(running.plan.chunks)} chunks of the plan are rendered")
        return running.plan.chunks[running.next_chunk]

    def _check(self, clip: Clip) -> None:
        config = self._network.config
        checks = [
            ("the first latent's channels", clip.first_latent.shape[1], config.latent_channels),
            ("the prompt's channels", clip.text.embeds.shape[2], config.text_channels),
        ]
        if clip.negative is not None:
            channels = clip.negative.embeds.shape[2]
            checks.append(("the negative prompt's channels", channels, config.text_channels))
        for name, have, want in checks:
            if have != want:
                raise SessionError(f"{name}: {have}, the network has {want}")

    def _facts(self, clip: Clip, plan: Plan, noise: Noise) -> Mapping[str, str]:
        """What must be the same for a state to be continued."""
        texts = [clip.text] if clip.negative is None else [clip.text, clip.negative]
        tensors = [clip.first_latent, *(t for text in texts for t in (text.embeds, text.mask))]
        chunks = " ".join(
            f"{c.start}-{c.stop}<{','.join(map(str, c.context))}" for c in plan.chunks
        )
        return {
            "state version": str(STATE_VERSION),
            "network": repr(self._network.config),
            "dtype": str(self._network.dtype),
            "weights": self._weights,
            "steps": repr(self._sampler.schedule.sigmas),
            "cfg scale": str(self._sampler.cfg_scale),
            "chunk plan": chunks,
            "conditioning": tensor_fingerprint(*tensors),
            "noise": noise.label,
            "camera branch": "off" if clip.camera is None else "on",
        }
