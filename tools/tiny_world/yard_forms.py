"""What is to be painted of sky, floor and walls: forms, as in `views`, and where on the screen."""

from dataclasses import dataclass

import torch
from torch import Tensor

from tools.tiny_world import look
from tools.tiny_world.batch import SceneBatch
from tools.tiny_world.rects import MARGIN, rectangles
from tools.tiny_world.scene import EYE
from tools.tiny_world.views import Texture, Views, constant, share, texture


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FloorForms:
    inverse: Tensor  # n 3, of the distance
    texture: Texture  # n 2 …: along x, along z
    first: Tensor  # n, int: the row from which on it is seen


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WallForms:
    """The walls +x, +z, −x, −z (m = 4)."""

    inverse: Tensor  # n m 3, of the distance
    texture: Texture  # n m …
    cover: Tensor  # n m 4 3
    light: Tensor  # n m 3, brightness times inverse
    cornice: Tensor  # n m 3, brightness
    rectangle: Tensor  # n m 4, int
    skyline: Tensor  # n, int: the row up to which the sky is seen over them


def floor_forms(scenes: SceneBatch, views: Views) -> FloorForms:
    """The floor of one scene per view."""
    level = torch.full_like(scenes.tile, EYE)
    inverse = views.inverse_distance(1, level[:, None])  # n 1 3
    place = views.eye[:, 0::2, None] * inverse + views.toward[:, 0::2]  # n 2 3
    along = place / (2 * scenes.tile[:, None, None])
    rows = views.bounds(_rims(scenes, level)[:, :, None])[..., 0]  # n m
    return FloorForms(
        inverse=inverse[:, 0],
        texture=texture(along, inverse.expand_as(along)),
        first=_row(rows.amin(1) - MARGIN, views.height),
    )


def wall_forms(scenes: SceneBatch, views: Views) -> WallForms:
    """The walls of one scene per view."""
    planes = torch.cat([scenes.half, -scenes.half], dim=1)  # n m
    inverse = torch.stack(
        [views.inverse_distance(axis, planes)[:, m] for m, axis in enumerate((0, 2, 0, 2))], dim=1
    )
    other = torch.tensor([2, 0, 2, 0])  # the axis along each wall
    along = inverse * views.eye[:, other, None] + views.toward[:, other]
    level, top = torch.full_like(scenes.wall_top, EYE), scenes.wall_top
    drop = inverse * views.eye[:, None, 1:2] + views.toward[:, None, 1]
    band = share(_above(top + look.CORNICE, inverse, views))
    rims = torch.stack([_rims(scenes, level), _rims(scenes, top)], dim=3)  # n m 2 2 3
    bounds = views.bounds(torch.cat([rims, rims.transpose(2, 3)], dim=2))
    rows = views.bounds(rims[:, :, None, :, 1])[..., 1]  # n m, of the tops
    return WallForms(
        inverse=inverse,
        texture=texture(along / (2 * scenes.stripe[:, None, None]), inverse),
        cover=_wall_cover(inverse, _above(level, inverse, views), _above(top, inverse, views)),
        light=inverse - drop * ((1 - look.WALL_FOOT) / EYE),
        cornice=constant(1) - (1 - look.CORNICE_LIGHT) * band,
        rectangle=rectangles(bounds, height=views.height, width=views.width),
        skyline=_row(rows.amax(1) + MARGIN + 1, views.height),
    )


def _wall_cover(inverse: Tensor, above_floor: Tensor, above_top: Tensor) -> Tensor:
    """(n, m, 4, 3): above the floor, below the top, on this side of both corners.

    Walls are painted in order; each reaches a little under its neighbour that is still to come.
    """
    wall = torch.arange(4)
    sides = []
    for step in (1, -1):
        lap = look.LAP * (wall.roll(step) > wall)[:, None] * constant(1)
        sides.append(share(inverse - inverse.roll(step, 1)) + lap)
    return torch.stack([share(above_floor), share(-above_top), *sides], dim=2)


def _above(y: Tensor, inverse: Tensor, views: Views) -> Tensor:
    """Forms (n, m, 3), positive where a ray meets a wall above the height y (n,)."""
    return inverse * (y - views.eye[:, 1])[:, None, None] - views.toward[:, None, 1]


def _rims(scenes: SceneBatch, y: Tensor) -> Tensor:
    """(n, m, 2, 3): the ends of each wall at the height y (n,)."""
    corners = torch.tensor([[1, -1], [1, 1], [-1, 1], [-1, -1]], dtype=torch.float64)
    x, z = (corners * scenes.half[:, None]).unbind(-1)  # n m: where walls begin, going round
    start = torch.stack([x, y[:, None].expand_as(x), z], dim=-1)
    return torch.stack([start, start.roll(-1, 1)], dim=2)


def _row(place: Tensor, height: int) -> Tensor:
    return place.clamp(0, height).floor().int()
