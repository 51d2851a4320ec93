"""Painting with forms: what the painters of the yard and of the boxes share. float32."""

from dataclasses import dataclass

import torch
from torch import Tensor

from tools.tiny_world.lens import Intrinsics
from tools.tiny_world.views import Texture


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
    """Functions of the column plus functions of the row: (n, …, W) and (n, …, H)."""

    across: Tensor
    down: Tensor

    def on(self, poses: slice, rectangle: Rectangle, *index: int) -> Tensor:
        """(g, h, w): the sums of one function for a group of poses."""
        across = self.across[(poses, *index, None, rectangle.columns)]
        return across + self.down[(poses, *index, rectangle.rows, None)]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Grid:
    """Pixel centres, counted from the optical axis, on the device that paints."""

    across: Tensor  # w
    down: Tensor  # h
    inverse_length: Tensor  # h w, of the rays

    def numbers(self, values: Tensor) -> Tensor:
        """(…, 1, 1) from numbers (…), to go with pictures."""
        return values.to(self.across)[..., None, None]

    def levels(self, colours: Tensor) -> Tensor:
        """(…, 3, 1, 1) from colours (…, 3), from 0 to 255."""
        return self.numbers(colours * 255)

    def spread(self, forms: Tensor) -> Sums:
        """Forms (n, …, 3) on all columns and rows."""
        right, down, centre = forms.to(self.across).unsqueeze(-2).unbind(-1)
        return Sums(across=right * self.across, down=down * self.down + centre)

    def footprint(self, texture: Texture) -> Sums:
        """A pixel's footprint on a textured plane, times inverse²."""
        slope, value = texture.per_row.to(self.across).unsqueeze(-2).unbind(-1)
        across = (slope * self.across + value).abs_()
        slope, value = texture.per_column.to(self.across).unsqueeze(-2).unbind(-1)
        return Sums(across=across, down=(slope * self.down + value).abs_())


def make_grid(lens: Intrinsics, *, height: int, width: int, device: torch.device) -> Grid:
    """The grid of a picture, float32."""
    fx, fy, cx, cy = lens
    across = torch.arange(width, dtype=torch.float64) + 0.5 - cx
    down = torch.arange(height, dtype=torch.float64) + 0.5 - cy
    squares = (across / fx) ** 2 + (down[:, None] / fy) ** 2 + 1
    across, down, inverse_length = (
        x.to(device, torch.float32) for x in (across, down, squares.rsqrt())
    )
    return Grid(across=across, down=down, inverse_length=inverse_length)


def union(rectangles: Tensor) -> list[Rectangle]:
    """One rectangle for each of k things that holds it in all poses, from (g, k, 4)."""
    there = (rectangles[..., 0] < rectangles[..., 1])[..., None]
    first = rectangles[..., 0::2].where(there, 2**30).amin(0)
    last = rectangles[..., 1::2].where(there, 0).amax(0)
    return [
        Rectangle(top=top, bottom=bottom, left=left, right=right)
        for (top, left), (bottom, right) in zip(first.tolist(), last.tolist(), strict=True)
    ]


def waves(place: Tensor, footprint: Tensor) -> Tensor:
    """Stripes, +1 and −1 in turn, averaged over footprints. `place` is used up."""
    low = torch.sub(place, footprint, alpha=0.5)
    high = place.add_(footprint, alpha=0.5)
    for end in (low, high):
        end.sub_(end.round()).abs_()
    return high.sub_(low).div_(footprint)


def two_tone(wave: Tensor, light: Tensor, colours: Tensor, *, out: Tensor) -> None:
    """Write stripes of two colours, (g, 3, 1, 1) in the mean and (g, 3, 1, 1) more in the wave."""
    mean, more = colours.unbind(1)
    torch.mul(wave[:, None], more, out=out)
    out.add_(mean).mul_(light[:, None])
