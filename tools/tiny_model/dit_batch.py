"""Batches for the network: latents, cameras and captions of random clips."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from sanawm_cli.camera.intrinsics import Intrinsics, to_latent_units
from sanawm_cli.camera.rays import plucker_map, raymap
from sanawm_cli.model.context import CameraInputs
from tools.tiny_model.latents import Shard
from tools.tiny_world.lens import HEIGHT, WIDTH, intrinsics

STRIDE = 32


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Clips in one tensor each: latents b c t h w float32, the camera of all their latents."""

    latents: Tensor
    camera: CameraInputs
    captions: list[str]


def collate(shards: Sequence[Shard], picks: Sequence[tuple[int, int]]) -> Batch:
    """The clips at (shard, row) as one batch."""
    latents = torch.stack([shards[s].latents[row] for s, row in picks]).float()
    rows, columns = HEIGHT // STRIDE, WIDTH // STRIDE
    lens = to_latent_units(
        Intrinsics(values=np.array([intrinsics()]), source="flag"),
        target=(WIDTH, HEIGHT),
        latent=(columns, rows),
    )
    maps, pluckers = [], []
    for s, row in picks:
        poses = shards[s].poses[row]
        count = latents.shape[2]
        maps.append(raymap(poses, lens, latents=range(count)))
        pluckers.append(plucker_map(poses, lens, start=0, stop=count, height=rows, width=columns))
    camera = CameraInputs(torch.from_numpy(np.stack(maps)), torch.from_numpy(np.stack(pluckers)))
    return Batch(latents, camera, [shards[s].captions[row] for s, row in picks])
