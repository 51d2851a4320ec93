"""A chunk reads just the chunks its context names; the others have no influence."""

from dataclasses import replace

import pytest
import torch
from toy import (
    SIZE,
    assert_same,
    at_timestep,
    contexts,
    toy_camera,
    toy_latents,
    toy_text,
)

from sanawm_cli.cache.window import WindowMemory
from sanawm_cli.errors import SessionError
from sanawm_cli.model.dit import Network
from sanawm_cli.model.memory import AttentionMemory, DeltaMemory, KeyValue

TEXT = toy_text(4)
CAMERA = toy_camera(1, 8, SIZE)
BOUNDS = ((0, 3), (3, 5), (5, 6))
NEXT = range(6, 8)


@pytest.fixture(scope="module")
def memory(network: Network) -> WindowMemory:
    """Three chunks of 3, 2 and 1 latents; all are kept, and chunk i saw those before it."""
    memory = WindowMemory(network.empty_memory(1, 6), {})
    for index, (start, stop) in enumerate(BOUNDS):
        x = toy_latents(1, stop - start, SIZE, seed=10 + index)
        context = contexts(network, TEXT, CAMERA, range(start, stop))
        time = at_timestep(network, 0, stop - start)
        absorbed = network.absorb(x, time, context, memory.view(tuple(range(index))))
        memory = memory.extend(index, absorbed, keep=range(index + 1))
    return memory


def velocity(network: Network, memory: WindowMemory, context: tuple[int, ...]) -> torch.Tensor:
    x = toy_latents(1, len(NEXT), SIZE, seed=20)
    time = at_timestep(network, 600, len(NEXT))
    return network.velocity(x, time, contexts(network, TEXT, CAMERA, NEXT), memory.view(context))


def poisoned(memory: WindowMemory, chunk: int, branch: str, part: str) -> WindowMemory:
    """With NaN in all keys or values that one chunk has left in one branch."""
    segments = dict(memory.segments)
    segment = {}
    for block, attention in segments[chunk].items():
        tokens = attention.main if branch == "main" else attention.camera
        nan = torch.full_like(tokens.key, torch.nan)
        bad = KeyValue(nan, tokens.value) if part == "key" else KeyValue(tokens.key, nan)
        main, camera = (bad, attention.camera) if branch == "main" else (attention.main, bad)
        segment[block] = replace(attention, main=main, camera=camera)
    segments[chunk] = segment
    return replace(memory, segments=segments)


@pytest.mark.parametrize("part", ["key", "value"])
@pytest.mark.parametrize("branch", ["main", "camera"])
@pytest.mark.parametrize("context", [(), (0,), (0, 2), (1, 2), (0, 1, 2)], ids=str)
def test_only_the_context_has_influence(
    network: Network, memory: WindowMemory, context: tuple[int, ...], branch: str, part: str
) -> None:
    clean = velocity(network, memory, context)
    assert clean.isfinite().all()
    for chunk in range(3):
        got = velocity(network, poisoned(memory, chunk, branch, part), context)
        assert torch.equal(got, clean) == (chunk not in context), chunk


def test_chunks_that_are_not_read_need_not_be_there(network: Network, memory: WindowMemory) -> None:
    few = replace(memory, segments={2: memory.segments[2]})
    assert torch.equal(velocity(network, few, (2,)), velocity(network, memory, (2,)))


def test_recurrent_blocks_do_remember_every_chunk(network: Network, memory: WindowMemory) -> None:
    """Windows are for keys and values; the state of the delta rule holds the whole clip."""
    first = memory.latest[0]
    assert isinstance(first, DeltaMemory)
    bad = replace(first, state=torch.full_like(first.state, torch.nan))
    poisoned_state = replace(memory, latest=(bad, *memory.latest[1:]))
    assert velocity(network, poisoned_state, ()).isnan().all()


def test_a_window_is_its_chunks_in_time_order(memory: WindowMemory) -> None:
    window = memory.view((0, 2)).block(3)
    assert isinstance(window, AttentionMemory)
    for branch in ("main", "camera"):
        parts = [getattr(memory.segments[chunk][3], branch) for chunk in (0, 2)]
        tokens = getattr(window, branch)
        assert torch.equal(tokens.key, torch.cat([part.key for part in parts], 2))
        assert torch.equal(tokens.value, torch.cat([part.value for part in parts], 2))
        assert tokens.key.shape[2] == (3 + 1) * 6
    assert torch.equal(window.ffn_tail, memory.segments[2][3].ffn_tail)


def test_extend_keeps_what_it_is_told(network: Network, memory: WindowMemory) -> None:
    absorbed = tuple(
        memory.segments[2][index] if kind == "softmax" else memory.latest[index]
        for index, kind in enumerate(network.config.kinds)
    )
    for keep in ((), (3,), (0, 3), (0, 1, 2, 3)):
        after = memory.extend(3, absorbed, keep=keep)
        assert tuple(after.segments) == keep
    assert tuple(memory.segments) == (0, 1, 2)  # as before


def test_tensors_by_name_and_back(network: Network, memory: WindowMemory) -> None:
    named = dict(memory.named_tensors())
    empty = WindowMemory(network.empty_memory(1, 6), {})
    back = empty.with_tensors(named)
    assert_same(dict(back.named_tensors()), named)
    assert torch.equal(velocity(network, back, (0, 2)), velocity(network, memory, (0, 2)))
    assert memory.resident_bytes() == sum(t.nbytes for t in named.values())


def test_every_tensor_is_needed_to_get_back(network: Network, memory: WindowMemory) -> None:
    named = dict(memory.named_tensors())
    empty = WindowMemory(network.empty_memory(1, 6), {})
    for name in named:
        rest = {other: tensor for other, tensor in named.items() if other != name}
        with pytest.raises(SessionError, match=name.replace(".", r"\.")):
            empty.with_tensors(rest)
