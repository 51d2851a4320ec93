"""What conditions a forward pass, computed once for as long as it holds: clip, chunk or step."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from sanawm_cli.model.memory import KeyValue
from sanawm_cli.model.rays import RayTransforms
from sanawm_cli.model.rope import Rotation


@dataclass(frozen=True, slots=True)
class TextContext:
    """A prompt as every block's cross-attention reads it; holds for the whole clip.

    mask: (b 1 1 l) bool, True where there is text; None when no row has padding.
    """

    blocks: tuple[KeyValue, ...]  # each b h l d
    mask: Tensor | None


@dataclass(frozen=True, slots=True)
class TimeVectors:
    """The noise level of each frame: b t c, and 6 modulation vectors b t 6 c. b may be 1."""

    embedding: Tensor
    modulation: Tensor


@dataclass(frozen=True, slots=True)
class TimeTable:
    """`TimeVectors` of the few integer timesteps a render uses; holds for the whole render."""

    timesteps: tuple[int, ...]
    vectors: TimeVectors  # 1 len(timesteps) …

    def frames(self, timesteps: Sequence[int]) -> TimeVectors:
        """The vectors of a chunk whose frames are at these timesteps."""
        rows = torch.tensor(
            [self.timesteps.index(t) for t in timesteps], device=self.vectors.embedding.device
        )
        return TimeVectors(
            self.vectors.embedding.index_select(1, rows),
            self.vectors.modulation.index_select(1, rows),
        )


@dataclass(frozen=True, slots=True)
class CameraInputs:
    """The camera of a chunk as numbers: raymap (b t 20), Plücker map (b 48 t h w)."""

    raymap: Tensor
    plucker: Tensor


@dataclass(frozen=True, slots=True)
class CameraContext:
    """The camera of a chunk as the blocks read it."""

    rays: RayTransforms
    rotation: Rotation  # of the half head that keeps positions
    plucker: Tensor  # b t s c, embedded


@dataclass(frozen=True, slots=True)
class ChunkContext:
    """Everything but noise level and memory that conditions a chunk; holds for all its steps."""

    text: TextContext
    rotation: Rotation
    camera: CameraContext | None
    size: tuple[int, int]  # rows and columns of tokens per latent
