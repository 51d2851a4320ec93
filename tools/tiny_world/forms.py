"""What is to be painted for each pose: linear forms and screen rectangles, in float64.

A form is three numbers (…, 3): the change per column, the change per row, and the value where the
optical axis meets the picture. `cast_numpy` says why edges and inverse distances are linear. Covers
are forms in pixels from an edge, plus ½: clamped to 0 … 1 they are a pixel's share.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from tools.tiny_world import look
from tools.tiny_world.batch import SceneBatch
from tools.tiny_world.lens import Intrinsics
from tools.tiny_world.rects import bounds, rectangles
from tools.tiny_world.scene import EYE

TINY = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Views:
    """N eyes in scene axes and what they look through; `toward` are the rays' x, y, z."""

    eye: Tensor  # n 3
    turn: Tensor  # n 3 3
    toward: Tensor  # n 3 3, three forms
    lens: Intrinsics
    height: int
    width: int

    def inverse_distance(self, axis: int, plane: Tensor) -> Tensor:
        """Forms (n, …, 3) of 1 / t at planes (n, …) across an axis."""
        eye, toward = self.eye[:, axis], self.toward[:, axis]
        while eye.ndim < plane.ndim:
            eye, toward = eye.unsqueeze(-1), toward.unsqueeze(1)
        gap = plane - eye
        return toward / gap.where(gap.abs() > TINY, TINY).unsqueeze(-1)

    def rectangles(self, edges: Tensor) -> Tensor:
        """(…, 4) int from edges (n, …, e, 2, 3) in scene axes."""
        return rectangles(self.bounds(edges), height=self.height, width=self.width)

    def bounds(self, edges: Tensor) -> Tensor:
        """(…, 4), as `rects.bounds`, from edges (n, …, e, 2, 3) in scene axes."""
        shape = edges.shape
        points = edges.reshape(shape[0], -1, 3) - self.eye[:, None]
        return bounds((points @ self.turn).reshape(shape), self.lens)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Texture:
    """Stripes on a plane: their place, in pairs of stripes, is along / inverse.

    The change of the place per column, times inverse², is linear in the row alone, and the change
    per row in the column alone: `per_column` and `per_row` (…, 2) hold slope and value.
    """

    along: Tensor  # … 3
    per_column: Tensor
    per_row: Tensor


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FloorForms:
    """The floor, seen from row `first` on."""

    inverse: Tensor  # n 3
    texture: Texture  # n 2 …: along x, along z
    first: Tensor  # n, int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WallForms:
    """The walls +x, +z, −x, −z (m), and the sky above them, seen up to row `skyline`."""

    inverse: Tensor  # n m 3
    texture: Texture  # n m …
    cover: Tensor  # n m 4 3
    light: Tensor  # n m 3, brightness times inverse
    cornice: Tensor  # n m 3, brightness
    rectangle: Tensor  # n m 4, int
    skyline: Tensor  # n, int


def look_from(poses: Tensor, lens: Intrinsics, *, height: int, width: int) -> Views:
    """Views of camera-to-scene poses (n, 4, 4). Raises ValueError for a camera that rolls."""
    turn = poses[:, :3, :3]
    if not (turn[:, 1, 0].abs() < TINY).all():
        raise ValueError("a camera rolls about its axis; the walker's never do")
    per_pixel = torch.tensor([lens[0], lens[1], 1.0], dtype=torch.float64)
    return Views(
        eye=poses[:, :3, 3],
        turn=turn,
        toward=turn / per_pixel,
        lens=lens,
        height=height,
        width=width,
    )


def share(form: Tensor, *, spare: Tensor | float = 0.0) -> Tensor:
    """The cover of where a form is positive, or `spare` pixels beyond."""
    steepness = form[..., :2].abs().sum(-1, keepdim=True).clamp(min=1e-12)
    shifted = form / steepness
    return torch.cat([shifted[..., :2], shifted[..., 2:] + 0.5 + spare], dim=-1)


