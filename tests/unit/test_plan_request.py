"""Who says how long a clip is, and how a count that cannot be rendered is moved."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sanawm_cli.errors import PlanError, UsageError
from sanawm_cli.plan import MAX_LATENTS, FrameRequest, Plan, make_plan
from sanawm_cli.preset import Preset, load_preset

TINY = load_preset("tiny")


def preset(**values: Any) -> Preset:
    return replace(TINY, stream=replace(TINY.stream, **values))


def plan(chunk_latents: int = 3, **request: Any) -> Plan:
    return make_plan(preset(chunk_latents=chunk_latents), FrameRequest(**request))


def test_with_nothing_given_the_preset_says_how_long() -> None:
    made = plan()
    assert (made.source, made.requested, made.frames, made.latents) == ("preset", 73, 73, 10)
    assert made.seconds == 73 / 16


def test_the_first_that_is_given_counts() -> None:
    everything = {"chunk_plan": (4, 3), "frames": 49, "poses": 200}
    assert plan(**everything).source == "frames"
    del everything["frames"]
    assert plan(**everything).source == "chunk plan"
    del everything["chunk_plan"]
    assert plan(**everything).source == "poses"


def test_two_counts_contradict_each_other() -> None:
    with pytest.raises(UsageError):
        plan(frames=49, seconds=3.0)


@given(st.integers(1, 2000), st.integers(1, 8))
@settings(deadline=None)
def test_vae_moves_a_count_to_the_nearest_on_the_latent_grid_ties_up(
    frames: int, size: int
) -> None:
    nearest = min(range(1, 3000, 8), key=lambda grid: (abs(grid - frames), -grid))
    if nearest < 8 * (size - 1) + 1:
        with pytest.raises(PlanError, match="too few"):
            plan(size, frames=frames)
    else:
        made = plan(size, frames=frames)
        assert (made.requested, made.frames) == (frames, nearest)


@given(st.integers(1, 2000), st.integers(1, 8))
@settings(deadline=None)
def test_chunk_moves_a_count_to_the_nearest_of_whole_chunks_ties_up(frames: int, size: int) -> None:
    whole = range(1, 4000, 8 * size)
    nearest = min(whole, key=lambda grid: (abs(grid - frames), -grid))
    if nearest == 1 and size > 1:
        with pytest.raises(PlanError, match="too few"):
            plan(size, frames=frames, snap="chunk")
    else:
        made = plan(size, frames=frames, snap="chunk")
        assert (made.requested, made.frames) == (frames, nearest)
        assert len({chunk.latents for chunk in made.chunks[1:]}) <= 1


def test_examples_of_ties() -> None:
    assert plan(frames=77).frames == 81
    assert plan(frames=76).frames == 73
    assert plan(frames=61, snap="chunk").frames == 73
    assert plan(frames=60, snap="chunk").frames == 49


@given(st.integers(1, 2000))
@settings(deadline=None)
def test_none_takes_a_count_as_it_is_or_names_both_neighbours(frames: int) -> None:
    if (frames - 1) % 8 == 0:
        assert plan(1, frames=frames, snap="none").frames == frames
        return
    with pytest.raises(PlanError) as caught:
        plan(1, frames=frames, snap="none")
    below = (frames - 1) // 8 * 8 + 1
    assert str(frames) in caught.value.message
    assert f"{below} or {below + 8} frames" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("seconds", "frames", "rendered"),
    [(10, 160, 161), (4.5625, 73, 73), (3.0, 48, 49), (1.59375, 26, 25), (1.59, 25, 25)],
)
def test_seconds_are_counted_in_frames_halves_up_then_moved(
    seconds: float, frames: int, rendered: int
) -> None:
    made = plan(seconds=seconds)
    assert (made.source, made.requested, made.frames) == ("seconds", frames, rendered)


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan"), float("inf"), 1e308, 1e300])
def test_seconds_are_a_length(seconds: float) -> None:
    with pytest.raises(PlanError, match="seconds are no length for a clip"):
        plan(seconds=seconds)


def test_a_moment_too_short_for_a_frame_is_refused() -> None:
    with pytest.raises(PlanError, match=r"^0 frames: at least 1 is needed"):
        plan(seconds=0.01)


@pytest.mark.parametrize("frames", [0, -5])
def test_at_least_one_frame_is_asked_for(frames: int) -> None:
    with pytest.raises(PlanError, match=f"^{frames} frames: at least 1 is needed"):
        plan(frames=frames)


@pytest.mark.parametrize("snap", ["vae", "chunk", "none"])
def test_absurd_counts_are_refused(snap: str) -> None:
    for frames in (1_000_000, 10**30):
        with pytest.raises(PlanError, match=f"^{frames} frames are more than one render takes"):
            plan(frames=frames, snap=snap)
    with pytest.raises(PlanError, match=r"^a number too long to show frames are more"):
        plan(frames=16**5000, snap=snap)


def test_absurd_plans_and_paths_are_refused() -> None:
    with pytest.raises(PlanError, match="more than one render takes"):
        plan(chunk_plan=(MAX_LATENTS, 1))
    with pytest.raises(PlanError, match="more than one render takes"):
        plan(poses=10**9)


def test_the_longest_clip_is_planned() -> None:
    assert plan(frames=8 * (MAX_LATENTS - 1) + 1).latents == MAX_LATENTS


@given(st.integers(17, 2000))
@settings(deadline=None)
def test_poses_give_the_longest_clip_they_suffice_for(poses: int) -> None:
    made = plan(poses=poses)
    assert (made.source, made.requested) == ("poses", poses)
    assert made.frames <= poses < made.frames + 8
    assert made.unused_poses == poses - made.frames


def test_only_poses_that_set_the_length_are_left_over() -> None:
    assert plan(frames=81, poses=200).unused_poses == 0


def test_on_the_uniform_grid_poses_give_whole_chunks() -> None:
    made = make_plan(preset(grid="uniform"), FrameRequest(poses=100))
    assert (made.frames, made.unused_poses, made.grid) == (97, 3, "uniform")


@pytest.mark.parametrize("poses", [0, 16])
def test_too_few_poses_are_refused(poses: int) -> None:
    with pytest.raises(PlanError):
        plan(poses=poses)


def test_snapping_leaves_poses_and_presets_alone() -> None:
    assert plan(poses=66, snap="none").frames == plan(poses=66, snap="chunk").frames == 65
    assert plan(2, snap="chunk").frames == 73
