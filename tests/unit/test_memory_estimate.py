"""Memory estimates: parameter counts, and how the parts follow from plan and settings."""

import json
import re
from dataclasses import fields, replace
from math import prod
from pathlib import Path
from typing import Any

import pytest

from sanawm_cli.configs import NetworkConfig
from sanawm_cli.memory_estimate import (
    MemoryEstimate,
    estimate_memory,
    network_parameter_count,
    text_parameter_count,
    unused_parameter_count,
)
from sanawm_cli.plan import FrameRequest, make_plan
from sanawm_cli.preset import Preset, list_presets, load_preset
from sanawm_cli.vae.estimate import decoder_memory_bytes, decoder_peak_bytes, parameter_count

KEYS = Path(__file__).parents[1] / "fixtures" / "keys_raw.json"
FULL, TINY = load_preset("sana-wm-streaming-720p"), load_preset("tiny")
# What grows with the number of videos in the network's batch.
BATCHED = {"text_context", "recurrent", "window", "activations"}
WEIGHTS = {"network_weights", "vae_weights", "text_weights"}


def published() -> dict[str, int]:
    """Size of every trainable tensor in the published checkpoint."""
    keys = json.loads(KEYS.read_text(encoding="utf-8"))["keys"]
    return {name: prod(key["shape"]) for name, key in keys.items() if key["kind"] == "param"}


def estimate(preset: Preset = TINY, latents: int = 10, itemsize: int = 4) -> MemoryEstimate:
    frames = preset.frame_grid.frames(latents)
    return estimate_memory(
        preset, make_plan(preset, FrameRequest(frames=frames)), itemsize=itemsize
    )


def streaming(preset: Preset, **values: Any) -> Preset:
    return replace(preset, stream=replace(preset.stream, **values))


def parts(estimate: MemoryEstimate) -> dict[str, int]:
    return {field.name: getattr(estimate, field.name) for field in fields(estimate)}


def test_the_published_network_has_this_many_parameters() -> None:
    count = network_parameter_count(NetworkConfig())
    assert count == sum(published().values()) == 2_661_800_448


def test_those_that_nothing_reads_are_the_ray_map_and_the_softmax_blocks_gates() -> None:
    softmax = "|".join(str(i) for i, kind in enumerate(NetworkConfig().kinds) if kind == "softmax")
    gates = rf"blocks\.({softmax})\.attn\.(A_log|dt_bias|beta_proj\..*|gate_proj\..*)"
    unread = {n: c for n, c in published().items() if re.fullmatch(rf"raymap.*|{gates}", n)}
    assert len(unread) == 2 + 5 * 6
    assert unused_parameter_count(NetworkConfig()) == sum(unread.values()) == 457_360


def test_weights_are_those_that_are_read() -> None:
    weights = estimate(FULL, itemsize=2)
    assert weights.network_weights == 2 * (2_661_800_448 - 457_360)
    assert weights.vae_weights == 2 * parameter_count(FULL.vae)
    assert weights.text_weights == 0
    assert estimate(TINY).text_weights == 4 * text_parameter_count(TINY.text) > 0


@pytest.mark.parametrize("name", list_presets())
@pytest.mark.parametrize("chunk", [1, 2, 3, 4])
@pytest.mark.parametrize("window", [1, 2, 5])
@pytest.mark.parametrize("sink", [True, False])
def test_nothing_grows_with_the_clip_when_the_window_is_bounded(
    name: str, chunk: int, window: int, sink: bool
) -> None:
    preset = streaming(load_preset(name), chunk_latents=chunk, window=window, sink=sink)
    for rest in range(chunk):
        short = chunk * (window + 3) + rest
        assert estimate(preset, short) == estimate(preset, short + 100 * chunk)


def test_an_unbounded_window_grows_by_what_a_chunk_remembers() -> None:
    preset = streaming(TINY, window="all")
    sizes = [estimate(preset, latents).window for latents in (10, 13, 16)]
    chunk = 3 * 60 * 64 * 4 * 4  # latents, tokens, width, float32, keys and values of two branches
    assert sizes[1] - sizes[0] == sizes[2] - sizes[1] == chunk
    assert estimate(preset, 16).recurrent == estimate(preset, 10).recurrent


