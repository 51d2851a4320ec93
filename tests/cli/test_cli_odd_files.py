"""Files that are none: pipes that nobody writes to, endless devices, names that are too long.

Each of these once hung for ever, read without end, or ended in a traceback.
"""

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from command import render_flags, sanawm

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs FIFOs and devices")


@pytest.fixture
def pipe(here: Path) -> Path:
    os.mkfifo(here / "pipe.toml")
    return here / "pipe.toml"


@pytest.mark.parametrize("source", ["pipe.toml", "/dev/zero"])
@pytest.mark.parametrize(
    ("code", "options"),
    [
        (4, {"image": ...}),
        (4, {"camera": ..., "action": None, "no_camera": False}),
        (4, {"intrinsics": ..., "action": "w-16", "no_camera": False}),
        (4, {"prompt_file": ..., "prompt": None}),
        (4, {"text_embeds": ..., "prompt": None}),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_an_input_that_never_ends_is_refused(
    pipe: Path, source: str, code: int, options: dict[str, Any]
) -> None:
    given = {name: source if value is ... else value for name, value in options.items()}
    ran = sanawm(*render_flags(**given))
    assert ran.code == code
    assert ran.err.startswith("error: ")
    assert source in ran.err


def test_a_preset_or_model_that_never_ends_is_refused(pipe: Path, here: Path) -> None:
    assert sanawm("plan", "--preset=./pipe.toml").code == 3
    (here / "model").mkdir()
    os.mkfifo(here / "model" / "model.json")
    assert sanawm("plan", "--model=model").code == 6


def test_reference_cases_and_sidecars_that_never_end_are_refused(here: Path) -> None:
    (here / "cases").mkdir()
    os.mkfifo(here / "cases" / "a.json")
    assert sanawm("verify", "cases").code == 4


@pytest.mark.parametrize("name", ["x" * 300, "x/" * 3000])
def test_names_that_are_too_long_are_no_bug(here: Path, name: str) -> None:
    for arguments in (
        ["plan", f"--image={name}"],
        ["plan", f"--model={name}"],
        ["inspect", f"{name}.mp4"],
        ["verify", name],
        render_flags(output=f"{name}.mp4"),
        render_flags(image=name),
    ):
        ran = sanawm(*arguments)
        assert ran.code in (4, 6, 9), arguments[0]
        assert ran.err.startswith("error: ")
        assert len(ran.err.splitlines()) == 1


@pytest.mark.parametrize("name", [".", "", "folder"])
def test_a_camera_cannot_be_saved_under_no_name(here: Path, name: str) -> None:
    (here / "folder").mkdir()
    assert sanawm("plan", "--action=w-16", f"--save-camera={name}").code == 9


@pytest.mark.parametrize("size", [(1, 60_000), (60_000, 1)])
def test_a_picture_like_a_thread_is_refused(here: Path, size: tuple[int, int]) -> None:
    from PIL import Image

    Image.new("RGB", size).save(here / "thread.png")
    ran = sanawm(*render_flags(image="thread.png"))
    assert ran.code == 4
    assert "too narrow to cover" in ran.err or "the guess does not suit it" in ran.err
