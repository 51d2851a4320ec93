"""A run's options on top of a preset, the fingerprint of what comes out, and lists of steps."""

from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sanawm_cli.errors import PresetError, UsageError
from sanawm_cli.preset import (
    Overrides,
    Preset,
    load_preset,
    merge,
    option_name,
    parse_steps,
    parse_window,
    preset_table,
)
from sanawm_cli.preset.steps import shifted_steps, steps_fault

TINY = load_preset("tiny")
# Another possible value for every option, and the section that it ends up in.
OTHER: dict[str, tuple[str, Any]] = {
    "height": ("video", 64),
    "width": ("video", 96),
    "fps": ("video", 24),
    "crf": ("video", 0),
    "chunk_latents": ("stream", 1),
    "window": ("stream", "all"),
    "sink": ("stream", False),
    "grid": ("stream", "uniform"),
    "steps": ("sampler", (1000, 0)),
    "cfg_scale": ("sampler", 3.5),
    "noise": ("sampler", "horizon"),
    "seed": ("sampler", 7),
    "dialect": ("camera", "v1"),
    "translation_speed": ("camera", 0.5),
    "rotation_speed": ("camera", 2.0),
}


def differences(one: Preset, other: Preset) -> set[tuple[str, str]]:
    a, b = preset_table(one), preset_table(other)
    return {
        (section, key)
        for section in a
        if isinstance(a[section], dict)
        for key in {*a[section], *b[section]}  # type: ignore[misc]
        if a[section].get(key) != b[section].get(key)  # type: ignore[attr-defined]
    }


def test_every_option_is_tried_here() -> None:
    assert {field.name for field in fields(Overrides)} == OTHER.keys()


@pytest.mark.parametrize("option", OTHER)
def test_an_option_changes_its_setting_and_nothing_else(option: str) -> None:
    section, value = OTHER[option]
    merged = merge(TINY, Overrides(**{option: value}))
    assert getattr(getattr(merged, section), option) == value
    assert differences(TINY, merged) == {(section, option)}


