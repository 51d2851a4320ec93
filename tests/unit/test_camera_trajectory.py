"""Trajectory files: what is read, what is refused and how it is said, and what is written."""

import io
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sanawm_cli.camera.actions import parse_action
from sanawm_cli.camera.kinematics import DIALECTS, roll_out
from sanawm_cli.camera.trajectory import load_trajectory, save_trajectory
from sanawm_cli.errors import ExitCode, InputError, OutputError


@pytest.fixture(scope="module")
def poses():
    return roll_out(parse_action("wd-6,il-5,none-3"), DIALECTS["v2"]).poses


@pytest.fixture(scope="module")
def elsewhere(poses):
    """The same path in a world where it starts somewhere else."""
    start = roll_out(parse_action("wdil-35"), DIALECTS["v1"]).poses[-1].astype(float)
    start[1, 3] = -2
    return start @ poses.astype(float)


def refuse(path, *words):
    with pytest.raises(InputError) as caught:
        load_trajectory(path)
    assert caught.value.exit_code == ExitCode.INPUT
    assert path.name in caught.value.message
    assert "\n" not in caught.value.message
    for word in words:
        assert word in caught.value.message
    return caught.value


def refuse_poses(tmp_path, array, *words):
    np.save(tmp_path / "bad.npy", array)
    return refuse(tmp_path / "bad.npy", *words)


def test_npy_keeps_every_bit(tmp_path, poses):
    np.save(tmp_path / "a.npy", poses)
    found = load_trajectory(tmp_path / "a.npy")
    assert found.poses.dtype == np.float32
    assert found.poses.tobytes() == poses.tobytes()
    assert found.intrinsics is None
    assert found.fps is None
    assert found.source == "a.npy: npy, 15 poses, camera-to-world, OpenCV axes"


def test_three_rows_and_whole_numbers_do_too(tmp_path, poses):
    np.save(tmp_path / "a.npy", poses[:, :3])
    np.testing.assert_array_equal(load_trajectory(tmp_path / "a.npy").poses, poses)
    steps = np.tile(np.eye(4, dtype=np.int32), (3, 1, 1))
    steps[:, 2, 3] = [0, 1, 2]
    np.save(tmp_path / "b.npy", steps)
    np.testing.assert_array_equal(load_trajectory(tmp_path / "b.npy").poses, steps)


def test_rebased_to_the_first_pose(tmp_path, poses, elsewhere):
    np.save(tmp_path / "a.npy", elsewhere)
    found = load_trajectory(tmp_path / "a.npy")
    np.testing.assert_array_equal(found.poses[0], np.eye(4))
    np.testing.assert_allclose(found.poses, poses, atol=1e-6)
    assert "re-based" in found.source


def test_the_name_does_not_matter(tmp_path, poses):
    """Recognised by content: an .npz called .npy, and the other way round."""
    with (tmp_path / "a.npy").open("wb") as file:
        np.savez(file, c2w=poses)
    with (tmp_path / "b.npz").open("wb") as file:
        np.save(file, poses)
    for name in ("a.npy", "b.npz"):
        np.testing.assert_array_equal(load_trajectory(tmp_path / name).poses, poses)


def test_npz_with_everything(tmp_path, poses):
    """The layout of SANA-WM-Bench: matrices, a scalar fps, a frame count we do not need."""
    rows = np.linspace(1, 2, 15)[:, None] * [500.0, 510.0, 320.0, 176.0]
    matrices = np.zeros((15, 3, 3))
    matrices[:, 0, 0], matrices[:, 1, 1] = rows[:, 0], rows[:, 1]
    matrices[:, 0, 2], matrices[:, 1, 2], matrices[:, 2, 2] = rows[:, 2], rows[:, 3], 1
    path = tmp_path / "a.npz"
    np.savez_compressed(path, c2w=poses, intrinsics=matrices, fps=16, num_frames=15)
    found = load_trajectory(path)
    np.testing.assert_array_equal(found.poses, poses)
    np.testing.assert_array_equal(found.intrinsics, rows)
    assert found.intrinsics.dtype == np.float64
    assert found.fps == 16.0
    np.savez(path, c2w=poses[:4], intrinsics=rows[:4], fps=np.array([29.97]))
    found = load_trajectory(path)  # (4, 4) here can only be four rows
    np.testing.assert_array_equal(found.intrinsics, rows[:4])
    assert found.fps == pytest.approx(29.97)


