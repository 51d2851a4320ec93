"""Impossible settings: right type, wrong value. Each is refused, with section and key."""

import dataclasses
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sanawm_cli.configs import NetworkConfig, VaeConfig
from sanawm_cli.errors import PresetError
from sanawm_cli.preset import load_preset, preset_table, read_preset
from sanawm_cli.preset.faults import faults
from sanawm_cli.vae.layout import decoder_stages, encoder_stages

TINY = load_preset("tiny")


def first_fault(section: str, **values: Any) -> tuple[str, str, str]:
    changed = replace(getattr(TINY, section), **values)
    fault = next(faults(replace(TINY, **{section: changed})))
    return fault.section, fault.key, fault.text


@pytest.mark.parametrize(
    ("section", "key", "value"),
    [
        ("video", "height", 0),
        ("video", "width", 8224),
        ("video", "fps", 0),
        ("video", "fps", 241),
        ("video", "crf", -1),
        ("video", "crf", 52),
        ("video", "encoder_threads", 0),
        ("video", "default_frames", 0),
        ("stream", "chunk_latents", 0),
        ("stream", "window", 0),
        ("stream", "window", -1),
        ("sampler", "cfg_scale", 0.99),
        ("sampler", "cfg_scale", float("nan")),
        ("sampler", "cfg_scale", float("inf")),
        ("sampler", "seed", -1),
        ("sampler", "seed", 2**63),
        ("camera", "translation_speed", 0.0),
        ("camera", "rotation_speed", -1.0),
        ("camera", "rotation_speed", float("nan")),
        ("network", "blocks", 0),
        ("network", "softmax_every", 0),
        ("network", "heads", 0),
        ("network", "ffn_ratio", 0.0),
        ("vae", "patch", 0),
        ("vae", "scaling_factor", 0.0),
        ("text", "tokens", 0),
    ],
)
def test_a_number_out_of_range_is_refused(section: str, key: str, value: float) -> None:
    found = first_fault(section, **{key: value})
    assert found[:2] == (section, key)
    assert found[2].startswith(f"{value} is not in ")


@pytest.mark.parametrize(
    ("key", "value", "fault"),
    [
        ("encoder_channels", 0, "0 is not in 1 … 65536"),
        ("decoder_channels", 0, "0 is not in 1 … 65536"),
        ("encoder_layers", -1, "-1 is not in 0 … 1024"),  # a stage may have no resnet at all
        ("decoder_factors", 0, "0 is not in 1 … 8"),
    ],
)
def test_a_number_out_of_range_in_a_list_is_refused(key: str, value: int, fault: str) -> None:
    values = getattr(TINY.vae, key)
    assert first_fault("vae", **{key: (*values[:-1], value)})[1:] == (key, fault)


def test_a_stride_is_one_or_two() -> None:
    strides = ((1, 2, 2), (2, 1, 1), (2, 2, 2), (2, 2, 3))
    assert first_fault("vae", encoder_strides=strides) == (
        "vae",
        "encoder_strides",
        "3 is not in 1 … 2",
    )


@pytest.mark.parametrize(
    ("network", "fault"),
    [
        ({"width": 65}, "65 does not divide by heads 2"),
        ({"width": 72}, "72 gives heads of 36, which is no multiple of 8"),
        ({"heads": 128}, "64 does not divide by heads 128"),
    ],
)
def test_heads_and_their_ray_half_must_come_out_even(network: dict[str, Any], fault: str) -> None:
    assert first_fault("network", **network) == ("network", "width", fault)


@pytest.mark.parametrize(
    ("key", "value", "fault"),
    [
        ("encoder_channels", (), "[] is empty"),
        ("decoder_channels", (), "[] is empty"),
        ("encoder_layers", (1, 1, 1, 1), "4 entries, but 4 encoder_channels need 5"),
        ("encoder_strides", ((2, 2, 2),), "1 entries, but 4 encoder_channels need 4"),
        ("decoder_layers", (1,) * 5, "5 entries, but 3 decoder_channels need 4"),
        ("decoder_strides", ((2, 2, 2),) * 4, "4 entries, but 3 decoder_channels need 3"),
        ("decoder_channels", (16, 32, 128), "128 is not 2 (decoder_factors) times 32"),
        ("decoder_channels", (4, 8, 16), "4 must divide by 8, and that by 2"),
        ("decoder_factors", (3, 2, 2), "32 is not 3 (decoder_factors) times 16"),
        (
            "encoder_channels",
            (16, 24, 32, 48),
            "24 must divide by 2 (its stride (2, 1, 1)) and divide 32",
        ),
        (
            "encoder_channels",
            (6, 32, 32, 64),
            "6 must divide by 4 (its stride (1, 2, 2)) and divide 512",
        ),
        (
            "decoder_strides",
            ((2, 2, 2), (2, 2, 2), (1, 2, 2)),
            "come to (4, 8, 8), those of the encoder to (8, 8, 8)",
        ),
    ],
)
def test_the_vae_must_fit_together(key: str, value: object, fault: str) -> None:
    section, _, text = first_fault("vae", **{key: value})
    assert (section, text) == ("vae", fault)


