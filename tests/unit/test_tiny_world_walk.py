"""The tiny world's walks: nothing is hit, and the action string is the whole truth."""

from functools import cache
from itertools import pairwise

import numpy as np
import pytest

from sanawm_cli.camera.actions import parse_action
from sanawm_cli.camera.kinematics import DIALECTS, roll_out
from tools.tiny_world.clip import Clip, make_clip
from tools.tiny_world.ground import is_clear, sight
from tools.tiny_world.scene import Scene
from tools.tiny_world.walk import ABOUT, SHORTEST, spot

SHORT, LONG = [(seed, 97) for seed in range(20)], [(seed, 961) for seed in (100, 101)]
EACH = pytest.mark.parametrize(("seed", "frames"), [*SHORT, *LONG])


@cache
def clip_of(seed: int, frames: int) -> Clip:
    return make_clip(seed, frames=frames)


@pytest.fixture
def clip(seed: int, frames: int) -> Clip:
    return clip_of(seed, frames)


@pytest.fixture
def clips() -> list[Clip]:
    return [clip_of(*which) for which in (*SHORT, *LONG)]


def depths(clip: Clip) -> list[float]:
    """How far it is ahead in each frame."""
    return [sight(clip.scene, *spot(clip.scene, pose)) for pose in clip.poses]


@EACH
def test_the_action_string_gives_the_poses_bit_for_bit(clip: Clip) -> None:
    again = roll_out(parse_action(clip.action), DIALECTS["v2"]).poses
    assert again.dtype == clip.poses.dtype == np.float32
    assert np.array_equal(again, clip.poses)
    assert np.array_equal(clip.poses[0], np.eye(4))


@pytest.mark.parametrize("frames", [2, 8, 9, 17, 24, 25, 97, 161])
def test_a_clip_has_as_many_poses_as_frames(frames: int) -> None:
    assert make_clip(5, frames=frames).poses.shape == (frames, 4, 4)


@EACH
def test_nothing_is_hit(clip: Clip) -> None:
    scene: Scene = clip.scene
    places = [spot(scene, pose)[0] for pose in clip.poses]
    assert [at for at in places if not is_clear(scene, at)] == []


@EACH
def test_the_camera_turns_slowly_and_stays_nearly_level(clip: Clip) -> None:
    turned = np.swapaxes(clip.poses[:-1, :3, :3], 1, 2) @ clip.poses[1:, :3, :3]
    cosines = (np.trace(turned, axis1=1, axis2=2) - 1) / 2
    assert np.degrees(np.arccos(np.clip(cosines, -1, 1))).max() <= 1
    assert np.degrees(np.arcsin(np.abs(clip.poses[:, 1, 2]))).max() < 14
    assert (clip.poses[:, 1, 0] == 0).all(), "it rolls"


@EACH
def test_segments_are_neither_short_nor_followed_by_themselves(clip: Clip) -> None:
    segments = parse_action(clip.action)
    assert min(segment.frames for segment in segments) >= SHORTEST
    assert all(one.keys != other.keys for one, other in pairwise(segments))


def test_views_are_seldom_filled_by_something_near(clips: list[Clip]) -> None:
    assert np.mean([depth < 0.7 for clip in clips for depth in depths(clip)]) < 0.05


def test_forward_is_the_most_frequent_way_and_all_keys_are_used(clips: list[Clip]) -> None:
    held = [s.keys for clip in clips for s in parse_action(clip.action) for _ in range(s.frames)]
    frames = {key: sum(key in keys for keys in held) for key in "wsadjlik"}
    assert max(frames, key=lambda key: frames[key]) in "wad"
    assert frames["w"] > 2 * frames["s"] > 0
    assert min(frames.values()) > 0
    assert 0 < sum(not keys for keys in held) < len(held) / 8


def test_some_walks_come_back(clips: list[Clip]) -> None:
    """There and back, or a look aside and back: pose for pose, to the last bits of float32."""
    back = []
    for clip in clips[: len(SHORT)]:
        start = 0
        for one, other in pairwise(parse_action(clip.action)):
            there = start + one.frames
            if one.frames == other.frames and len(one.keys) == 1 and start == 0:
                back.append(np.abs(clip.poses[there + other.frames] - clip.poses[start]).max())
            start = there
    assert len(back) >= 2
    assert min(back) < 1e-5


def test_long_walks_turn_round(clips: list[Clip]) -> None:
    turns = [
        s for clip in clips[len(SHORT) :] for s in parse_action(clip.action) if s.frames == ABOUT
    ]
    assert turns
    poses = roll_out(turns[:1], DIALECTS["v2"]).poses
    assert poses[-1] == pytest.approx(np.diag([-1, 1, -1, 1]), abs=1e-6)
