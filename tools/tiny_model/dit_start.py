"""The network before its first step."""

import math

import torch
from torch import Tensor

from sanawm_cli.model.dit import Network


def start_network(network: Network, seed: int) -> None:
    """Draw weights: residual branches start closed (zero last layers), norms at one.

    Decays start where a frame's state is half forgotten after about 20 latents, and key
    convolutions as the identity.
    """
    random = torch.Generator().manual_seed(seed)
    for name, weight in network.named_parameters():
        with torch.no_grad():
            weight.copy_(_drawn(name, weight, random))


def _drawn(name: str, like: Tensor, random: torch.Generator) -> Tensor:
    if name.endswith(("norm.weight", "norm_cam.weight")):
        return torch.ones_like(like)
    if name.endswith("A_log"):
        return torch.zeros_like(like)
    if name.endswith("dt_bias"):
        half_after_20 = math.log(2) / 20
        return torch.full_like(like, math.log(math.expm1(half_after_20)))
    if ".conv_k" in name:
        taps = torch.zeros_like(like)
        taps[..., -1] = 1
        return taps
    if name.endswith("scale_shift_table"):
        table = torch.zeros_like(like)
        table[2::3] = 1  # gates of mixer and feed-forward; the final layer's table has none
        return table
    closed = ("t_conv.weight", "final_layer.linear.weight", "t_block.1.weight")
    if name.endswith((".bias", *closed)) or like.dim() < 2:
        return torch.zeros_like(like)
    spread = like[0].numel() ** -0.5
    if name.endswith(("attn.proj.weight", "cross_attn.proj.weight", "point_conv.conv.weight")):
        spread *= 0.3
    return torch.randn(like.shape, generator=random) * spread
