"""Files that are either there in full or not there at all."""

import errno
import json
import os
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from sanawm_cli.errors import OutputError

_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
_NOT_ALLOWED = (errno.EACCES, errno.EPERM, errno.EROFS)
_NO_FOLDER = (errno.ENOENT, errno.ENOTDIR)


def temporary(path: Path) -> Path:
    """Where `path` is written first: beside it, so that the rename stays on one file system.

    Every process has a name of its own: two that write the same `path` do not mix.
    """
    return path.with_name(f"{path.name}.{os.getpid()}.tmp")


def discard(path: Path) -> None:
    """Remove a file of ours if it is there; clearing up never hides what went wrong before."""
    with suppress(OSError):
        path.unlink()


def write_synced(path: Path, data: bytes) -> None:
    """Write `data` at `path` through to the disk, without a rename. Raises OutputError."""
    with output_errors(path), path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def replace_durably(source: Path, target: Path) -> None:
    """Sync `source`, rename it to `target` in the same folder, sync the folder.

    Raises OutputError.
    """
    with output_errors(target):
        with source.open("rb+") as file:
            os.fsync(file.fileno())
        os.replace(source, target)
    sync_folder(target.parent)


def sync_folder(folder: Path) -> None:
    """Make renames in `folder` last; where folders cannot be synced (Windows), do nothing."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def write_atomically(path: Path, data: bytes) -> None:
    """Write `data` so that `path` holds either its old content or all of `data`.

    Raises OutputError.
    """
    try:
        write_synced(temporary(path), data)
        replace_durably(temporary(path), path)
    finally:
        discard(temporary(path))


def json_bytes(value: Mapping[str, Any]) -> bytes:
    """UTF-8 JSON in the order of insertion, indented, newline at the end; NaN is a ValueError.

    A file name that is not UTF-8 arrives here as lone surrogates: they become the JSON escapes
    of the same surrogates, so that they read back as they were.
    """
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    return f"{text}\n".encode("utf-8", errors="backslashreplace")


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write `json_bytes(value)` atomically. Raises OutputError."""
    write_atomically(path, json_bytes(value))


@contextmanager
def output_errors(path: Path) -> Iterator[None]:
    """Turn a refusal by the system while writing `path` into an OutputError with a way out."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise OutputError(f"cannot write {path}: {reason}", hint=_hint(error, path)) from error


def make_folder_hint(folder: Path) -> str:
    """What to type for a folder that is not there."""
    return f"make the folder first: mkdir -p {shlex.quote(str(folder))}"


def _hint(error: OSError, path: Path) -> str | None:
    if error.errno in _NO_SPACE:
        return f"free some space in {path.parent}, or write to another disk"
    if error.errno in _NOT_ALLOWED:
        return f"{path.parent} is not yours to write to; choose another folder"
    if error.errno in _NO_FOLDER:
        return make_folder_hint(path.parent)
    if error.errno == errno.EISDIR:
        return "name a file, not a folder"
    if error.errno == errno.ENAMETOOLONG:
        return "choose a shorter file name"
    return None
