"""Draw `examples/courtyard.png`, the first frame that `make demo` starts from.

    python tools/make_example_image.py [OUT.png]

A walled courtyard at eye height, cast ray by ray. Axes as in OpenCV: x right, y down, z forward,
in metres, with the eye at the origin; lengths along a ray are depths, since its z is 1. The focal
length is 0.8 of the width, which is what the renderer assumes of a picture that does not tell its
own. Only + - * / and square roots make the pixels, in a fixed order: every machine draws the same.
"""

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Colour = tuple[float, float, float]  # linear light

WIDTH, HEIGHT = 320, 192
SAMPLES = 4  # a side, per pixel
FOCAL = 0.8 * WIDTH

GROUND = 1.6  # y of the floor: the eye is this high
WALL_TOP = -1.7
SIDE, BACK = 5.0, 16.0  # the walls stand at x = ±SIDE and z = BACK
PLINTH, COPING = 0.35, 0.22
SUN = (-0.50, -0.74, -0.45)  # towards the sun: left, above, behind
SHADE = 0.36  # what a surface that the sun misses still gets
HAZE = 0.007  # per metre

SKY_LOW: Colour = (0.66, 0.79, 0.90)
SKY_HIGH: Colour = (0.10, 0.28, 0.66)
TILES: tuple[Colour, Colour] = ((0.62, 0.54, 0.42), (0.30, 0.23, 0.17))
STRIPES: tuple[Colour, Colour] = ((0.72, 0.62, 0.47), (0.58, 0.33, 0.20))
STONE: Colour = (0.34, 0.31, 0.28)


class Vectors(NamedTuple):
    """One vector per sample."""

    x: Array
    y: Array
    z: Array


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """An axis-aligned box between two corners."""

    low: tuple[float, float, float]
    high: tuple[float, float, float]
    colour: Colour


def crate(x: float, z: float, *, width: float, height: float, colour: Colour) -> Box:
    """A box on the floor, square in plan, centred at `x`, its front at depth `z`."""
    low = (x - width / 2, GROUND - height, z)
    return Box(low=low, high=(x + width / 2, GROUND, z + width), colour=colour)


BOXES = (
    crate(-1.7, 5.4, width=1.2, height=1.2, colour=(0.62, 0.11, 0.06)),
    crate(1.5, 7.2, width=1.0, height=2.2, colour=(0.07, 0.22, 0.50)),
    crate(2.7, 5.6, width=0.8, height=0.8, colour=(0.80, 0.50, 0.07)),
    crate(-0.2, 10.5, width=1.6, height=1.0, colour=(0.10, 0.38, 0.14)),
    crate(-3.4, 9.4, width=1.0, height=2.0, colour=(0.60, 0.58, 0.54)),
    crate(3.6, 11.5, width=1.3, height=1.4, colour=(0.42, 0.10, 0.32)),
)


def view_rays() -> Vectors:
    """Directions of all samples, `SAMPLES` a side for each pixel, the camera level."""
    columns = (np.arange(WIDTH * SAMPLES) + 0.5) / SAMPLES
    rows = (np.arange(HEIGHT * SAMPLES) + 0.5) / SAMPLES
    x, y = np.meshgrid((columns - WIDTH / 2) / FOCAL, (rows - HEIGHT / 2) / FOCAL)
    return Vectors(x, y, np.ones_like(x))


def points(direction: Vectors, t: Array) -> Vectors:
    """Where rays from the eye are after `t`."""
    return Vectors(direction.x * t, direction.y * t, direction.z * t)


def ahead(distance: Array) -> Array:
    """The distance where it is ahead of the ray's start, infinity elsewhere."""
    return np.where(distance > 0, distance, np.inf)


def meet(box: Box, start: Vectors, direction: Vectors) -> tuple[Array, NDArray[np.int64]]:
    """Distance to the box (infinity: missed) and the axis of the face met, by the slab method."""
    near, far = np.full_like(start.x, -np.inf), np.full_like(start.x, np.inf)
    axis = np.zeros(start.x.shape, dtype=np.int64)
    for i in range(3):
        low = (box.low[i] - start[i]) / direction[i]
        high = (box.high[i] - start[i]) / direction[i]
        first = np.minimum(low, high)
        axis = np.where(first > near, i, axis)
        near = np.maximum(near, first)
        far = np.minimum(far, np.maximum(low, high))
    return np.where((near < far) & (near > 1e-9), near, np.inf), axis


def sunlit(at: Vectors) -> Mask:
    """Whether nothing stands between a point of the yard and the sun."""
    sun = Vectors(*(np.full_like(at.x, s) for s in SUN))
    to_left_wall = (-SIDE - at.x) / SUN[0]
    free = at.y + to_left_wall * SUN[1] < WALL_TOP
    for box in BOXES:
        free &= np.isinf(meet(box, at, sun)[0])
    return free