# --- what is written ----------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 15])
def test_save_and_load(tmp_path, poses, count):
    rows = np.linspace(1, 2, count)[:, None] * [500.0, 510.0, 320.0, 176.0]
    save_trajectory(tmp_path / "a.npz", poses, rows)
    found = load_trajectory(tmp_path / "a.npz")
    assert found.poses.tobytes() == poses.tobytes()
    np.testing.assert_array_equal(found.intrinsics, np.broadcast_to(rows, (15, 4)))
    with np.load(tmp_path / "a.npz") as plain:
        assert plain["c2w"].shape == (15, 4, 4)
        assert plain["intrinsics"].shape == (15, 4)
    assert [p.name for p in tmp_path.iterdir()] == ["a.npz"]


def test_loading_settles_a_path(tmp_path, elsewhere):
    """What was loaded once and saved loads to the same bits ever after."""
    np.save(tmp_path / "a.npy", elsewhere)
    first = load_trajectory(tmp_path / "a.npy").poses
    save_trajectory(tmp_path / "a.npz", first, np.ones((1, 4)))
    assert load_trajectory(tmp_path / "a.npz").poses.tobytes() == first.tobytes()


def test_equal_input_gives_equal_bytes(tmp_path, poses, monkeypatch):
    rows = np.ones((1, 4))
    save_trajectory(tmp_path / "a.npz", poses, rows)
    monkeypatch.setattr("time.time", lambda: 2e9)
    save_trajectory(tmp_path / "b.npz", np.asfortranarray(poses), rows)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    with zipfile.ZipFile(tmp_path / "a.npz") as archive:
        assert {i.date_time for i in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}


def test_a_failed_save_leaves_the_old_file(tmp_path, poses, monkeypatch):
    path = tmp_path / "a.npz"
    save_trajectory(path, poses, np.ones((1, 4)))
    before = path.read_bytes()

    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np.lib.format, "write_array", full)
    with pytest.raises(OutputError, match="No space left"):
        save_trajectory(path, poses[:5], np.ones((1, 4)))
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["a.npz"]


def test_save_into_no_folder(tmp_path, poses):
    with pytest.raises(OutputError, match="No such file"):
        save_trajectory(tmp_path / "no" / "a.npz", poses, np.ones((1, 4)))


def test_save_writes_nothing_that_would_not_load(tmp_path, poses):
    with pytest.raises(InputError, match="at least 2"):
        save_trajectory(tmp_path / "a.npz", poses[:1], np.ones((1, 4)))
    assert list(tmp_path.iterdir()) == []


# --- what is refused ----------------------------------------------------------------------------


def test_files_that_are_none(tmp_path):
    refuse(tmp_path / "none.npy", "no such file")
    refuse(tmp_path, "cannot be read")
    for content in (b"", b"PK", b"1 2 3\n", b"\x89PNG\r\n"):
        (tmp_path / "a.npy").write_bytes(content)
        assert "(F, 4, 4)" in refuse(tmp_path / "a.npy", "not a trajectory").hint


@pytest.mark.parametrize(
    "shape", [(4, 4), (3, 4), (5, 3, 3), (5, 16), (5, 4, 3), (1, 5, 4, 4), (), (5,)]
)
def test_wrong_shape(tmp_path, shape):
    refuse_poses(tmp_path, np.zeros(shape), str(shape), "(F, 4, 4)")


def test_too_few_poses(tmp_path, poses):
    for count in (0, 1):
        refuse_poses(tmp_path, poses[:count], f"{count} pose(s)", "at least 2")


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e300])
def test_not_finite(tmp_path, poses, value):
    bad = poses.astype(float)
    bad[7, 1, 3] = value
    refuse_poses(tmp_path, bad, "pose 7", str(value))


def test_bottom_row(tmp_path, poses):
    bad = poses.copy()
    bad[3, 3, 3] = 2
    refuse_poses(tmp_path, bad, "pose 3", "0 0 0 2", "0 0 0 1")
    bad = poses.transpose(0, 2, 1)
    assert "transposed" in refuse_poses(tmp_path, bad, "bottom row").hint


