"""The courtyard and what stands in it.

Scene axes: x and z along the walls, y down, the origin at eye height over the courtyard's centre.
The unit is such that the walker's 0.025 per frame is a stroll.
"""

from dataclasses import dataclass
from math import cos, sin

import numpy as np
from numpy.typing import NDArray

from tools.tiny_world.palettes import Colour, Palette

EYE = 1 / 3  # height of the eye over the floor
MOST_BOXES = 7
Place = tuple[float, float]  # x and z


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """A box on the floor: centre (x, z), half of its sides along x and z, height, colour."""

    centre: tuple[float, float]
    half: tuple[float, float]
    height: float
    colour: Colour
    colour_name: str
    size: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A courtyard |x| ≤ half[0], |z| ≤ half[1], and where the walk in it starts.

    `tile` and `stripe` are the widths of a floor tile and of a wall stripe. `heading` is the
    first view's angle from +z to +x, in radians.
    """

    seed: int
    palette: Palette
    half: tuple[float, float]
    wall_height: float
    tile: float
    stripe: float
    start: tuple[float, float]
    heading: float
    boxes: tuple[Box, ...]


def placement(scene: Scene) -> NDArray[np.float64]:
    """(4, 4): from the axes of the first pose to those of the scene."""
    c, s = cos(scene.heading), sin(scene.heading)
    x, z = scene.start
    return np.array([[c, 0, s, x], [0, 1, 0, 0], [-s, 0, c, z], [0, 0, 0, 1]], np.float64)
