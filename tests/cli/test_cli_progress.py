"""What a person sees while a clip is rendered: a bar on a terminal, lines in a log, or nothing."""

import re
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path

import pytest
from command import TINY, render, render_flags
from rich.control import strip_control_codes

from sanawm_cli.cli.main import run

PLAN = "1,1,1"
RESULT = re.compile(
    r"clip\.mp4: tiny( \(untrained\))?, 17 frames at 16 fps \(1\.06 s\), 3 chunks, "
    r"rendered in \d+\.\d s \(\d+\.\d fps\)(, peak memory [\d.]+ [MG]B)?\n"
)


class Terminal(StringIO):
    """A terminal that remembers all it was told."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    for name, value in {"TERM": "xterm", "COLUMNS": "120", "LINES": "30"}.items():
        monkeypatch.setenv(name, value)
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    return Terminal()


def seen(terminal: Terminal) -> str:
    """What was written, without colours and cursor movements."""
    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", terminal.getvalue())
    return strip_control_codes(plain)


def test_a_log_gets_a_line_per_chunk_and_stdout_the_result(here: Path) -> None:
    ran = render(chunk_plan=PLAN)
    assert RESULT.fullmatch(ran.out)
    assert "\x1b" not in ran.out + ran.err
    what, where, *chunks = ran.err.splitlines()
    assert "17 frames at 16 fps = 1.06 s, 64×64, 3 latents in 3 chunks" in what
    assert where == "on cpu, float32, 1 threads"
    for i, (frames, line) in enumerate(zip((1, 9, 17), chunks, strict=True)):
        assert re.fullmatch(
            rf"chunk {i + 1}/3 done in \d+\.\d\d s: {frames}/17 frames, \d+\.\d fps, \d+ s to go",
            line,
        )


def test_a_terminal_gets_a_bar(here: Path, terminal: Terminal) -> None:
    with redirect_stderr(terminal):
        assert run(render_flags(chunk_plan=PLAN, quiet=False)) == 0
    shown = seen(terminal)
    for chunk, frames in ((1, "0/17 frames"), (2, "1/17 frames"), (3, "9/17 frames")):
        for doing in ("step 1/4", "step 2/4", "step 3/4", "step 4/4", "decoding"):
            assert re.search(rf"chunk {chunk}/3 {doing} .*\d+% {frames}", shown)
    assert re.search(r"100% 17/17 frames, \d+\.\d fps, 0 s to go", shown)
    assert "done in" not in shown  # lines are for logs
    assert terminal.getvalue().rstrip("\n").endswith("\x1b[2K")  # the bar is wiped away


def test_quiet_says_nothing_at_all(here: Path, terminal: Terminal) -> None:
    ran = render(quiet=True)
    assert (ran.out, ran.err) == ("", "")
    with redirect_stderr(terminal):
        assert run(render_flags(quiet=True, overwrite=True)) == 0
    assert terminal.getvalue() == ""


def test_names_are_shown_as_they_are(here: Path) -> None:
    """Not as Rich's markup: [red] would colour what follows and vanish."""
    (here / "[red]").mkdir()
    ran = render(output="[red]/[bold]clip.mp4", action="w-16")
    assert ran.out.startswith("[red]/[bold]clip.mp4: tiny")
    assert "camera: action 'w-16'" in ran.err


def test_a_prompt_that_is_too_long_is_remarked_on(here: Path, terminal: Terminal) -> None:
    fit = TINY.text.tokens
    note = f"note: the prompt is cut: {fit} tokens fit, 44 are left out"
    assert note in render(prompt="x" * (fit + 44)).err.splitlines()
    with redirect_stderr(terminal):
        assert run(render_flags(prompt="x" * (fit + 44), overwrite=True)) == 0
    assert note in seen(terminal)


def test_a_guessed_focal_length_is_remarked_on(here: Path) -> None:
    guess = "note: focal length 77 px is a guess; --intrinsics fov=70 sets it"
    assert guess in render(action="w-16").err.splitlines()
    assert "guess" not in render(action="w-16", intrinsics="fov=70", overwrite=True).err
