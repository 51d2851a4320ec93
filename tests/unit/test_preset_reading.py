"""Reading is strict: what is wrong is named with file, section and key."""

import copy
import tomllib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sanawm_cli.errors import PresetError
from sanawm_cli.preset import Preset, preset_table, presets_folder, read_preset

TINY: dict[str, Any] = tomllib.loads((presets_folder() / "tiny.toml").read_text(encoding="utf-8"))
SECTIONS = [key for key, value in TINY.items() if isinstance(value, dict)]
KEYS = [(section, key) for section in SECTIONS for key in TINY[section]]
HUGE = 16**5000
KINDS = ["table", "nested list", "nan", "inf", "empty", "huge"]


def changed(section: str, **values: object) -> dict[str, Any]:
    """The tiny preset's table with other values in one section; `...` takes a key away."""
    table = copy.deepcopy(TINY)
    place = table[section] if section else table
    place.update(values)
    for key in [key for key, value in place.items() if value is ...]:
        del place[key]
    return table


def read(table: dict[str, Any]) -> Preset:
    return read_preset(table, where="my.toml")


def refusal(table: dict[str, Any]) -> PresetError:
    with pytest.raises(PresetError) as caught:
        read(table)
    assert "\n" not in caught.value.message
    return caught.value


@pytest.mark.parametrize(("section", "key"), KEYS)
def test_a_misspelt_key_is_named_with_the_one_that_was_meant(section: str, key: str) -> None:
    misspelt = key + "z" if len(key) < 4 else key[:-2] + key[-1] + key[-2] + "s"
    error = refusal(changed(section, **{misspelt: TINY[section][key]}))
    assert error.message == f"my.toml: [{section}] unknown key '{misspelt}'"
    assert error.hint is not None
    assert error.hint.startswith(f"did you mean {key}? known keys: ")


@pytest.mark.parametrize(("section", "key"), KEYS)
def test_a_missing_key_is_named(section: str, key: str) -> None:
    error = refusal(changed(section, **{key: ...}))
    assert error.message == f"my.toml: [{section}] missing key {key!r}"


@pytest.mark.parametrize(("section", "key"), KEYS)
@pytest.mark.parametrize("value", [{"a": 1}, [[]], float("nan"), float("inf"), "", HUGE], ids=KINDS)
def test_a_value_of_another_kind_is_refused(section: str, key: str, value: object) -> None:
    assert refusal(changed(section, **{key: value})).message.startswith(
        f"my.toml: [{section}] {key}"
    )


@pytest.mark.parametrize(("section", "key"), [k for k in KEYS if k != ("stream", "sink")])
def test_true_is_no_number(section: str, key: str) -> None:
    message = refusal(changed(section, **{key: True})).message
    assert message.startswith(f"my.toml: [{section}] {key} must be ")
    assert message.endswith(", not true")


def test_one_is_not_true() -> None:
    error = refusal(changed("stream", sink=1))
    assert error.message == "my.toml: [stream] sink must be true or false, not 1"


@pytest.mark.parametrize("key", ["name", "title", "model"])
def test_the_top_is_as_strict(key: str) -> None:
    assert refusal(changed("", **{key: ...})).message == f"my.toml: missing key {key!r}"
    assert refusal(changed("", **{key: 1})).message == f"my.toml: {key} must be a string, not 1"
    assert refusal(changed("", **{key: "a\nb"})).message.startswith(f"my.toml: {key}: ")


@pytest.mark.parametrize("key", ["name", "title"])
def test_a_preset_has_a_name_and_a_title(key: str) -> None:
    assert refusal(changed("", **{key: " "})).message == f"my.toml: {key}: ' ' is empty"


@pytest.mark.parametrize("section", SECTIONS)
def test_a_section_is_there_and_is_a_section(section: str) -> None:
    assert refusal(changed("", **{section: ...})).message == f"my.toml: missing section [{section}]"
    error = refusal(changed("", **{section: 3}))
    assert error.message == f"my.toml: {section} must be a section, not 3"


def test_an_unknown_section_is_named_with_the_nearest() -> None:
    error = refusal(changed("", videos={}))
    assert error.message == "my.toml: unknown key or section 'videos'"
    assert (error.hint or "").startswith("did you mean video? ")


def test_a_choice_lists_what_there_is() -> None:
    error = refusal(changed("camera", dialect="v3"))
    assert error.message == (
        'my.toml: [camera] dialect must be "v2" or "v1" or "v1-strafe", not \'v3\''
    )


