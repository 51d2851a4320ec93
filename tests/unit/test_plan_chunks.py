"""Chunks: what they cover, what they show, what they may read, what memory may drop."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sanawm_cli.errors import ChunkPlanError, PlanError
from sanawm_cli.grid import FrameGrid
from sanawm_cli.plan import (
    Chunk,
    FrameRequest,
    Plan,
    chunk_sizes,
    context_of,
    cut,
    make_plan,
    parse_chunk_plan,
)
from sanawm_cli.plan.chunks import MAX_CONTEXT_ENTRIES
from sanawm_cli.preset import StreamSettings, load_preset

TINY = load_preset("tiny")
GRID = FrameGrid()
WINDOWS: tuple[Any, ...] = (1, 2, 3, 4, 5, "all")


def stream(size: int = 3, **values: Any) -> StreamSettings:
    return replace(TINY.stream, chunk_latents=size, **values)


def sizes(latents: int, size: int = 3, **values: Any) -> tuple[int, ...]:
    return chunk_sizes(latents, stream=stream(size, **values), frame_grid=GRID)


def plan(latents: int, size: int = 3, **values: Any) -> Plan:
    preset = replace(TINY, stream=stream(size, **values))
    return make_plan(preset, FrameRequest(frames=GRID.frames(latents)))


def bounds(latents: int, size: int = 3) -> list[int]:
    chunks = plan(latents, size).chunks
    return [chunks[0].start, *(chunk.stop for chunk in chunks)]


def test_the_remainder_goes_to_the_first_chunk() -> None:
    assert bounds(13) == [0, 4, 7, 10, 13]
    assert bounds(11) == [0, 5, 8, 11]
    assert sizes(121) == (4, *(3,) * 39)
    assert sizes(12) == (3, 3, 3, 3)
    assert sizes(3) == (3,)


@given(st.integers(1, 400), st.integers(1, 12), st.sampled_from(["remainder", "uniform"]))
@settings(deadline=None)
def test_chunks_cover_the_latents_and_show_each_frame_once(
    latents: int, size: int, grid: str
) -> None:
    try:
        made = plan(latents, size, grid=grid)
    except PlanError:
        assert latents < size or (grid == "uniform" and (latents - 1) % size) or latents == 1
        return
    assert [n for c in made.chunks for n in range(c.start, c.stop)] == list(range(latents))
    shown = [f for c in made.chunks for f in range(c.first_frame, c.stop_frame)]
    assert shown == list(range(8 * (latents - 1) + 1)) == list(range(made.frames))
    assert [c.index for c in made.chunks] == list(range(len(made.chunks)))
    assert all(c.latents >= 1 and c.frames >= 1 for c in made.chunks)
    assert all(c.latents == size and c.frames == 8 * size for c in made.chunks[1:])
    assert made.chunks[0].frames == 8 * (made.chunks[0].latents - 1) + 1


@pytest.mark.parametrize("size", range(2, 9))
@pytest.mark.parametrize("count", range(1, 6))
def test_whole_chunks_after_the_first_latent_are_the_same_on_both_grids(
    size: int, count: int
) -> None:
    latents = size * count + 1
    assert sizes(latents, size) == sizes(latents, size, grid="uniform")
    assert sizes(latents, size) == (size + 1, *(size,) * (count - 1))


@pytest.mark.parametrize("size", range(1, 9))
@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("sink", [True, False])
def test_a_longer_clip_starts_with_the_chunks_of_a_shorter_one(
    size: int, window: Any, sink: bool
) -> None:
    short, long = (plan(size * k + 1, size, window=window, sink=sink) for k in (3, 7))
    assert long.chunks[: len(short.chunks)] == short.chunks


def test_chunks_of_one_latent_always_lie_on_the_uniform_grid() -> None:
    for grid in ("remainder", "uniform"):
        assert sizes(5, 1, grid=grid) == (2, 1, 1, 1)
        assert sizes(2, 1, grid=grid) == (2,)
        assert sizes(1, 1, grid=grid) == (1,)
        assert plan(5, 1, grid=grid).grid == "uniform"


@pytest.mark.parametrize("size", range(2, 9))
def test_too_few_latents_name_the_smallest_frame_count_and_it_works(size: int) -> None:
    least = 8 * (size - 1) + 1
    for latents in range(1, size):
        with pytest.raises(PlanError, match=f"smallest frame count that works is {least}$"):
            sizes(latents, size)
    assert sizes(GRID.latents(least), size) == (size,)


@pytest.mark.parametrize("size", range(2, 9))
def test_on_the_uniform_grid_a_clip_is_whole_chunks(size: int) -> None:
    least = 8 * size + 1
    with pytest.raises(PlanError, match=f"smallest frame count that works is {least}$"):
        sizes(1, size, grid="uniform")
    with pytest.raises(PlanError) as caught:
        sizes(size, size, grid="uniform")
    assert caught.value.hint == f"ask for {least} frames, or use --snap chunk"
    with pytest.raises(PlanError) as caught:
        sizes(size + 2, size, grid="uniform")
    assert caught.value.message == (
        f"{8 * size + 9} frames do not fit the uniform grid ({8 * size}k + 1)"
    )
    assert caught.value.hint == f"ask for {least} or {2 * 8 * size + 1} frames, or use --snap chunk"


def restated_context(index: int, window: Any, sink: bool) -> list[int]:
    """The rule in the words it was written in, chunk by chunk."""
    read = []
    for earlier in range(index):
        if window == "all":
            visible = True
        elif sink and index - window + 1 > 0:
            visible = earlier == 0 or earlier >= index - window + 1
        else:
            visible = earlier >= max(index - window, 0)
        if visible:
            read.append(earlier)
    return read


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("sink", [True, False])
def test_a_context_is_the_window_with_the_sink_in_one_of_its_places(
    window: Any, sink: bool
) -> None:
    for index in range(30):
        context = context_of(index, window=window, sink=sink)
        assert list(context) == restated_context(index, window, sink)
        assert window == "all" or len(context) == min(index, window)
    made = plan(91, window=window, sink=sink)
    assert [c.context for c in made.chunks] == [
        context_of(c.index, window=window, sink=sink) for c in made.chunks
    ]


def test_examples_of_contexts() -> None:
    def last(window: Any, sink: bool) -> tuple[int, ...]:
        return context_of(6, window=window, sink=sink)

    assert last(2, True) == (0, 5)
    assert last(3, True) == (0, 4, 5)
    assert last(1, True) == (0,)
    assert last(2, False) == (4, 5)
    assert last("all", True) == last("all", False) == (0, 1, 2, 3, 4, 5)


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("sink", [True, False])
def test_memory_holds_exactly_what_later_chunks_read(window: Any, sink: bool) -> None:
    chunks = (made := plan(40, window=window, sink=sink)).chunks
    held: set[int] = set()
    for chunk in chunks:
        assert set(chunk.context) <= held
        held.add(chunk.index)
        wanted = {i for later in chunks[chunk.index + 1 :] for i in later.context}
        needed = wanted & set(range(chunk.index + 1))
        assert set(made.kept_after(chunk.index)) == needed
        assert set(made.dropped_after(chunk.index)) == held - needed
        held -= set(made.dropped_after(chunk.index))
    assert not held


def test_a_plan_is_exactly_this_json() -> None:
    made = make_plan(TINY, FrameRequest(frames=58))
    assert made.as_json({"total": 3}) == {
        "frames": {"requested": 58, "rendered": 57},
        "latents": 8,
        "fps": 16,
        "chunks": [
            {"index": 0, "latents": [0, 5], "frames": [0, 33], "context": []},
            {"index": 1, "latents": [5, 8], "frames": [33, 57], "context": [0]},
        ],
        "memory": {"total": 3},
    }


class TestByHand:
    """Chunk plans written by the user."""

    @given(st.lists(st.integers(1, 999_999), min_size=1, max_size=9), st.sampled_from([",", " , "]))
    @settings(deadline=None)
    def test_are_read_as_they_are_written(self, plan: list[int], comma: str) -> None:
        assert parse_chunk_plan(comma.join(map(str, plan))) == tuple(plan)

    @pytest.mark.parametrize(
        "text", ["", "4,,3", "4,3,", "0", "4,0", "-1", "1.5", "a", "4 3", "٣", "1" * 5000, "1e3"]
    )
    def test_hold_positive_numbers(self, text: str) -> None:
        with pytest.raises(ChunkPlanError, match=r"is not a positive number of latent frames$"):
            parse_chunk_plan(text)

    @given(st.text(max_size=12) | st.text("0123456789,- ", max_size=12))
    @settings(deadline=None)
    def test_are_read_or_refused(self, text: str) -> None:
        try:
            assert min(parse_chunk_plan(text)) > 0
        except ChunkPlanError:
            return

    @given(st.text("0123456789, ", max_size=12), st.none() | st.integers(-9, 10**7))
    @settings(deadline=None)
    def test_become_a_plan_or_are_refused(self, text: str, frames: int | None) -> None:
        try:
            sizes = parse_chunk_plan(text)
            made = make_plan(TINY, FrameRequest(chunk_plan=sizes, frames=frames))
        except PlanError:
            return
        assert tuple(chunk.latents for chunk in made.chunks) == sizes

    def test_must_cover_the_latents_exactly(self) -> None:
        with pytest.raises(ChunkPlanError) as caught:
            make_plan(TINY, FrameRequest(chunk_plan=(4, 3, 3), frames=81))
        assert caught.value.message == (
            "chunk plan [4, 3, 3] covers 10 latent frames, the request has 11"
        )

    def test_of_many_chunks_are_not_all_shown(self) -> None:
        with pytest.raises(ChunkPlanError, match=r"1, …\] covers 999 latent frames, the request"):
            make_plan(TINY, FrameRequest(chunk_plan=(1,) * 999, frames=81))

    @pytest.mark.parametrize("sizes", [(), (4, 0, 3), (4, -1, 4)])
    def test_made_elsewhere_are_checked_too(self, sizes: tuple[int, ...]) -> None:
        with pytest.raises(ChunkPlanError, match="is not a list of positive numbers"):
            make_plan(TINY, FrameRequest(chunk_plan=sizes))

    def test_may_have_any_sizes_and_keep_the_window(self) -> None:
        made = make_plan(TINY, FrameRequest(chunk_plan=(1, 5, 2, 1)))
        assert made.chunks == (
            Chunk(0, 0, 1, 0, 1, ()),
            Chunk(1, 1, 6, 1, 41, (0,)),
            Chunk(2, 6, 8, 41, 57, (0, 1)),
            Chunk(3, 8, 9, 57, 65, (0, 2)),
        )
        assert (made.grid, made.source, made.requested, made.frames) == (
            "by hand",
            "chunk plan",
            65,
            65,
        )


def test_contexts_that_grow_without_end_are_refused_before_they_are_made() -> None:
    many = (1,) * (int(MAX_CONTEXT_ENTRIES**0.5) + 1)
    with pytest.raises(PlanError, match="a window of all over 2001 chunks is more than"):
        cut(many, stream=stream(1, window="all"), frame_grid=GRID)
    assert len(cut(many, stream=stream(1, window=2), frame_grid=GRID)) == len(many)
