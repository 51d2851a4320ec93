"""`sanawm presets`."""

import tomllib
from pathlib import Path

import pytest
from command import ROOT, sanawm

from sanawm_cli.preset.finding import list_presets, load_preset


def test_the_list_has_every_shipped_preset_with_its_title() -> None:
    ran = sanawm("presets", "list")
    assert (ran.code, ran.err) == (0, "")
    names = sorted(path.stem for path in (ROOT / "presets").glob("*.toml"))
    assert [line.split()[0] for line in ran.out.splitlines()] == names
    for name in names:
        assert f"{name} " in ran.out
        assert load_preset(name).title in ran.out


@pytest.mark.parametrize("name", list_presets())
def test_what_is_shown_is_a_preset_file(tmp_path: Path, name: str) -> None:
    ran = sanawm("presets", "show", name)
    assert (ran.code, ran.err) == (0, "")
    assert tomllib.loads(ran.out)["name"] == name
    path = tmp_path / "copy.toml"
    path.write_text(ran.out, encoding="utf-8")
    assert load_preset(path).fingerprint() == load_preset(name).fingerprint()
    assert sanawm("presets", "show", path).out == ran.out


def test_the_path_is_that_of_the_file() -> None:
    ran = sanawm("presets", "path", "tiny")
    assert ran.code == 0
    assert Path(ran.out.strip()).samefile(ROOT / "presets" / "tiny.toml")


@pytest.mark.parametrize("command", ["show", "path"])
def test_an_unknown_name_is_refused_with_the_nearest(command: str) -> None:
    ran = sanawm("presets", command, "tinny")
    assert (ran.code, ran.out) == (3, "")
    assert ran.err.startswith("error: unknown preset 'tinny'; did you mean tiny? ")