@pytest.mark.parametrize("name", list_presets())
def test_what_is_carried_is_counted_as_the_blocks_carry_it(name: str) -> None:
    preset = load_preset(name)
    network, d = preset.network, preset.network.head_dim
    tokens = preset.video.height // 32 * (preset.video.width // 32)
    made = estimate(preset, itemsize=2)
    states = network.heads * (d * d + d + d * d) * 4
    delta = states + 3 * tokens * network.width * 2
    tail = tokens * network.width * 2
    kinds = network.kinds
    assert made.recurrent == kinds.count("delta") * delta + len(kinds) * tail
    # Chunks of 4, 3, 3 latents: the third reads the first two, which are the most.
    assert made.window == kinds.count("softmax") * 4 * (4 + 3) * tail


def test_the_window_is_that_of_the_fullest_context() -> None:
    def window(*sizes: int) -> int:
        plan = make_plan(TINY, FrameRequest(chunk_plan=sizes))
        return estimate_memory(TINY, plan, itemsize=4).window

    latent = window(1, 1)
    assert window(9) == 0
    assert window(2, 5, 1) == 7 * latent
    assert window(2, 5, 1, 1) == 7 * latent
    assert window(2, 1, 9, 1, 1) == (2 + 9) * latent


def test_guidance_doubles_what_the_network_holds_beside_its_weights() -> None:
    plain = parts(estimate())
    guided = parts(estimate(replace(TINY, sampler=replace(TINY.sampler, cfg_scale=1.5))))
    assert {name for name in plain if guided[name] == 2 * plain[name]} == BATCHED
    assert {name for name in plain if guided[name] == plain[name]} == plain.keys() - BATCHED


def test_half_the_precision_halves_all_but_states_and_frames() -> None:
    half, full = parts(estimate(itemsize=2)), parts(estimate(itemsize=4))
    halved = {name for name in full if full[name] == 2 * half[name]}
    assert halved == full.keys() - {"recurrent", "activations", "frames"}
    assert half["frames"] == full["frames"]


@pytest.mark.parametrize(
    ("preset", "least", "most"), [(FULL, 9e9, 16e9), (TINY, 15e6, 150e6)], ids=["full", "tiny"]
)
def test_totals_are_of_a_sensible_size(preset: Preset, least: float, most: float) -> None:
    """By hand: 2.7 and 1.2 billion weights of 2 bytes are 7.8 GB of the large one."""
    assert least < estimate(preset, itemsize=2 if preset is FULL else 4).total < most


def test_the_decoder_holds_its_memory_twice_while_it_works() -> None:
    made = estimate(latents=11)
    memory = decoder_memory_bytes(TINY.vae, 192, 320, 4)
    assert made.decoder_memory == memory
    peak = decoder_peak_bytes(TINY.vae, 192, 320, latents=5, itemsize=4)
    assert made.decoder_peak == peak + memory


def test_frames_are_those_of_the_largest_chunk() -> None:
    assert estimate(latents=11).frames == 33 * 192 * 320 * 3  # chunks of 5, 3, 3 latents
    assert estimate(latents=6).frames == 24 * 192 * 320 * 3  # 3 and 3: the first shows 17


@pytest.mark.parametrize("every", [1, 100])
def test_a_network_of_one_kind_of_block(every: int) -> None:
    network = replace(TINY.network, softmax_every=every)
    made = estimate(replace(TINY, network=network))
    assert (made.window == 0) == (every == 100)
    tails_alone = network.blocks * 60 * 64 * 4
    assert (made.recurrent == tails_alone) == (every == 1)
    assert made.activations > 0


def test_json_has_every_part_and_their_sum() -> None:
    made = estimate()
    listed = made.as_json()
    assert listed.pop("total") == made.total == sum(listed.values())
    assert listed == parts(made)
    assert all(isinstance(size, int) and size >= 0 for size in listed.values())
