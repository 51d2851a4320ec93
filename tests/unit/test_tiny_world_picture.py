"""The tiny world's pictures: things are where geometry puts them, and move as a camera's do."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from sanawm_cli.camera.actions import parse_action
from sanawm_cli.camera.kinematics import DIALECTS, roll_out
from tools.tiny_world.cast_numpy import Linear, cast, stripes
from tools.tiny_world.layout import make_scene
from tools.tiny_world.lens import intrinsics
from tools.tiny_world.scene import EYE, Box, Scene

HEIGHT, WIDTH = 96, 160
AT_START = np.eye(4)


def box_at(x: float, z: float, *, height: float = 0.45) -> Box:
    return Box(
        centre=(x, z),
        half=(0.15, 0.2),
        height=height,
        colour=(0.9, 0.1, 0.1),
        colour_name="red",
        size="big",
    )


def yard(*boxes: Box) -> Scene:
    """A scene seen from its middle, along +z."""
    return replace(make_scene(1), half=(2.0, 2.5), start=(0.0, 0.0), heading=0.0, boxes=boxes)


def picture(scene: Scene, pose: NDArray[np.floating] = AT_START) -> NDArray[np.uint8]:
    return cast(scene, pose, height=HEIGHT, width=WIDTH)


def walked(action: str) -> NDArray[np.float32]:
    return roll_out(parse_action(action), DIALECTS["v2"]).poses[-1]


def mask(box: Box, pose: NDArray[np.floating] = AT_START) -> NDArray[np.bool_]:
    """Pixels that a box changes."""
    empty, seen = picture(yard(), pose), picture(yard(box), pose)
    return np.asarray((empty != seen).any(-1))


def middle(box: Box, pose: NDArray[np.floating] = AT_START) -> tuple[float, float]:
    """Mean row and column of a box."""
    rows, columns = np.nonzero(mask(box, pose))
    return float(rows.mean()), float(columns.mean())


def corners(box: Box) -> NDArray[np.float64]:
    """(8, 3)."""
    return np.array(
        [
            (box.centre[0] + i * box.half[0], y, box.centre[1] + j * box.half[1])
            for i in (-1, 1)
            for j in (-1, 1)
            for y in (EYE, EYE - box.height)
        ]
    )


@pytest.mark.parametrize("action", ["w-8", "wd-12", "j-10,a-12", "i-9,w-6", "k-12,l-8"])
@pytest.mark.parametrize("box", [box_at(0.1, 1.6), box_at(-0.3, 1.7, height=0.2)])
def test_a_box_ends_where_its_corners_project_to(box: Box, action: str) -> None:
    pose = walked(action)
    fx, fy, cx, cy = intrinsics(width=WIDTH, height=HEIGHT)
    x, y, z = ((corners(box) - pose[:3, 3]) @ pose[:3, :3]).T
    columns, rows = fx * x / z + cx, fy * y / z + cy
    found_rows, found_columns = np.nonzero(mask(box, pose))
    for found, projected in ((found_rows, rows), (found_columns, columns)):
        assert found.min() == pytest.approx(projected.min() - 0.5, abs=1.1)
        assert found.max() == pytest.approx(projected.max() - 0.5, abs=1.1)


def test_a_pixel_on_an_edge_is_mixed_by_its_share() -> None:
    """A box from half of one pixel to a quarter of another, seen straight on."""
    focal = intrinsics(width=WIDTH, height=HEIGHT)[0]
    front = 1.0
    left, right = (-10.5) / focal * front, 20.25 / focal * front
    box = replace(
        box_at((left + right) / 2, 1.2), half=((right - left) / 2, 0.2), colour=(0.0, 0.0, 0.0)
    )
    row = picture(yard(box))[40].astype(float) / picture(yard())[40]
    first, last = WIDTH // 2 - 11, WIDTH // 2 + 20
    assert row[first - 1] == pytest.approx(1)
    assert row[first] == pytest.approx(0.5, abs=0.02)
    assert row[first + 1 : last] == pytest.approx(0)
    assert row[last] == pytest.approx(0.75, abs=0.02)
    assert row[last + 1] == pytest.approx(1)


def test_going_forward_makes_boxes_grow() -> None:
    box = box_at(0.1, 1.6)
    sizes = [mask(box, walked(f"w-{n}")).sum() for n in (1, 12, 24, 36)]
    assert sizes == sorted(sizes)
    assert sizes[-1] > 2 * sizes[0]


@pytest.mark.parametrize(
    ("action", "rows", "columns"),
    [("d-12", 0, -1), ("a-12", 0, 1), ("l-8", 0, -1), ("j-8", 0, 1), ("i-8", 1, 0), ("k-8", -1, 0)],
)
def test_the_world_moves_against_the_camera(action: str, rows: int, columns: int) -> None:
    box = box_at(0.0, 1.5)
    (row, column), (row_after, column_after) = middle(box), middle(box, walked(action))
    shift = np.array([row_after - row, column_after - column])
    assert np.sign(np.round(shift / 8)).tolist() == [rows, columns]


def test_a_turn_moves_far_and_near_alike_and_a_step_aside_does_not() -> None:
    near, far = box_at(0.0, 1.0), box_at(0.0, 2.2)

    def shift(box: Box, action: str) -> float:
        return middle(box, walked(action))[1] - middle(box)[1]

    assert shift(near, "d-10") == pytest.approx(shift(far, "d-10"), abs=0.8)
    assert shift(near, "l-10") < 1.5 * shift(far, "l-10") < 0


def test_the_nearer_box_hides_the_other() -> None:
    front = box_at(0.0, 1.0)
    back = replace(box_at(0.05, 1.9), colour=(0.1, 0.1, 0.9))
    alone = picture(yard(front)).astype(int)
    for boxes in ((front, back), (back, front)):
        assert np.abs(picture(yard(*boxes)) - alone).max() <= 1  # rounding
    aside = replace(back, centre=(0.6, 1.9))
    assert np.abs(picture(yard(front, aside)) - alone).max() > 50


@pytest.mark.parametrize("seed", range(4))
def test_a_picture_is_the_mean_of_a_finer_one(seed: int) -> None:
    """Edges and textures are averaged in closed form: almost what 64 rays per pixel give."""
    scene, n = make_scene(seed), 8
    small = cast(scene, walked("w-10"), height=48, width=80).astype(float)
    fine = cast(scene, walked("w-10"), height=48 * n, width=80 * n)
    difference = np.abs(small - fine.reshape(48, n, 80, n, 3).mean((1, 3)))
    assert difference.mean() < 1
    assert np.quantile(difference, 0.99) < 16


@pytest.mark.parametrize("per_pixel", [0.01, 0.11, 0.3, 0.77, 1.0, 2.9])
def test_stripes_are_the_mean_over_the_footprint(per_pixel: float) -> None:
    at = np.arange(-20, 20)[None] * per_pixel + 0.123
    along = Linear(at=at, right=per_pixel, down=0.0)
    flat = Linear(at=np.ones_like(at), right=0.0, down=0.0)
    fine = at[..., None] + (np.arange(4000) / 4000 - 0.5) * per_pixel
    mean = np.where(fine % 1 < 0.5, 1.0, -1.0).mean(-1)
    assert stripes(along, flat, 1.0) == pytest.approx(mean, abs=2e-3)
