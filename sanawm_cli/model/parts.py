"""Small parts the network is made of: norms, products with published weight shapes, modulation."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

LAYER_NORM_EPS = 1e-6
QK_NORM_EPS = 1e-5
CROSS_NORM_EPS = 1e-6
TEXT_NORM_EPS = 1e-5


def wide(x: Tensor) -> Tensor:
    """`x` in at least float32: norms, gates, rotations and scans lose too much in 16 bits."""
    return x.float() if x.dtype in (torch.bfloat16, torch.float16) else x


class RMSNorm(nn.Module):
    """x·rsqrt(mean(x²) + eps)·weight over the last axis; returns at least float32."""

    def __init__(self, channels: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(channels))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        x = wide(x)
        return F.rms_norm(x, x.shape[-1:], self.weight.to(x.dtype), self.eps)


class Pointwise(nn.Module):
    """A linear map over the last axis whose weight is stored in the shape of a 1×…×1 convolution.

    The published checkpoints keep these as convolutions, with `ones` trailing axes of length 1.
    """

    def __init__(self, inputs: int, outputs: int, *, ones: int, bias: bool = True) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(outputs, inputs, *([1] * ones)))
        self.bias = nn.Parameter(torch.empty(outputs)) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x.to(self.weight.dtype), self.weight.flatten(1), self.bias)


class Projection(nn.Module):
    """A `Pointwise` under the name `proj`, as the checkpoints' embedders have it."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.proj = Pointwise(inputs, outputs, ones=3)

    def forward(self, x: Tensor) -> Tensor:
        return self.proj(x)


class Linear(nn.Linear):
    """`nn.Linear` that takes its input in any precision and computes in the weight's."""

    def forward(self, input: Tensor) -> Tensor:
        return F.linear(input.to(self.weight.dtype), self.weight, self.bias)


@dataclass(frozen=True, slots=True)
class Modulation:
    """Adaptive layer norm of one half of a block: vectors per frame, each (b t 1 c)."""

    shift: Tensor
    scale: Tensor
    gate: Tensor

    def enter(self, x: Tensor) -> Tensor:
        """LN(x)·(1 + scale) + shift for x (b t s c), in the precision of x."""
        return modulated_norm(x, self.shift, self.scale)

    def leave(self, x: Tensor, y: Tensor) -> Tensor:
        """x + gate·y, in the precision of x."""
        return torch.addcmul(wide(x), self.gate, wide(y)).to(x.dtype)


def modulated_norm(x: Tensor, shift: Tensor, scale: Tensor) -> Tensor:
    """LN(x)·(1 + scale) + shift without affine weights, eps 1e-6, in the precision of x."""
    normed = F.layer_norm(wide(x), x.shape[-1:], eps=LAYER_NORM_EPS)
    return torch.addcmul(shift, normed, 1 + scale).to(x.dtype)
