"""A render, from a resolved clip to a verified MP4 with its sidecar."""

import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import Tensor

from sanawm_cli.errors import OutputError
from sanawm_cli.jobs.conditions import (
    encode_first_frame,
    encode_prompts,
    make_clip,
    saved_prompts,
)
from sanawm_cli.jobs.events import (
    ChunkDone,
    Event,
    OnEvent,
    PassDone,
    Remark,
    RenderBegan,
    StageBegan,
)
from sanawm_cli.jobs.machine import Machine, compute_threads, memory_errors, peak_memory_bytes
from sanawm_cli.jobs.models import check_listed, load_network, load_vae
from sanawm_cli.jobs.report import RenderReport, input_facts, sidecar_content
from sanawm_cli.jobs.request import ClipRequest
from sanawm_cli.jobs.resolve import ResolvedClip
from sanawm_cli.model.dit import Network
from sanawm_cli.output.encoder import check_picture_size
from sanawm_cli.output.ffmpeg import bundled_ffmpeg, ffmpeg_version, signals_held
from sanawm_cli.output.files import discard, output_errors
from sanawm_cli.output.frames import frame_hash, to_frames
from sanawm_cli.output.join import part_path
from sanawm_cli.output.mp4 import Mp4Writer
from sanawm_cli.output.publish import check_target
from sanawm_cli.output.sidecar import sidecar_path
from sanawm_cli.plan.chunks import Chunk
from sanawm_cli.preset.settings import Preset
from sanawm_cli.rollout.loop import OnStep, Sampler, StepDone
from sanawm_cli.rollout.noise import FrameNoise, Noise, horizon_noise
from sanawm_cli.rollout.schedule import schedule
from sanawm_cli.rollout.session import RolloutSession
from sanawm_cli.vae.autoencoder import CausalVae


def check_render(
    clip: ResolvedClip, request: ClipRequest, output: Path, *, overwrite: bool
) -> None:
    """Raise, before any weights are loaded, what would stop the render later.

    WeightsError for a model without all its parts, InputError or UsageError for embeddings that
    do not fit, OutputError for a video that could not be written, or only over an input.
    """
    check_listed(clip.model)
    saved_prompts(clip)
    check_target(output, overwrite=overwrite)
    check_picture_size(clip.resolved.preset.video)
    written = {path.resolve() for path in (output, sidecar_path(output))}
    for path in (request.image, request.prompt_file, request.text_embeds, request.camera):
        if path is not None and path.resolve() in written:
            raise OutputError(
                f"{path} is an input of this render and would be replaced",
                hint="choose another name with --output",
            )


def render_clip(
    clip: ResolvedClip,
    request: ClipRequest,
    machine: Machine,
    output: Path,
    *,
    overwrite: bool,
    on_event: OnEvent,
) -> RenderReport:
    """Render a clip chunk by chunk. Whatever goes wrong, no half video is left behind.

    Raises the error of the stage that failed; an older video under the same name then stays.
    """
    began = time.perf_counter()
    check_render(clip, request, output, overwrite=overwrite)
    ffmpeg = bundled_ffmpeg()
    video = clip.resolved.preset.video
    inputs = input_facts(clip, request)
    remarks: list[str] = []

    def follow(event: Event) -> None:
        if isinstance(event, Remark):
            remarks.append(event.text)
        on_event(event)

    with memory_errors(), compute_threads(machine.threads), _workspace(output) as folder:
        writer = Mp4Writer(output, folder=folder, settings=video, ffmpeg=ffmpeg)
        chunks, hashes = _render_chunks(clip, machine, writer, follow)
        on_event(StageBegan("verify"))
        report = RenderReport(
            output=output,
            frames=writer.frames,
            width=video.width,
            height=video.height,
            fps=video.fps,
            chunks=len(chunks),
            wall_seconds=time.perf_counter() - began,
            peak_memory_bytes=peak_memory_bytes(),
            frame_hashes=hashes,
        )
        content = sidecar_content(
            clip, inputs, machine, ffmpeg_version(ffmpeg), report, chunks, remarks
        )
        writer.finish(content, overwrite=overwrite)
    return report


