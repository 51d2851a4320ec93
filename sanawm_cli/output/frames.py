"""Decoded pictures to uint8 frames: the one place where numbers become pixels.

The same uint8 frames feed the MP4, the hashes, golden files and metrics.
"""

from hashlib import sha256

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sanawm_cli.errors import NumericsError


def to_frames(pictures: Tensor, *, where: str) -> NDArray[np.uint8]:
    """Frames (t, h, w, 3) of pictures (1, 3, t, h, w) in [-1, 1]: round((x + 1)·127.5), clamped.

    Computed in float32; a value halfway between two levels goes to the even one. `where` names
    the stretch in the message, as in "chunk 3". Raises NumericsError on NaN and Inf.
    """
    batch, channels, *_ = pictures.shape
    if pictures.ndim != 5 or (batch, channels) != (1, 3):
        raise ValueError(f"expected pictures (1, 3, t, h, w), got {tuple(pictures.shape)}")
    x = pictures.detach()[0].to(torch.float32)  # 3 t h w
    _check_finite(x, where=where)
    levels = ((x + 1.0) * 127.5).round().clamp(0.0, 255.0).to(torch.uint8)
    frames: NDArray[np.uint8] = levels.permute(1, 2, 3, 0).contiguous().cpu().numpy()  # t h w 3
    return frames


def _check_finite(x: Tensor, *, where: str) -> None:
    """`x` is 3 t h w."""
    wrong = ~torch.isfinite(x)
    if not wrong.any():
        return
    first = int(wrong.flatten(2).any(dim=2).any(dim=0).int().argmax())
    raise NumericsError(
        f"{where}: {int(wrong.sum())} of {x.numel()} decoded values are NaN or Inf, "
        f"the first in frame {first} of {x.shape[1]}",
        hint="render in float32; if it stays, the model's tensors are damaged",
    )


def frame_hash(frames: NDArray[np.uint8]) -> str:
    """Hexadecimal sha256 of raw frames (t, h, w, 3), row by row."""
    return sha256(np.ascontiguousarray(frames).data).hexdigest()
