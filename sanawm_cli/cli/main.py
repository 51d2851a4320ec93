"""The program's entry: from `sys.argv` to an exit code."""

import os
import signal
import sys
from types import FrameType
from typing import NoReturn

from sanawm_cli.errors import ExitCode


class Terminated(BaseException):
    """SIGTERM arrived. No `Exception`, so that nothing swallows it on the way out."""


def main() -> NoReturn:
    """Run the command line and exit with its code. A bug ends in a traceback and code 1."""
    # Idle OpenMP threads that spin take the cores from each other: with one other busy process
    # on two cores a chunk took 40 times as long. Set before torch is loaded, unless it is set.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    signal.signal(signal.SIGTERM, _terminate)
    from sanawm_cli.cli.app import app

    try:
        app(prog_name="sanawm", standalone_mode=True)
    except KeyboardInterrupt:
        _leave("interrupted; no half video is left", ExitCode.INTERRUPTED)
    except Terminated:
        _leave("terminated; no half video is left", ExitCode.TERMINATED)
    except BrokenPipeError:
        # Whoever read our output has gone; there is nobody to tell.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(ExitCode.OUTPUT)
    sys.exit(ExitCode.OK)


def _terminate(number: int, frame: FrameType | None) -> None:
    raise Terminated


def _leave(message: str, code: ExitCode) -> NoReturn:
    print(f"sanawm: {message}", file=sys.stderr)
    sys.exit(code)
