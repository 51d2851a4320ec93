"""The walker: published paths for v1 and v1-strafe, hand-worked ones for v2, and laws."""

import json
from dataclasses import replace
from math import cos, exp, pi, sin

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file

from sanawm_cli.camera.actions import KEYS, Segment, parse_action
from sanawm_cli.camera.kinematics import DIALECTS, roll_out
from sanawm_cli.errors import InputError

V2 = DIALECTS["v2"]


def walk(text, kinematics=V2):
    return roll_out(parse_action(text), kinematics)


def positions(text, kinematics=V2):
    return walk(text, kinematics).poses[:, :3, 3]


def test_pose_count_and_first_pose():
    poses = walk("w-20,al-5").poses
    assert poses.shape == (26, 4, 4)
    assert poses.dtype == np.float32
    np.testing.assert_array_equal(poses[0], np.eye(4))
    np.testing.assert_array_equal(poses[:, 3], np.tile([0, 0, 0, 1], (26, 1)))


# --- v2, worked by hand -------------------------------------------------------------------------
# Speeds 0.025 and 0.6°. Released: a velocity keeps exp(−1/16) = 0.93941306 of itself per frame.
# Still held: the gap to the target keeps exp(−(1/16)/0.45) = 0.87032473 of itself.
# Headings are divided by 1 + 1e-6, below the tolerance of 2e-7 here.


def test_v2_first_press_jumps_and_release_decays():
    z = positions("w-3,none-3")[:, 2]
    # v: 0.025 ×3, then 0.025·0.93941306 = 0.02348533, ·0.93941306 = 0.02206242, = 0.02072573
    hand = [0, 0.025, 0.05, 0.075, 0.09848533, 0.12054775, 0.14127348]
    np.testing.assert_allclose(z, hand, atol=2e-7)


def test_v2_second_press_makes_all_four_jump():
    poses = walk("w-1,none-1,d-1").poses
    # Frame 3: d is new, so forward does not go on decaying, it jumps to its target 0.
    np.testing.assert_allclose(poses[:, 2, 3], [0, 0.025, 0.04848533, 0.04848533], atol=2e-7)
    # And yaw jumps to 0.6°: sin 0.6° = 0.01047178 in row 0 of the forward column.
    np.testing.assert_allclose(poses[:, 0, 2], [0, 0, 0, 0.01047178], atol=1e-8)


def test_v2_pressing_a_released_key_again_is_a_press():
    # v: 0.025, 0.02348533, then 0.025 at once.
    z = positions("w-1,none-1,w-1")[:, 2]
    np.testing.assert_allclose(z, [0, 0.025, 0.04848533, 0.07348533], atol=2e-7)


def test_v2_keys_held_on_ease_when_another_is_released():
    poses = walk("wd-1,w-2").poses
    # Yaw steps: 0.6°, then 0.6·0.93941306 = 0.56364784°, then ·0.93941306 = 0.52949814°.
    angle = np.degrees(np.arctan2(poses[:, 0, 2], poses[:, 2, 2]))
    np.testing.assert_allclose(angle, [0, 0.6, 1.16364784, 1.69314598], atol=2e-6)


def test_v2_opposite_keys_cancel_but_are_held():
    # Frame 1: target 0. Frames 2, 3: s is released, nothing is new, so forward eases towards
    # 0.025: 0.025·(1 − 0.87032473) = 0.00324188, then 0.025·(1 − 0.87032473²) = 0.00606337.
    z = positions("ws-1,w-2")[:, 2]
    np.testing.assert_allclose(z, [0, 0, 0.00324188, 0.00930525], atol=2e-8)
    # The other way round: pressing s while w is held is a press, all jump to 0.
    np.testing.assert_allclose(positions("w-1,ws-2")[:, 2], [0, 0.025, 0.025, 0.025], atol=5e-8)
    # w to s at once is a press too.
    np.testing.assert_allclose(positions("w-2,s-1")[:, 2], [0, 0.025, 0.05, 0.025], atol=1e-7)


