"""Streaming cases: the whole loop, every step's output, and all memory after each clean pass."""

from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

from sanawm_cli.conditioning.clip import Clip, TensorCamera, TextEmbeds
from sanawm_cli.errors import InputError
from sanawm_cli.grid import FrameGrid
from sanawm_cli.model.context import ChunkContext, TimeVectors
from sanawm_cli.model.dit import Network
from sanawm_cli.model.memory import BlockMemory, DeltaMemory
from sanawm_cli.plan.chunks import Chunk, Plan, cut
from sanawm_cli.preset.settings import StreamSettings
from sanawm_cli.rollout.conditions import chunk_context, clip_text
from sanawm_cli.rollout.loop import OnStep, Sampler, StepDone
from sanawm_cli.rollout.noise import TensorNoise
from sanawm_cli.rollout.schedule import schedule
from sanawm_cli.rollout.session import RenderedChunk, RolloutSession
from sanawm_cli.verify.cases import Case, load_tensors, placed
from sanawm_cli.verify.intermediates import compare_intermediates
from sanawm_cli.verify.networks import case_network, network_config
from sanawm_cli.verify.report import CaseReport, Comparison

# Intermediates of one pass are recorded for this chunk's first step.
DEBUGGED_CHUNK = 1


def verify_stream(case: Case, device: torch.device, dtype: torch.dtype) -> CaseReport:
    """Render the case with its own noise and compare with every number it holds."""
    network = case_network(case, network_config(case.facts["arch"], "padded"), device, dtype)
    settings = case.facts["sampler"]
    wide = torch.promote_types(dtype, torch.float32)
    want = {name: placed(tensor, device, wide) for name, tensor in case.tensors.items()}
    sampler = Sampler(schedule(settings["denoising_step_list"]), float(settings["cfg_scale"]))
    run = _Run(network, sampler, case_clip(want, guided=sampler.copies == 2), case_plan(case))
    comparison = Comparison(case.name, case.kind)
    intermediates = load_tensors(case.beside("dbg")) if case.beside("dbg").exists() else {}
    session = RolloutSession(network, sampler, weights=case.name)
    session.start(run.clip, run.plan, TensorNoise(want["in.noise"]))
    rendered = []
    for chunk in run.plan.chunks:
        past = session.memory.view(chunk.context)
        if intermediates and chunk.index == DEBUGGED_CHUNK:
            noise = want["in.noise"][:, :, chunk.start : chunk.stop]
            time = run.time(sampler.schedule.timesteps[0], chunk)
            context = run.context(chunk)
            compare_intermediates(comparison, network, noise, time, context, past, intermediates)
            if "y" in intermediates:
                text = network.attention_y_norm(network.y_embedder(run.clip.text.embeds))
                comparison.add("intermediates: y", "y", text, intermediates["y"])
        done = session.step(_compare_steps(comparison, sampler, chunk, want))
        _compare_memory(comparison, done, want)
        name = f"c{chunk.index}.clean.model_out"
        if name in want:  # the clean pass's own output, which rendering has no use for
            latents = done.latents.repeat(sampler.copies, 1, 1, 1, 1)
            output = network.velocity(latents, run.time(0, chunk), run.context(chunk), past)
            comparison.add("clean velocity", name, output, want[name])
        rendered.append(done.latents)
    if "out.latents" in want:
        comparison.add("final latents", "out", torch.cat(rendered, 2), want["out.latents"])
    return comparison.report()


@dataclass(frozen=True, slots=True)
class _Run:
    """A case's render, for passes beside those that the session makes."""

    network: Network
    sampler: Sampler
    clip: Clip
    plan: Plan

    def context(self, chunk: Chunk) -> ChunkContext:
        text = clip_text(self.network, self.clip, self.sampler)
        return chunk_context(self.network, self.clip, text, chunk, self.sampler)

    def time(self, timestep: int, chunk: Chunk) -> TimeVectors:
        return self.network.time_table((timestep,)).frames([timestep] * chunk.latents)


