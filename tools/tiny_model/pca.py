"""Principal components of picture blocks: the best linear VAE, and where the real one starts.

A block is what one latent stands for: 8 frames of 32×32 pixels, or whatever the strides are. The
first latent of a clip stands for its first frame, repeated.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from sanawm_cli.configs import VaeConfig
from sanawm_cli.vae.encoder import repeat_first_frame
from sanawm_cli.vae.parts import depth_to_space, space_to_depth

OVERSAMPLING = 32  # directions followed besides those asked for
POWER_PASSES = 2
ROWS_AT_ONCE = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockPca:
    """Orthonormal directions of blocks in [-1, 1], widest first, and how wide they are.

    A block is a row of d = 3·t·h·w numbers in the order colour, time, height, width.
    """

    size: tuple[int, int, int]  # t h w of a block
    mean: Tensor  # d
    basis: Tensor  # d k
    deviations: Tensor  # k

    def encode(self, pixels: Tensor) -> Tensor:
        """Whitened components: b 3 t h w → b k t' h' w'."""
        folded = fold_clip(pixels, self.size).movedim(1, -1)  # b t' h' w' d
        latents = (folded - self.mean) @ (self.basis / self.deviations)
        return latents.movedim(-1, 1)

    def decode(self, latents: Tensor) -> Tensor:
        """Undoes `encode` as well as k components can: b k t' h' w' → b 3 t h w."""
        blocks = latents.movedim(1, -1) @ (self.basis * self.deviations).T + self.mean
        frames = depth_to_space(blocks.movedim(-1, 1), self.size)
        return frames[:, :, self.size[0] - 1 :]

    def to_tensors(self) -> dict[str, Tensor]:
        """All of it by name, for a file."""
        return {
            "size": torch.tensor(self.size),
            "mean": self.mean,
            "basis": self.basis,
            "deviations": self.deviations,
        }

    @classmethod
    def from_tensors(cls, tensors: dict[str, Tensor]) -> "BlockPca":
        """The components whose `to_tensors` is `tensors`."""
        t, h, w = tensors["size"].tolist()
        return cls(
            size=(t, h, w),
            mean=tensors["mean"],
            basis=tensors["basis"],
            deviations=tensors["deviations"],
        )


def block_size(config: VaeConfig) -> tuple[int, int, int]:
    """Frames, rows and columns of pixels that one latent stands for."""
    return config.temporal_stride, config.spatial_stride, config.spatial_stride


def fold_clip(pixels: Tensor, size: tuple[int, int, int]) -> Tensor:
    """b 3 t h w → b d t' h' w': each latent's block as channels. Keeps the dtype."""
    return space_to_depth(repeat_first_frame(pixels, size[0] - 1), size)


def block_rows(pixels: Tensor, size: tuple[int, int, int]) -> Tensor:
    """Every block of some clips as a row: b 3 t h w → n d."""
    return fold_clip(pixels, size).movedim(1, -1).flatten(0, -2)


def fit_pca(
    rows: Tensor, *, size: tuple[int, int, int], components: int, generator: torch.Generator
) -> BlockPca:
    """The leading components of uint8 rows, n d, by subspace iteration.

    The rows are read a few thousand at a time, so that they never stand in memory as floats; the
    d×d covariance is never formed.
    """
    mean = sum((part.sum(dim=0) for part in _parts(rows)), torch.zeros(())) / len(rows)
    width = min(components + OVERSAMPLING, *rows.shape)
    span = torch.randn(rows.shape[1], width, generator=generator)
    for _ in range(POWER_PASSES):
        span = torch.linalg.qr(span).Q
        # Rounding only turns the span a little, and bfloat16 is several times quicker.
        span = _through_covariance(rows, mean, span, torch.bfloat16)
    span = torch.linalg.qr(span).Q  # d m
    small = span.T @ _through_covariance(rows, mean, span, torch.float32)
    variances, turn = torch.linalg.eigh((small + small.T).double() / 2)  # narrowest first
    turn = turn.flip(1)[:, :components].float()
    deviations = variances.flip(0)[:components].clamp(min=1e-12).sqrt().float()
    return BlockPca(size=size, mean=mean, basis=span @ turn, deviations=deviations)


def to_unit(pixels: Tensor) -> Tensor:
    """uint8 → float32 in [-1, 1]."""
    return pixels.float().div_(127.5).sub_(1)


def psnr(pixels: Tensor, truth: Tensor) -> float:
    """Peak signal to noise in dB of pixels in [-1, 1], over everything that is given at once."""
    error = (pixels.clamp(-1, 1) - truth).square().mean()
    return float(10 * torch.log10(4 / error))


def _parts(rows: Tensor) -> Iterator[Tensor]:
    for start in range(0, len(rows), ROWS_AT_ONCE):
        yield to_unit(rows[start : start + ROWS_AT_ONCE])


def _through_covariance(rows: Tensor, mean: Tensor, span: Tensor, dtype: torch.dtype) -> Tensor:
    """Covariance of the rows times span, d m, multiplied in `dtype` and added up in float32."""
    total = torch.zeros_like(span).T  # m d
    for part in _parts(rows):
        centred = part.sub_(mean).to(dtype)
        total += (centred @ span.to(dtype)).T @ centred
    return total.T / len(rows)
