"""What is to be painted of the boxes: see `views`."""

from dataclasses import dataclass

import torch
from torch import Tensor

from tools.tiny_world import look
from tools.tiny_world.batch import SceneBatch
from tools.tiny_world.rects import rectangles
from tools.tiny_world.scene import EYE
from tools.tiny_world.views import Views, constant, share

NEVER = 1e3  # an inverse distance that is never the least, a cover that is whole
EDGES = 6  # the outline of a box has no more


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BoxForms:
    """Boxes (k) from the furthest to the nearest, which is from back to front.

    For they stand further apart than half of their width: one that hides another is the nearer.
    """

    near: Tensor  # n k 3, bool: whether a face across x, y, z can be seen
    inverse: Tensor  # n k 3 3: of these faces
    cover: Tensor  # n k 6 3; nowhere for boxes that do not exist
    edges: Tensor  # n k, int: how many of the covers count
    seen: Tensor  # n k 3 3: covers of z over x, y over x, y over z
    facing: Tensor  # n k 3, brightness of the faces
    colour: Tensor  # n k 3
    light: Tensor  # n 3, brightness added by height, times inverse
    foot: Tensor  # n, brightness at the eye's height, if it went on rising
    rectangle: Tensor  # n k 4, int; empty for those


def box_forms(scenes: SceneBatch, views: Views) -> BoxForms:
    """The boxes of one scene per view."""
    order = _gaps(scenes, views).argsort(dim=1, descending=True)
    low, high, colour = (
        x.gather(1, order[..., None].expand_as(x)) for x in (scenes.low, scenes.high, scenes.colour)
    )
    eye = views.eye[:, None]
    below, beyond = eye < low, eye > high  # n k 3
    near = below | beyond
    faces = [
        torch.stack([views.inverse_distance(axis, p[..., axis]) for axis in range(3)], dim=2)
        for p in (low, high)
    ]  # n k 3 3
    inverse = faces[0].where(below[..., None], faces[1])
    # A ray may leave a slab that holds the eye on either side.
    far = [faces[1].where(below[..., None], faces[0]), faces[0].where(beyond[..., None], faces[1])]
    cover, edges = _outline(near, inverse, torch.stack(far, dim=3))
    inverse = inverse.where(near[..., None], constant(NEVER))
    x, y, z = inverse.unbind(2)
    rise = (1 - look.BOX_FOOT) / look.BOX_RISE
    valid = scenes.valid.gather(1, order)[..., None]
    rectangle = rectangles(views.bounds(_edges(low, high)), height=views.height, width=views.width)
    return BoxForms(
        near=near,
        inverse=inverse,
        cover=cover.where(valid[..., None], constant(-1)),
        edges=edges,
        seen=torch.stack([share(x - z), share(x - y), share(z - y)], dim=2),
        facing=_facing(beyond),
        colour=colour,
        light=views.toward[:, 1] * -rise,
        foot=look.BOX_FOOT + rise * (EYE - views.eye[:, 1]),
        rectangle=rectangle * valid,
    )


def _gaps(scenes: SceneBatch, views: Views) -> Tensor:
    """(n, k): distances from the eye to the upright sides."""
    eye = views.eye[:, None]
    outside = torch.maximum(scenes.low - eye, eye - scenes.high)[..., 0::2].clamp(min=0)
    return torch.hypot(outside[..., 0], outside[..., 1])


def _outline(near: Tensor, inverse: Tensor, far: Tensor) -> tuple[Tensor, Tensor]:
    """Covers (n, k, 6, 3) of where each near face is met before each far one, and their number.

    `far` (n, k, 3, 2, 3) holds two faces per axis, which are the same if there is a near one.
    """
    pairs = [(i, j, side) for i in range(3) for j in range(3) if i != j for side in (0, 1)]
    covers = torch.stack(
        [share(inverse[:, :, i] - far[:, :, j, side]) for i, j, side in pairs], dim=2
    )
    counts = torch.stack(
        [near[:, :, i] & ~(near[:, :, j] & (side == 1)) for i, j, side in pairs], dim=2
    )
    first = counts.int().argsort(dim=2, descending=True, stable=True)[:, :, :EDGES, None]
    covers = covers.where(counts[..., None], constant(NEVER))
    return covers.gather(2, first.expand(-1, -1, -1, 3)), counts.sum(2)


def _facing(beyond: Tensor) -> Tensor:
    """(n, k, 3): brightness of the near faces."""
    x, z = (torch.tensor(look.LIGHT[axis], dtype=torch.float64) for axis in (0, 2))
    light = torch.full(beyond.shape, look.LIGHT_ABOVE, dtype=torch.float64)
    light[..., 0] = x[beyond[..., 0].int()]
    light[..., 2] = z[beyond[..., 2].int()]
    return light


def _edges(low: Tensor, high: Tensor) -> Tensor:
    """(…, 12, 2, 3): the edges between two corners (…, 3)."""
    corners = torch.cartesian_prod(*[torch.arange(2)] * 3).bool()  # 8 3
    ends = [(a, a | 1 << bit) for bit in range(3) for a in range(8) if not a & 1 << bit]
    points = high[..., None, :].where(corners, low[..., None, :])
    return points[..., torch.tensor(ends), :]
