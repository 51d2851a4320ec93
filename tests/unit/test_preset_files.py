"""The shipped presets, and finding presets by name or path."""

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from sanawm_cli.configs import NetworkConfig, TextConfig, VaeConfig
from sanawm_cli.errors import PresetError
from sanawm_cli.plan import FrameRequest, make_plan
from sanawm_cli.preset import (
    list_presets,
    load_preset,
    model_folder,
    preset_table,
    preset_toml,
    presets_folder,
    read_preset,
)

ROOT = Path(__file__).parents[2]
PUBLISHED = ("sana-wm-streaming-384p", "sana-wm-streaming-720p")


def test_the_shipped_presets_are_listed_by_name() -> None:
    assert list_presets() == (*PUBLISHED, "tiny")


@pytest.mark.parametrize("name", list_presets())
def test_a_shipped_preset_loads_under_its_file_name_and_can_be_planned(name: str) -> None:
    preset = load_preset(name)
    assert preset.name == name
    plan = make_plan(preset, FrameRequest())
    assert plan.frames == preset.video.default_frames
    assert preset.sampler.steps == (1000, 960, 889, 727, 0)
    assert (preset.stream.chunk_latents, preset.stream.window, preset.stream.sink) == (3, 2, True)


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_published_presets_spell_out_the_sizes_that_are_the_configs_defaults(name: str) -> None:
    preset = load_preset(name)
    assert preset.network == NetworkConfig()
    assert preset.vae == VaeConfig()
    assert preset.text == TextConfig()


def test_the_published_presets_differ_in_the_picture_only() -> None:
    small, large = (preset_table(load_preset(name)) for name in PUBLISHED)
    assert {key for key in small if small[key] != large[key]} == {"name", "title", "video"}


def test_the_default_preset_says_that_it_is_untrained_and_brings_its_model() -> None:
    tiny = load_preset("tiny")
    assert "UNTRAINED" in tiny.title
    assert model_folder("tiny") == presets_folder() / "tiny"


def test_a_preset_without_a_model_has_no_model_folder() -> None:
    assert model_folder(PUBLISHED[0]) is None


def test_an_unknown_name_gets_the_nearest_and_all_names() -> None:
    with pytest.raises(PresetError) as caught:
        load_preset("tinny")
    assert caught.value.message == "unknown preset 'tinny'"
    assert caught.value.hint == f"did you mean tiny? available: {', '.join(list_presets())}"


def test_a_name_like_no_other_gets_the_list_alone() -> None:
    with pytest.raises(PresetError) as caught:
        load_preset("0")
    assert caught.value.hint == f"available: {', '.join(list_presets())}"


def test_a_path_is_a_file_wherever_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copy(presets_folder() / "tiny.toml", tmp_path / "mine.toml")
    monkeypatch.chdir(tmp_path)
    want = load_preset("tiny")
    assert load_preset("mine.toml") == want
    assert load_preset("./mine.toml") == want
    assert load_preset(tmp_path / "mine.toml") == want


@pytest.mark.parametrize("path", ["tiny/", "gone.toml", "./tiny", "\0.toml"])
def test_a_path_that_is_no_readable_file_is_named(path: str) -> None:
    with pytest.raises(PresetError, match=r"gone|tiny|not a TOML file"):
        load_preset(path)


@pytest.mark.parametrize(
    "content",
    [b"\xff\xfe", b"name = ", b"x = " + b"[" * 20_000, b"x = " + b"9" * 5000, b"#" * (1 << 20 | 1)],
    ids=["not utf-8", "syntax", "nesting", "digits", "size"],
)
def test_a_file_that_is_no_toml_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "bad.toml"
    path.write_bytes(content)
    with pytest.raises(PresetError, match=r"bad\.toml: (not a TOML file|\d+ bytes are too many)"):
        load_preset(path)


@pytest.mark.parametrize("name", list_presets())
def test_a_preset_written_out_reads_back_the_same(name: str) -> None:
    preset = load_preset(name)
    assert read_preset(preset_table(preset), where="table") == preset
    assert read_preset(tomllib.loads(preset_toml(preset)), where="toml") == preset


def test_presets_and_plans_need_neither_torch_nor_numpy() -> None:
    code = (
        "import sys, sanawm_cli.memory_estimate, sanawm_cli.plan, sanawm_cli.preset as p; "
        "p.load_preset('tiny'); print({'torch', 'numpy'} & sys.modules.keys())"
    )
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert (run.stdout, run.stderr) == ("set()\n", "")