def test_no_options_change_nothing() -> None:
    assert merge(TINY, Overrides()) == TINY


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("height", 100, "--height: 100 is not a multiple of 32 of at least 64"),
        ("fps", 0, "--fps: 0 is not in 1 … 240"),
        ("cfg_scale", float("nan"), "--cfg-scale: nan is not in 1.0 … 100.0"),
        ("window", 0, "--kv-window: 0 is not in 1 … 100000"),
        ("chunk_latents", 0, "--chunk-latents: 0 is not in 1 … 1024"),
        ("steps", (1000,), "--steps: [1000] needs at least two entries"),
        ("seed", -1, f"--seed: -1 is not in 0 … {2**63 - 1}"),
        ("rotation_speed", 0.0, "--rotation-speed: 0.0 is not in 1e-06 … 180.0"),
    ],
)
def test_an_impossible_option_is_named(option: str, value: object, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        merge(TINY, Overrides(**{option: value}))  # type: ignore[arg-type]
    assert caught.value.message == message


def test_a_fault_of_the_preset_is_not_blamed_on_an_option() -> None:
    broken = replace(TINY, network=replace(TINY.network, width=65))
    with pytest.raises(PresetError, match=r"tiny: \[network\] width: 65"):
        merge(broken, Overrides(width=64))


def test_options_are_spelt_like_their_settings_but_for_the_dialect() -> None:
    assert [option_name(key) for key in ("cfg_scale", "dialect", "window")] == [
        "--cfg-scale",
        "--action-dialect",
        "--kv-window",
    ]


class TestSpeeds:
    """They belong to a dialect."""

    OWN = replace(TINY, camera=replace(TINY.camera, translation_speed=0.3, rotation_speed=3.0))

    def test_stay_with_the_dialect_that_the_preset_names(self) -> None:
        assert merge(self.OWN, Overrides(dialect="v2")).camera == self.OWN.camera

    def test_of_the_preset_do_not_go_over_to_another_dialect(self) -> None:
        camera = merge(self.OWN, Overrides(dialect="v1-strafe")).camera
        assert (camera.translation_speed, camera.rotation_speed) == (None, None)

    def test_given_with_another_dialect_count(self) -> None:
        camera = merge(self.OWN, Overrides(dialect="v1", rotation_speed=5.0)).camera
        assert (camera.translation_speed, camera.rotation_speed) == (None, 5.0)


class TestFingerprint:
    """Of all that changes the video, and of nothing else."""

    @pytest.mark.parametrize("option", OTHER)
    def test_changes_with_every_option(self, option: str) -> None:
        merged = merge(TINY, Overrides(**{option: OTHER[option][1]}))
        assert merged.fingerprint() != TINY.fingerprint()

    @pytest.mark.parametrize("section", ["network", "vae", "text"])
    def test_changes_with_every_size(self, section: str) -> None:
        part = getattr(TINY, section)
        for field in fields(part):
            other = replace(part, **{field.name: "something else"})
            changed = replace(TINY, **{section: other})
            assert changed.fingerprint() != TINY.fingerprint(), field.name

    def test_is_the_same_under_another_name_model_and_default_length(self) -> None:
        renamed = replace(TINY, name="x", title="y", model="z")
        renamed = replace(renamed, video=replace(TINY.video, default_frames=17))
        assert renamed.fingerprint() == TINY.fingerprint()

    def test_is_a_sha256_that_no_run_of_python_changes(self) -> None:
        assert TINY.fingerprint() == load_preset("tiny").fingerprint()
        assert len(bytes.fromhex(TINY.fingerprint())) == 32


class TestSteps:
    """Lists of noise steps."""

    def test_the_distilled_list_comes_from_its_formula(self) -> None:
        assert shifted_steps(4, 8.0) == (1000, 960, 889, 727, 0)

    @given(st.integers(1, 100), st.floats(0.1, 1.0) | st.floats(1.0, 8.0))
    @settings(deadline=None)
    def test_the_formula_starts_at_full_noise_ends_with_none_and_never_rises(
        self, count: int, shift: float
    ) -> None:
        steps = shifted_steps(count, shift)
        assert steps is not None
        assert (len(steps), steps[0], steps[-1]) == (count + 1, 1000, 0)
        assert list(steps) == sorted(steps, reverse=True)

    def test_without_a_shift_steps_are_uniform(self) -> None:
        assert shifted_steps(5, 1.0) == (1000, 800, 600, 400, 200, 0)

    @pytest.mark.parametrize(
        ("steps", "fault"),
        [
            ((), "[] needs at least two entries"),
            ((0,), "[0] needs at least two entries"),
            ((1000, 960, 960, 0), "[1000, 960, 960, 0] is not strictly decreasing"),
            ((500, 600, 0), "[500, 600, 0] is not strictly decreasing"),
            ((1001, 0), "[1001, 0] starts above 1000"),
            ((1000, 500), "[1000, 500] does not end with 0"),
            ((1000, 0, -1), "[1000, 0, -1] does not end with 0"),
            ((1000, 960, 889, 727, 0), None),
            ((1, 0), None),
        ],
    )
    def test_the_rule(self, steps: tuple[int, ...], fault: str | None) -> None:
        assert steps_fault(steps) == fault

    @given(st.lists(st.integers(0, 1000), min_size=1, max_size=8))
    @settings(deadline=None)
    def test_a_list_is_read_as_it_is_written(self, steps: list[int]) -> None:
        assert parse_steps(", ".join(map(str, steps))) == tuple(steps)

    @pytest.mark.parametrize("text", ["", "1000,,0", "1000,937.5,0", "1e3,0", "-1", "²,0"])
    def test_only_whole_numbers_are_read(self, text: str) -> None:
        with pytest.raises(UsageError, match="is not a whole number"):
            parse_steps(text)

    @given(st.text(max_size=20))
    @settings(deadline=None)
    def test_any_text_is_read_or_refused(self, text: str) -> None:
        try:
            assert all(step >= 0 for step in parse_steps(text))
        except UsageError:
            return


@pytest.mark.parametrize(("text", "window"), [("all", "all"), ("2", 2), ("0", 0), ("007", 7)])
def test_a_window_is_read(text: str, window: object) -> None:
    assert parse_window(text) == window


@pytest.mark.parametrize("text", ["", "-1", "2.0", "ALL", "²", "1234567"])
def test_no_window_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="neither a number of chunks nor all"):
        parse_window(text)
