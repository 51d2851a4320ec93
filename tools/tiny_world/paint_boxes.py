"""Painting boxes, from the furthest to the nearest."""

from dataclasses import dataclass

import torch
from torch import Tensor

from tools.tiny_world import look
from tools.tiny_world.box_forms import BoxForms
from tools.tiny_world.brushes import Grid, Rectangle, Sums, union


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BoxBrush:
    """Boxes of N poses; colours in levels, numbers (n, …, 1, 1)."""

    near: Tensor  # n k 3, bool
    edges: Tensor  # n k, int
    rectangle: Tensor  # n k 4, int
    inverse: Sums  # n k 3
    cover: Sums  # n k 6
    seen: Sums  # n k 3
    facing: Tensor  # n k 3 1 1
    colour: Tensor  # n k 3 1 1
    light: Tensor  # n h 1, brightness added by height, times inverse
    foot: Tensor  # n 1 1


def box_brush(boxes: BoxForms, grid: Grid) -> BoxBrush:
    """The brush for one scene per view."""
    return BoxBrush(
        near=boxes.near,
        edges=boxes.edges,
        rectangle=boxes.rectangle,
        inverse=grid.spread(boxes.inverse),
        cover=grid.spread(boxes.cover),
        seen=grid.spread(boxes.seen),
        facing=grid.numbers(boxes.facing),
        colour=grid.levels(boxes.colour),
        light=grid.spread(boxes.light).down[..., None],
        foot=grid.numbers(boxes.foot),
    )


def paint_boxes(canvas: Tensor, brush: BoxBrush, poses: slice) -> None:
    """Paint a group of poses onto a canvas (g, 3, H, W)."""
    faces = brush.near[poses].any(0).tolist()
    edges = brush.edges[poses].amax(0).tolist()
    for k, r in enumerate(union(brush.rectangle[poses])):
        if r.empty:
            continue
        cover = brush.cover.on(poses, r, k, 0)
        for edge in range(1, edges[k]):
            torch.minimum(cover, brush.cover.on(poses, r, k, edge), out=cover)
        tone = _tone(brush, poses, k, r, [axis for axis in (0, 2, 1) if faces[k][axis]])
        colours = tone[:, None] * brush.colour[poses, k]
        canvas[:, :, r.rows, r.columns].lerp_(colours, cover.clamp_(0, 1)[:, None])


def _tone(brush: BoxBrush, poses: slice, k: int, r: Rectangle, axes: list[int]) -> Tensor:
    """(g, h, w): brightness of the face seen, of those across `axes`, and of its height."""
    inverse = brush.inverse.on(poses, r, k, axes[0])
    for axis in axes[1:]:
        torch.minimum(inverse, brush.inverse.on(poses, r, k, axis), out=inverse)
    height = inverse.clamp_(min=look.LEAST_INVERSE).reciprocal_().mul_(brush.light[poses, r.rows])
    tone = height.add_(brush.foot[poses]).clamp_(look.BOX_FOOT, 1)
    return tone.mul_(_facing(brush, poses, k, r, axes))


def _facing(brush: BoxBrush, poses: slice, k: int, r: Rectangle, axes: list[int]) -> Tensor:
    """(g, h, w) or (g, 1, 1): brightness of the face that is met last, which is the one seen."""
    x, y, z = brush.facing[poses, k].unbind(1)
    if 0 in axes and 2 in axes:
        sides = brush.seen.on(poses, r, k, 0).clamp_(0, 1).mul_(z - x).add_(x)
    else:
        sides = x if 0 in axes else z
    if 1 not in axes:
        return sides
    over = [brush.seen.on(poses, r, k, 1 + axis // 2) for axis in axes if axis != 1]
    top = torch.minimum(over[0], over[-1]).clamp_(0, 1)
    return torch.lerp(sides, y, top)
