"""Ray map and Plücker map: published numbers, and that a chunk needs only its own poses."""

import json
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from safetensors.numpy import load_file

from sanawm_cli.camera.actions import parse_action
from sanawm_cli.camera.intrinsics import Intrinsics, to_latent_units
from sanawm_cli.camera.kinematics import DIALECTS, roll_out
from sanawm_cli.camera.rays import plucker_map, raymap


@pytest.fixture(scope="module")
def folder(request):
    return request.config.rootpath / "tests" / "fixtures"


@pytest.fixture(scope="module")
def camera_a(folder):
    return json.loads((folder / "camera_a.json").read_text()), load_file(
        folder / "camera_a.safetensors"
    )


def latent_rows(pixels, pixel_hw):
    height, width = pixel_hw
    flag = Intrinsics(values=np.array([pixels]), source="flag")
    return to_latent_units(flag, target=(width, height), latent=(width // 32, height // 32))


@pytest.mark.parametrize("i", range(10))
@pytest.mark.parametrize("packing", ["diffusers", "sglang_pack"])
def test_published_maps(camera_a, i, packing):
    about, tensors = camera_a
    rows = latent_rows(about["intrinsics_px"], about["target_pixel_hw"])
    row = about["results"]["rows"][i]
    poses = roll_out(parse_action(row["action"]), DIALECTS["v1"]).poses
    latents = (row["snapped_diffusers"] - 1) // 8 + 1
    found = raymap(poses, rows, latents=range(latents))
    np.testing.assert_allclose(found, tensors[f"a{i}.{packing}.raymap"], rtol=3e-7, atol=1e-9)
    found = plucker_map(poses, rows, start=0, stop=latents, height=2, width=3)
    np.testing.assert_allclose(found, tensors[f"a{i}.{packing}.chunk_plucker"], atol=1e-6)
    assert found.dtype == np.float32


def test_stream_a_camera_is_rebuilt(folder):
    camera = json.loads((folder / "stream_a.json").read_text())["camera"]
    io = load_file(folder / "stream_a.io.safetensors")
    kinematics = replace(
        DIALECTS["v1-strafe"],
        translation_speed=camera["translation_speed"],
        rotation_speed=camera["rotation_speed_deg"],
        pitch_limit=camera["pitch_limit_deg"],
        strafe_yaw=camera["strafe_yaw_coupling"],
    )
    poses = roll_out(parse_action(camera["action"]), kinematics).poses
    assert len(poses) == camera["num_pixel_frames"]
    rows = latent_rows(camera["intrinsics_px"], camera["pixel_hw"])
    # One unit in the last place: the float64 inside may round otherwise on another machine.
    found = raymap(poses, rows, latents=range(11))
    np.testing.assert_allclose(found, io["in.camera_conditions"][0], rtol=1.2e-7, atol=1e-12)
    found = plucker_map(poses, rows, start=0, stop=11, height=2, width=3)
    np.testing.assert_allclose(found, io["in.chunk_plucker"][0], rtol=3e-7, atol=2e-6)


@pytest.fixture
def path():
    poses = roll_out(parse_action("wl-10,wdi-15,k-8"), DIALECTS["v2"]).poses  # 34 poses
    rows = np.array([[2.0, 2.1, 1.5, 1.0]]) + np.linspace(0, 0.5, len(poses))[:, None]
    return poses, rows


@pytest.mark.parametrize("cuts", [(0, 1, 5), (0, 2, 3, 5), (0, 1, 2, 3, 4, 5)])
def test_chunk_by_chunk_is_the_whole(path, cuts):
    poses, rows = path
    size = {"height": 3, "width": 4}
    whole = plucker_map(poses, rows, start=0, stop=5, **size)
    ranges = list(pairwise(cuts))
    parts = [plucker_map(poses, rows, start=a, stop=b, **size) for a, b in ranges]
    np.testing.assert_array_equal(np.concatenate(parts, axis=1), whole)
    parts = [raymap(poses, rows, latents=range(a, b)) for a, b in ranges]
    np.testing.assert_array_equal(np.concatenate(parts), raymap(poses, rows, latents=range(5)))


def test_only_the_frames_of_a_chunk_are_read(path):
    """Latents 2 and 3 end at frames 16 and 24: they see frames 9 to 24 and no others."""
    poses, rows = path
    whole = plucker_map(poses, rows, start=2, stop=4, height=2, width=2)
    poisoned, poisoned_rows = np.full_like(poses, np.nan), np.full_like(rows, np.nan)
    poisoned[9:25], poisoned_rows[9:25] = poses[9:25], rows[9:25]
    seen = plucker_map(poisoned, poisoned_rows, start=2, stop=4, height=2, width=2)
    np.testing.assert_array_equal(seen, whole)
    for frame in (9, 24):
        hole = poses.copy()
        hole[frame] = np.nan
        assert np.isnan(plucker_map(hole, rows, start=2, stop=4, height=2, width=2)).any()


def test_first_latent_looks_ahead_and_the_end_repeats():
    """Eight directions of latent 0 are frames 0 to 7; frames past the last repeat it."""
    poses = np.tile(np.eye(4, dtype=np.float32), (4, 1, 1))
    poses[:, 0, 3] = [0, 1, 2, 3]
    rows = np.array([[1.0, 1.0, 0.0, 0.0]])
    found = plucker_map(poses, rows, start=0, stop=1, height=1, width=1)[:, 0, 0, 0]
    # Straight ahead: d = (0, 0, 1), and o × d = (0, −x, 0) for an origin (x, 0, 0).
    hand = [[0, 0, 1, 0, -x, 0] for x in (0, 1, 2, 3, 3, 3, 3, 3)]
    np.testing.assert_array_equal(found.reshape(8, 6), hand)


def test_rays_by_hand():
    """A pixel right of and below the centre, seen by a camera that was turned 90° to the right."""
    pose = np.eye(4, dtype=np.float32)
    pose[:3, :3] = [[0, 0, 1], [0, 1, 0], [-1, 0, 0]]
    pose[:3, 3] = [0, 2, 0]
    rows = np.array([[2.0, 4.0, 1.0, 0.0]])
    found = plucker_map(pose[None], rows, start=0, stop=1, height=2, width=2)[:6, 0, 1, 1]
    # u = v = 1: camera ray (0, 1/4, 1)/√(1 + 1/16); turned: (1, 1/4, 0). o × d = (0, 0, −2·1).
    length = np.sqrt(1 + 1 / 16)
    np.testing.assert_allclose(
        found, np.array([1, 0.25, 0, 0, 0, -2]) / length, rtol=1e-6, atol=1e-9
    )


def test_raymap_rows(path):
    poses, rows = path
    found = raymap(poses, rows, latents=range(1, 6))
    assert found.shape == (5, 20)
    for i, frame in enumerate((8, 16, 24, 32, 33)):  # 40 is past the end
        np.testing.assert_array_equal(found[i, :16], poses[frame].ravel())
        np.testing.assert_array_equal(found[i, 16:], rows[frame].astype(np.float32))


def test_other_strides(path):
    poses, rows = path
    found = plucker_map(poses, rows, start=0, stop=3, height=1, width=1, stride=4)
    assert found.shape == (24, 3, 1, 1)
    whole = plucker_map(poses, rows, start=0, stop=2, height=1, width=1)
    # Frames 5 to 8 are the last four of latent 1 at stride 8, and all of latent 2 at stride 4.
    np.testing.assert_array_equal(found[:, 2], whole[24:, 1])
