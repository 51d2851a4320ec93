"""Painting sky, floor and walls."""

from dataclasses import dataclass

import torch
from torch import Tensor

from tools.tiny_world import look
from tools.tiny_world.batch import SceneBatch
from tools.tiny_world.brushes import Grid, Rectangle, Sums, two_tone, union, waves
from tools.tiny_world.views import Views
from tools.tiny_world.yard_forms import FloorForms, WallForms


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class YardBrush:
    """Sky, floor and walls of N poses; colours in levels, numbers (n, …, 1, 1)."""

    height: int
    width: int
    inverse_length: Tensor  # h w
    rise: Tensor  # n h 1, the sky's mixture times the ray's length
    skyline: Tensor  # n, int
    sky: Tensor  # n 2 3 1 1: horizon, zenith − horizon
    floor_inverse: Tensor  # n h 1
    floor_along: Sums  # n 2
    floor_footprint: Sums  # n 2
    floor_edge: Tensor  # n 2 1 1, pairs of tiles from the centre to the wall
    floor_shade: Tensor  # n 1 1, brightness per pair of tiles
    floor_colours: Tensor  # n 2 3 1 1
    floor_first: Tensor  # n, int
    wall_inverse: Sums  # n m
    wall_along: Sums  # n m
    wall_footprint: Sums  # n m
    wall_cover: Sums  # n m 4
    wall_light: Sums  # n m
    wall_cornice: Sums  # n m
    wall_colours: Tensor  # n m 2 3 1 1
    wall_rectangle: Tensor  # n m 4, int


def yard_brush(
    scenes: SceneBatch, views: Views, floor: FloorForms, walls: WallForms, grid: Grid
) -> YardBrush:
    """The brush for one scene per view."""
    facing = torch.tensor([look.LIGHT[axis][side] for side in (0, 1) for axis in (0, 2)])
    shade = (1 - look.FLOOR_EDGE) / look.EDGE_WIDTH
    tiles = 2 * scenes.tile
    rise = grid.spread(views.toward[:, 1] * -look.SKY_RISE).down
    return YardBrush(
        height=views.height,
        width=views.width,
        inverse_length=grid.inverse_length,
        rise=rise[..., None],
        skyline=walls.skyline,
        sky=grid.levels(torch.stack([scenes.sky[:, 0], scenes.sky[:, 1] - scenes.sky[:, 0]], 1)),
        floor_inverse=grid.spread(floor.inverse).down[..., None],
        floor_along=grid.spread(floor.texture.along),
        floor_footprint=grid.footprint(floor.texture),
        floor_edge=grid.numbers(scenes.half / tiles[:, None]),
        floor_shade=grid.numbers(shade * tiles),
        floor_colours=grid.levels(_mean_and_more(scenes.floor)),
        floor_first=floor.first,
        wall_inverse=grid.spread(walls.inverse),
        wall_along=grid.spread(walls.texture.along),
        wall_footprint=grid.footprint(walls.texture),
        wall_cover=grid.spread(walls.cover),
        wall_light=grid.spread(walls.light),
        wall_cornice=grid.spread(walls.cornice),
        wall_colours=grid.levels(_mean_and_more(scenes.wall)[:, None] * facing[:, None, None]),
        wall_rectangle=walls.rectangle,
    )


def paint_yard(canvas: Tensor, brush: YardBrush, poses: slice) -> None:
    """Paint a group of poses onto a canvas (g, 3, H, W) of finite numbers."""
    _paint_sky(canvas, brush, poses)
    _paint_floor(canvas, brush, poses)
    for wall, rectangle in enumerate(union(brush.wall_rectangle[poses])):
        if not rectangle.empty:
            _paint_wall(canvas, brush, poses, wall, rectangle)


def _paint_sky(canvas: Tensor, brush: YardBrush, poses: slice) -> None:
    """Pale at the horizon, deeper above."""
    rows = slice(0, int(brush.skyline[poses].max()))
    mixture = (brush.inverse_length[rows] * brush.rise[poses, rows]).clamp_(0, 1)
    horizon, more = brush.sky[poses].unbind(1)
    onto = canvas[:, :, rows]
    torch.mul(mixture[:, None], more, out=onto)
    onto.add_(horizon)


def _paint_floor(canvas: Tensor, brush: YardBrush, poses: slice) -> None:
    """A checker board, darker along the walls."""
    r = Rectangle(
        top=int(brush.floor_first[poses].min()), bottom=brush.height, left=0, right=brush.width
    )
    inverse = brush.floor_inverse[poses, r.rows]  # g h 1
    distance = inverse.clamp(min=look.LEAST_INVERSE).reciprocal_()
    square = distance.square()
    wave, outside = [], []
    for i in (0, 1):
        place = brush.floor_along.on(poses, r, i).mul_(distance)
        outside.append(place.abs().sub_(brush.floor_edge[poses, i]))
        wave.append(waves(place, brush.floor_footprint.on(poses, r, i).mul_(square)))
    light = torch.maximum(*outside, out=outside[0]).mul_(-brush.floor_shade[poses])
    light.add_(look.FLOOR_EDGE).clamp_(look.FLOOR_EDGE, 1)
    onto = canvas[:, :, r.rows]
    two_tone(wave[0].mul_(wave[1]), light, brush.floor_colours[poses], out=onto)


def _paint_wall(canvas: Tensor, brush: YardBrush, poses: slice, wall: int, r: Rectangle) -> None:
    """Stripes, a cornice, and the shade of the foot."""
    distance = brush.wall_inverse.on(poses, r, wall).clamp_(min=look.LEAST_INVERSE).reciprocal_()
    light = brush.wall_light.on(poses, r, wall).mul_(distance).clamp_(look.WALL_FOOT, 1)
    light.mul_(brush.wall_cornice.on(poses, r, wall).clamp_(look.CORNICE_LIGHT, 1))
    place = brush.wall_along.on(poses, r, wall).mul_(distance)
    footprint = brush.wall_footprint.on(poses, r, wall).mul_(distance.square_())
    cover = brush.wall_cover.on(poses, r, wall, 0)
    for edge in (1, 2, 3):
        torch.minimum(cover, brush.wall_cover.on(poses, r, wall, edge), out=cover)
    colours = torch.empty_like(canvas[:, :, r.rows, r.columns])
    two_tone(waves(place, footprint), light, brush.wall_colours[poses, wall], out=colours)
    canvas[:, :, r.rows, r.columns].lerp_(colours, cover.clamp_(0, 1)[:, None])


def _mean_and_more(colours: Tensor) -> Tensor:
    first, second = colours.unbind(-2)
    return torch.stack([(first + second) / 2, (first - second) / 2], dim=-2)