def test_kinds_of_bad_rotation(tmp_path, poses):
    bad = poses.copy()
    bad[4, :3, :3] *= 2.5
    refuse_poses(tmp_path, bad, "pose 4", "scaled by 2.5")
    bad = poses.copy()
    bad[5, :3, 1] *= -1
    assert "axis" in refuse_poses(tmp_path, bad, "pose 5", "mirrored").hint
    bad = poses.copy()
    bad[6, 0, 1] += 0.1
    refuse_poses(tmp_path, bad, "pose 6", "not rigid")
    bad = poses.copy()
    bad[2, :3, :3] = 0
    refuse_poses(tmp_path, bad, "pose 2", "not rigid")
    bad = poses.copy()
    bad[0, :3, :3] *= 1.002  # |RᵀR − 1| = 4e-3
    refuse_poses(tmp_path, bad, "pose 0", "scaled by 1.002")


def test_nearly_rigid_poses_are_corrected(tmp_path, poses, elsewhere):
    for path in (poses, elsewhere):
        rough = path.astype(float)
        rough[1:, 0, 1] += 3e-4
        rough[:, :3, :3] *= 1.0001
        np.save(tmp_path / "a.npy", rough)
        found = load_trajectory(tmp_path / "a.npy").poses.astype(float)
        rotation = found[:, :3, :3]
        gram = rotation.transpose(0, 2, 1) @ rotation
        np.testing.assert_allclose(gram, np.tile(np.eye(3), (15, 1, 1)), atol=5e-7)
        np.testing.assert_allclose(rotation, poses[:, :3, :3], atol=5e-4)


@pytest.mark.parametrize("array", [np.array(["a", "b"]), np.zeros((3, 4, 4), complex)])
def test_not_numbers(tmp_path, array):
    refuse_poses(tmp_path, array, "not real numbers")


def test_pickles_are_never_opened(tmp_path):
    np.save(tmp_path / "a.npy", np.array([{}]), allow_pickle=True)
    refuse(tmp_path / "a.npy", "damaged")
    np.savez(tmp_path / "b.npz", c2w=np.array([{}]))
    refuse(tmp_path / "b.npz", "damaged")


def test_npz_contents(tmp_path, poses):
    path = tmp_path / "a.npz"

    def saved(**arrays):
        np.savez(path, **arrays)
        return path

    refuse(saved(poses=poses), "c2w")
    refuse(saved(), "c2w")
    refuse(saved(c2w=poses, intrinsics=np.ones((14, 4))), "14 intrinsics for 15 poses")
    refuse(saved(c2w=poses, intrinsics=np.ones((15, 2, 2))), "(15, 2, 2)")
    refuse(saved(c2w=poses, intrinsics=np.zeros((15, 4))), "focal length 0")
    refuse(saved(c2w=poses, intrinsics=np.full((15, 4), np.nan)), "nan")
    refuse(saved(c2w=poses, intrinsics=np.ones((15, 3, 3))), "[[fx, 0, cx]")
    for fps in (0, -1.0, np.nan, [1.0, 2.0], []):
        refuse(saved(c2w=poses, fps=np.array(fps, float)), "fps")


@given(st.data())
@settings(deadline=None, max_examples=150)
@pytest.mark.filterwarnings("ignore::UserWarning")  # numpy on headers that look like Python 2
def test_damaged_files_raise_only_input_errors(tmp_path_factory, data):
    poses = roll_out(parse_action("w-3"), DIALECTS["v1"]).poses
    file = io.BytesIO()
    save = data.draw(st.sampled_from([np.save, np.savez, np.savez_compressed]))
    save(file, poses) if save is np.save else save(file, c2w=poses, fps=16)
    content = bytearray(file.getvalue())
    for _ in range(data.draw(st.integers(1, 3))):
        # Most of the danger is in the headers.
        ends = st.one_of(st.integers(0, 140), st.integers(0, len(content) - 1))
        content[data.draw(ends)] = data.draw(st.integers(0, 255))
    del content[data.draw(st.integers(len(content) // 2, len(content))) :]
    path = tmp_path_factory.getbasetemp() / "damaged"
    path.write_bytes(content)
    try:
        found = load_trajectory(path)
    except InputError:
        return
    assert np.isfinite(found.poses).all()
