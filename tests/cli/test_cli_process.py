"""What only a process of its own shows: imports, signals, pipes, and how a bug ends."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from command import picture, render_flags, run, snapshot

from sanawm_cli import __version__

posix_only = pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals and pipes")
COMMAND = [sys.executable, "-m", "sanawm_cli"]
PATIENCE = 120  # seconds until a test gives up

WITHOUT_TORCH = """
import io, json, sys
from contextlib import redirect_stdout
from sanawm_cli.cli.main import run
for arguments in json.loads(sys.argv[1]):
    with redirect_stdout(io.StringIO()):
        code = run(arguments)
    heavy = {"torch", "safetensors", "imageio_ffmpeg"} & sys.modules.keys()
    if code != 0 or heavy:
        sys.exit(f"{arguments}: exit code {code}, imported {heavy}")
"""


def test_help_plans_and_presets_come_without_torch(here: Path) -> None:
    """They answer in a fraction of the time that torch takes to load."""
    commands = [
        ["--version"],
        ["--help"],
        ["render", "--help"],
        ["verify", "--help"],
        ["presets", "list"],
        ["presets", "show", "tiny"],
        ["plan"],
        ["plan", "--json", "--cfg-scale=2", "--dtype=bfloat16"],
        ["plan", "--image=first.png", "--action=w-16", "--save-camera=path.npz"],
        ["plan", "--image=first.png", "--camera=path.npz", "--intrinsics=fov=70"],
    ]
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH, json.dumps(commands)],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert (done.returncode, done.stderr) == (0, "wrote path.npz: 17 poses\n")


def test_the_package_runs_as_a_module() -> None:
    done = subprocess.run(
        [*COMMAND, "--version"], capture_output=True, text=True, check=True, timeout=PATIENCE
    )
    assert done.stdout == f"sanawm {__version__}\n"


def test_signs_that_the_output_cannot_show_are_spelt_out() -> None:
    """The picture's size is told with ×, and a log's encoding may not have it."""
    done = subprocess.run(
        [*COMMAND, "plan"],
        capture_output=True,
        check=False,
        timeout=PATIENCE,
        env=os.environ | {"PYTHONIOENCODING": "ascii"},
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"\\xd7" in done.stdout


@posix_only
@pytest.mark.parametrize("arguments", [["plan"], ["plan", "--json"], ["--help"], ["--version"]])
def test_a_reader_that_leaves_is_no_trouble(arguments: list[str]) -> None:
    process = subprocess.Popen(
        [*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    process.stdout.close()  # long before anything is written
    _, said = process.communicate(timeout=PATIENCE)
    assert (process.returncode, said) == (9, "")


@posix_only
@pytest.mark.parametrize(
    ("number", "moment", "code", "word"),
    [
        (signal.SIGINT, "on cpu", 130, "interrupted"),
        (signal.SIGINT, "chunk 1/", 130, "interrupted"),
        (signal.SIGTERM, "chunk 2/", 143, "terminated"),
    ],
)
def test_a_stopped_render_leaves_nothing(
    tmp_path: Path, number: int, moment: str, code: int, word: str
) -> None:
    """No half video, no folder of segments; an older video stays as it was."""
    picture(96, 64).save(tmp_path / "first.png")
    (tmp_path / "clip.mp4").write_bytes(b"an older video")
    (tmp_path / "clip.json").write_text("{}")
    before = snapshot(tmp_path)
    long = render_flags(frames=None, chunk_plan=",".join("1" * 500), overwrite=True)
    process = subprocess.Popen(
        [*COMMAND, *long],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith(moment):
            break
    process.send_signal(number)
    out, said = process.communicate(timeout=PATIENCE)
    last = said.splitlines()[-1]
    assert (process.returncode, out) == (code, "")
    assert last == f"sanawm: {word}; no half video is left"
    assert all(line.startswith("chunk ") for line in said.splitlines()[:-1])
    assert snapshot(tmp_path) == before


@posix_only
def test_an_impatient_second_signal_does_not_cut_short_the_clearing_up() -> None:
    code = """
import os, signal
from sanawm_cli.cli import main

def render(arguments):
    try:
        os.kill(os.getpid(), signal.SIGINT)
        signal.pause()
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            os.kill(os.getpid(), number)
        print("all is cleared up")

main.run = render
main.main()
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=PATIENCE
    )
    assert (done.returncode, done.stdout) == (130, "all is cleared up\n")
    assert done.stderr == "sanawm: interrupted; no half video is left\n"


@posix_only
def test_a_signal_that_a_shell_has_switched_off_stays_off() -> None:
    """So that Ctrl-C in a terminal does not reach jobs in its background."""
    code = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "from sanawm_cli.cli.main import main\n"
        "try: main()\n"
        "except SystemExit as end: assert end.code == 0\n"
        "assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN\n"
        "assert callable(signal.getsignal(signal.SIGTERM))\n"
    )
    subprocess.run([sys.executable, "-c", code, "--version"], check=True, timeout=PATIENCE)


def test_a_bug_keeps_its_traceback(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python's own, complete, with exit code 1: it is nothing that a person could mend."""

    def stumble(*_: object) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr("sanawm_cli.jobs.resolve.resolve_clip", stumble)
    with pytest.raises(ZeroDivisionError, match="a bug"):
        run(render_flags())
