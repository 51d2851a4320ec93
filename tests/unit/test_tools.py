"""The scripts in tools/: the example picture is what its script draws; torch comes without CUDA."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from PIL import Image

ROOT = Path(__file__).parents[2]


def load_tool(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A script of tools/ as a module, for one test."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, module)  # dataclasses look there
    spec.loader.exec_module(module)
    return module


def test_the_example_picture_is_what_its_script_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = load_tool("make_example_image", monkeypatch).draw()
    with Image.open(ROOT / "examples" / "courtyard.png") as picture:
        assert picture.mode == "RGB"
        kept = np.asarray(picture)
    assert drawn.shape == kept.shape == (192, 320, 3)
    assert np.array_equal(drawn, kept), f"{(drawn != kept).any(-1).sum()} pixels differ"


@pytest.mark.parametrize(
    ("platform", "nvidia", "cpu_builds"),
    [("linux", False, 1), ("linux", True, 0), ("darwin", False, 0)],
)
def test_the_disk_comes_first_and_the_package_index_last(
    platform: str, nvidia: bool, cpu_builds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = load_tool("install_torch", monkeypatch)
    ways = tool.ways(platform=platform, nvidia=nvidia)
    assert ways == [tool.ON_DISK, *[tool.CPU_BUILD] * cpu_builds, tool.ANY_BUILD]


@pytest.mark.parametrize("works", [1, 2, 3, 4])
def test_ways_are_tried_until_one_works(
    works: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tool = load_tool("install_torch", monkeypatch)
    tried: list[list[str]] = []

    def install(constraints: str, options: list[str], *, quiet: bool) -> bool:
        tried.append(options)
        return len(tried) == works

    monkeypatch.setattr(tool, "install", install)
    monkeypatch.setattr(tool.sys, "platform", "linux")
    monkeypatch.setattr(tool.shutil, "which", lambda name: None)
    assert tool.main("constraints.txt") == (1 if works == 4 else 0)
    assert tried == [tool.ON_DISK, tool.CPU_BUILD, tool.ANY_BUILD][:works]
    assert ("larger" in capsys.readouterr().out) == (works > 2)
