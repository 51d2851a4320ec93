"""Options by name become a request: one table for the command line and whoever else names them."""

import inspect
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from sanawm_cli.cli.plan import plan
from sanawm_cli.cli.render import render
from sanawm_cli.errors import UsageError
from sanawm_cli.jobs.request import ClipRequest, clip_request
from sanawm_cli.preset.overrides import Overrides

# Settings of a preset that a run may change, and that have no option of their own.
WITHOUT_OPTION = {"chunk_latents", "grid"}
SPELT = {"dialect": "action_dialect", "window": "kv_window"}
WRITTEN = {"steps": "1000,500,0", "kv_window": "all"}  # text, until it is read
PROMPTS = {"prompt", "prompt_file", "text_embeds", "negative_prompt"}
MACHINE = {"device", "dtype", "threads"}
TALK = {"output", "overwrite", "dry_run", "as_json", "quiet"}

INPUTS = {f.name: get_type_hints(ClipRequest)[f.name] for f in fields(ClipRequest)}
del INPUTS["overrides"]
SETTINGS = {
    SPELT.get(f.name, f.name): get_type_hints(Overrides)[f.name]
    for f in fields(Overrides)
    if f.name not in WITHOUT_OPTION
}


def parameters(command: Any) -> dict[str, inspect.Parameter]:
    found = dict(inspect.signature(command).parameters)
    del found["ctx"]
    return found


def test_every_part_of_a_request_has_an_option() -> None:
    assert parameters(render).keys() == INPUTS.keys() | SETTINGS.keys() | MACHINE | TALK
    shared = (INPUTS.keys() | SETTINGS.keys()) - PROMPTS
    assert parameters(plan).keys() == shared | {"save_camera", "dtype", "as_json"}


@pytest.mark.parametrize("command", [render, plan])
def test_options_have_the_types_and_defaults_of_the_request(command: Any) -> None:
    types, plain = get_type_hints(command), ClipRequest()
    for name, parameter in parameters(command).items():
        if name in INPUTS:
            assert types[name] == INPUTS[name]
            assert parameter.default == getattr(plain, name)
        elif name in SETTINGS:
            assert types[name] == (str | None if name in WRITTEN else SETTINGS[name])
            assert parameter.default is None


def test_nothing_given_is_the_plain_request() -> None:
    assert clip_request({}) == ClipRequest()
    given = {name: parameter.default for name, parameter in parameters(render).items()}
    assert clip_request(given) == ClipRequest()


@pytest.mark.parametrize(
    ("name", "value", "field"),
    [
        ("height", 96, "height"),
        ("sink", False, "sink"),
        ("seed", 0, "seed"),
        ("cfg_scale", 2.5, "cfg_scale"),
        ("noise", "horizon", "noise"),
        ("action_dialect", "v1", "dialect"),
        ("rotation_speed", 2.0, "rotation_speed"),
        ("grid", "uniform", "grid"),
    ],
)
def test_a_setting_lands_in_the_overrides_and_nowhere_else(
    name: str, value: object, field: str
) -> None:
    assert clip_request({name: value}) == ClipRequest(
        overrides=replace(Overrides(), **{field: value})
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("preset", "other"),
        ("image", Path("a.png")),
        ("no_camera", True),
        ("camera_fit", "hold"),
        ("chunk_plan", "1,1,1"),
        ("seconds", 2.0),
    ],
)
def test_an_input_lands_in_the_request_and_nowhere_else(name: str, value: object) -> None:
    assert clip_request({name: value}) == replace(ClipRequest(), **{name: value})


def test_what_is_written_as_text_is_read() -> None:
    overrides = clip_request({"steps": "1000, 500,0", "kv_window": "3"}).overrides
    assert overrides == Overrides(steps=(1000, 500, 0), window=3)
    assert clip_request({"kv_window": "all"}).overrides.window == "all"
    with pytest.raises(UsageError, match="--steps 'x'"):
        clip_request({"steps": "x"})
    with pytest.raises(UsageError, match="--kv-window 'x'"):
        clip_request({"kv_window": "x"})


def test_other_options_are_passed_over() -> None:
    assert clip_request({"quiet": True, "overrides": 3, "window": 3}) == ClipRequest()
