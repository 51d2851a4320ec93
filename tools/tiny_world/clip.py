"""A clip: a scene, a walk through it and a caption, all from one seed."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sanawm_cli.camera.kinematics import roll_out
from tools.tiny_world.caption import caption
from tools.tiny_world.layout import make_scene
from tools.tiny_world.scene import Scene
from tools.tiny_world.walk import RULES, action_string, random_walk

HELD_OUT = 9_000_000  # seeds from here on are for measuring: nothing is trained on them


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Clip:
    """`poses` (frames, 4, 4) float32, camera-to-world, are what the renderer makes of `action`."""

    scene: Scene
    action: str
    poses: NDArray[np.float32]
    caption: str


def make_clip(seed: int, *, frames: int = 97) -> Clip:
    """The clip of a seed, always the same; of another length, another walk in the same scene."""
    scene = make_scene(seed)
    walk = random_walk(scene, frames=frames, random=np.random.default_rng((seed, 1)))
    return Clip(
        scene=scene,
        action=action_string(walk),
        poses=roll_out(walk, RULES).poses,
        caption=caption(scene),
    )
