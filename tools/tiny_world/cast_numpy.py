"""One picture, ray by ray: the reference that `cast_torch` is compared with. Plain, not quick.

One ray per pixel, through its centre. Everything in the world is bounded by planes that run along
an axis, and the *inverse* distance at which a ray meets such a plane is linear in the pixel's
coordinates. Two facts follow. Every edge in the picture is a line on which a linear function is
zero, so the share of a pixel on its one side is known without more rays (`share`). And textures are
averaged over the pixel in closed form, for its footprint on a plane is known exactly (`stripes`).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tools.tiny_world import look
from tools.tiny_world.ground import gap_to_box
from tools.tiny_world.lens import HEIGHT, WIDTH, Intrinsics, intrinsics
from tools.tiny_world.palettes import Colour
from tools.tiny_world.scene import EYE, Box, Scene, placement

Array = NDArray[np.float64]
TINY = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Linear:
    """A function linear in pixel coordinates: its values (H, W), and its change per pixel."""

    at: Array
    right: float
    down: float

    def __add__(self, other: "Linear") -> "Linear":
        return Linear(
            at=self.at + other.at, right=self.right + other.right, down=self.down + other.down
        )

    def __sub__(self, other: "Linear") -> "Linear":
        return self + other * -1

    def __mul__(self, factor: float) -> "Linear":
        return Linear(at=self.at * factor, right=self.right * factor, down=self.down * factor)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class View:
    """The eye, and the directions of all rays, in the axes of the scene."""

    eye: Array
    toward: tuple[Linear, Linear, Linear]
    length: Array  # of the directions

    def inverse_distance(self, axis: int, plane: float) -> Linear:
        """1 / t with which eye + t · direction meets a plane; negative behind the eye."""
        gap = plane - float(self.eye[axis])
        return self.toward[axis] * (1 / (gap if abs(gap) > TINY else TINY))


def cast(
    scene: Scene,
    pose: NDArray[np.floating],
    *,
    height: int = HEIGHT,
    width: int = WIDTH,
    lens: Intrinsics | None = None,
) -> NDArray[np.uint8]:
    """(H, W, 3): the scene seen from `pose` (4, 4), camera-to-world from the first pose."""
    lens = lens or intrinsics(width=width, height=height)
    view = look_from(placement(scene) @ pose, lens, height=height, width=width)
    picture = sky(scene, view)
    below = share(view.toward[1])
    picture = blend(picture, floor(scene, view), below)
    for wall in range(4):
        colours, cover = upright_wall(scene, view, wall)
        picture = blend(picture, colours, cover)
    for box in sorted(scene.boxes, key=lambda box: -gap_to_box(box, (view.eye[0], view.eye[2]))):
        colours, cover = solid(box, view)
        picture = blend(picture, colours, cover)
    return np.floor(picture * 255 + 0.5).astype(np.uint8)


def look_from(pose: Array, lens: Intrinsics, *, height: int, width: int) -> View:
    """The view of a camera-to-scene pose."""
    fx, fy, cx, cy = lens
    y, x = np.mgrid[:height, :width] + 0.5
    x, y = (x - cx) / fx, (y - cy) / fy
    turn = pose[:3, :3]
    a, b, c = (
        Linear(
            at=turn[i, 0] * x + turn[i, 1] * y + turn[i, 2],
            right=turn[i, 0] / fx,
            down=turn[i, 1] / fy,
        )
        for i in range(3)
    )
    return View(eye=pose[:3, 3], toward=(a, b, c), length=np.sqrt(x**2 + y**2 + 1))


def share(edge: Linear, *, spare: float = 0.0) -> Array:
    """How much of each pixel lies where a linear function is positive, or `spare` pixels beyond."""
    steepness = max(abs(edge.right) + abs(edge.down), 1e-12)
    return np.clip(edge.at / steepness + 0.5 + spare, 0, 1)


def blend(under: Array, over: Array, cover: Array) -> Array:
    """Pictures (H, W, 3) mixed by a cover (H, W)."""
    return under + (over - under) * cover[..., None]


def stripes(along: Linear, inverse: Linear, period: float) -> Array:
    """A wave of stripes, +1 and −1 in turn, averaged over each pixel's footprint on a plane.

    The place on the plane is along / inverse; `period` is the width of a pair of stripes.
    """
    distance = 1 / np.maximum(inverse.at, look.LEAST_INVERSE)
    place = along.at * distance
    right = (along.right - place * inverse.right) * distance
    down = (along.down - place * inverse.down) * distance
    footprint = np.maximum((np.abs(right) + np.abs(down)) / period, TINY)
    low, high = place / period - footprint / 2, place / period + footprint / 2
    # The way to the nearest integer is what the wave, one period long, integrates to.
    return (np.abs(high - np.rint(high)) - np.abs(low - np.rint(low))) / footprint


def two_tone(colours: tuple[Colour, Colour], wave: Array, light: Array) -> Array:
    """(H, W, 3): the first colour where the wave is +1, the second where it is −1."""
    first, second = np.array(colours)
    mixed = (first + second) / 2 + (first - second) / 2 * wave[..., None]
    return np.asarray(mixed * light[..., None])


def sky(scene: Scene, view: View) -> Array:
    """Pale at the horizon, deeper above."""
    rise = np.clip(-look.SKY_RISE * view.toward[1].at / view.length, 0, 1)
    horizon, zenith = np.array(scene.palette.sky)
    return np.asarray(horizon + (zenith - horizon) * rise[..., None])


def floor(scene: Scene, view: View) -> Array:
    """A checker board, darker along the walls."""
    inverse = view.inverse_distance(1, EYE)
    wave = np.ones_like(inverse.at)
    edge = np.full_like(inverse.at, np.inf)
    for axis, half in zip((0, 2), scene.half, strict=True):
        along = inverse * float(view.eye[axis]) + view.toward[axis]
        wave *= stripes(along, inverse, 2 * scene.tile)
        edge = np.minimum(
            edge, half - np.abs(along.at / np.maximum(inverse.at, look.LEAST_INVERSE))
        )
    light = ramp(edge / look.EDGE_WIDTH, look.FLOOR_EDGE)
    return two_tone(scene.palette.floor, wave, light)


def ramp(way: Array, start: float) -> Array:
    """From `start` where `way` is 0 to 1 where it is 1, flat beyond."""
    return np.asarray(start + (1 - start) * np.clip(way, 0, 1))


def upright_wall(scene: Scene, view: View, wall: int) -> tuple[Array, Array]:
    """Colours and cover of one of the walls +x, +z, −x, −z, which are painted in this order.

    A wall reaches a little under the neighbour that is painted later, so that no gap opens.
    """
    inverses = [
        view.inverse_distance(axis, sign * scene.half[axis // 2])
        for sign in (1, -1)
        for axis in (0, 2)
    ]
    inverse, axis = inverses[wall], (0, 2)[wall % 2]
    top = EYE - scene.wall_height
    cover = np.minimum(share(above(view, inverse, EYE)), 1 - share(above(view, inverse, top)))
    for neighbour in ((wall - 1) % 4, (wall + 1) % 4):
        edge = inverse - inverses[neighbour]
        cover = np.minimum(cover, share(edge, spare=look.LAP if neighbour > wall else 0))

    light = ramp(1 - drop(view, inverse.at) / EYE, look.WALL_FOOT) * look.LIGHT[axis][wall // 2]
    light *= 1 - (1 - look.CORNICE_LIGHT) * share(above(view, inverse, top + look.CORNICE))
    along = inverse * float(view.eye[2 - axis]) + view.toward[2 - axis]
    wave = stripes(along, inverse, 2 * scene.stripe)
    return two_tone(scene.palette.wall, wave, light), cover


def above(view: View, inverse: Linear, y: float) -> Linear:
    """Positive where a ray is above height `y` when it meets the plane of `inverse`."""
    return inverse * (y - float(view.eye[1])) - view.toward[1]


def drop(view: View, inverse: Array) -> Array:
    """The y at which rays of a given inverse distance end."""
    return np.asarray(view.eye[1] + view.toward[1].at / np.maximum(inverse, look.LEAST_INVERSE))


def solid(box: Box, view: View) -> tuple[Array, Array]:
    """Colours and cover of a box: it is hit where each near face is met before every far face."""
    low = (box.centre[0] - box.half[0], EYE - box.height, box.centre[1] - box.half[1])
    high = (box.centre[0] + box.half[0], EYE, box.centre[1] + box.half[1])
    near: dict[int, Linear] = {}
    far: list[tuple[int, Linear]] = []
    light: dict[int, float] = {}
    for axis in range(3):
        faces = [view.inverse_distance(axis, corner[axis]) for corner in (low, high)]
        if low[axis] <= view.eye[axis] <= high[axis]:  # a ray may leave by either
            far += [(axis, face) for face in faces]
            continue
        side = int(view.eye[axis] > high[axis])
        near[axis] = faces[side]
        far.append((axis, faces[1 - side]))
        light[axis] = look.LIGHT_ABOVE if axis == 1 else look.LIGHT[axis][side]
    cover = np.min([share(n - f) for i, n in near.items() for j, f in far if i != j], axis=0)

    # The near face that is met last is the one that is seen.
    axes = sorted(near, key=lambda axis: axis == 1)
    tone, inverse = np.full_like(view.length, light[axes[0]]), near[axes[0]].at
    for i, axis in enumerate(axes[1:], start=1):
        seen = np.min([share(near[other] - near[axis]) for other in axes[:i]], axis=0)
        tone += (light[axis] - tone) * seen
        inverse = np.minimum(inverse, near[axis].at)
    tone *= ramp((EYE - drop(view, inverse)) / look.BOX_RISE, look.BOX_FOOT)
    return np.array(box.colour) * tone[..., None], cover
