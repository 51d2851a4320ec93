"""What cameras see of planes and edges, as linear forms in float64.

A form is three numbers (…, 3): its change per column, its change per row, and its value where the
optical axis meets the picture. `cast_numpy` says why edges and inverse distances are linear. A
cover is a form in pixels from an edge, plus ½: clamped to 0 … 1 it is the share of a pixel.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from tools.tiny_world.lens import Intrinsics
from tools.tiny_world.rects import bounds

TINY = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Views:
    """N eyes in scene axes and what they look through."""

    eye: Tensor  # n 3
    turn: Tensor  # n 3 3, from camera to scene
    toward: Tensor  # n 3 3: forms of the rays' x, y and z
    lens: Intrinsics
    height: int
    width: int

    def inverse_distance(self, axis: int, planes: Tensor) -> Tensor:
        """Forms (n, k, 3) of 1 / t at planes (n, k) across an axis."""
        gap = planes - self.eye[:, axis, None]
        return self.toward[:, None, axis] / gap.where(gap.abs() > TINY, TINY)[..., None]

    def bounds(self, edges: Tensor) -> Tensor:
        """(n, k, 4), as `rects.bounds`, from edges (n, k, e, 2, 3) in scene axes."""
        points = (edges - self.eye[:, None, None, None]).flatten(1, 3)
        return bounds((points @ self.turn).view(edges.shape), self.lens)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Texture:
    """Stripes on a plane: their place, in pairs of stripes, is along / inverse.

    Its change per column, times inverse², depends on the row alone, and its change per row on the
    column: `per_column` and `per_row` (…, 2) hold a slope and the value on the optical axis.
    """

    along: Tensor  # … 3
    per_column: Tensor
    per_row: Tensor


def look_from(poses: Tensor, lens: Intrinsics, *, height: int, width: int) -> Views:
    """Views of camera-to-scene poses (n, 4, 4). Raises ValueError for a camera that rolls."""
    turn = poses[:, :3, :3]
    if not (turn[:, 1, 0].abs() < TINY).all():
        raise ValueError("a camera rolls about its optical axis; the walker's never do")
    per_pixel = torch.tensor([lens[0], lens[1], 1.0], dtype=torch.float64)
    return Views(
        eye=poses[:, :3, 3],
        turn=turn,
        toward=turn / per_pixel,
        lens=lens,
        height=height,
        width=width,
    )


def share(form: Tensor) -> Tensor:
    """The cover of where a form is positive."""
    steepness = form[..., :2].abs().sum(-1, keepdim=True).clamp(min=1e-12)
    return form / steepness + constant(0.5)


def constant(value: float) -> Tensor:
    """The form (3,) of a number."""
    return torch.tensor([0.0, 0.0, value], dtype=torch.float64)


def texture(along: Tensor, inverse: Tensor) -> Texture:
    """The texture of a place given by two forms (…, 3), by the quotient rule."""
    (a, b, c), (d, e, f) = along.unbind(-1), inverse.unbind(-1)
    cross = a * e - d * b
    return Texture(
        along=along,
        per_column=torch.stack([cross, a * f - d * c], dim=-1),
        per_row=torch.stack([-cross, b * f - e * c], dim=-1),
    )
