"""Short pieces of walks through the tiny world, as the VAE is trained and measured on them."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from tools.tiny_world.batch import pack_scenes
from tools.tiny_world.cast_torch import cast
from tools.tiny_world.clip import HELD_OUT, make_clip
from tools.tiny_world.lens import HEIGHT, WIDTH, intrinsics

WALK_FRAMES = 97
GRID = 32  # crops begin on the latent grid, where cells of whole pictures begin


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """The size of a piece: so many frames of a walk, of whole pictures or of a part of them."""

    frames: int
    height: int = HEIGHT
    width: int = WIDTH

    @property
    def pixels(self) -> int:
        """Pixels of all frames together."""
        return self.frames * self.height * self.width


def cut_piece(seed: int, cut: Cut, random: np.random.Generator) -> Tensor:
    """3 t h w uint8: a piece from a random place of the seed's walk.

    Only the pixels of the piece are rendered: the camera's centre is moved instead.
    """
    clip = make_clip(seed, frames=WALK_FRAMES)
    start = int(random.integers(WALK_FRAMES - cut.frames + 1))
    top = GRID * int(random.integers((HEIGHT - cut.height) // GRID + 1))
    left = GRID * int(random.integers((WIDTH - cut.width) // GRID + 1))
    fx, fy, cx, cy = intrinsics()
    frames = cast(
        pack_scenes([clip.scene]),
        torch.from_numpy(clip.poses[None, start : start + cut.frames]),
        height=cut.height,
        width=cut.width,
        lens=(fx, fy, cx - left, cy - top),
    )
    return frames[0].permute(3, 0, 1, 2)


def training_batch(index: int, *, count: int, cut: Cut, seed: int) -> Tensor:
    """b 3 t h w uint8: pieces of `count` walks, the same for the same index and seed."""
    random = np.random.default_rng((seed, index))
    seeds = random.integers(HELD_OUT, size=count).tolist()
    return torch.stack([cut_piece(walk, cut, random) for walk in seeds])


def held_out_batch(*, count: int, cut: Cut) -> Tensor:
    """b 3 t h w uint8: pieces of walks that nothing is trained on, always the same."""
    random = np.random.default_rng(HELD_OUT)
    return torch.stack([cut_piece(HELD_OUT + i, cut, random) for i in range(count)])
