"""Gated feed-forward with a 3×3 convolution in space and a 3-tap one in time."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from sanawm_cli.configs import NetworkConfig
from sanawm_cli.model.parts import Pointwise


class Named(nn.Module):
    """A child called `conv`, as the checkpoints name it."""

    def __init__(self, conv: nn.Module) -> None:
        super().__init__()
        self.conv = conv

    def forward(self, x: Tensor) -> Tensor:
        return self.conv(x)


class TemporalConvWeight(nn.Module):
    """Holder of the temporal convolution: a full c×c matrix for frames t−1, t, t+1, (c c 3 1)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(width, width, 3, 1))


class TemporalFFN(nn.Module):
    """f = point(a·SiLU(g)) per frame, then f + conv over time of f."""

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        width, hidden = config.width, config.ffn_hidden
        self.inverted_conv = Named(Pointwise(width, 2 * hidden, ones=2))
        self.depth_conv = Named(nn.Conv2d(2 * hidden, 2 * hidden, 3, padding=1, groups=2 * hidden))
        self.point_conv = Named(Pointwise(hidden, width, ones=2, bias=False))
        self.t_conv = TemporalConvWeight(width)

    def spatial(self, x: Tensor, size: tuple[int, int]) -> Tensor:
        """f of each frame on its own, (b t s c) → (b t s c)."""
        y = F.silu(self.inverted_conv(x))  # b t s 2h
        # Channels-last pictures: the tokens as they lie, no copy.
        picture = y.flatten(0, 1).unflatten(1, size).permute(0, 3, 1, 2)  # (b t) 2h rows columns
        y = self.depth_conv(picture).permute(0, 2, 3, 1).reshape(y.shape)
        a, g = y.chunk(2, -1)
        return self.point_conv(a * F.silu(g))

    def temporal(self, f: Tensor, tail: Tensor) -> Tensor:
        """f + conv(f); left of the chunk is `tail` (b 1 s c), right of it zeros."""
        line = torch.cat((tail.to(f.dtype), f, torch.zeros_like(tail, dtype=f.dtype)), 1)
        around = torch.cat((line[:, :-2], f, line[:, 2:]), -1)  # b t s 3c
        taps = self.t_conv.weight.squeeze(-1).permute(0, 2, 1).flatten(1)  # c 3c
        return f + F.linear(around, taps)

    def forward(self, x: Tensor, tail: Tensor, size: tuple[int, int]) -> tuple[Tensor, Tensor]:
        """x: b t s c. Returns the result and the tail after this chunk."""
        f = self.spatial(x, size)
        return self.temporal(f, tail), f[:, -1:]
