"""Checks that camera poses are rigid, and the change to a frame in which the first is identity.

Every format of trajectory file passes through here after its own axes were converted.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from sanawm_cli.errors import InputError

Array = NDArray[np.float64]
Poses = NDArray[np.float32]

TOLERANCE = 1e-3  # of RᵀR from the identity; beyond it the matrix is not a rotation
ROUNDING = 1e-5  # below it a matrix is left as it is: float32 writes no better
FARTHEST = 1e30  # float32, which carries the poses, ends at 3e38


def checked_poses(array: Array, *, where: str) -> Array:
    """(F, 4, 4) rigid poses from (F, 4, 4) or (F, 3, 4); nearly rigid ones are corrected.

    Raises InputError, naming the pose, for another shape, fewer than two poses, numbers that are
    not finite, a bottom row other than 0 0 0 1, or a rotation that is scaled, mirrored or none.
    """
    if array.ndim != 3 or array.shape[1:] not in ((4, 4), (3, 4)):
        raise InputError(
            f"{where}: poses have shape {array.shape}, expected (F, 4, 4) or (F, 3, 4)",
            hint="one camera-to-world matrix per frame",
        )
    if len(array) < 2:
        raise InputError(f"{where}: {len(array)} pose(s), a camera path needs at least 2")
    _require(
        _usable(array).reshape(len(array), -1).all(1),
        lambda i: InputError(f"{where}: pose {i} has {_odd(array[i])}"),
    )
    if array.shape[1] == 3:
        bottom = np.broadcast_to([0.0, 0.0, 0.0, 1.0], (len(array), 1, 4))
        array = np.concatenate([array, bottom], axis=1)
    bottom_holds = np.abs(array[:, 3] - [0, 0, 0, 1]).max(1) <= TOLERANCE
    _require(bottom_holds, lambda i: _bad_bottom(array[i], f"{where}: pose {i}"))
    off = _distance(array[:, :3, :3])
    right_handed = np.linalg.det(array[:, :3, :3]) > 0
    rigid = (off <= TOLERANCE) & right_handed
    _require(rigid, lambda i: _bad_rotation(array[i, :3, :3], f"{where}: pose {i}"))
    return _corrected(array, off)


def rebased(poses: Array) -> Poses:
    """Rigid poses seen from the first: float32, the first exactly the identity.

    Poses that already start with the identity keep every bit.
    """
    if (poses[0] != np.eye(4)).any():
        poses = rigid_inverse(poses[0]) @ poses
        poses[0] = np.eye(4)
    return poses.astype(np.float32)


def rigid_inverse(pose: Array) -> Array:
    """The inverse of rigid poses (…, 4, 4)."""
    turned = np.swapaxes(pose[..., :3, :3], -1, -2)
    inverse = np.zeros_like(pose)
    inverse[..., :3, :3] = turned
    inverse[..., :3, 3:] = -turned @ pose[..., :3, 3:]
    inverse[..., 3, 3] = 1
    return inverse


def nearest_rotation(matrix: Array) -> Array:
    """The rotations nearest to matrices (…, 3, 3) of positive determinant."""
    u, _, vt = np.linalg.svd(matrix)
    return np.asarray(u @ vt)


def _corrected(poses: Array, off: Array) -> Array:
    rough = off > ROUNDING
    poses = poses.copy()
    poses[rough, :3, :3] = nearest_rotation(poses[rough, :3, :3])
    poses[:, 3] = [0, 0, 0, 1]
    return poses


def _distance(matrix: Array) -> Array:
    """Largest entry of |RᵀR − I| for each matrix (…, 3, 3)."""
    gram = np.swapaxes(matrix, -1, -2) @ matrix
    return np.asarray(np.abs(gram - np.eye(3)).max((-2, -1)))


def _require(holds: NDArray[np.bool_] | np.bool_, error: Callable[[int], InputError]) -> None:
    """Raise the error of the first pose for which the check does not hold."""
    if not holds.all():
        raise error(int(np.argmin(holds)))


def _odd(pose: Array) -> str:
    return f"the value {pose[~_usable(pose)][0]}"


def _usable(array: Array) -> NDArray[np.bool_]:
    return np.isfinite(array) & (np.abs(array) < FARTHEST)


def _bad_bottom(pose: Array, where: str) -> InputError:
    row = " ".join(f"{x:g}" for x in pose[3])
    transposed = np.abs(pose[:, 3] - [0, 0, 0, 1]).max() <= TOLERANCE
    return InputError(
        f"{where} has the bottom row {row}, expected 0 0 0 1",
        hint="the matrices look transposed: the translation belongs in the last column"
        if transposed
        else "poses are 4×4 camera-to-world matrices with the translation in the last column",
    )


def _bad_rotation(matrix: Array, where: str) -> InputError:
    determinant = float(np.linalg.det(matrix))
    scale = float(np.cbrt(abs(determinant)))
    if scale > 0 and _distance(matrix / scale) <= TOLERANCE:
        if abs(scale - 1) <= TOLERANCE:
            return InputError(
                f"{where} is mirrored (determinant {determinant:.4g}, expected 1)",
                hint="negate one axis: cameras look along +z, with x to the right and y down",
            )
        return InputError(
            f"{where} has a rotation scaled by {scale:.4g}",
            hint="divide the 3×3 part by the scale, and keep the translation",
        )
    return InputError(
        f"{where} is not rigid (its 3×3 part is off orthonormal by {float(_distance(matrix)):.2g}, "
        f"at most {TOLERANCE:g} is corrected)",
        hint="the 3×3 part must be a rotation",
    )