def test_the_vaes_height_and_width_must_shrink_alike() -> None:
    lopsided = {
        "encoder_strides": ((1, 2, 1), (2, 1, 1), (2, 2, 2), (2, 2, 2)),
        "decoder_strides": ((2, 2, 1), (2, 2, 2), (2, 2, 2)),
    }
    assert first_fault("vae", **lopsided)[1:] == (
        "encoder_strides",
        "come to (8, 8, 4): height and width must agree",
    )


def test_parts_must_fit_each_other() -> None:
    assert first_fault("network", latent_channels=64)[1:] == (
        "latent_channels",
        "128, but the network has 64",
    )
    assert first_fault("text", channels=63)[1:] == (
        "channels",
        "63, but the network's text_channels is 64",
    )


@pytest.mark.parametrize("key", ["height", "width"])
@pytest.mark.parametrize(("value", "use"), [(100, "96 or 128"), (33, "64 or 96"), (32, "64 or 96")])
def test_a_picture_side_is_a_multiple_of_the_stride(key: str, value: int, use: str) -> None:
    preset = replace(TINY, video=replace(TINY.video, **{key: value}))
    fault = next(faults(preset))
    assert (fault.section, fault.key) == ("video", key)
    assert fault.text == f"{value} is not a multiple of 32 of at least 64"
    assert fault.hint == f"use {use}"


def test_the_default_length_is_on_the_latent_grid() -> None:
    fault = next(faults(replace(TINY, video=replace(TINY.video, default_frames=72))))
    assert (fault.key, fault.text, fault.hint) == (
        "default_frames",
        "72 is not 8k + 1",
        "use 65 or 73",
    )


def test_reading_refuses_the_first_fault() -> None:
    table: Any = preset_table(TINY)
    table["video"]["height"] = 100
    with pytest.raises(PresetError) as caught:
        read_preset(table, where="my.toml")
    assert caught.value.message == (
        "my.toml: [video] height: 100 is not a multiple of 32 of at least 64"
    )
    assert caught.value.hint == "use 96 or 128"


CHANNELS = st.sampled_from([4, 8, 16, 24, 32, 64])
STRIDES = st.tuples(*[st.sampled_from([1, 2])] * 3)


@given(
    st.lists(CHANNELS, max_size=2).map(tuple),
    st.lists(CHANNELS, max_size=2).map(tuple),
    st.lists(STRIDES, max_size=2).map(tuple),
    st.sampled_from([1, 2, 4]),
)
@settings(deadline=None, max_examples=300)
def test_the_network_builds_from_every_vae_without_a_fault(
    down: Any, up: Any, strides: Any, factor: int
) -> None:
    vae = VaeConfig(
        encoder_channels=down,
        encoder_layers=(1,) * (len(down) + 1),
        encoder_strides=strides,
        decoder_channels=up,
        decoder_layers=(1,) * (len(up) + 1),
        decoder_strides=strides,
        decoder_factors=(factor,) * len(up),
    )
    if not any(fault.section == "vae" for fault in faults(replace(TINY, vae=vae))):
        assert len(encoder_stages(vae)) == len(down)
        assert len(decoder_stages(vae)) == len(up)


def test_good_presets_have_no_faults() -> None:
    assert not list(faults(TINY))
    assert not list(faults(replace(TINY, stream=replace(TINY.stream, window="all"))))


@pytest.mark.parametrize("config", [NetworkConfig, VaeConfig])
def test_every_number_of_the_sizes_has_a_range(config: type[Any]) -> None:
    """A new size without a range would let zero and a million through."""
    section = "network" if config is NetworkConfig else "vae"
    for field in dataclasses.fields(config):
        value = getattr(getattr(TINY, section), field.name)
        if not isinstance(value, str):
            absurd = -1 if not isinstance(value, tuple) else (-1,)
            assert first_fault(section, **{field.name: absurd})[2].startswith("-1 is not in ")
