"""Camera trajectories from .npy and .npz files, and the .npz file that keeps one."""

import os
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sanawm_cli.camera.arrays import Array, file_kind, read_npy, read_npz
from sanawm_cli.camera.intrinsics import IntrinsicRows, rows_of
from sanawm_cli.camera.poses import Poses, checked_poses, rebased
from sanawm_cli.errors import InputError, OutputError


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trajectory:
    """Poses (F, 4, 4), camera-to-world, OpenCV axes, the first the identity; one per frame.

    `intrinsics` (F, 4) are fx, fy, cx, cy in pixels of the source image. `source` says in words
    what the file was and what was done to its poses.
    """

    poses: Poses
    intrinsics: IntrinsicRows | None
    fps: float | None
    source: str


def load_trajectory(path: Path) -> Trajectory:
    """Read a .npy or .npz trajectory, recognised by its first bytes.

    Raises InputError when the file is missing, of another kind or damaged, or when what it holds
    is no camera path (see `checked_poses`).
    """
    kind = file_kind(path)
    if kind == "npy":
        return _trajectory(read_npy(path), source=f"{path.name}: npy", where=str(path))
    if kind == "npz":
        return _load_npz(path)
    raise InputError(
        f"{path}: not a trajectory (neither .npy nor .npz)",
        hint="give a .npy of shape (F, 4, 4), or a .npz with c2w and intrinsics",
    )


def save_trajectory(path: Path, poses: Poses, intrinsics: IntrinsicRows) -> None:
    """Write a .npz that `load_trajectory` reads back to the same poses.

    `poses` (F, 4, 4) start with the identity; `intrinsics` (F, 4) or (1, 4) are pixels of the
    source image. Equal input gives equal bytes. The file appears whole or not at all.
    Raises OutputError when it cannot be written, InputError for poses that would not load.
    """
    checked_poses(poses.astype(np.float64), where=str(path))
    rows = np.broadcast_to(intrinsics, (len(poses), 4)).astype(np.float64)
    if not path.name or path.is_dir():
        raise OutputError(f"{str(path)!r} is not the name of a file", hint="give FILE.npz")
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        try:
            _write_npz(part, {"c2w": poses.astype(np.float32), "intrinsics": rows})
            os.replace(part, path)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise OutputError(f"{path}: cannot be written ({error.strerror})") from error


def _write_npz(path: Path, arrays: dict[str, NDArray[np.generic]]) -> None:
    # Not np.savez: fixed dates and attributes make the bytes depend on the numbers alone.
    with zipfile.ZipFile(path, "x") as archive:
        for name, array in arrays.items():
            entry = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
            entry.create_system, entry.external_attr = 3, 0o644 << 16
            with archive.open(entry, "w", force_zip64=True) as file:
                np.lib.format.write_array(file, np.ascontiguousarray(array), allow_pickle=False)


def _load_npz(path: Path) -> Trajectory:
    arrays = read_npz(path, ("c2w", "intrinsics", "fps"))
    if "c2w" not in arrays:
        raise InputError(f"{path}: has no array named c2w", hint="c2w holds the poses, (F, 4, 4)")
    return _trajectory(
        arrays["c2w"],
        intrinsics=arrays.get("intrinsics"),
        fps=_fps(arrays["fps"], path) if "fps" in arrays else None,
        source=f"{path.name}: npz",
        where=str(path),
    )


def _trajectory(
    poses: Array,
    *,
    source: str,
    where: str,
    intrinsics: Array | None = None,
    fps: float | None = None,
) -> Trajectory:
    """Check and re-base what a file held."""
    checked = checked_poses(poses, where=where)
    if intrinsics is not None:
        intrinsics = rows_of(intrinsics, where=where)
        if len(intrinsics) != len(checked):
            raise InputError(
                f"{where}: {len(intrinsics)} intrinsics for {len(checked)} poses",
                hint="intrinsics hold one row or matrix per pose",
            )
    said = [source, f"{len(checked)} poses", "camera-to-world, OpenCV axes"]
    if (checked[0] != np.eye(4)).any():
        said.append("re-based to the first pose")
    return Trajectory(
        poses=rebased(checked), intrinsics=intrinsics, fps=fps, source=", ".join(said)
    )


def _fps(array: Array, path: Path) -> float:
    fps = float(array.reshape(-1)[0]) if array.size == 1 else float("nan")
    if not (np.isfinite(fps) and fps > 0):
        raise InputError(f"{path}: fps is {array.tolist()}, expected one positive number")
    return fps