def texture(along: Tensor, inverse: Tensor) -> Texture:
    """The texture of a place given by two forms (…, 3), by the quotient rule."""
    (a, b, c), (d, e, f) = along.unbind(-1), inverse.unbind(-1)
    cross = a * e - d * b
    return Texture(
        along=along,
        per_column=torch.stack([cross, a * f - d * c], dim=-1),
        per_row=torch.stack([-cross, b * f - e * c], dim=-1),
    )


def floor_forms(scenes: SceneBatch, views: Views) -> FloorForms:
    """The floor of one scene per view."""
    inverse = views.inverse_distance(1, torch.tensor(EYE, dtype=torch.float64).expand(len(views.eye)))
    place = views.eye[:, 0::2, None] * inverse[:, None] + views.toward[:, 0::2]  # n 2 3
    along = place / (2 * scenes.tile[:, None, None])
    foot = views.bounds(_walls(scenes, EYE)[:, :, None])[..., 0]  # n m
    return FloorForms(
        inverse=inverse,
        texture=texture(along, inverse[:, None].expand_as(along)),
        first=_row(foot.amin(1).sub(1), views.height),
    )


def wall_forms(scenes: SceneBatch, views: Views) -> WallForms:
    """The four walls of one scene per view; what each means is said in `cast_numpy`."""
    inverse = torch.stack(
        [
            views.inverse_distance(axis, sign * scenes.half[:, axis // 2])
            for sign in (1, -1)
            for axis in (0, 2)
        ],
        dim=1,
    )  # n m 3
    eye, down = views.eye[:, None], views.toward[:, None, 1]
    top = (EYE - scenes.wall_height)[:, None]

    def above(y: Tensor | float) -> Tensor:
        return inverse * (y - eye[..., 1]).unsqueeze(-1) - down

    later = torch.arange(4)
    laps = [
        look.LAP * (neighbour > later)[:, None] for neighbour in (later.roll(1), later.roll(-1))
    ]
    cover = [
        share(above(EYE)),
        share(-above(top)),
        share(inverse - inverse.roll(1, 1), spare=laps[0]),
        share(inverse - inverse.roll(-1, 1), spare=laps[1]),
    ]
    other = torch.tensor([2, 0, 2, 0])
    along = inverse * views.eye[:, other, None] + views.toward[:, other]
    along = along / (2 * scenes.stripe[:, None, None])
    drop = inverse * eye[..., 1:2] + down
    dark = 1 - look.CORNICE_LIGHT
    cornice = -dark * share(above(top + look.CORNICE))
    feet, tops = _walls(scenes, EYE), _walls(scenes, top)
    sides = torch.stack([feet, tops], dim=3)  # n m 2 2 3: end of the wall, foot or top
    return WallForms(
        inverse=inverse,
        texture=texture(along, inverse),
        cover=torch.stack(cover, dim=2),
        light=inverse - drop * ((1 - look.WALL_FOOT) / EYE),
        cornice=cornice + torch.tensor([0.0, 0.0, 1.0], dtype=torch.float64),
        rectangle=views.rectangles(torch.cat([sides, sides.transpose(2, 3)], dim=2)),
        skyline=_row(views.bounds(tops[:, :, None])[..., 1].amax(1).add(2), views.height),
    )


def _walls(scenes: SceneBatch, y: Tensor | float) -> Tensor:
    """(n, m, 2, 3): the ends of each wall at a height."""
    ends = torch.tensor(
        [[[1, -1], [1, 1]], [[1, 1], [-1, 1]], [[-1, 1], [-1, -1]], [[-1, -1], [1, -1]]],
        dtype=torch.float64,
    )
    x, z = (ends * scenes.half[:, None, None]).unbind(-1)  # n m 2
    return torch.stack([x, torch.zeros_like(x) + _column(y), z], dim=-1)


def _column(y: Tensor | float) -> Tensor | float:
    return y[..., None] if isinstance(y, Tensor) else y


def _row(place: Tensor, height: int) -> Tensor:
    return place.floor().clamp(0, height).int()
