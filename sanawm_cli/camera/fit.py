"""Making the number of poses that of the frames: never silently, and only as asked."""

from dataclasses import dataclass

import numpy as np

from sanawm_cli.camera.choices import Fit
from sanawm_cli.camera.intrinsics import IntrinsicRows
from sanawm_cli.camera.poses import Poses, nearest_rotation, rigid_inverse
from sanawm_cli.errors import InputError

SPARE = 7  # a path that ends between two latents has up to this many poses too many


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FittedPath:
    """Poses (frames, 4, 4), their intrinsics if any, and what was done in words (or None)."""

    poses: Poses
    intrinsics: IntrinsicRows | None
    note: str | None


def fit_poses(
    poses: Poses, frames: int, *, how: Fit, intrinsics: IntrinsicRows | None = None
) -> FittedPath:
    """Give each of `frames` frames a pose; intrinsics of (F, 4) go along, (1, 4) stay.

    Too few poses: "hold" repeats the last one, "repeat" goes on with the path's motion from its
    last pose, "error" and "truncate" refuse. Too many: up to 7 are dropped whatever `how`; more
    are dropped by "truncate", and by "hold" and "repeat" too (the person has asked for a fit, and
    the note tells), while "error" refuses. Kept poses keep every bit.
    Raises InputError when it refuses, when there is no motion to repeat, and when the intrinsics
    are neither one row nor one per pose.
    """
    have = len(poses)
    if intrinsics is not None and len(intrinsics) not in (1, have):
        raise InputError(
            f"{len(intrinsics)} rows of intrinsics for {have} poses",
            hint="give one row for the whole clip, or one per pose",
        )
    if have == frames:
        return FittedPath(poses=poses, intrinsics=intrinsics, note=None)
    if have > frames:
        return _cut(poses, frames, how=how, intrinsics=intrinsics)
    return _extend(poses, frames, how=how, intrinsics=intrinsics)


def _cut(poses: Poses, frames: int, *, how: Fit, intrinsics: IntrinsicRows | None) -> FittedPath:
    extra = len(poses) - frames
    if how == "error" and extra > SPARE:
        raise InputError(
            f"the camera path has {len(poses)} poses, the clip has {frames} frames",
            hint=f"use --camera-fit truncate to drop the last {extra}, or ask for more frames",
        )
    rows = intrinsics if intrinsics is None or len(intrinsics) == 1 else intrinsics[:frames]
    note = f"the last {extra} of {len(poses)} poses are not used"
    return FittedPath(poses=poses[:frames], intrinsics=rows, note=note)


def _extend(poses: Poses, frames: int, *, how: Fit, intrinsics: IntrinsicRows | None) -> FittedPath:
    have = len(poses)
    more = frames - have
    if how == "hold":
        index = np.minimum(np.arange(frames), have - 1)
        fitted = poses[index]
        note = f"the last of {have} poses is held for {more} more frames"
    elif how == "repeat" and have > 1:
        # Frame `have` shows the motion's first step again: the last pose is the new first one.
        index = np.concatenate([np.arange(have), np.arange(more) % (have - 1) + 1])
        fitted = np.concatenate([poses, _repeated(poses, more)])
        note = f"the motion of {have} poses is repeated for {more} more frames"
    elif how == "repeat":
        raise InputError("one pose holds no motion to repeat", hint="use --camera-fit hold")
    else:
        raise InputError(
            f"the camera path has {have} poses, the clip has {frames} frames",
            hint=f"use --camera-fit hold or repeat, or ask for at most {have} frames",
        )
    rows = intrinsics if intrinsics is None or len(intrinsics) == 1 else intrinsics[index]
    return FittedPath(poses=fitted, intrinsics=rows, note=note)


def _repeated(poses: Poses, more: int) -> Poses:
    """`more` poses that follow the last one: lap after lap of the path's own motion."""
    path = poses.astype(np.float64)
    lap = path[-1] @ rigid_inverse(path[0])
    # The float32 rounding of one pose would grow with every lap.
    lap[:3, :3] = nearest_rotation(lap[:3, :3])
    laps, motion = [], path[1:]
    for _ in range(-(-more // len(motion))):
        motion = lap @ motion
        laps.append(motion)
    return np.concatenate(laps)[:more].astype(np.float32)
