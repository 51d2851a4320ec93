"""Reading numpy files that may be damaged, hostile, or something else altogether."""

import zipfile
import zlib
from pathlib import Path
from tokenize import TokenError
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sanawm_cli.errors import InputError
from sanawm_cli.regular import refuse_odd_file

Array = NDArray[np.float64]
FileKind = Literal["npy", "npz", "other"]

# What numpy and zipfile raise for a file that is not what its first bytes promise.
_DAMAGE = (
    *(OSError, EOFError, ValueError, KeyError, MemoryError, OverflowError, TypeError),
    *(zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, TokenError, SyntaxError),
)

MOST_BYTES = 1 << 28  # 100 000 poses take 13 MB; archives can unfold to far more than their size


def file_kind(path: Path) -> FileKind:
    """What the first bytes say. Raises InputError when the file cannot be opened."""
    refuse_odd_file(path, InputError, most=MOST_BYTES)
    try:
        with path.open("rb") as file:
            head = file.read(6)
    except FileNotFoundError as error:
        raise InputError(f"{path}: no such file") from error
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    except ValueError as error:
        raise InputError(f"{str(path)!r} is not a file name ({error})") from error
    if head == b"\x93NUMPY":
        return "npy"
    return "npz" if head[:4] in (b"PK\x03\x04", b"PK\x05\x06") else "other"


def read_npy(path: Path) -> Array:
    """The numbers of a .npy file, as float64. Raises InputError for anything else."""
    try:
        array = np.load(path, allow_pickle=False)
    except _DAMAGE as error:
        raise _damaged(path, error) from error
    return _numbers(array, f"{path}")


def read_npz(path: Path, names: tuple[str, ...]) -> dict[str, Array]:
    """Those of `names` that a .npz file holds, as float64. Raises InputError for damage."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            found = {name: archive[name] for name in names if name in archive.files}
    except _DAMAGE as error:
        raise _damaged(path, error) from error
    return {name: _numbers(array, f"{path}: {name}") for name, array in found.items()}


def _numbers(array: NDArray[np.generic], where: str) -> Array:
    # A damaged archive entry comes back as bytes.
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "fiu":
        kind = getattr(array, "dtype", type(array).__name__)
        raise InputError(f"{where}: holds {kind}, not real numbers")
    return array.astype(np.float64)


def _damaged(path: Path, error: BaseException) -> InputError:
    first = (str(error).splitlines() or [type(error).__name__])[0]
    return InputError(f"{path}: damaged, or not a plain numpy file ({first})")
