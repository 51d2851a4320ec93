"""The program's entry: from `sys.argv` to an exit code."""

import errno
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from io import TextIOWrapper
from types import FrameType
from typing import NoReturn

import typer

from sanawm_cli.cli.shell import tell
from sanawm_cli.errors import ExitCode, InputError, OutputError, UsageError

_STOPPED = {
    signal.SIGINT: ("interrupted", ExitCode.INTERRUPTED),
    signal.SIGTERM: ("terminated", ExitCode.TERMINATED),
}
if hasattr(signal, "SIGHUP"):  # the terminal was closed; Windows has no such thing
    _STOPPED[signal.SIGHUP] = ("hung up", ExitCode.TERMINATED)


class Stopped(BaseException):
    """A signal asks for an end. No `Exception`, so that nothing swallows it on the way out."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.word, self.exit_code = _STOPPED[signal.Signals(number)]


def main() -> NoReturn:
    """Run the command line and exit with its code. A bug ends in a traceback and code 1."""
    # Idle OpenMP threads that spin take the cores from each other: with one other busy process
    # on two cores a chunk took 40 times as long. Set before torch is loaded, unless it is set.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # a sign that it cannot write ends no program
            stream.reconfigure(errors="backslashreplace")
    for number in _STOPPED:
        if signal.getsignal(number) is not signal.SIG_IGN:  # as shells set it for background jobs
            signal.signal(number, _stop)
    try:
        code = run(sys.argv[1:])
    except Stopped as stop:
        print(f"sanawm: {stop.word}; no half video is left", file=sys.stderr)
        code = stop.exit_code
    sys.exit(code)


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code. Only bugs raise."""
    from sanawm_cli.cli.app import app

    try:
        code: int | None = app(list(arguments), prog_name="sanawm", standalone_mode=False)
        sys.stdout.flush()
    except typer.TyperException as error:
        message = " ".join(error.format_message().split()).removesuffix(".")
        if message:  # none where the help has been shown instead
            usage = UsageError(message, hint="--help shows what can be given")
            tell(usage, as_json="--json" in arguments)
        return ExitCode.USAGE
    except SystemExit:
        # Whoever read our output has gone. Typer and Rich leave like this, with a code that
        # means a bug here; there is nobody to tell, nor for Python's last flush.
        _forget_stdout()
        return ExitCode.OUTPUT
    except OSError as error:
        return _refused_by_system(error)
    return code or ExitCode.OK


def _refused_by_system(error: OSError) -> int:
    """A full disk behind stdout, or a path that may not be looked at: not bugs of ours."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        _forget_stdout()
        full = OutputError(f"cannot write: {error.strerror}", hint="free some space and try again")
        with suppress(OSError):  # stderr may be as full
            tell(full, as_json=False)
        return full.exit_code
    if error.filename is not None and error.errno in (
        errno.EACCES,
        errno.EPERM,
        errno.ENAMETOOLONG,
    ):
        refused = InputError(f"{error.filename}: {error.strerror}")
        tell(refused, as_json=False)
        return refused.exit_code
    raise error


def _forget_stdout() -> None:
    """What could not be written stays unwritten: Python's last flush must not fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _stop(number: int, frame: FrameType | None) -> None:
    for each in _STOPPED:
        signal.signal(each, _ignore)  # a second one must not cut short the clearing up
    raise Stopped(number)


def _ignore(number: int, frame: FrameType | None) -> None:
    pass
