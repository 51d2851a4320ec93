"""Drawing a courtyard from a seed."""

from collections.abc import Iterator
from math import cos, hypot, pi, sin

import numpy as np
from numpy.typing import NDArray

from tools.tiny_world.ground import FROM_BOX, gap_to_box, wall_ahead
from tools.tiny_world.look import BRIGHTEST
from tools.tiny_world.palettes import PALETTES, Colour, Palette
from tools.tiny_world.scene import MOST_BOXES, Box, Place, Scene

# The gap between boxes is wider than half a box: then nearer means in front (see `BoxForms`).
GAP = 0.26
ROOM_AHEAD = 1.9  # to the wall the walker faces at the start
TRIES = 200  # to place a box in view, before it may stand anywhere
LANE, LANE_LENGTH = 0.3, 1.3  # free of boxes ahead of the start: half of its width, its length

# Words for a box, with the range of its height and of half its sides. Never as high as the eye.
SIZES = {
    "low": ((0.15, 0.28), (0.12, 0.2)),
    "big": ((0.38, 0.5), (0.15, 0.2)),
    "tall": ((0.6, 0.8), (0.09, 0.13)),
}


def make_scene(seed: int) -> Scene:
    """The scene of a seed, always the same."""
    random = np.random.default_rng(seed)
    palette = _tinted(PALETTES[random.integers(len(PALETTES))], random)
    half = _pair(random.uniform(1.8, 2.8, 2))
    start, heading = _place_start(half, random)
    return Scene(
        seed=seed,
        palette=palette,
        half=half,
        wall_height=float(random.uniform(0.56, 0.86)),
        tile=float(random.choice([0.33, 0.5])),
        stripe=float(random.choice([0.33, 0.5, 0.66])),
        start=start,
        heading=heading,
        boxes=tuple(_place_boxes(half, start, heading, palette, random)),
    )


def _tinted(palette: Palette, random: np.random.Generator) -> Palette:
    """The palette with every colour a little off, so that no two scenes are quite alike."""

    def near(colour: Colour) -> Colour:
        r, g, b = np.clip(np.array(colour) + random.normal(0, 0.015, 3), 0, BRIGHTEST).tolist()
        return r, g, b

    def both(colours: tuple[Colour, Colour]) -> tuple[Colour, Colour]:
        return near(colours[0]), near(colours[1])

    return Palette(
        name=palette.name,
        words=palette.words,
        floor=both(palette.floor),
        wall=both(palette.wall),
        sky=both(palette.sky),
        boxes=tuple((name, near(colour)) for name, colour in palette.boxes),
    )


def _place_start(half: Place, random: np.random.Generator) -> tuple[Place, float]:
    """A place and a heading with a wide view."""
    while True:
        at = _pair(random.uniform(-0.65, 0.65, 2) * half)
        heading = float(random.uniform(-pi, pi))
        if min(wall_ahead(half, at, heading + turn) for turn in (-0.35, 0, 0.35)) > ROOM_AHEAD:
            return at, heading


def _place_boxes(
    half: Place,
    start: Place,
    heading: float,
    palette: Palette,
    random: np.random.Generator,
) -> Iterator[Box]:
    """4 to 7 boxes apart from each other, from the walls and from the lane ahead.

    Two in three stand in the first view or at its edge. Colours come again only when all are used.
    """
    colours = random.permutation(len(palette.boxes))
    placed: list[Box] = []
    count = int(random.integers(4, MOST_BOXES + 1))
    tries = 0
    while len(placed) < count:
        tries += 1
        in_view = 3 * len(placed) < 2 * count and tries <= TRIES
        name, colour = palette.boxes[colours[len(placed) % len(colours)]]
        size = str(random.choice(list(SIZES)))
        box = Box(
            centre=_ahead(start, heading, random) if in_view else _anywhere(half, random),
            half=_pair(random.uniform(*SIZES[size][1], 2)),
            height=float(random.uniform(*SIZES[size][0])),
            colour=colour,
            colour_name=name,
            size=size,
        )
        if _fits(box, half, start, heading, placed):
            placed.append(box)
            tries = 0
            yield box


def _ahead(start: Place, heading: float, random: np.random.Generator) -> Place:
    angle, distance = heading + random.uniform(-0.75, 0.75), random.uniform(0.8, 3.0)
    return start[0] + distance * sin(angle), start[1] + distance * cos(angle)


def _anywhere(half: Place, random: np.random.Generator) -> Place:
    return _pair(random.uniform(-1, 1, 2) * half)


def _fits(
    box: Box,
    half: Place,
    start: Place,
    heading: float,
    others: list[Box],
) -> bool:
    if any(abs(c) + h + 0.1 > size for c, h, size in zip(box.centre, box.half, half, strict=True)):
        return False
    if gap_to_box(box, start) < FROM_BOX + 0.2 or _in_lane(box, start, heading):
        return False
    return all(_apart(box, other) > GAP for other in others)


def _in_lane(box: Box, start: Place, heading: float) -> bool:
    x, z = box.centre[0] - start[0], box.centre[1] - start[1]
    forward = x * sin(heading) + z * cos(heading)
    aside = x * cos(heading) - z * sin(heading)
    radius = hypot(*box.half)
    return abs(aside) < LANE + radius and -radius < forward < LANE_LENGTH + radius


def _apart(box: Box, other: Box) -> float:
    """The gap between two boxes along the axis on which it is wider."""
    return max(
        abs(box.centre[axis] - other.centre[axis]) - box.half[axis] - other.half[axis]
        for axis in (0, 1)
    )


def _pair(values: NDArray[np.float64]) -> Place:
    return float(values[0]), float(values[1])
