"""Rotary positions over (time, row, column).

A head of d channels has d/2 rotated pairs (2i, 2i+1): the first t turn with the latent's index in
the whole clip, the next d//6 with its row, the last d//6 with its column.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from sanawm_cli.model.parts import wide


@dataclass(frozen=True, slots=True)
class Rotation:
    """cos and sin of every token's angles, (n 1 pairs) float32, ready to broadcast over heads."""

    cos: Tensor
    sin: Tensor

    def apply(self, x: Tensor) -> Tensor:
        """Turn the pairs of x (b n h 2·pairs); returns at least float32."""
        a, b = wide(x).unflatten(-1, (-1, 2)).unbind(-1)
        return torch.stack((a * self.cos - b * self.sin, a * self.sin + b * self.cos), -1).flatten(
            -2
        )

    def inverse(self) -> "Rotation":
        """The rotation that undoes this one."""
        return Rotation(self.cos, -self.sin)


def axis_pairs(channels: int) -> tuple[int, int, int]:
    """How many of `channels`/2 pairs belong to time, rows and columns."""
    space = channels // 6
    return channels // 2 - 2 * space, space, space


def _angles(positions: Tensor, pairs: int, base_pairs: int) -> Tensor:
    """positions (m,) → (m, pairs): position·10000^(−j/base_pairs) for the first `pairs` j."""
    exponents = torch.arange(pairs, dtype=torch.float64, device=positions.device) / base_pairs
    return positions[:, None] * torch.pow(10000.0, -exponents)


def rotation(
    head_dim: int, channels: int, latents: range, size: tuple[int, int], device: torch.device
) -> Rotation:
    """Rotation of `channels` ≤ `head_dim` channels for tokens frame by frame, row by row.

    Frequencies are those of the whole head. The camera branch rotates head_dim/2 channels with
    the same tables cut short (upstream behaviour), which is what `channels` is for.
    Angles are float64: positions are indices in the whole clip and may be large.
    """
    rows, columns = size
    lengths = (len(latents), rows, columns)
    starts = (latents.start, 0, 0)
    parts = []
    for axis, (pairs, base) in enumerate(
        zip(axis_pairs(channels), axis_pairs(head_dim), strict=True)
    ):
        positions = torch.arange(lengths[axis], dtype=torch.float64, device=device) + starts[axis]
        shape = [1, 1, 1, pairs]
        shape[axis] = lengths[axis]
        parts.append(_angles(positions, pairs, base).view(shape).expand(*lengths, pairs))
    angles = torch.cat(parts, -1).flatten(0, 2)[:, None]  # n 1 pairs
    return Rotation(angles.cos().float(), angles.sin().float())