def test_the_window_counts_chunks_or_is_all() -> None:
    assert read(changed("stream", window="all")).stream.window == "all"
    error = refusal(changed("stream", window="most"))
    assert error.message == "my.toml: [stream] window must be an integer or \"all\", not 'most'"


def test_whole_numbers_do_for_numbers() -> None:
    scale = read(changed("sampler", cfg_scale=3)).sampler.cfg_scale
    assert (scale, type(scale)) == (3.0, float)


def test_speeds_may_be_left_to_the_dialect() -> None:
    camera = read(TINY).camera
    assert (camera.translation_speed, camera.rotation_speed) == (None, None)
    camera = read(changed("camera", translation_speed=0.1)).camera
    assert (camera.translation_speed, camera.rotation_speed) == (0.1, None)


@pytest.mark.parametrize(
    ("key", "value", "fault"),
    [
        ("encoder_strides", [[1, 2]] * 4, "must be a list"),
        ("encoder_strides", [[1, 2, 2, 2]] * 4, "must be a list"),
        ("encoder_strides", [[1, 2, "2"]] * 4, "must be a list"),
        ("encoder_channels", [16, 32.5], "must be a list, each an integer"),
        ("encoder_channels", 16, "must be a list, each an integer"),
    ],
)
def test_lists_are_checked_to_the_last_entry(key: str, value: object, fault: str) -> None:
    assert f"[vae] {key} {fault}" in refusal(changed("vae", **{key: value})).message


def test_count_and_shift_stand_for_steps() -> None:
    sampler = changed("sampler", steps=..., count=4, shift=8)
    assert read(sampler) == read(TINY)


@pytest.mark.parametrize(
    ("values", "fault"),
    [
        ({"count": 4}, "steps and count + shift exclude each other"),
        ({"steps": ..., "count": 4}, "missing key 'shift'"),
        ({"steps": ..., "shift": 8.0}, "missing key 'count'"),
        ({"steps": ..., "count": 0, "shift": 8.0}, "count 0 with shift 8.0 gives no steps"),
        ({"steps": ..., "count": 1001, "shift": 1.0}, "count 1001 with shift 1.0 gives no steps"),
        ({"steps": ..., "count": 4, "shift": 0.0}, "count 4 with shift 0.0 gives no steps"),
        ({"steps": ..., "count": True, "shift": 8.0}, "count must be an integer, not true"),
    ],
)
def test_count_and_shift_are_checked(values: dict[str, object], fault: str) -> None:
    assert refusal(changed("sampler", **values)).message.startswith(f"my.toml: [sampler] {fault}")


def test_a_count_too_long_to_show_is_refused() -> None:
    error = refusal(changed("sampler", steps=..., count=HUGE, shift=1.0))
    assert error.message.startswith("my.toml: [sampler] count a number too long to show with")


def test_steps_that_rounding_makes_equal_are_refused() -> None:
    error = refusal(changed("sampler", steps=..., count=1000, shift=8))
    assert error.message.startswith("my.toml: [sampler] steps: [1000, 1000, ")
    assert error.message.endswith(" is not strictly decreasing")


def scalars() -> st.SearchStrategy[object]:
    return st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)


def values() -> st.SearchStrategy[object]:
    return st.recursive(
        scalars(), lambda v: st.lists(v, max_size=5) | st.dictionaries(st.text(max_size=3), v)
    )


def damages() -> st.SearchStrategy[tuple[str, str, object]]:
    known = st.sampled_from(KEYS) | st.tuples(st.sampled_from(SECTIONS), st.text(max_size=8))
    near = st.integers(-1, 4096) | st.lists(st.integers(0, 64), max_size=6)
    return st.tuples(known, values() | near).map(lambda d: (*d[0], d[1]))


@given(st.lists(damages(), min_size=1, max_size=3))
@settings(deadline=None, max_examples=200)
def test_whatever_a_table_holds_it_is_refused_properly_or_is_a_preset(
    damage: list[tuple[str, str, object]],
) -> None:
    table = copy.deepcopy(TINY)
    for section, key, value in damage:
        table[section][key] = value
    try:
        preset = read(table)
    except PresetError:
        assert refusal(table).message.startswith("my.toml: ")
    else:
        assert read(preset_table(preset)) == preset


@given(st.dictionaries(st.sampled_from([*TINY, "x"]), values(), max_size=12))
@settings(deadline=None, max_examples=50)
def test_any_table_is_refused_properly(table: dict[str, Any]) -> None:
    refusal(table)


@given(st.text(max_size=60))
@settings(deadline=None, max_examples=100)
def test_any_text_that_is_toml_is_refused_properly(text: str) -> None:
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    refusal(table)
