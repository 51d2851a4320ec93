"""A folder to work in, and refusals: one line, the right code, nothing loaded, nothing written."""

from collections.abc import Callable
from pathlib import Path

import pytest
from command import picture, sanawm, snapshot

Refuse = Callable[..., str]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a first frame in it."""
    monkeypatch.chdir(tmp_path)
    picture(96, 64).save("first.png")
    return tmp_path


@pytest.fixture
def refuse(here: Path, monkeypatch: pytest.MonkeyPatch) -> Refuse:
    """Run a command line that has to fail with a code, before any weights; returns its line."""

    def load_nothing(*_: object, **__: object) -> None:
        raise AssertionError("weights were loaded")

    monkeypatch.setattr("sanawm_cli.jobs.models.load_into", load_nothing)

    def refused(code: int, arguments: list[str], *, lines: int = 1) -> str:
        before = snapshot(here)
        ran = sanawm(*arguments)
        assert (ran.code, ran.out) == (code, ""), ran.err
        assert ran.err.startswith("error: ")
        assert ran.err.count("\n") == lines, ran.err
        assert snapshot(here) == before
        return ran.err.removeprefix("error: ").rstrip("\n")

    return refused
