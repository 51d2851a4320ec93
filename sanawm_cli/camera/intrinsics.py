"""Focal lengths and centres: where they come from, and how they follow the picture's resizing.

Rows are fx, fy, cx, cy; one row serves every frame, or there is one per frame. Sizes are
(width, height).
"""

from dataclasses import dataclass
from math import atan, degrees, hypot, isfinite, radians, tan
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sanawm_cli.errors import InputError

IntrinsicRows = NDArray[np.float64]
Size = tuple[int, int]
Source = Literal["flag", "file", "exif", "guess"]

NARROWEST, WIDEST = 25.0, 120.0  # horizontal field of view, degrees
LARGEST = 1e9  # pixels; more would overflow float32 further on
GUESS = 0.8  # focal length of an unknown camera, in lengths of the longer side
FILM_DIAGONAL = hypot(36.0, 24.0)  # mm; a 35 mm equivalent compares diagonals


@dataclass(frozen=True, slots=True, kw_only=True)
class CoverCrop:
    """A picture resized to cover a target and cropped about its centre."""

    source: Size
    target: Size

    @property
    def resized(self) -> Size:
        """Size before the crop; at least the target each way."""
        (w, h), (to_w, to_h) = self.source, self.target
        scale = max(to_w / w, to_h / h)
        return max(to_w, round(w * scale)), max(to_h, round(h * scale))

    @property
    def left(self) -> int:
        """Columns cut off on the left of the resized picture."""
        return (self.resized[0] - self.target[0]) // 2

    @property
    def top(self) -> int:
        """Rows cut off above."""
        return (self.resized[1] - self.target[1]) // 2


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Intrinsics:
    """`values` (1, 4) or (F, 4) in pixels of some picture, and who said so.

    "file" is a trajectory file; a file given as `--intrinsics` counts as "flag".
    """

    values: IntrinsicRows
    source: Source

    def follow(self, crop: CoverCrop) -> "Intrinsics":
        """The same camera in pixels of the cropped picture."""
        sx, sy = (to / size for to, size in zip(crop.resized, crop.source, strict=True))
        values = self.values * (sx, sy, sx, sy) - (0, 0, crop.left, crop.top)
        return Intrinsics(values=values, source=self.source)


def to_latent_units(intrinsics: Intrinsics, *, target: Size, latent: Size) -> IntrinsicRows:
    """Rows in latent pixels from rows in pixels of the `target` picture."""
    sx, sy = (cells / pixels for cells, pixels in zip(latent, target, strict=True))
    return intrinsics.values * (sx, sy, sx, sy)


def choose_intrinsics(
    *,
    flag: IntrinsicRows | None,
    trajectory: IntrinsicRows | None,
    focal_35mm: float | None,
    size: Size,
) -> Intrinsics:
    """The most trusted of what is known: option, trajectory file, EXIF, else a guess.

    `focal_35mm` may be 0, which is how EXIF writes "unknown". `size` is that of the source image.
    Raises InputError when the field of view is implausible.
    """
    if flag is not None:
        chosen = Intrinsics(values=flag, source="flag")
    elif trajectory is not None:
        chosen = Intrinsics(values=trajectory, source="file")
    elif focal_35mm:
        chosen = from_exif(focal_35mm, size)
    else:
        chosen = guessed(size)
    try:
        check_field_of_view(chosen, size)
    except InputError as error:
        if chosen.source != "guess":
            raise
        raise InputError(
            f"{error.message}, for a picture of {size[0]}×{size[1]}: the guess does not suit it",
            hint="say how wide it sees with --intrinsics fov=70",
        ) from error
    return chosen


def guessed(size: Size) -> Intrinsics:
    """Nothing is known: 0.8 of the longer side, centred."""
    return Intrinsics(values=centred(GUESS * max(size), size), source="guess")


def from_exif(focal_35mm: float, size: Size) -> Intrinsics:
    """From a 35 mm equivalent focal length in mm. Raises InputError unless it is positive."""
    if not (isfinite(focal_35mm) and focal_35mm > 0):
        raise InputError(f"EXIF focal length {focal_35mm} mm is not a positive number")
    focal = float(focal_35mm) / FILM_DIAGONAL * hypot(*size)
    return Intrinsics(values=centred(focal, size), source="exif")


def from_field_of_view(angle: float, size: Size) -> IntrinsicRows:
    """One centred row from a horizontal field of view in degrees; InputError outside 25-120."""
    if not NARROWEST <= angle <= WIDEST:
        raise _implausible(angle, "")
    return centred(size[0] / 2 / tan(radians(angle) / 2), size)


def centred(focal: float, size: Size) -> IntrinsicRows:
    """One row with square pixels and the centre in the middle."""
    return np.array([[focal, focal, size[0] / 2, size[1] / 2]], np.float64)


def check_field_of_view(intrinsics: Intrinsics, size: Size) -> None:
    """Raise InputError when a row sees less than 25° or more than 120° across `size`."""
    for i, fx in enumerate(intrinsics.values[:, 0].tolist()):
        angle = round(degrees(2 * atan(size[0] / 2 / fx)), 6)
        if not NARROWEST <= angle <= WIDEST:
            raise _implausible(angle, f" (frame {i})" if len(intrinsics.values) > 1 else "")


def _implausible(angle: float, where: str) -> InputError:
    return InputError(
        f"horizontal field of view {angle:.4g}°{where} is outside {NARROWEST:g}°–{WIDEST:g}°",
        hint="focal lengths are in pixels of the source image; --intrinsics fov=70 also works",
    )


def rows_of(array: IntrinsicRows, *, where: str) -> IntrinsicRows:
    """(F, 4) rows from rows (F, 4) or matrices (F, 3, 3).

    Raises InputError for other shapes, matrices that are no plain cameras, and numbers that are
    not finite or not positive where a focal length belongs.
    """
    if array.ndim not in (2, 3) or array.shape[1:] not in ((4,), (3, 3)) or not len(array):
        raise InputError(
            f"{where}: intrinsics have shape {array.shape}, expected (F, 4) or (F, 3, 3)"
        )
    usable = np.isfinite(array) & (np.abs(array) < LARGEST)
    if not usable.all():
        raise InputError(f"{where}: intrinsics hold the value {array[~usable][0]}")
    rows = array if array.ndim == 2 else _from_matrices(array, where)
    if (rows[:, :2] <= 0).any():
        focal = rows[:, :2][rows[:, :2] <= 0][0]
        raise InputError(f"{where}: focal length {focal:g} is not positive")
    return rows


def _from_matrices(matrices: IntrinsicRows, where: str) -> IntrinsicRows:
    """fx, fy, cx, cy of [[fx, 0, cx], [0, fy, cy], [0, 0, 1]]."""
    rows = matrices[:, (0, 1, 0, 1), (0, 1, 2, 2)]
    rest = matrices[:, (0, 1, 2, 2, 2), (1, 0, 0, 1, 2)]
    if (np.abs(rest - (0, 0, 0, 0, 1)) > 1e-3).any():
        raise InputError(
            f"{where}: an intrinsic matrix is not [[fx, 0, cx], [0, fy, cy], [0, 0, 1]]",
            hint="skew is not supported; undistort and rectify the camera first",
        )
    return rows
