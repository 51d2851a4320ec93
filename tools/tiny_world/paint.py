"""Painting poses, back to front: sky, floor, walls, boxes. float32, on any device.

Poses are painted a group at a time, (g, 3, H, W), each thing within the rectangle that holds it in
all of them. What is painted is `forms`; what it means is said in `cast_numpy`.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from tools.tiny_world import look
from tools.tiny_world.batch import SceneBatch
from tools.tiny_world.box_forms import BoxForms
from tools.tiny_world.cast_numpy import NEAREST_ZERO
from tools.tiny_world.forms import FloorForms, Texture, WallForms
from tools.tiny_world.lens import Intrinsics


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Grid:
    """Pixel centres, counted from the optical axis."""

    across: Tensor  # w
    down: Tensor  # h
    inverse_length: Tensor  # h w, of the rays


@dataclass(frozen=True, slots=True, kw_only=True)
class Rectangle:
    """Rows [top, bottom), columns [left, right)."""

    top: int
    bottom: int
    left: int
    right: int

    @property
    def rows(self) -> slice:
        return slice(self.top, self.bottom)

    @property
    def columns(self) -> slice:
        return slice(self.left, self.right)

    @property
    def empty(self) -> bool:
        return self.top >= self.bottom or self.left >= self.right


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sums:
    """Functions of the column plus functions of the row: (g, …, W) and (g, …, H)."""

    across: Tensor
    down: Tensor

    def on(self, rectangle: Rectangle, *index: int) -> Tensor:
        """(g, h, w): the sums of one function."""
        across = self.across[(slice(None), *index, None, rectangle.columns)]
        down = self.down[(slice(None), *index, rectangle.rows, None)]
        return across + down


def make_grid(lens: Intrinsics, *, height: int, width: int, device: torch.device) -> Grid:
    """The grid of a picture, float32."""
    fx, fy, cx, cy = lens
    across = torch.arange(width, dtype=torch.float64) + 0.5 - cx
    down = torch.arange(height, dtype=torch.float64) + 0.5 - cy
    squares = (across / fx) ** 2 + (down[:, None] / fy) ** 2 + 1
    return Grid(
        across=across.float().to(device),
        down=down.float().to(device),
        inverse_length=squares.rsqrt().float().to(device),
    )


def spread(forms: Tensor, grid: Grid) -> Sums:
    """Forms (g, …, 3) on all columns and rows."""
    right, down, centre = forms.float().to(grid.across.device).unsqueeze(-2).unbind(-1)
    return Sums(across=right * grid.across + centre, down=down * grid.down)


def spread_footprint(texture: Texture, grid: Grid) -> Sums:
    """The footprint of a pixel on a plane, times inverse²."""
    per_column, per_row = (
        x.float().to(grid.across.device).unsqueeze(-2)
        for x in (texture.per_column, texture.per_row)
    )
    return Sums(
        across=(per_row[..., 0] * grid.across + per_row[..., 1]).abs_(),
        down=(per_column[..., 0] * grid.down + per_column[..., 1]).abs_(),
    )


def waves(place: Tensor, footprint: Tensor) -> Tensor:
    """Stripes, +1 and −1 in turn, averaged over footprints. Both arguments are used up."""
    low = torch.sub(place, footprint, alpha=0.5)
    high = place.add_(footprint, alpha=0.5)
    for end in (low, high):
        end.sub_(end.round()).abs_()
    return high.sub_(low).div_(footprint)


def colours_of(values: Tensor, grid: Grid) -> Tensor:
    """(…, 3, 1, 1) from colours (…, 3), in levels from 0 to 255."""
    return (values * 255).float().to(grid.across.device)[..., None, None]


def numbers_of(values: Tensor, grid: Grid) -> Tensor:
    """(…, 1, 1) from numbers (…)."""
    return values.float().to(grid.across.device)[..., None, None]


def two_tone(colours: Tensor, wave: Tensor, light: Tensor, *, onto: Tensor) -> None:
    """Write stripes of two colours (g, 2, 3, 1, 1) onto a canvas (g, 3, h, w)."""
    first, second = colours.unbind(1)
    torch.mul(wave[:, None], (first - second) / 2, out=onto)
    onto.add_((first + second) / 2).mul_(light[:, None])


def paint_sky(canvas: Tensor, scenes: SceneBatch, walls: WallForms, down: Sums, grid: Grid) -> None:
    """Pale at the horizon, deeper above."""
    rows = slice(0, int(walls.skyline.max()))
    if rows.stop == 0:
        return
    horizon, zenith = colours_of(scenes.sky, grid).unbind(1)
    rise = grid.inverse_length[rows] * down.down[:, rows, None]
    rise.mul_(-look.SKY_RISE).clamp_(0, 1)
    onto = canvas[:, :, rows]
    torch.mul(rise[:, None], zenith - horizon, out=onto)
    onto.add_(horizon)