def test_v2_turns_before_it_walks():
    # sin, cos of 0.6°: 0.01047178, 0.99994517; of 1.2°: 0.02094242, 0.99978068. Steps of 0.025
    # along the new heading: x 0.00026179, +0.00052356; z 0.02499863, +0.02499452.
    hand = [[0, 0, 0], [0.00026179, 0, 0.02499863], [0.00078536, 0, 0.04999315]]
    np.testing.assert_allclose(positions("wd-2"), hand, atol=1e-7)


def test_v2_keys():
    # One frame each: strafe along x with j/l, turn with a/d (sin 0.6°), look with i/k.
    np.testing.assert_allclose(positions("l-1")[1], [0.025, 0, 0], atol=1e-7)
    np.testing.assert_allclose(positions("j-1")[1], [-0.025, 0, 0], atol=1e-7)
    np.testing.assert_allclose(positions("wl-1")[1], [0.025, 0, 0.025], atol=1e-7)
    np.testing.assert_allclose(walk("a-1").poses[1, :3, 2], [-0.01047178, 0, 0.99994517], atol=1e-7)
    # Up is −y.
    np.testing.assert_allclose(walk("i-1").poses[1, :3, 2], [0, -0.01047178, 0.99994517], atol=1e-7)
    np.testing.assert_allclose(walk("k-1").poses[1, :3, 2], [0, 0.01047178, 0.99994517], atol=1e-7)


def test_v2_pitch_saturates():
    # 7° a frame: 56° after 8, and 60° (not 63°) after 9. cos 60° = 0.5, sin 60° = 0.8660254.
    path = walk("i-12", replace(V2, rotation_speed=7))
    angle = np.degrees(np.arctan2(path.poses[:, 2, 1], path.poses[:, 2, 2]))
    np.testing.assert_allclose(angle[7:], [49, 56, 60, 60, 60, 60], atol=1e-5)
    np.testing.assert_allclose(path.poses[-1, 1:3, 2], [-0.8660254, 0.5], atol=1e-6)
    # Looking up at the limit does not slow the walk: the heading is laid flat.
    z = positions("i-120,wi-1")[:, 2]
    np.testing.assert_allclose(z[-1], 0.025, atol=1e-7)


def test_v1_ignores_a_step_past_the_limit():
    path = walk("k-12", replace(DIALECTS["v1"], rotation_speed=10))
    angle = np.degrees(np.arctan2(path.poses[:, 2, 1], path.poses[:, 2, 2]))
    np.testing.assert_allclose(angle[7:], [-70, -80, -80, -80, -80, -80], atol=1e-5)


def test_easing_knows_no_frame_rate():
    """Sixteen frames are one second and one time constant, whatever the file's fps."""
    end = walk("w-1,none-16").end
    assert end.velocities[0] == pytest.approx(0.025 * exp(-1), rel=1e-12)


def test_v1_stops_at_once():
    z = positions("w-2,none-2", DIALECTS["v1"])[:, 2]
    np.testing.assert_allclose(z, [0, 0.05, 0.1, 0.1, 0.1], atol=1e-7)


def test_v1_strafe_turns_with_its_strafe():
    # d: 0.4 of 1.2° to the right, and 0.04 along the turned +x.
    pose = walk("d-1", DIALECTS["v1-strafe"]).poses[1]
    turn = 0.48 * pi / 180
    np.testing.assert_allclose(pose[:3, 2], [sin(turn), 0, cos(turn)], atol=1e-7)
    np.testing.assert_allclose(pose[:3, 3], [0.04 * cos(turn), 0, -0.04 * sin(turn)], atol=1e-7)


# --- published paths ----------------------------------------------------------------------------


