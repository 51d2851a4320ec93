"""The encoder as linear PCA, as nearly as its shape allows: what training starts from.

Only centre taps are used. The first downsamplers keep the widest directions of what they see, the
last ones those directions that the latents can best be told from, and the output is fitted.
"""

from collections.abc import Callable, Sequence
from math import prod

import torch
from torch import Tensor, nn

from sanawm_cli.configs import Stride
from sanawm_cli.vae.encoder import (
    DownBlock,
    Downsampler,
    Encoder,
    EncoderResnet,
    repeat_first_frame,
)
from sanawm_cli.vae.parts import activate, patchify, space_to_depth
from tools.tiny_model.pca import BlockPca
from tools.tiny_model.vae_start_decoder import CENTRE, pass_through

# Beside this channel the others are small, so that SiLU after normalisation is nearly linear. It
# is negative as in the decoder.
CONSTANT = -100.0
TELLING_SCALE = 10.0  # of the direction that tells most
LOG_VARIANCE = -6.0
CLIPS_AT_ONCE = 4
SAMPLE = 16  # clips that show a fine scale's widest directions
WIDEST_FIT = 5000  # numbers per latent from which it can be fitted
RIDGE = 1e-4  # of mean power, for directions
OUTPUT_RIDGE = 1e-9


@torch.no_grad()
def start_encoder(encoder: Encoder, pca: BlockPca, pixels: Tensor) -> float:
    """Write weights with which the encoder gives `pca.encode(pixels)`, b 3 t h w, as it can.

    Returns R² of the pixels that the latents stand for. The log-variance is constant.
    """
    _silence_residuals(encoder)
    pass_through(encoder.conv_in.conv, encoder.conv_in.conv.in_channels)
    latents = _rows(_in_parts([pca.encode], pixels), (1, 1, 1))[:, 0]  # n k
    target = latents * pca.deviations  # errors count as they do in pixels
    blocks = [block for block in encoder.down_blocks if isinstance(block, DownBlock)]
    samplers = [sampler for block in blocks for sampler in _downsamplers(block)]
    x = pixels
    layers: list[Callable[[Tensor], Tensor]] = [
        lambda part: patchify(part, encoder.patch),
        encoder.conv_in,
    ]
    for i, (block, sampler) in enumerate(zip(blocks, samplers, strict=True)):
        last = i == len(blocks) - 1
        count = sampler.conv.conv.out_channels - last
        cell = _total_stride(samplers[i:])
        if prod(cell) * sampler.conv.conv.in_channels > WIDEST_FIT:
            directions = widest_directions(_in_parts(layers, x[:SAMPLE]), count)
        else:
            x, layers = _in_parts(layers, x), []
            directions = telling_directions(_rows(x, cell), target, count)
        _write_directions(sampler.conv.conv, directions, constant=last)
        layers.append(block)
    hidden = activate(encoder.mid_block(_in_parts(layers, x)))
    return _fit_output(encoder.conv_out.conv, _rows(hidden, (1, 1, 1))[:, 0], latents, pca)


def widest_directions(x: Tensor, count: int) -> Tensor:
    """The `count` uncentred principal directions of channels, widest first: count c."""
    rows = x.movedim(1, -1).flatten(0, -2).double()
    directions = torch.linalg.eigh(rows.T @ rows / len(rows)).eigenvectors  # narrowest first
    return directions.T.flip(0)[:count].float()


def telling_directions(cells: Tensor, target: Tensor, count: int) -> Tensor:
    """Directions of channels from which `target`, n k, is best predicted: count c.

    cells: n p c, the p positions of each target's cell, which share the directions. What tells
    more is larger, by the root of its effect: a downsampler adds means of its input to all that it
    puts out, and so to each channel something that is small beside it.
    """
    weights = ridge_fit(cells.flatten(1), target, RIDGE)[:-1].unflatten(0, cells.shape[1:])
    rows = cells.flatten(0, 1)
    root, inverse_root = _square_roots((rows.T @ rows).double() / len(rows))
    effect = weights.movedim(2, 1).flatten(0, 1).double() @ root  # (p k) c
    power, directions = torch.linalg.eigh(effect.T @ effect)
    scale = (power / power[-1]).clamp(min=1e-12) ** 0.25
    return (TELLING_SCALE * (directions * scale).T.flip(0)[:count] @ inverse_root).float()


def ridge_fit(inputs: Tensor, target: Tensor, ridge: float) -> Tensor:
    """Least-squares weights, the last row for a constant 1: (inputs n d, target n k) → d+1 k."""
    ones = inputs.new_ones(len(inputs), 1)
    inputs = torch.cat((inputs, ones), dim=1)
    gram = (inputs.T @ inputs).double()
    gram += ridge * gram.diagonal().mean() * torch.eye(len(gram), dtype=gram.dtype)
    return torch.linalg.solve(gram, (inputs.T @ target).double()).float()


def _fit_output(conv: nn.Conv3d, hidden: Tensor, latents: Tensor, pca: BlockPca) -> float:
    weights = ridge_fit(hidden, latents, OUTPUT_RIDGE)
    count = latents.shape[1]
    conv.weight.zero_()
    conv.bias.zero_()
    conv.weight[(slice(count), slice(None), *CENTRE)] = weights[:-1].T
    conv.bias[:count] = weights[-1]
    conv.bias[count:] = LOG_VARIANCE
    missed = (hidden @ weights[:-1] + weights[-1] - latents) * pca.deviations
    spread = (latents - latents.mean(dim=0)) * pca.deviations
    return float(1 - missed.square().sum() / spread.square().sum())


def _write_directions(conv: nn.Conv3d, directions: Tensor, *, constant: bool) -> None:
    count = len(directions)
    conv.weight.zero_()
    conv.bias.zero_()
    conv.weight[(slice(count), slice(None), *CENTRE)] = directions
    if constant:
        conv.bias[count] = CONSTANT


def _rows(x: Tensor, cell: Stride) -> Tensor:
    """b c t h w → n p c: the positions of each cell, cells in the order of the latents."""
    folded = space_to_depth(repeat_first_frame(x, cell[0] - 1), cell)  # b (c p) t' h' w'
    return folded.movedim(1, -1).flatten(0, 3).unflatten(1, (x.shape[1], -1)).transpose(1, 2)


def _in_parts(layers: Sequence[Callable[[Tensor], Tensor]], x: Tensor) -> Tensor:
    """All layers over a few clips at a time: their insides are far larger than their ends."""
    parts = []
    for part in x.split(CLIPS_AT_ONCE):
        for layer in layers:
            part = layer(part)
        parts.append(part)
    return torch.cat(parts)


def _square_roots(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """Symmetric square root of a positive matrix and, where it is not nearly 0, its inverse."""
    power, directions = torch.linalg.eigh(matrix)
    power = power.clamp(min=float(power[-1]) * 1e-6)
    return (directions * power.sqrt()) @ directions.T, (directions * power.rsqrt()) @ directions.T


def _downsamplers(block: DownBlock) -> list[Downsampler]:
    return [layer for layer in block.downsamplers if isinstance(layer, Downsampler)]


def _total_stride(samplers: Sequence[Downsampler]) -> Stride:
    t, h, w = (prod(sampler.stride[axis] for sampler in samplers) for axis in range(3))
    return t, h, w


def _silence_residuals(network: nn.Module) -> None:
    for module in network.modules():
        if isinstance(module, EncoderResnet):
            module.conv2.conv.weight.zero_()
            module.conv2.conv.bias.zero_()
