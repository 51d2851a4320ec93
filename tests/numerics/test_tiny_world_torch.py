"""The tiny world's quick caster gives what the plain one gives, whatever the batch."""

import numpy as np
import pytest
import torch
from torch import Tensor

from sanawm_cli.camera.actions import parse_action
from sanawm_cli.camera.kinematics import DIALECTS, roll_out
from tools.tiny_world import cast_numpy
from tools.tiny_world.batch import pack_scenes
from tools.tiny_world.cast_torch import cast
from tools.tiny_world.clip import make_clip
from tools.tiny_world.ground import gap_to_box
from tools.tiny_world.layout import make_scene
from tools.tiny_world.scene import MOST_BOXES
from tools.tiny_world.show import COLUMNS, ROWS, contact_sheet

CLIPS = [make_clip(seed) for seed in (1, 2, 7, 8)]
SCENES = pack_scenes([clip.scene for clip in CLIPS])
POSES = torch.from_numpy(np.stack([clip.poses[::24] for clip in CLIPS]))  # b 5 4 4


@pytest.mark.parametrize(("height", "width"), [(48, 80), (96, 160), (60, 52)])
def test_the_twins_agree(height: int, width: int) -> None:
    quick = cast(SCENES, POSES, height=height, width=width)
    assert (quick.shape, quick.dtype) == ((4, 5, height, width, 3), torch.uint8)
    plain = np.stack(
        [
            [cast_numpy.cast(clip.scene, pose, height=height, width=width) for pose in poses]
            for clip, poses in zip(CLIPS, POSES.numpy(), strict=True)
        ]
    )
    off = np.abs(quick.numpy().astype(int) - plain)
    assert (off > 1).mean() <= 1e-3, f"up to {off.max()} levels"
    assert off.mean() < 0.05


@pytest.mark.parametrize("action", ["i-60", "k-60", "a-150", "d-300"])
def test_they_agree_in_odd_directions(action: str) -> None:
    """Straight up, where there is no floor; down, where there is no sky; behind."""
    scene = CLIPS[0].scene
    poses = torch.from_numpy(roll_out(parse_action(action), DIALECTS["v2"]).poses[-1:])
    quick = cast(pack_scenes([scene]), poses[None], height=48, width=80)[0, 0]
    plain = cast_numpy.cast(scene, poses[0].numpy(), height=48, width=80)
    assert np.abs(quick.numpy().astype(int) - plain).max() <= 1


def test_own_intrinsics_are_used() -> None:
    lens = (70.0, 60.0, 30.0, 20.0)
    quick = cast(SCENES, POSES[:, :1], height=48, width=80, lens=lens)
    plain = cast_numpy.cast(CLIPS[3].scene, POSES[3, 0].numpy(), height=48, width=80, lens=lens)
    assert np.abs(quick[3, 0].numpy().astype(int) - plain).max() <= 1


@pytest.mark.parametrize("group", [3, 20, 64])
def test_a_group_of_poses_paints_what_each_alone_does(group: int) -> None:
    """Scenes of a group differ in their number of boxes, and in which of them are in view."""
    assert len({len(clip.scene.boxes) for clip in CLIPS}) > 1
    alone = cast(SCENES, POSES, height=48, width=80)
    assert torch.equal(cast(SCENES, POSES, height=48, width=80, group=group), alone)


def test_more_poses_than_a_chunk_holds_keep_their_order() -> None:
    poses = torch.from_numpy(np.stack([clip.poses[:70] for clip in CLIPS[:2]]))
    scenes = SCENES.take(torch.tensor([0, 1]))
    whole = cast(scenes, poses, height=32, width=64)
    one = cast(scenes.take(torch.tensor([1])), poses[1:, 68:69], height=32, width=64)
    assert torch.equal(whole[1, 68], one[0, 0])
    assert not torch.equal(whole[1, 68], whole[0, 68])


def test_pictures_are_painted_where_they_are_asked_for() -> None:
    """The meta device computes nothing, but refuses to mix with tensors of the CPU."""
    frames = cast(SCENES, POSES, height=48, width=80, device="meta")
    assert frames.device.type == "meta"
    assert frames.shape == (4, 5, 48, 80, 3)


def test_a_camera_that_rolls_is_refused() -> None:
    angle = torch.tensor(0.1)
    rolled: Tensor = torch.eye(4)
    rolled[0, 0] = rolled[1, 1] = angle.cos()
    rolled[1, 0] = angle.sin()
    rolled[0, 1] = -angle.sin()
    with pytest.raises(ValueError, match="rolls"):
        cast(pack_scenes([CLIPS[0].scene]), rolled[None, None])


def test_of_two_boxes_on_a_ray_the_nearer_one_is_in_front() -> None:
    """Boxes are painted by the distance of their nearest points: see `BoxForms`."""
    random, crossed = np.random.default_rng(0), 0
    for seed in range(60):
        scene = make_scene(seed)
        at = scene.start
        for angle in random.uniform(-np.pi, np.pi, 60):
            hits = []
            for box in scene.boxes:
                way = np.array([np.sin(angle), np.cos(angle)])
                ends = (np.array(box.centre) - at) / way + np.outer((-1, 1), box.half / way)
                near, far = ends.min(0).max(), ends.max(0).min()
                if 0 < near < far:
                    hits.append((near, gap_to_box(box, at)))
            gaps = [gap for _, gap in sorted(hits)]
            assert gaps == sorted(gaps)
            crossed += len(gaps) > 1
    assert crossed > 40


def test_padding_is_not_painted() -> None:
    fewest = min(CLIPS, key=lambda clip: len(clip.scene.boxes))
    packed = pack_scenes([fewest.scene])
    assert packed.valid.sum() == len(fewest.scene.boxes) < MOST_BOXES == packed.low.shape[1]


def test_a_contact_sheet_shows_a_dozen_frames() -> None:
    sheet = contact_sheet(make_clip(4, frames=25))
    assert sheet.width == COLUMNS * 320
    assert sheet.height > ROWS * 192
    assert np.asarray(sheet)[-192:, :320].std() > 5