def _render_chunks(
    clip: ResolvedClip, machine: Machine, writer: Mp4Writer, on_event: OnEvent
) -> tuple[list[ChunkDone], tuple[str, ...]]:
    """All chunks of the plan into the writer; what each took, and the hash of its frames."""
    session, vae = _begin(clip, machine, on_event)
    passes = _pass_count(clip.resolved.preset)
    memory = vae.empty_memory()
    chunks: list[ChunkDone] = []
    hashes: list[str] = []
    for chunk in clip.resolved.plan.chunks:
        clock = _Clock(machine.device)
        latents = session.step(_tell_passes(chunk, on_event)).latents
        on_event(PassDone(chunk, passes, passes))
        network_seconds = clock.lap()
        with torch.inference_mode():
            pictures, memory = vae.decode(latents, memory)
        frames = to_frames(pictures, where=f"chunk {chunk.index}")
        del pictures  # the largest tensor there is: gone before the next chunk
        decode_seconds = clock.lap()
        hashes.append(frame_hash(frames))
        writer.add(frames)
        chunks.append(ChunkDone(chunk, network_seconds, decode_seconds, clock.lap()))
        on_event(chunks[-1])
    return chunks, tuple(hashes)


def _begin(
    clip: ResolvedClip, machine: Machine, on_event: OnEvent
) -> tuple[RolloutSession, CausalVae]:
    """Load, encode, and start a session. The text encoder is gone before the network comes."""
    preset, plan = clip.resolved.preset, clip.resolved.plan
    clip.model.check_files()
    prompts = encode_prompts(clip, machine, on_event)
    on_event(StageBegan("load weights"))
    vae = load_vae(clip.model, machine)
    network = load_network(clip.model, machine)
    on_event(StageBegan("encode first frame"))
    first_latent = encode_first_frame(vae, clip.first_frame, machine)
    sampler = Sampler(schedule(preset.sampler.steps), preset.sampler.cfg_scale)
    session = RolloutSession(network, sampler, weights=clip.model.fingerprint)
    noise = _noise(preset, first_latent, plan.latents, network)
    session.start(make_clip(clip, first_latent, prompts, machine), plan, noise)
    on_event(RenderBegan(plan, _pass_count(preset)))
    return session, vae


def _noise(preset: Preset, first_latent: Tensor, latents: int, network: Network) -> Noise:
    _, channels, _, rows, columns = first_latent.shape
    seed, device = preset.sampler.seed, first_latent.device
    if preset.sampler.noise == "horizon":
        return horizon_noise(seed, (channels, latents, rows, columns), device, network.dtype)
    return FrameNoise(seed, (channels, rows, columns), device)


def _pass_count(preset: Preset) -> int:
    """Passes of the network per chunk: one per noise step, and the clean one."""
    return len(preset.sampler.steps)


def _tell_passes(chunk: Chunk, on_event: OnEvent) -> OnStep:
    """Tells a session's steps as passes of the network."""

    def tell(done: StepDone) -> None:
        on_event(PassDone(chunk, done.step + 1, done.steps + 1))

    return tell


class _Clock:
    """Seconds since the last lap, with the device's work finished."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._last = time.perf_counter()

    def lap(self) -> float:
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
        now = time.perf_counter()
        seconds, self._last = now - self._last, now
        return seconds


@contextmanager
def _workspace(output: Path) -> Iterator[Path]:
    """A folder for segments beside the output, gone afterwards with what is half done."""
    folder: Path | None = None
    try:
        with signals_held(), output_errors(output):
            made = tempfile.mkdtemp(prefix=f".{output.name[:64]}.", dir=output.absolute().parent)
            folder = Path(made)
        yield folder
    finally:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
            discard(part_path(output))
