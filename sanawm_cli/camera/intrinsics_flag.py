"""The value of `--intrinsics`: four numbers, a field of view, or a file."""

import os
from pathlib import Path

import numpy as np

from sanawm_cli.camera.arrays import Array, file_kind, read_npy
from sanawm_cli.camera.intrinsics import IntrinsicRows, Size, from_field_of_view, rows_of
from sanawm_cli.errors import InputError

FORMS = "use fx,fy,cx,cy in pixels, fov=70, or a .npy or .txt file"


def parse_intrinsics(text: str, size: Size) -> IntrinsicRows:
    """Rows (1, 4) or (F, 4) in pixels of the source image, whose `size` is (width, height).

    A file holds (4,), (3, 3), (F, 4) or (F, 3, 3). Raises InputError for anything else, (4, 4)
    included, and for focal lengths that are not positive.
    """
    name, equals, value = text.partition("=")
    if equals and name.strip().lower() == "fov":
        return from_field_of_view(_number(value, f"--intrinsics {text}"), size)
    if "," in text and not os.path.isfile(text):  # Path.is_file raises for a long text
        parts = text.split(",")
        if len(parts) != 4:
            raise InputError(f"--intrinsics {text}: {len(parts)} numbers, expected 4", hint=FORMS)
        numbers = [_number(part, f"--intrinsics {text}") for part in parts]
        return rows_of(np.array([numbers]), where=f"--intrinsics {text}")
    return _load(Path(text))


def _load(path: Path) -> IntrinsicRows:
    try:
        kind = file_kind(path)
    except InputError as error:
        raise InputError(error.message, hint=FORMS) from error
    if kind == "npz":
        raise InputError(f"{path}: an .npz file is no intrinsics file", hint=FORMS)
    array = read_npy(path) if kind == "npy" else _read_text(path)
    if array.shape in ((4,), (3, 3)):
        array = array[None]
    elif array.shape == (4, 4):
        # It could be one matrix or the rows of four frames.
        raise InputError(
            f"{path}: intrinsics have shape (4, 4)",
            hint="store the upper left 3×3 of a matrix, or (F, 3, 3) for several frames",
        )
    return rows_of(array, where=str(path))


def _read_text(path: Path) -> Array:
    """Lines of numbers parted by spaces or commas; nine on a line are a 3×3 matrix."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: neither .npy nor text", hint=FORMS) from error
    lines = [line.partition("#")[0].replace(",", " ").split() for line in text.splitlines()]
    table = [[_number(word, str(path)) for word in line] for line in lines if line]
    if not table:
        raise InputError(f"{path}: holds no numbers", hint=FORMS)
    if len({len(row) for row in table}) > 1:
        raise InputError(f"{path}: lines of different lengths", hint=FORMS)
    array = np.array(table, np.float64)
    if array.shape[1] == 9:
        return array.reshape(-1, 3, 3)
    return array[0] if len(array) == 1 else array


def _number(text: str, where: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise InputError(f"{where}: {text.strip()!r} is not a number", hint=FORMS) from error
