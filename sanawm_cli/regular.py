"""Input files that can be read to their end."""

from pathlib import Path

from sanawm_cli.errors import SanaWMError


def refuse_odd_file(path: Path, error: type[SanaWMError], *, most: int) -> None:
    """Raise `error` for what is there but no regular file, or holds more than `most` bytes.

    Reading a FIFO waits for a writer that may never come, and /dev/zero never ends. A file that
    is missing or may not be looked at is left to whoever opens it.
    """
    try:
        if not path.exists() or path.is_dir():
            return
        regular, size = path.is_file(), path.stat().st_size
    except (OSError, ValueError):
        return
    if not regular:
        raise error(f"{path}: not a regular file", hint="store it in a file first")
    if size > most:
        raise error(f"{path}: {size} bytes are too many (at most {most})")
