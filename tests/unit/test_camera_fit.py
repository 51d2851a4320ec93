"""Poses and frames that disagree."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sanawm_cli.camera.actions import parse_action
from sanawm_cli.camera.fit import fit_poses
from sanawm_cli.camera.kinematics import DIALECTS, roll_out
from sanawm_cli.errors import InputError

POSES = roll_out(parse_action("wl-6,wi-14"), DIALECTS["v1"]).poses  # 21
ROWS = np.arange(21 * 4, dtype=float).reshape(21, 4)
ALL = ["error", "hold", "repeat", "truncate"]


@pytest.mark.parametrize("how", ALL)
def test_agreement_is_left_alone(how):
    fitted = fit_poses(POSES, 21, how=how, intrinsics=ROWS)
    assert fitted.note is None
    np.testing.assert_array_equal(fitted.poses, POSES)
    np.testing.assert_array_equal(fitted.intrinsics, ROWS)
    assert fit_poses(POSES, 21, how=how).intrinsics is None


@pytest.mark.parametrize("how", ALL)
@pytest.mark.parametrize("extra", [1, 7])
def test_a_few_too_many_are_dropped_and_reported(how, extra):
    fitted = fit_poses(POSES, 21 - extra, how=how, intrinsics=ROWS)
    np.testing.assert_array_equal(fitted.poses, POSES[:-extra])
    np.testing.assert_array_equal(fitted.intrinsics, ROWS[:-extra])
    assert f"last {extra} of 21" in fitted.note


def test_many_too_many():
    with pytest.raises(InputError, match="21 poses, the clip has 13 frames") as caught:
        fit_poses(POSES, 13, how="error")
    assert "--camera-fit truncate" in caught.value.hint
    for how in ("truncate", "hold", "repeat"):
        fitted = fit_poses(POSES, 13, how=how, intrinsics=ROWS)
        np.testing.assert_array_equal(fitted.poses, POSES[:13])
        np.testing.assert_array_equal(fitted.intrinsics, ROWS[:13])
        assert "last 8 of 21" in fitted.note


@pytest.mark.parametrize("how", ["error", "truncate"])
def test_too_few_is_refused(how):
    with pytest.raises(InputError, match="21 poses, the clip has 22 frames") as caught:
        fit_poses(POSES, 22, how=how)
    assert "hold or repeat" in caught.value.hint


def test_hold():
    fitted = fit_poses(POSES, 25, how="hold", intrinsics=ROWS)
    np.testing.assert_array_equal(fitted.poses[:21], POSES)
    np.testing.assert_array_equal(fitted.poses[21:], np.tile(POSES[-1], (4, 1, 1)))
    np.testing.assert_array_equal(fitted.intrinsics[21:], np.tile(ROWS[-1], (4, 1)))
    assert "held for 4 more" in fitted.note


def test_repeat_of_a_straight_walk_walks_on():
    poses = roll_out(parse_action("w-4"), DIALECTS["v1"]).poses
    longer = roll_out(parse_action("w-30"), DIALECTS["v1"]).poses
    np.testing.assert_allclose(fit_poses(poses, 31, how="repeat").poses, longer, atol=1e-6)


@given(st.integers(22, 120))
@settings(deadline=None, max_examples=20)
def test_repeat_repeats_the_motion(frames):
    """Frame to frame, every step is the step of the path one lap of 20 earlier."""
    fitted = fit_poses(POSES, frames, how="repeat", intrinsics=ROWS)
    assert fitted.poses.shape == (frames, 4, 4)
    assert fitted.poses.dtype == np.float32
    np.testing.assert_array_equal(fitted.poses[:21], POSES)
    path = fitted.poses.astype(float)
    steps = np.linalg.inv(path[:-1]) @ path[1:]
    np.testing.assert_allclose(steps[20:], steps[np.arange(20, frames - 1) % 20], atol=1e-5)
    np.testing.assert_array_equal(fitted.intrinsics[21:], ROWS[np.arange(frames - 21) % 20 + 1])
    assert f"repeated for {frames - 21} more" in fitted.note


def test_repeat_from_another_start():
    """The path need not begin with the identity."""
    fitted = fit_poses(POSES[10:], 40, how="repeat").poses.astype(float)
    steps = np.linalg.inv(fitted[:-1]) @ fitted[1:]
    np.testing.assert_allclose(steps[10:20], steps[:10], atol=1e-5)


def test_many_laps_stay_rigid():
    poses = roll_out(parse_action("wil-1"), DIALECTS["v1"]).poses  # float32: off by 6e-8
    rotation = fit_poses(poses, 20_001, how="repeat").poses[-1, :3, :3].astype(float)
    np.testing.assert_allclose(rotation.T @ rotation, np.eye(3), atol=1e-6)


def test_one_pose_has_no_motion():
    with pytest.raises(InputError, match="no motion"):
        fit_poses(POSES[:1], 9, how="repeat")
    np.testing.assert_array_equal(
        fit_poses(POSES[:1], 9, how="hold").poses, np.tile(POSES[0], (9, 1, 1))
    )


@pytest.mark.parametrize("frames", [10, 18, 21, 30])
def test_one_row_of_intrinsics_serves_any_length(frames):
    fitted = fit_poses(POSES, frames, how="hold", intrinsics=ROWS[:1])
    np.testing.assert_array_equal(fitted.intrinsics, ROWS[:1])
    with pytest.raises(InputError, match="20 rows of intrinsics for 21 poses"):
        fit_poses(POSES, frames, how="hold", intrinsics=ROWS[:20])
