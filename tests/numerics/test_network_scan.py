"""The quick scan is the delta rule word for word, and can be cut anywhere going forward."""

from itertools import pairwise

import pytest
import torch
from toy import error, generator

from sanawm_cli.model.delta import Scan, scan, scan_reference

Inputs = dict[str, torch.Tensor]


def inputs(
    batch: int, heads: int, frames: int, tokens: int, key: int, value: int, *, seed: int = 0
) -> Inputs:
    """Keys as small as the network makes them, steps and decays within (0, 1), any past."""
    source = generator(seed)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=source, dtype=torch.float64)

    return {
        "key": normal(batch, heads, frames, tokens, key) * (key * tokens) ** -0.5,
        "value": normal(batch, heads, frames, tokens, value),
        "beta": torch.sigmoid(normal(batch, heads, frames, tokens)),
        "decay": torch.sigmoid(normal(batch, heads, frames)),
        "past": normal(batch, heads, value, key),
    }


def compare(got: Scan, want: Scan) -> float:
    return max(error(got.states, want.states), error(got.last, want.last))


SHAPES = [
    (1, 1, 1, 1, 1, 1),
    (2, 3, 5, 6, 8, 8),
    (1, 2, 3, 6, 24, 1),
    (2, 1, 4, 1, 8, 5),
    (1, 2, 2, 30, 4, 7),
]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_quick_is_plain(shape: tuple[int, int, int, int, int, int]) -> None:
    given = inputs(*shape)
    assert compare(scan(**given), scan_reference(**given)) <= 1e-12


@pytest.mark.parametrize(
    ("name", "number"), [("decay", 0.0), ("decay", 1.0), ("beta", 0.0), ("beta", 1.0)]
)
def test_quick_is_plain_at_the_ends(name: str, number: float) -> None:
    given = inputs(2, 2, 4, 3, 8, 8)
    given[name] = torch.full_like(given[name], number)
    assert compare(scan(**given), scan_reference(**given)) <= 1e-12


def test_without_steps_the_past_only_decays() -> None:
    given = inputs(1, 2, 3, 4, 8, 8)
    given["beta"] = torch.zeros_like(given["beta"])
    kept = given["decay"].cumprod(-1)[..., None, None]
    assert error(scan(**given).states, kept * given["past"][:, :, None]) <= 1e-12


def test_a_decay_of_zero_forgets_the_past() -> None:
    given = inputs(1, 2, 3, 4, 8, 8)
    given["decay"][:, :, 0] = 0
    other = {**given, "past": given["past"] + 1}
    assert compare(scan(**given), scan(**other)) <= 1e-12


def test_a_frame_is_read_after_its_own_update_and_once() -> None:
    """One frame: the backward pass brings nothing, since it leaves the frame itself out."""
    given = inputs(1, 2, 1, 4, 8, 8)
    result = scan(**given)
    assert torch.equal(result.states[:, :, 0], result.last)
    k, v = given["key"][:, :, 0], given["value"][:, :, 0]
    state = given["decay"][:, :, 0, None, None] * given["past"]
    step = (v - k @ state.mT) * given["beta"][:, :, 0, :, None]
    assert error(result.last, state + step.mT @ k) <= 1e-12


def test_read_is_state_times_query() -> None:
    result = scan(**inputs(2, 2, 3, 4, 8, 5))
    query = torch.randn(2, 2, 3, 4, 8, generator=generator(1), dtype=torch.float64)
    want = torch.einsum("bhtvk,bhtsk->bhtsv", result.states, query)
    assert error(result.read(query), want) <= 1e-12


@pytest.mark.parametrize("cuts", [(0, 3, 7), (0, 1, 2, 7), (0, 6, 7)], ids=str)
def test_chunks_carry_the_state_of_one_scan(cuts: tuple[int, ...]) -> None:
    given = inputs(2, 2, 7, 4, 8, 6)
    last = given["past"]
    for start, stop in pairwise(cuts):
        part = {name: given[name][:, :, start:stop] for name in ("key", "value", "beta", "decay")}
        last = scan(**part, past=last).last
    assert error(last, scan(**given).last) <= 1e-12


def test_inside_a_chunk_frames_see_later_ones() -> None:
    """So what a frame reads, unlike what is carried, does depend on where chunks end."""
    given = inputs(1, 1, 4, 3, 8, 8)
    part = {name: given[name][:, :, :2] for name in ("key", "value", "beta", "decay")}
    alone = scan(**part, past=given["past"])
    assert error(alone.states, scan(**given).states[:, :, :2]) > 1e-3
