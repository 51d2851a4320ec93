"""The camera of a clip from its poses, chunk by chunk."""

from dataclasses import dataclass

import torch

from sanawm_cli.camera.intrinsics import IntrinsicRows
from sanawm_cli.camera.poses import Poses
from sanawm_cli.camera.rays import plucker_map, raymap
from sanawm_cli.model.context import CameraInputs


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PathCamera:
    """Poses (F, 4, 4) and intrinsics (F or 1, 4) in latent units; `size` rows and columns.

    The numbers of a chunk are made from its own poses when it is asked for: nothing grows with
    the length of the clip.
    """

    poses: Poses
    intrinsics: IntrinsicRows
    size: tuple[int, int]
    temporal_stride: int
    device: torch.device

    def chunk(self, start: int, stop: int) -> CameraInputs:
        """Camera of latents [start, stop), batch 1."""
        rows, columns = self.size
        stride = self.temporal_stride
        poses = raymap(self.poses, self.intrinsics, latents=range(start, stop), stride=stride)
        plucker = plucker_map(
            self.poses,
            self.intrinsics,
            start=start,
            stop=stop,
            height=rows,
            width=columns,
            stride=stride,
        )
        return CameraInputs(
            torch.from_numpy(poses)[None].to(self.device),
            torch.from_numpy(plucker)[None].to(self.device),
        )
