"""Chunk sizes: by rule from a frame count, or made by hand."""

import re

from sanawm_cli.errors import ChunkPlanError, PlanError
from sanawm_cli.grid import FrameGrid
from sanawm_cli.preset.settings import GridRule, StreamSettings

# 13 hours at 16 frames per second. A plan lists every chunk, so a digit too many must not pass.
MAX_LATENTS = 100_000
_MOST_SHOWN = 40


def chunk_sizes(latents: int, *, stream: StreamSettings, frame_grid: FrameGrid) -> tuple[int, ...]:
    """Latents per chunk; on the remainder grid the first chunk takes what is left over.

    On the uniform grid the first chunk is the first latent and `chunk_latents` more, whatever
    follows, so that a longer clip starts with the chunks of a shorter one. Raises PlanError for
    a clip that is too short, or that is not whole chunks on the uniform grid.
    """
    size, frames = stream.chunk_latents, frame_grid.frames(latents)
    if latents < size:
        raise PlanError(
            f"{frames} frames are {latents} latents, too few for chunks of {size}; "
            f"the smallest frame count that works is {smallest_frames(stream, frame_grid)}",
            hint=f"an action needs {smallest_frames(stream, frame_grid) - 1} frames",
        )
    if size == 1:
        return (2, *(1,) * (latents - 2)) if latents > 1 else (1,)
    if grid_period(stream, frame_grid) > frame_grid.temporal_stride:
        _refuse_uneven(frames, stream=stream, frame_grid=frame_grid)
    return (size + latents % size, *(size,) * (latents // size - 1))


def used_grid(stream: StreamSettings) -> GridRule:
    """The grid that is used: chunks of one latent always lie on the uniform one."""
    return "uniform" if stream.chunk_latents == 1 else stream.grid


def smallest_frames(stream: StreamSettings, frame_grid: FrameGrid) -> int:
    """Fewest frames that can be cut into chunks."""
    whole = stream.chunk_latents > 1 and stream.grid == "uniform"
    return frame_grid.frames(stream.chunk_latents + 1 if whole else stream.chunk_latents)


def grid_period(stream: StreamSettings, frame_grid: FrameGrid) -> int:
    """Frames between two frame counts that can be cut: a latent, or a chunk when uniform."""
    latents = stream.chunk_latents if used_grid(stream) == "uniform" else 1
    return frame_grid.temporal_stride * latents


def parse_chunk_plan(text: str) -> tuple[int, ...]:
    """Latents per chunk from "4,3,3". Raises ChunkPlanError for all but positive integers."""
    entries = [entry.strip() for entry in text.split(",")]
    for entry in entries:
        if not re.fullmatch(r"0*[1-9][0-9]{0,5}", entry):
            short = entry if len(entry) <= _MOST_SHOWN else f"{entry[:_MOST_SHOWN]}…"
            raise ChunkPlanError(
                f"chunk plan entry {short!r} is not a positive number of latent frames",
                hint="write the latents of each chunk, for example --chunk-plan 4,3,3",
            )
    return tuple(int(entry) for entry in entries)


def check_chunk_plan(sizes: tuple[int, ...], latents: int) -> None:
    """Raises ChunkPlanError when sizes made by hand are not positive or miss the latents."""
    listed = ", ".join(map(str, sizes[:_MOST_SHOWN]))
    more = ", …" if len(sizes) > _MOST_SHOWN else ""
    if not sizes or min(sizes) < 1:
        raise ChunkPlanError(
            f"chunk plan [{listed}{more}] is not a list of positive numbers of latent frames"
        )
    if sum(sizes) != latents:
        raise ChunkPlanError(
            f"chunk plan [{listed}{more}] covers {sum(sizes)} latent frames, "
            f"the request has {latents}",
            hint="change the plan, or leave the frame count out: the plan then sets it",
        )


def _refuse_uneven(frames: int, *, stream: StreamSettings, frame_grid: FrameGrid) -> None:
    period = grid_period(stream, frame_grid)
    below, above = frame_grid.neighbours(frames, period)
    if below != above:
        least = smallest_frames(stream, frame_grid)
        counts = f"{below} or {above}" if below >= least else f"{above}"
        raise PlanError(
            f"{frames} frames do not fit the uniform grid ({period}k + 1)",
            hint=f"ask for {counts} frames, or use --snap chunk",
        )
