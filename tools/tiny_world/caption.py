"""What a scene is called: its palette and every box, also those out of view."""

from math import atan2, degrees, hypot, remainder, tau

import numpy as np

from tools.tiny_world.scene import Box, Scene

MOST_BYTES = 240  # UTF-8, for any scene
IN_VIEW, BEHIND = 36.0, 126.0  # degrees from the first view's heading

NUMBERS = {4: "Four", 5: "Five", 6: "Six", 7: "Seven"}
OPENINGS = (
    "A walled courtyard {words}.",
    "A courtyard {words}.",
    "{count} boxes stand in a courtyard {words}.",
)
PLACES = ("ahead", "left", "right", "behind")
NAMED = (
    ("Ahead: ", "Left: ", "Right: ", "Behind: "),
    ("In front ", "On the left ", "On the right ", "Behind "),
)


def caption(scene: Scene) -> str:
    """At most MOST_BYTES bytes, always the same for a scene. Nearer boxes come first."""
    random = np.random.default_rng((scene.seed, 2))
    opening = str(random.choice(OPENINGS))
    names = NAMED[random.integers(len(NAMED))]
    parts = [opening.format(words=scene.palette.words, count=NUMBERS[len(scene.boxes)])]
    boxes = sorted(scene.boxes, key=lambda box: hypot(*_from_start(scene, box)))
    for place, name in zip(PLACES, names, strict=True):
        there = [f"a {b.size} {b.colour_name} box" for b in boxes if place_of(scene, b) == place]
        if there:
            parts.append(f"{name}{', '.join(there)}.")
    return " ".join(parts)


def place_of(scene: Scene, box: Box) -> str:
    """Where the middle of a box is, seen from the start: one of PLACES."""
    x, z = _from_start(scene, box)
    angle = degrees(remainder(atan2(x, z) - scene.heading, tau))
    if abs(angle) <= IN_VIEW:
        return "ahead"
    if abs(angle) >= BEHIND:
        return "behind"
    return "right" if angle > 0 else "left"


def _from_start(scene: Scene, box: Box) -> tuple[float, float]:
    return box.centre[0] - scene.start[0], box.centre[1] - scene.start[1]
