"""Running ffmpeg: argument lists and never a shell, and a child that never outlives its parent."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import current_thread, main_thread

import imageio_ffmpeg  # type: ignore[import-untyped]

from sanawm_cli.errors import OutputError
from sanawm_cli.output.files import make_folder_hint

_LAST_LINES = 3
_HELD = [signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """How a run ended. A negative `code` is the signal that killed it."""

    code: int
    stdout: str
    stderr: str

    @property
    def failure(self) -> str | None:
        """What went wrong in one line, or None: a good run exits with 0 and says nothing."""
        lines = [line.strip() for line in self.stderr.splitlines() if line.strip()]
        if self.code == 0 and not lines:
            return None
        said = " | ".join(lines[-_LAST_LINES:]) or "it said nothing"
        if self.code < 0:
            return f"killed by signal {_signal_name(-self.code)}: {said}"
        return f"exit code {self.code}: {said}"

    @property
    def smells_of_full_disk(self) -> bool:
        """A full disk is named by ffmpeg, or makes it die by a signal, or silently."""
        return self.code < 0 or not self.stderr.strip() or "No space left" in self.stderr


def bundled_ffmpeg() -> str:
    """Path of the ffmpeg that comes with imageio-ffmpeg. Raises OutputError if there is none."""
    try:
        return str(imageio_ffmpeg.get_ffmpeg_exe())
    except RuntimeError as error:
        raise OutputError(
            "no ffmpeg comes with the installed imageio-ffmpeg",
            hint="pip install --force-reinstall imageio-ffmpeg",
        ) from error


def ffmpeg_version(ffmpeg: str) -> str:
    """The version that a binary names in its first line; "unknown" where it names none."""
    words = run_ffmpeg(ffmpeg, ["-version"], folder=Path.cwd()).stdout.split()
    return words[2] if words[:2] == ["ffmpeg", "version"] and len(words) > 2 else "unknown"


def literal(path: Path) -> str:
    """`path` as ffmpeg takes it literally, be it "-x.mp4", "a:b.mp4" or "concat:x.mp4"."""
    return f"file:{path.absolute()}"


def run_ffmpeg(
    ffmpeg: str, arguments: Sequence[str], *, folder: Path, stdin: memoryview | None = None
) -> Finished:
    """Run `ffmpeg` in `folder`, feed it `stdin`, collect what it says, wait for its end.

    On any exception, Ctrl-C among them, the child is killed and reaped first. Raises OutputError
    if it cannot be started.
    """
    process: subprocess.Popen[bytes] | None = None
    try:
        with signals_held():
            process = _start(ffmpeg, arguments, folder=folder, piped=stdin is not None)
        # Reads and writes in turns: a child that talks while it is fed cannot deadlock. It
        # takes a broken pipe quietly; exit status and last words tell more.
        stdout, stderr = process.communicate(stdin)  # type: ignore[arg-type]
    except BaseException:
        if process is not None:
            _kill(process)
            with process:  # waits for it and closes its pipes
                pass
        raise
    return Finished(
        code=process.returncode,
        stdout=stdout.decode("utf-8", errors="replace"),
        stderr=stderr.decode("utf-8", errors="replace"),
    )


def run_checked(
    ffmpeg: str,
    arguments: Sequence[str],
    *,
    folder: Path,
    writing: Path,
    stdin: memoryview | None = None,
) -> None:
    """Run ffmpeg to make the file `writing`. Raises OutputError with its last words if it fails."""
    quiet = ("-hide_banner", "-v", "error", "-nostdin", "-y", *arguments)
    finished = run_ffmpeg(ffmpeg, quiet, folder=folder, stdin=stdin)
    if finished.failure is not None:
        full = f"a full disk is the usual cause: free some space in {writing.parent}"
        raise OutputError(
            f"ffmpeg failed while writing {writing}: {finished.failure}",
            hint=full if finished.smells_of_full_disk else None,
        )


def _start(
    ffmpeg: str, arguments: Sequence[str], *, folder: Path, piped: bool
) -> subprocess.Popen[bytes]:
    # In a session of its own: at Ctrl-C the terminal signals a whole group, and an encoder that
    # gets it too would round off a playable half file.
    flags = 0
    if sys.platform == "win32":
        flags = subprocess.CREATE_NEW_PROCESS_GROUP
    try:
        return subprocess.Popen(
            [ffmpeg, *arguments],
            stdin=subprocess.PIPE if piped else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=folder,
            start_new_session=True,
            creationflags=flags,
        )
    except OSError as error:
        reason = error.strerror or str(error)
        raise OutputError(
            f"cannot start {ffmpeg} in {folder}: {reason}",
            hint="pip install --force-reinstall imageio-ffmpeg"
            if folder.is_dir()
            else make_folder_hint(folder),
        ) from error


@contextmanager
def signals_held() -> Iterator[None]:
    """Hold back signals that Python handles until the block is left.

    One that arrives while a child is being started would raise before there is anything to kill,
    and the child would live on.
    """
    if current_thread() is not main_thread():  # signals only ever interrupt the main thread
        yield
        return
    numbers = [n for n in _HELD if callable(signal.getsignal(n))]
    arrived: list[int] = []
    before = {n: signal.signal(n, lambda number, _: arrived.append(number)) for n in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for held in arrived:
            signal.raise_signal(held)


def _kill(process: subprocess.Popen[bytes]) -> None:
    if sys.platform == "win32":
        process.kill()
    elif process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)
