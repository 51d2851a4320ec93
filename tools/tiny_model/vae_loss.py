"""What the VAE is trained to make small."""

import torch
import torch.nn.functional as F
from torch import Tensor

SLOPE_WEIGHT = 0.5
COARSE_WEIGHT = 0.5
CHANGE_WEIGHT = 0.25
SPREAD_WEIGHT = 0.01
COARSE = 4  # pixels


def picture_loss(pixels: Tensor, truth: Tensor) -> Tensor:
    """Distance of float32 frames, b 3 t h w: L1 + L2, and L1 of slopes, of means, of changes.

    Slopes are sharp edges, means of 4×4 pixels colours, changes from frame to frame motion.
    """
    error = pixels - truth
    loss = error.abs().mean() + error.square().mean()
    slopes = _change(error, -1) + _change(error, -2)
    coarse = F.avg_pool3d(error, (1, COARSE, COARSE)).abs().mean()
    loss = loss + SLOPE_WEIGHT * slopes + COARSE_WEIGHT * coarse
    return loss + CHANGE_WEIGHT * _change(error, 2) if error.shape[2] > 1 else loss


def spread_loss(latents: Tensor) -> Tensor:
    """How far each channel of b c t h w is from mean square 1, weighted."""
    power = latents.float().square().mean(dim=(0, 2, 3, 4))
    return SPREAD_WEIGHT * (power - 1).square().mean()


def _change(x: Tensor, axis: int) -> Tensor:
    return torch.diff(x, dim=axis).abs().mean()
