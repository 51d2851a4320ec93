"""A clip's camera, made chunk by chunk, is the whole clip's, and is what the reference has."""

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file

from sanawm_cli.camera.actions import parse_action
from sanawm_cli.camera.fit import fit_poses
from sanawm_cli.camera.intrinsics import CoverCrop, Intrinsics, to_latent_units
from sanawm_cli.camera.kinematics import DIALECTS, Kinematics, roll_out
from sanawm_cli.conditioning.camera import PathCamera
from sanawm_cli.model.context import CameraInputs

FIXTURES = Path(__file__).parents[1] / "fixtures"
CPU = torch.device("cpu")
ACTION = "w-9,dw-8,none-3,ia-11,l-9"


def path_camera(*, rows: int = 1, frames: int | None = None, stride: int = 8) -> PathCamera:
    poses = roll_out(parse_action(ACTION), DIALECTS["v2"]).poses[:frames]
    base = np.array([[4.0, 5.0, 2.5, 1.5]])
    return PathCamera(
        poses=poses,
        intrinsics=base + np.arange(rows)[:, None] / 8,
        size=(3, 5),
        temporal_stride=stride,
        device=CPU,
    )


def joined(parts: list[CameraInputs]) -> CameraInputs:
    return CameraInputs(
        torch.cat([part.raymap for part in parts], 1),
        torch.cat([part.plucker for part in parts], 2),
    )


def assert_same(got: CameraInputs, want: CameraInputs) -> None:
    assert torch.equal(got.raymap, want.raymap)
    assert torch.equal(got.plucker, want.plucker)


@pytest.mark.parametrize("rows", [1, 41])
@given(st.lists(st.integers(1, 3), min_size=1, max_size=6))
@settings(deadline=None)
def test_chunk_by_chunk_is_the_whole(rows: int, sizes: list[int]) -> None:
    camera, ends = path_camera(rows=rows), np.cumsum([0, *sizes]).tolist()
    parts = [camera.chunk(a, b) for a, b in pairwise(ends)]
    assert_same(joined(parts), camera.chunk(0, ends[-1]))


@pytest.mark.parametrize("stride", [4, 8])
def test_shapes_and_kind(stride: int) -> None:
    seen = path_camera(stride=stride).chunk(2, 5)
    assert seen.raymap.shape == (1, 3, 20)
    assert seen.plucker.shape == (1, 6 * stride, 3, 3, 5)
    assert seen.raymap.dtype == seen.plucker.dtype == torch.float32


def test_a_latent_is_seen_from_the_pose_of_its_last_frame() -> None:
    camera = path_camera(rows=41)
    raymap = camera.chunk(0, 6).raymap[0].numpy()
    for latent in range(6):
        pose, lens = camera.poses[8 * latent], camera.intrinsics[8 * latent]
        want = np.concatenate([pose.reshape(16), lens]).astype(np.float32)
        assert np.array_equal(raymap[latent], want)


def test_a_chunk_depends_on_its_own_frames_only() -> None:
    """Latents 2 and 3 are frames 9 to 24; nothing that grows with the clip is looked at."""
    camera = path_camera(rows=41)
    own = slice(9, 25)
    poses, intrinsics = np.full_like(camera.poses, np.nan), np.full_like(camera.intrinsics, np.nan)
    poses[own], intrinsics[own] = camera.poses[own], camera.intrinsics[own]
    alone = PathCamera(
        poses=poses, intrinsics=intrinsics, size=(3, 5), temporal_stride=8, device=CPU
    )
    assert_same(alone.chunk(2, 4), camera.chunk(2, 4))


def test_past_the_end_the_last_frame_stays() -> None:
    short, whole = path_camera(frames=20), path_camera()
    held = PathCamera(
        poses=whole.poses[np.minimum(np.arange(41), 19)],
        intrinsics=whole.intrinsics,
        size=(3, 5),
        temporal_stride=8,
        device=CPU,
    )
    assert_same(short.chunk(0, 6), held.chunk(0, 6))


@pytest.mark.parametrize("source_scale", [1, 2, 5])
def test_the_reference_camera_through_every_step_of_a_render(source_scale: int) -> None:
    """Action string, poses, intrinsics of a larger picture, its resizing, latent units, chunks."""
    case = json.loads((FIXTURES / "stream_a.json").read_text())
    want = load_file(FIXTURES / "stream_a.io.safetensors")
    told, (height, width) = case["camera"], case["camera"]["pixel_hw"]
    rows, columns = want["in.chunk_plucker"].shape[3:]
    moves = Kinematics(
        translation_speed=told["translation_speed"],
        rotation_speed=told["rotation_speed_deg"],
        strafe_keys=("a", "d"),
        yaw_keys=("j", "l"),
        strafe_yaw=told["strafe_yaw_coupling"],
        pitch_limit=told["pitch_limit_deg"],
        past_limit="ignore",
        heading_epsilon=1e-6,
        easing=None,
    )
    poses = roll_out(parse_action(told["action"]), moves).poses
    fitted = fit_poses(poses, told["num_pixel_frames"], how="error")
    given_picture = Intrinsics(
        values=np.array([told["intrinsics_px"]]) * source_scale, source="flag"
    )
    crop = CoverCrop(source=(width * source_scale, height * source_scale), target=(width, height))
    camera = PathCamera(
        poses=fitted.poses,
        intrinsics=to_latent_units(
            given_picture.follow(crop), target=(width, height), latent=(columns, rows)
        ),
        size=(rows, columns),
        temporal_stride=8,
        device=CPU,
    )
    ends = case["segments"]
    got = joined([camera.chunk(a, b) for a, b in pairwise(ends)])
    for have, there in (
        (got.raymap, want["in.camera_conditions"]),
        (got.plucker, want["in.chunk_plucker"]),
    ):
        assert have.shape == there.shape
        print("DIFF", (have - there).abs().max(), there.abs().max())
        assert (have - there).abs().max() <= 4e-7 * there.abs().max()