def paint(where: Mask, colour: Iterable[float], onto: list[Array]) -> None:
    """Set a colour on the masked samples of three channels."""
    for channel, value in zip(onto, colour, strict=True):
        channel[where] = value


def facing(axis: int, sign: float) -> float:
    """Sunlight on a surface whose normal is `sign` along `axis`."""
    return max(sign * SUN[axis], 0.0)


def draw_sky(direction: Vectors) -> list[Array]:
    """Three channels: pale at the horizon, blue above."""
    length = np.sqrt(direction.x**2 + direction.y**2 + direction.z**2)
    height = np.sqrt(np.clip(-direction.y / length, 0.0, 1.0))
    return [low + (high - low) * height for low, high in zip(SKY_LOW, SKY_HIGH, strict=True)]


def draw_yard(direction: Vectors) -> tuple[list[Array], Array, Array]:
    """Colours, sun strengths and distances of the empty yard; infinitely far where it ends."""
    floor = ahead(GROUND / direction.y)
    sides = np.minimum(ahead(SIDE / direction.x), ahead(-SIDE / direction.x))
    walls = np.minimum(sides, BACK)
    t = np.minimum(floor, walls)
    at = points(direction, t)
    on_floor, on_side = floor <= walls, sides < BACK

    colours = [np.zeros_like(t) for _ in range(3)]
    run = np.where(on_side, at.z, at.x)
    stripe = np.floor(run / 1.25).astype(np.int64) % 2 == 0
    for colour, chosen in zip(STRIPES, (stripe, ~stripe), strict=True):
        paint(chosen, colour, colours)
    paint((at.y > GROUND - PLINTH) | (at.y < WALL_TOP + COPING), STONE, colours)
    tile = (np.floor(at.x) + np.floor(at.z)).astype(np.int64) % 2 == 0
    for colour, chosen in zip(TILES, (tile, ~tile), strict=True):
        paint(on_floor & chosen, colour, colours)

    side = np.where(at.x < 0, facing(0, 1.0), facing(0, -1.0))
    sun = np.where(on_floor, facing(1, -1.0), np.where(on_side, side, facing(2, -1.0)))
    return colours, sun, np.where(at.y < WALL_TOP, np.inf, t)


def edges(box: Box, at: Vectors) -> Mask:
    """Where a point of the box's skin lies on the frame along its edges."""
    rims = np.zeros(at.x.shape, dtype=np.int64)
    for i in range(3):
        rims += (at[i] < box.low[i] + 0.08) | (at[i] > box.high[i] - 0.08)
    return rims >= 2


def cast(direction: Vectors) -> list[Array]:
    """Linear-light red, green and blue of every sample."""
    colours, sun, t = draw_yard(direction)
    eye = Vectors(*(np.zeros_like(t) for _ in range(3)))
    for box in BOXES:
        distance, axis = meet(box, eye, direction)
        seen = distance < t
        t = np.where(seen, distance, t)
        paint(seen, box.colour, colours)
        rim = seen & edges(box, points(direction, np.where(seen, distance, 1.0)))
        paint(rim, (0.45 * value for value in box.colour), colours)
        for i in range(3):
            face = seen & (axis == i)
            sun[face] = np.where(direction[i][face] > 0, facing(i, -1.0), facing(i, 1.0))

    solid = np.isfinite(t)
    depth = np.where(solid, t, 0.0)
    # A hair back towards the eye, or each point would lie in its own shadow.
    light = SHADE + (1.25 - SHADE) * sun * sunlit(points(direction, depth * (1 - 1e-6)))
    haze = depth * HAZE
    drawn = [c * light * (1 - haze) + low * haze for c, low in zip(colours, SKY_LOW, strict=True)]
    return [np.where(solid, c, s) for c, s in zip(drawn, draw_sky(direction), strict=True)]


def to_pixels(samples: Array) -> Array:
    """The mean of each pixel's samples."""
    parts = [samples[j::SAMPLES, i::SAMPLES] for j in range(SAMPLES) for i in range(SAMPLES)]
    total = np.zeros_like(parts[0])
    for part in parts:
        total = total + part
    return total / len(parts)


def draw() -> NDArray[np.uint8]:
    """The picture, (HEIGHT, WIDTH, 3), with gamma 2."""
    with np.errstate(divide="ignore"):
        linear = np.stack([to_pixels(channel) for channel in cast(view_rays())], axis=-1)
    return np.floor(np.sqrt(np.clip(linear, 0.0, 1.0)) * 255 + 0.5).astype(np.uint8)


def main(out: Path) -> None:
    """Write the picture as PNG."""
    Image.fromarray(draw()).save(out, optimize=True)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "examples/courtyard.png"))
