"""Everything a rollout is conditioned on, as tensors."""

import hashlib
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from sanawm_cli.model.context import CameraInputs


class CameraSource(Protocol):
    """Where a rollout gets the camera of a chunk."""

    def chunk(self, start: int, stop: int) -> CameraInputs:
        """Camera of latents [start, stop)."""
        ...


@dataclass(frozen=True, slots=True)
class TensorCamera:
    """A camera whose numbers for the whole clip lie in memory: b t 20 and b 48 t h w."""

    raymap: Tensor
    plucker: Tensor

    def chunk(self, start: int, stop: int) -> CameraInputs:
        """Camera of latents [start, stop)."""
        return CameraInputs(self.raymap[:, start:stop], self.plucker[:, :, start:stop])


@dataclass(frozen=True, slots=True)
class TextEmbeds:
    """An encoded prompt: embeds b l c; mask b l, True where there is text."""

    embeds: Tensor
    mask: Tensor


@dataclass(frozen=True, slots=True)
class Clip:
    """What a clip is made from.

    first_latent: the first frame, encoded and normalised, b c 1 h w float32.
    text:         the prompt.
    negative:     the negative prompt, None when guidance is off.
    camera:       None when the network's camera branch is off.
    """

    first_latent: Tensor
    text: TextEmbeds
    negative: TextEmbeds | None
    camera: CameraSource | None


def guided_text(text: TextEmbeds, negative: TextEmbeds) -> TextEmbeds:
    """[negative, positive] as one batch; the shorter is padded with masked zeros."""
    length = max(text.embeds.shape[1], negative.embeds.shape[1])
    rows = [_padded(negative, length), _padded(text, length)]
    return TextEmbeds(torch.cat([r.embeds for r in rows]), torch.cat([r.mask for r in rows]))


def _padded(text: TextEmbeds, length: int) -> TextEmbeds:
    missing = length - text.embeds.shape[1]
    return TextEmbeds(
        torch.nn.functional.pad(text.embeds, (0, 0, 0, missing)),
        torch.nn.functional.pad(text.mask.bool(), (0, missing)),
    )


def tensor_fingerprint(*tensors: Tensor) -> str:
    """sha256 over shapes, dtypes and values."""
    digest = hashlib.sha256()
    for tensor in tensors:
        digest.update(f"{tuple(tensor.shape)}{tensor.dtype}".encode())
        digest.update(tensor.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()
