"""Where on the screen things can be seen: bounds of their edges, cut where they pass the camera."""

import torch
from torch import Tensor

from tools.tiny_world.lens import Intrinsics

NEAR = 0.05  # depth at which edges are cut
MARGIN = 2  # pixels around a thing that its soft edges may touch


def bounds(edges: Tensor, lens: Intrinsics) -> Tensor:
    """(…, 4) first and last row, first and last column, from edges (…, e, 2, 3) in camera axes.

    Pixels, not cut to the screen. What lies behind the camera has bounds +inf, −inf.
    """
    fx, fy, cx, cy = lens
    start, end = edges[..., 0, :], edges[..., 1, :]
    ends = torch.stack([_cut(start, end), _cut(end, start)], dim=-2)  # … e 2 3
    seen = (edges[..., 2] > NEAR).any(-1, keepdim=True)  # … e 1
    found = []
    for coordinate, focal, centre in ((1, fy, cy), (0, fx, cx)):
        place = ends[..., coordinate] / ends[..., 2] * focal + centre
        found.append(place.masked_fill(~seen, torch.inf).amin((-1, -2)))
        found.append(place.masked_fill(~seen, -torch.inf).amax((-1, -2)))
    return torch.stack(found, dim=-1)


def rectangles(bounds: Tensor, *, height: int, width: int) -> Tensor:
    """(…, 4) int: rows [a, b) and columns [c, d) of all pixels touched; a ≥ b: none."""
    first = bounds[..., 0::2].sub(MARGIN).floor()
    last = bounds[..., 1::2].add(MARGIN + 1).floor()
    size = torch.tensor([height, width])
    first = first.clamp(min=0).minimum(size)
    last = last.clamp(min=0).minimum(size)
    return torch.stack([first, last], dim=-1).flatten(-2).int()


def _cut(point: Tensor, other: Tensor) -> Tensor:
    """The point, moved towards the other one until it is in front of the camera."""
    depth = point[..., 2:]
    share = ((NEAR - depth) / (other[..., 2:] - depth)).where(depth < NEAR, 0)
    moved = point + (other - point) * share.clamp(0, 1)
    return torch.cat([moved[..., :2], moved[..., 2:].clamp(min=NEAR)], dim=-1)
