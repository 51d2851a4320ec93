"""From a request to what a render needs: picture, camera and plan made to fit, or refused."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from sanawm_cli.camera.trajectory import save_trajectory
from sanawm_cli.errors import InputError, PlanError, SanaWMError, UsageError
from sanawm_cli.jobs.request import ClipRequest
from sanawm_cli.jobs.resolve import ResolvedCamera, kinematics, resolve_clip, resolve_plan
from sanawm_cli.preset.overrides import Overrides
from sanawm_cli.preset.settings import CameraSettings

SMALL = Overrides(height=64, width=64)


@pytest.fixture
def image(tmp_path: Path) -> Path:
    path = tmp_path / "first.png"
    Image.new("RGB", (100, 50), (200, 100, 50)).save(path)
    return path


@pytest.fixture
def asked(image: Path) -> ClipRequest:
    """Enough for a render."""
    return ClipRequest(overrides=SMALL, image=image, prompt="a courtyard", action="w-16", frames=17)


def camera(request: ClipRequest) -> ResolvedCamera:
    found = resolve_plan(request).camera
    assert found is not None
    return found


def test_a_request_with_all_it_needs(asked: ClipRequest) -> None:
    clip = resolve_clip(replace(asked, prompt="  a courtyard\n"))
    assert (clip.prompt, clip.negative_prompt, clip.text_embeds) == ("a courtyard", None, None)
    assert clip.first_frame.shape == (64, 64, 3)
    assert clip.first_frame.dtype == np.uint8
    assert (clip.first_frame == (200, 100, 50)).all()
    assert clip.model is clip.resolved.model
    assert (clip.resolved.image_size, clip.resolved.target) == ((100, 50), (64, 64))


@pytest.mark.parametrize(
    "change", [{"image": None}, {"prompt": None}, {"action": None}, {"prompt_file": Path("a")}]
)
def test_what_a_render_needs_is_missed(asked: ClipRequest, change: dict[str, Any]) -> None:
    """A plan does without."""
    request = replace(asked, **change)
    with pytest.raises(UsageError):
        resolve_clip(request)
    assert resolve_plan(request).plan.frames == 17


@pytest.mark.parametrize(
    "change",
    [
        {"preset": "none"},
        {"frames": 9},
        {"action": "q-3"},
        {"model": Path("none")},
        {"image": Path("none")},
        {"intrinsics": "1,2"},
        {"overrides": Overrides(height=70)},
        {"no_camera": True},
    ],
)
def test_what_a_plan_refuses_a_render_refuses_alike(
    asked: ClipRequest, change: dict[str, Any]
) -> None:
    said = []
    for resolve in (resolve_plan, resolve_clip):
        with pytest.raises(SanaWMError) as caught:
            resolve(replace(asked, **change))
        said.append((type(caught.value), caught.value.message, caught.value.hint))
    assert said[0] == said[1]


def test_without_a_picture_the_video_stands_in_for_it(asked: ClipRequest) -> None:
    """So that a plan's focal length means the same as the render's of a picture of that size."""
    resolved = resolve_plan(replace(asked, image=None))
    assert resolved.image_size == resolved.target == (64, 64)
    assert resolved.camera is not None
    assert resolved.camera.intrinsics.values.tolist() == [[51.2, 51.2, 32, 32]]


def test_without_a_camera_there_is_none(asked: ClipRequest) -> None:
    assert resolve_plan(replace(asked, action=None, no_camera=True)).camera is None
    assert resolve_plan(replace(asked, action=None)).camera is None


# --- intrinsics -------------------------------------------------------------------------------


def test_an_option_beats_a_file_and_a_file_a_guess(asked: ClipRequest, tmp_path: Path) -> None:
    path = tmp_path / "path.npz"
    save_trajectory(path, camera(asked).poses, np.array([[80.0, 80, 50, 25]]))
    assert camera(asked).intrinsics.source == "guess"
    from_file = camera(replace(asked, action=None, camera=path)).intrinsics
    assert (from_file.source, from_file.values.tolist()) == ("file", [[80.0, 80, 50, 25]] * 17)
    from_flag = camera(replace(asked, action=None, camera=path, intrinsics="60,60,50,25"))
    assert from_flag.intrinsics.source == "flag"
    assert from_flag.intrinsics.values.tolist() == [[60.0, 60, 50, 25]]


def zoom(path: Path, rows: int) -> str:
    """A file of intrinsics, one row per frame, each another; its name."""
    np.save(path, np.array([[60.0 + i, 60 + i, 50, 25] for i in range(rows)]))
    return str(path)


@pytest.mark.parametrize(
    ("poses", "frames", "fit", "rows", "last"),
    [
        (16, 17, "error", 17, 76),  # a row for each
        (40, 17, "truncate", 41, 76),  # a row for each pose: they are cut with the poses
        (40, 17, "truncate", 17, 76),  # a row for each frame: they stay as they are
        (8, 17, "hold", 9, 68),  # the last row is held with the last pose
        (8, 17, "hold", 17, 76),
        (40, 17, "truncate", 30, 76),
    ],
)
def test_rows_go_with_the_poses_or_with_the_frames(
    asked: ClipRequest, tmp_path: Path, poses: int, frames: int, fit: Any, rows: int, last: int
) -> None:
    request = replace(
        asked,
        action=f"w-{poses}",
        frames=frames,
        camera_fit=fit,
        intrinsics=zoom(tmp_path / "zoom.npy", rows),
    )
    found = camera(request)
    assert found.poses.shape == (frames, 4, 4)
    assert found.intrinsics.values.shape == (frames, 4)
    assert found.intrinsics.values[0, 0] == 60
    assert found.intrinsics.values[-1, 0] == last


def test_too_few_rows_are_refused(asked: ClipRequest, tmp_path: Path) -> None:
    request = replace(asked, intrinsics=zoom(tmp_path / "zoom.npy", 10))
    with pytest.raises(InputError, match="--intrinsics has 10 rows, the clip has 17 frames"):
        resolve_plan(request)


# --- the path ---------------------------------------------------------------------------------


def test_poses_left_over_are_no_contradiction_where_they_say_the_length(
    asked: ClipRequest,
) -> None:
    resolved = resolve_plan(replace(asked, action="w-30", frames=None))
    assert (resolved.plan.source, resolved.plan.frames) == ("poses", 25)
    assert "the last 6 of 31 poses are not used" in resolved.notes
    with pytest.raises(InputError, match="31 poses, the clip has 17 frames"):
        resolve_plan(replace(asked, action="w-30"))


def test_on_the_uniform_grid_more_poses_may_be_left_over(asked: ClipRequest) -> None:
    """Counts that can be rendered are a chunk apart there, not a latent."""
    uniform = replace(SMALL, grid="uniform")
    resolved = resolve_plan(replace(asked, overrides=uniform, action="w-47", frames=None))
    assert resolved.plan.frames == 25
    assert "the last 23 of 48 poses are not used" in resolved.notes


def test_a_path_of_too_few_poses_makes_no_clip(asked: ClipRequest) -> None:
    with pytest.raises(PlanError, match="smallest frame count that works is 17"):
        resolve_plan(replace(asked, action="w-3", frames=None))


@pytest.mark.parametrize("dialect", ["v2", "v1", "v1-strafe"])
def test_speeds_are_the_dialects_unless_given(dialect: Any) -> None:
    plain = kinematics(CameraSettings(dialect=dialect))
    fast = kinematics(CameraSettings(dialect=dialect, translation_speed=3, rotation_speed=4))
    assert (fast.translation_speed, fast.rotation_speed) == (3, 4)
    assert replace(fast, translation_speed=plain.translation_speed,
                   rotation_speed=plain.rotation_speed) == plain  # fmt: skip
    still = kinematics(CameraSettings(dialect=dialect, translation_speed=3))
    assert still.rotation_speed == plain.rotation_speed


# --- notes ------------------------------------------------------------------------------------


def test_notes_tell_what_was_not_asked_for_so(asked: ClipRequest, tmp_path: Path) -> None:
    given = replace(asked, intrinsics="fov=70")
    Image.new("RGB", (64, 64)).save(tmp_path / "small.png")
    small = tmp_path / "small.png"
    wide = Overrides(height=64, width=96)
    assert resolve_plan(replace(given, image=small)).notes == ()
    assert resolve_plan(replace(given, frames=18, camera_fit="hold")).notes == (
        "the first frame (100×50) is smaller than the video: scaled up",
        "only the middle 50% of the first frame (100×50) is seen",
    )
    (note,) = resolve_plan(replace(given, image=small, overrides=wide)).notes
    assert note == "the first frame (64×64) is smaller than the video: scaled up"
    (note,) = resolve_plan(replace(asked, image=small)).notes
    assert note.startswith("focal length 51 px is a guess")


def test_a_heavily_cropped_first_frame_is_told(asked: ClipRequest, tmp_path: Path) -> None:
    """A panorama is seen through a slit: the poses would not fit what the person has in mind."""
    Image.new("RGB", (400, 64)).save(tmp_path / "panorama.png")
    given = replace(asked, intrinsics="fov=70", image=tmp_path / "panorama.png")
    (note,) = resolve_plan(given).notes
    assert note == "only the middle 16% of the first frame (400×64) is seen"


def test_a_guess_that_does_not_suit_the_picture_says_so(asked: ClipRequest, tmp_path: Path) -> None:
    Image.new("RGB", (64, 2000)).save(tmp_path / "tower.png")
    with pytest.raises(InputError, match="the guess does not suit it") as refused:
        resolve_plan(replace(asked, image=tmp_path / "tower.png"))
    assert refused.value.hint == "say how wide it sees with --intrinsics fov=70"


@pytest.mark.parametrize("option", ["prompt", "negative_prompt"])
def test_bytes_that_are_no_text_are_no_prompt(asked: ClipRequest, option: str) -> None:
    with pytest.raises(InputError, match="not UTF-8 text"):
        resolve_clip(replace(asked, **{option: "caf\udce9"}))
