"""Parameter names and shapes are those of the published checkpoints, raw and diffusers'."""

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from sanawm_cli.configs import NetworkConfig
from sanawm_cli.model.dit import Network
from sanawm_cli.weights.keymaps import (
    Shape,
    from_diffusers,
    ignored_shapes,
    is_ignored,
    keeps_float32,
    to_diffusers,
)

FIXTURES = Path(__file__).parents[1] / "fixtures"
CONFIG = NetworkConfig()
TEXT_TOKENS = 300
PARAMETERS = 2_661_800_448


def published(name: str) -> dict[str, dict[str, object]]:
    keys: dict[str, dict[str, object]] = json.loads((FIXTURES / name).read_text())["keys"]
    return keys


def shapes(keys: dict[str, dict[str, object]]) -> dict[str, Shape]:
    found = {}
    for name, facts in keys.items():
        assert isinstance(facts["shape"], list)
        found[name] = tuple(facts["shape"])
    return found


@pytest.fixture(scope="module")
def own() -> dict[str, Shape]:
    """The full-size network's names and shapes; no memory is taken for its weights."""
    with torch.device("meta"):
        network = Network(CONFIG)
    assert not list(network.buffers())
    return {name: tuple(weight.shape) for name, weight in network.state_dict().items()}


def test_raw_names_one_to_one(own: dict[str, Shape]) -> None:
    ignored = ignored_shapes(CONFIG, TEXT_TOKENS)
    assert not own.keys() & ignored.keys()
    assert own | ignored == shapes(published("keys_raw.json"))


def test_the_count_of_parameters(own: dict[str, Shape]) -> None:
    """The checkpoint's own count: all it calls parameters, ours and those we pass over."""
    ours = own | ignored_shapes(CONFIG, TEXT_TOKENS)
    kinds = {name: facts["kind"] for name, facts in published("keys_raw.json").items()}
    total = sum(math.prod(ours[name]) for name, kind in kinds.items() if kind == "param")
    assert total == PARAMETERS


def test_diffusers_names_one_to_one(own: dict[str, Shape]) -> None:
    theirs = shapes(published("keys_diffusers.json"))
    used = {name: shape for name, shape in theirs.items() if not is_ignored(name, CONFIG)}
    assert {to_diffusers(name): shape for name, shape in own.items()} == used
    left = ignored_shapes(CONFIG, TEXT_TOKENS)
    assert {name: left[name] for name in theirs.keys() - used.keys()} == {
        name: shape for name, shape in theirs.items() if name not in used
    }


def test_names_there_and_back(own: dict[str, Shape]) -> None:
    renamed = {name for name in own if to_diffusers(name) != name}
    assert renamed == {f"t_embedder.mlp.{i}.{part}" for i in (0, 2) for part in ("weight", "bias")}
    for name in own:
        assert from_diffusers(to_diffusers(name)) == name
        assert from_diffusers(name) == name


def test_what_is_ignored(own: dict[str, Shape]) -> None:
    assert all(is_ignored(name, CONFIG) for name in ignored_shapes(CONFIG, TEXT_TOKENS))
    assert is_ignored("pos_embed", CONFIG)
    assert not [name for name in own if is_ignored(name, CONFIG)]


@pytest.mark.parametrize(
    "name",
    [
        "blocks.0.attn.A_log",  # a delta block's is no spare part
        "blocks.3.attn.qkv.weight",
        "blocks.23.attn.A_log",  # there is no such block
        "blocks.3.attn.beta_proj.weights",
        "blocks.3.mlp.gate_proj.weight",
        "y_embedder.y_proj.fc1.weight",
        "raymap_embedder",
        "pos_embedding",
        "",
    ],
)
def test_the_list_of_the_ignored_is_short(name: str) -> None:
    assert not is_ignored(name, CONFIG)


def test_which_gates_are_spare_follows_the_kinds_of_blocks() -> None:
    every_other = replace(CONFIG, softmax_every=2)
    assert is_ignored("blocks.1.attn.dt_bias", every_other)
    assert not is_ignored("blocks.1.attn.dt_bias", CONFIG)


def test_what_stays_float32(own: dict[str, Shape]) -> None:
    """Norms, decays and modulation tables: vectors, and a small part of all."""
    kept = {name for name in own if keeps_float32(name)}
    norms = {name for name in own if "norm" in name}
    tables = {name for name in own if name.endswith("scale_shift_table")}
    decays = {name for name in own if name.endswith(("A_log", "dt_bias"))}
    assert kept == norms | tables | decays
    assert len(tables) == 21
    assert len(decays) == 2 * 15
    assert len(norms) == 1 + 20 * 6
