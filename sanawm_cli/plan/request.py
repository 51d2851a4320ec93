"""From what the user asked for to a plan."""

from dataclasses import dataclass
from math import floor
from typing import Literal

from sanawm_cli.errors import PlanError, UsageError
from sanawm_cli.grid import FrameGrid
from sanawm_cli.plan.chunks import FrameSource, Plan, PlanGrid, cut
from sanawm_cli.plan.sizes import (
    MAX_LATENTS,
    check_chunk_plan,
    chunk_sizes,
    grid_period,
    used_grid,
)
from sanawm_cli.preset.settings import Preset
from sanawm_cli.preset.typed import shown

Snap = Literal["vae", "chunk", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameRequest:
    """How long a clip is to be; the first that is given counts, None: not given.

    `chunk_plan`: latents per chunk, made by hand. `frames` or `seconds`: the user's count, moved
    by `snap` to one that can be rendered. `poses`: how many poses the camera has.
    """

    chunk_plan: tuple[int, ...] | None = None
    frames: int | None = None
    seconds: float | None = None
    poses: int | None = None
    snap: Snap = "vae"


def make_plan(preset: Preset, request: FrameRequest) -> Plan:
    """The plan for a request; with nothing given, of the preset's default length.

    Raises PlanError (a count that cannot be rendered), ChunkPlanError (a plan by hand that covers
    another number of latents than the count that came with it), UsageError (two counts).
    """
    grid = preset.frame_grid
    source, requested, latents = _wanted(preset, request)
    if latents > MAX_LATENTS:
        raise _too_long(f"{shown(requested)} frames", grid)
    rule: PlanGrid
    if request.chunk_plan is not None:
        check_chunk_plan(request.chunk_plan, latents)
        sizes, rule = request.chunk_plan, "by hand"
    else:
        sizes = chunk_sizes(latents, stream=preset.stream, frame_grid=grid)
        rule = used_grid(preset.stream)
    return Plan(
        source=source,
        requested=requested,
        frames=grid.frames(latents),
        latents=latents,
        fps=preset.video.fps,
        grid=rule,
        chunks=cut(sizes, stream=preset.stream, frame_grid=grid),
    )


def _wanted(preset: Preset, request: FrameRequest) -> tuple[FrameSource, int, int]:
    """Who says how long the clip is, how many frames it says, and how many latents that is."""
    grid = preset.frame_grid
    if request.frames is not None and request.seconds is not None:
        raise UsageError("--frames and --seconds exclude each other")
    if request.frames is not None:
        return "frames", request.frames, _snapped(request.frames, preset, request.snap)
    if request.seconds is not None:
        count = _frames_in(request.seconds, preset)
        return "seconds", count, _snapped(count, preset, request.snap)
    if request.chunk_plan is not None:
        latents = sum(request.chunk_plan)
        return "chunk plan", grid.frames(latents), latents
    if request.poses is not None:
        return "poses", request.poses, _within(request.poses, preset)
    return "preset", preset.video.default_frames, grid.latents(preset.video.default_frames)


def _snapped(frames: int, preset: Preset, snap: Snap) -> int:
    """Latents for a user's count of frames."""
    grid = preset.frame_grid
    if frames < 1:
        raise PlanError(f"{shown(frames)} frames: at least 1 is needed")
    if frames > grid.frames(MAX_LATENTS):
        raise _too_long(f"{shown(frames)} frames", grid)
    if snap == "none":
        return grid.latents(frames)
    period = grid.temporal_stride * (preset.stream.chunk_latents if snap == "chunk" else 1)
    return grid.latents(grid.nearest(frames, period))


def _frames_in(seconds: float, preset: Preset) -> int:
    """Seconds times fps, to the nearest whole frame, halves up."""
    frames = seconds * preset.video.fps
    if not 0 < frames <= preset.frame_grid.frames(MAX_LATENTS):  # so that NaN is refused too
        raise PlanError(f"{seconds} seconds are no length for a clip")
    return floor(frames + 0.5)


def _within(poses: int, preset: Preset) -> int:
    """Latents of the longest clip that the poses suffice for."""
    if poses < 1:
        raise PlanError("a camera path without poses gives no frames")
    grid = preset.frame_grid
    return grid.latents(grid.neighbours(poses, grid_period(preset.stream, grid))[0])


def _too_long(what: str, grid: FrameGrid) -> PlanError:
    return PlanError(
        f"{what} are more than one render takes ({grid.frames(MAX_LATENTS)})",
        hint="render a shorter clip, then extend it",
    )
