"""Distances on the ground plan."""

from math import cos, hypot, inf, sin

from tools.tiny_world.scene import EYE, Box, Place, Scene

FROM_WALL, FROM_BOX = 0.4, 0.25  # a walker keeps so far away


def wall_ahead(half: Place, at: Place, heading: float) -> float:
    """How far it is to the wall from a point inside, in the direction of a heading."""
    way = (sin(heading), cos(heading))
    reach = (
        (size - position * (1 if step > 0 else -1)) / max(abs(step), 1e-9)
        for size, position, step in zip(half, at, way, strict=True)
    )
    return min(reach)


def gap_to_box(box: Box, at: Place) -> float:
    """Distance from a point to the upright sides of a box; negative inside."""
    dx, dz = (abs(p - c) - h for p, c, h in zip(at, box.centre, box.half, strict=True))
    return hypot(max(dx, 0), max(dz, 0)) if max(dx, dz) > 0 else max(dx, dz)


def is_clear(scene: Scene, at: Place) -> bool:
    """Whether a walker may be there."""
    from_walls = min(size - abs(place) for size, place in zip(scene.half, at, strict=True))
    return from_walls >= FROM_WALL and all(gap_to_box(box, at) >= FROM_BOX for box in scene.boxes)


def sight(scene: Scene, at: Place, heading: float) -> float:
    """How far it is ahead to the wall or to a box that is as high as the eye."""
    in_the_way = (_reach(box, at, heading) for box in scene.boxes if box.height >= EYE)
    return min(wall_ahead(scene.half, at, heading), *in_the_way, inf)


def view_depth(scene: Scene, at: Place, heading: float) -> float:
    """How deep a view is: the mean of what lies ahead, a little to the left and to the right."""
    return sum(sight(scene, at, heading + turn) for turn in (-0.35, 0, 0.35)) / 3


def _reach(box: Box, at: Place, heading: float) -> float:
    """Distance ahead to a box, from outside of it; infinity if it is not in the way."""
    near, far = 0.0, inf
    for place, centre, half, step in zip(
        at, box.centre, box.half, (sin(heading), cos(heading)), strict=True
    ):
        step = step if abs(step) > 1e-9 else 1e-9
        ends = sorted(((centre - half - place) / step, (centre + half - place) / step))
        near, far = max(near, ends[0]), min(far, ends[1])
    return near if near < far else inf