def case_plan(case: Case) -> Plan:
    """The chunk plan of a case's segments and window."""
    segments, settings = case.facts["segments"], case.facts["sampler"]
    blocks = int(settings["num_cached_blocks"])
    stream = StreamSettings(
        chunk_latents=int(settings["num_frame_per_block"]),
        window="all" if blocks < 0 else blocks,
        sink=bool(settings["sink_token"]),
        grid="remainder",
    )
    grid = FrameGrid()
    latents = int(segments[-1])
    return Plan(
        source="chunk plan",
        requested=grid.frames(latents),
        frames=grid.frames(latents),
        latents=latents,
        fps=16,
        grid="by hand",
        chunks=cut(tuple(b - a for a, b in pairwise(segments)), stream=stream, frame_grid=grid),
    )


def case_clip(tensors: dict[str, Tensor], *, guided: bool) -> Clip:
    """The conditioning of a case; latent 0 of its noise is the encoded first frame."""
    camera = None
    if "in.camera_conditions" in tensors:
        batch = tensors["in.noise"].shape[0]  # under guidance a case may hold the camera twice
        camera = TensorCamera(
            tensors["in.camera_conditions"][:batch], tensors["in.chunk_plucker"][:batch]
        )
    negative = None
    if guided:
        if "in.neg_embeds" not in tensors:
            raise InputError("the case has guidance but no in.neg_embeds")
        negative = TextEmbeds(tensors["in.neg_embeds"], tensors["in.neg_mask"])
    text = TextEmbeds(tensors["in.embeds"], tensors["in.mask"])
    return Clip(tensors["in.noise"][:, :, :1], text, negative, camera)


def _compare_steps(
    comparison: Comparison, sampler: Sampler, chunk: Chunk, want: dict[str, Tensor]
) -> OnStep:
    """Compares a chunk's steps as the session reports them.

    Under guidance a case holds the network's output for [negative, positive], or what guidance
    made of it: the batch tells which.
    """

    def compare(done: StepDone) -> None:
        output, latents = want.get(f"c{chunk.index}.s{done.step}.model_out"), done.latents
        place = f"c{chunk.index}.s{done.step}"
        if output is not None:
            guided = output.shape[0] == latents.shape[0]
            have = sampler.guide(done.output) if guided else done.output
            comparison.add("velocity", f"{place}.model_out", have, output)
        if f"{place}.latents" in want:
            name = f"{place}.latents"
            comparison.add("latents", name, latents, want[name])

    return compare


def _compare_memory(comparison: Comparison, done: RenderedChunk, want: dict[str, Tensor]) -> None:
    """What the clean pass left, by upstream's slot numbers."""
    for index, memory in enumerate(done.absorbed):
        prefix = f"c{done.chunk.index}.cache.b{index}.slot"
        for slot, (quantity, have) in slots(memory).items():
            if f"{prefix}{slot}" in want:
                comparison.add(quantity, f"{prefix}{slot}", have, want[f"{prefix}{slot}"])


def slots(memory: BlockMemory) -> dict[int, tuple[str, Tensor]]:
    """A block's memory in upstream's slots and layouts: slot → (quantity, tensor).

    Slot 6 is upstream's flag for the kind of block: 1 = gated delta, 0 = softmax.
    """
    tail = memory.ffn_tail.permute(0, 3, 1, 2)  # b c 1 s
    kind = tail.new_tensor([1.0 if isinstance(memory, DeltaMemory) else 0.0])
    both = {6: ("memory: kind of block", kind), 9: ("memory: FFN tail", tail)}
    if isinstance(memory, DeltaMemory):
        key_tail = memory.key_tail.transpose(1, 2).flatten(0, 1)  # (b s) 3 c
        return both | {
            0: ("memory: state", memory.state),
            1: ("memory: normaliser", memory.norm.mT),
            2: ("memory: camera state", memory.camera),
            4: ("memory: key tail", key_tail),
        }
    return both | {
        0: ("memory: keys", memory.main.key.transpose(1, 2)),
        1: ("memory: values", memory.main.value.transpose(1, 2)),
        2: ("memory: camera keys", memory.camera.key.transpose(1, 2)),
        3: ("memory: camera values", memory.camera.value.transpose(1, 2)),
    }
