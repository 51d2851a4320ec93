"""Operations shared by the encoder and the decoder. None of them has weights."""

import torch
import torch.nn.functional as F
from torch import Tensor

from sanawm_cli.configs import Stride

EPSILON = 1e-8


def activate(x: Tensor) -> Tensor:
    """SiLU of x / √(mean of x² over channels + ε). x: b c t h w."""
    scale = torch.rsqrt(x.square().mean(dim=1, keepdim=True) + EPSILON)  # b 1 t h w
    return F.silu(x * scale)


def space_to_depth(x: Tensor, stride: Stride) -> Tensor:
    """b c t h w → b (c st sh sw) t/st h/sh w/sw, c slowest."""
    b, c, t, h, w = x.shape
    st, sh, sw = stride
    x = x.reshape(b, c, t // st, st, h // sh, sh, w // sw, sw)
    return x.permute(0, 1, 3, 5, 7, 2, 4, 6).reshape(b, -1, t // st, h // sh, w // sw)


def depth_to_space(x: Tensor, stride: Stride) -> Tensor:
    """b (c st sh sw) t h w → b c t·st h·sh w·sw; undoes `space_to_depth`."""
    b, _, t, h, w = x.shape
    st, sh, sw = stride
    x = x.reshape(b, -1, st, sh, sw, t, h, w)
    return x.permute(0, 1, 5, 2, 6, 3, 7, 4).reshape(b, -1, t * st, h * sh, w * sw)


def patchify(x: Tensor, patch: int) -> Tensor:
    """b c t h w → b (c pw ph) t h/p w/p; the width offset is the slower one, unlike above."""
    b, c, t, h, w = x.shape
    x = x.reshape(b, c, t, h // patch, patch, w // patch, patch)
    return x.permute(0, 1, 6, 4, 2, 3, 5).reshape(b, -1, t, h // patch, w // patch)


def unpatchify(x: Tensor, patch: int) -> Tensor:
    """b (c pw ph) t h w → b c t h·p w·p; undoes `patchify`."""
    b, _, t, h, w = x.shape
    x = x.reshape(b, -1, patch, patch, t, h, w)
    return x.permute(0, 1, 4, 5, 3, 6, 2).reshape(b, -1, t, h * patch, w * patch)
