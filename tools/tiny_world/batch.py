"""Scenes as tensors: what `cast_torch` needs of them, padded to the same number of boxes."""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
import torch
from torch import Tensor

from tools.tiny_world.scene import EYE, MOST_BOXES, Box, Scene, placement


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SceneBatch:
    """B scenes, K boxes each, of which those with `valid` exist. float64, on the CPU."""

    placement: Tensor  # b 4 4
    half: Tensor  # b 2
    wall_top: Tensor  # b, its y
    tile: Tensor  # b
    stripe: Tensor  # b
    floor: Tensor  # b 2 3, as all colours from 0 to 1
    wall: Tensor  # b 2 3
    sky: Tensor  # b 2 3
    low: Tensor  # b k 3, corners of the boxes: x, y (down), z
    high: Tensor  # b k 3
    colour: Tensor  # b k 3
    valid: Tensor  # b k, bool

    def take(self, index: Tensor) -> "SceneBatch":
        """The scenes at some indices."""
        return SceneBatch(**{f.name: getattr(self, f.name)[index] for f in fields(self)})


def pack_scenes(scenes: Sequence[Scene]) -> SceneBatch:
    """The scenes in their order."""
    boxes = [_padded(scene.boxes) for scene in scenes]
    return SceneBatch(
        placement=torch.from_numpy(np.stack([placement(scene) for scene in scenes])),
        half=_numbers([scene.half for scene in scenes]),
        wall_top=_numbers([EYE - scene.wall_height for scene in scenes]),
        tile=_numbers([scene.tile for scene in scenes]),
        stripe=_numbers([scene.stripe for scene in scenes]),
        floor=_numbers([scene.palette.floor for scene in scenes]),
        wall=_numbers([scene.palette.wall for scene in scenes]),
        sky=_numbers([scene.palette.sky for scene in scenes]),
        low=_numbers([[_corner(box, -1) for box in row] for row in boxes]),
        high=_numbers([[_corner(box, 1) for box in row] for row in boxes]),
        colour=_numbers([[box.colour for box in row] for row in boxes]),
        valid=torch.tensor([[k < len(s.boxes) for k in range(MOST_BOXES)] for s in scenes]),
    )


def _padded(boxes: tuple[Box, ...]) -> list[Box]:
    return [*boxes, *[boxes[-1]] * (MOST_BOXES - len(boxes))]


def _corner(box: Box, sign: int) -> tuple[float, float, float]:
    (x, z), (dx, dz) = box.centre, box.half
    return x + sign * dx, EYE if sign > 0 else EYE - box.height, z + sign * dz


def _numbers(values: object) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)