@pytest.mark.parametrize("i", range(10))
@pytest.mark.parametrize(("dialect", "name"), [("v1", "diffusers"), ("v1-strafe", "sglang")])
def test_published_paths(camera_a, i, dialect, name):
    rows, tensors = camera_a
    poses = walk(rows[i]["action"], DIALECTS[dialect]).poses
    assert len(poses) == rows[i]["frames"]
    np.testing.assert_allclose(poses, tensors[f"a{i}.{name}.c2w"], rtol=3e-7, atol=1e-9)


@pytest.fixture(scope="module")
def camera_a(request):
    folder = request.config.rootpath / "tests" / "fixtures"
    rows = json.loads((folder / "camera_a.json").read_text())["results"]["rows"]
    return rows, load_file(folder / "camera_a.safetensors")


# --- laws ---------------------------------------------------------------------------------------

segments = st.lists(
    st.builds(
        Segment, keys=st.frozensets(st.sampled_from(sorted(KEYS))), frames=st.integers(1, 12)
    ),
    max_size=5,
)
dialects = st.sampled_from(sorted(DIALECTS))


@given(segments, segments, dialects)
@settings(deadline=None, max_examples=40)
def test_a_walk_can_be_continued(first, second, dialect):
    """a, then b from where it ended = a + b, bit for bit."""
    kinematics = DIALECTS[dialect]
    a = roll_out(first, kinematics)
    b = roll_out(second, kinematics, start=a.end)
    whole = roll_out([*first, *second], kinematics)
    np.testing.assert_array_equal(np.concatenate([a.poses, b.poses[1:]]), whole.poses)
    np.testing.assert_array_equal(a.poses[-1], b.poses[0])
    assert b.end == whole.end
    assert hash(b.end) == hash(whole.end)


@given(segments, dialects)
@settings(deadline=None, max_examples=40)
def test_poses_stay_rigid_and_level(path, dialect):
    poses = roll_out(path, DIALECTS[dialect]).poses
    rotation = poses[:, :3, :3].astype(np.float64)
    gram = rotation.transpose(0, 2, 1) @ rotation
    np.testing.assert_allclose(gram, np.tile(np.eye(3), (len(poses), 1, 1)), atol=5e-7)
    assert (np.linalg.det(rotation) > 0).all()
    np.testing.assert_array_equal(poses[:, 1, 3], 0)  # never leaves the ground
    np.testing.assert_allclose(rotation[:, 1, 0], 0, atol=1e-7)  # never rolls


@given(segments, dialects)
@settings(deadline=None, max_examples=30)
def test_splitting_a_segment_changes_nothing(path, dialect):
    single = [replace(s, frames=1) for s in path for _ in range(s.frames)]
    kinematics = DIALECTS[dialect]
    np.testing.assert_array_equal(
        roll_out(single, kinematics).poses, roll_out(path, kinematics).poses
    )


@given(segments, dialects)
@settings(deadline=None, max_examples=30)
def test_translation_scales_with_its_speed(path, dialect):
    kinematics = DIALECTS[dialect]
    poses = roll_out(path, kinematics).poses
    doubled = replace(kinematics, translation_speed=2 * kinematics.translation_speed)
    fast = roll_out(path, doubled).poses
    np.testing.assert_allclose(fast[:, :3, 3], 2 * poses[:, :3, 3], atol=1e-6)
    np.testing.assert_array_equal(fast[:, :3, :3], poses[:, :3, :3])


def test_a_long_walk_does_not_drift():
    rotation = np.array(walk("wdl-5000").end.rotation)
    np.testing.assert_allclose(rotation.T @ rotation, np.eye(3), atol=1e-11)


@pytest.mark.parametrize("speed", [-0.1, float("nan"), float("inf"), 1e9])
@pytest.mark.parametrize("name", ["translation_speed", "rotation_speed"])
def test_impossible_speeds(name, speed):
    with pytest.raises(InputError, match=name.replace("_", " ")):
        replace(V2, **{name: speed})


def test_dialects_cannot_be_changed():
    assert list(DIALECTS) == ["v2", "v1", "v1-strafe"]
    with pytest.raises(TypeError):
        DIALECTS["v2"] = DIALECTS["v1"]
