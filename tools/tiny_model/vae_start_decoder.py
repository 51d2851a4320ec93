"""The decoder as linear PCA, in closed form: what training starts from.

Latents are whitened components. Each upsampler's centre taps write, for every position inside a
coarse cell, that position's pixels in the best shared basis for the next scale. Nothing is learned
from data: the latents' covariance is the identity, and so every later covariance is known.
"""

from dataclasses import dataclass
from math import sqrt

import torch
from torch import Tensor, nn

from sanawm_cli.configs import Stride
from sanawm_cli.vae.decoder import Decoder, DecoderResnet, Upsampler
from sanawm_cli.vae.layout import RGB
from tools.tiny_model.pca import BlockPca

CENTRE = (2, 1, 1)  # the causal kernel's last tap is now
# The one channel that is the same everywhere: so large beside the others that the last
# normalisation divides by nearly the same number at every place. Negative, for SiLU all but removes
# it then; otherwise the layers that follow would see little else.
CONSTANT = -30.0
UNUSED_SCALE = 0.1  # of the drawn weights of channels that carry nothing at the start


@dataclass(frozen=True, slots=True, kw_only=True)
class Cells:
    """How features stand for the pixels of a cell: pixels = basis·u + offset.

    `moment` is the mean of u·uᵀ.
    """

    basis: Tensor  # 3 t h w k
    offset: Tensor  # 3 t h w
    moment: Tensor  # k k

    @property
    def pixel_square(self) -> Tensor:
        """Mean of |u|², where the basis is orthonormal also of the squared pixels of a cell."""
        return self.moment.diagonal().sum()

    def split(self, stride: Stride) -> tuple[Tensor, Tensor]:
        """Basis p d k and offset p d of the p cells that one is cut into."""
        return _split(self.basis, stride), _split(self.offset[..., None], stride)[..., 0]


@torch.no_grad()
def start_decoder(decoder: Decoder, pca: BlockPca) -> None:
    """Write weights with which the decoder gives `pca.decode` of its latents, nearly.

    Channels that the linear map leaves unused keep a little of the weights they were drawn with,
    and the second convolution of every residual layer is zero.
    """
    _silence_residuals(decoder)
    pass_through(decoder.conv_in.conv, len(pca.deviations))
    cells = _whole_block(pca)
    upsamplers = [m for m in decoder.modules() if isinstance(m, Upsampler)]
    for upsampler in upsamplers[:-1]:
        cells = _start_upsampler(upsampler, cells, paired=False)
    cells = _start_upsampler(upsamplers[-1], cells, paired=True)
    _start_output(decoder.conv_out.conv, cells)


def _whole_block(pca: BlockPca) -> Cells:
    wide = pca.basis * pca.deviations  # d k
    return Cells(
        basis=wide.unflatten(0, (RGB, *pca.size)),
        offset=pca.mean.unflatten(0, (RGB, *pca.size)),
        moment=torch.eye(wide.shape[1]),
    )


def _start_upsampler(upsampler: Upsampler, cells: Cells, *, paired: bool) -> Cells:
    """Set the centre taps; returns how the finer features stand for pixels.

    `paired`: each feature is followed, a group later, by its negative, and then by the constant.
    """
    stride, conv = upsampler.stride, upsampler.conv.conv
    bases, offsets = cells.split(stride)  # p d k, p d
    outputs = conv.out_channels // len(bases)
    finer = best_basis(bases, offsets, cells.moment, (outputs - 1) // 2 if paired else outputs)
    maps = torch.einsum("dj,pdk->jpk", finer, bases)
    shifts = torch.einsum("dj,pd->jp", finer, offsets)
    if paired:
        maps, shifts = _with_negatives(maps), _with_negatives(shifts)
        maps = torch.cat((maps, torch.zeros_like(maps[:1])))
        shifts = torch.cat((shifts, torch.full_like(shifts[:1], CONSTANT)))
    _write_maps(upsampler, maps, shifts)
    count = finer.shape[1]
    seen = torch.einsum("jpk,kl,ipl->ji", maps[:count], cells.moment, maps[:count])
    moment = (seen + shifts[:count] @ shifts[:count].T) / len(bases)
    size = [whole // part for whole, part in zip(cells.offset.shape[1:], stride, strict=True)]
    basis = finer.unflatten(0, (RGB, *size))
    return Cells(basis=basis, offset=torch.zeros(basis.shape[:-1]), moment=moment)


def best_basis(bases: Tensor, offsets: Tensor, moment: Tensor, count: int) -> Tensor:
    """The `count` orthonormal directions that hold most of the pixels of all positions: d count.

    bases: p d k, offsets: p d, moment: k k, of features whose mean is zero or whose offset is.
    """
    root = torch.linalg.cholesky(moment + 1e-6 * torch.eye(len(moment)) * moment.diagonal().mean())
    spread = torch.cat((bases @ root, offsets[..., None]), dim=2)  # p d k+1
    directions = torch.linalg.svd(spread.movedim(0, 1).flatten(1), full_matrices=False).U
    return directions[:, :count]


def _write_maps(upsampler: Upsampler, maps: Tensor, shifts: Tensor) -> None:
    """maps: features, positions, inputs. Output channels run features first, positions fastest."""
    conv = upsampler.conv.conv
    features, positions, inputs = maps.shape
    used = features * positions
    conv.weight.mul_(UNUSED_SCALE)
    conv.bias.zero_()
    conv.weight[:used] = 0
    conv.weight[(slice(used), slice(inputs), *CENTRE)] = maps.flatten(0, 1)
    conv.bias[:used] = shifts.flatten()
    # The layer adds its input, tiled over the output channels: take that away again.
    channel = torch.arange(conv.out_channels)
    conv.weight[(channel, channel % conv.in_channels, *CENTRE)] -= 1


def _start_output(conv: nn.Conv3d, cells: Cells) -> None:
    """Undo normalisation and pairing: SiLU(x) - SiLU(-x) = x."""
    basis = cells.basis.squeeze(1).permute(0, 2, 1, 3).flatten(0, 2)  # (3 w h) k, as unpatchify
    count = basis.shape[1]
    square = (CONSTANT**2 + 2 * float(cells.pixel_square)) / conv.in_channels
    conv.weight.mul_(UNUSED_SCALE)
    conv.bias.zero_()
    conv.weight[:, : 2 * count + 1] = 0
    conv.weight[(slice(None), slice(count), *CENTRE)] = basis * sqrt(square)
    conv.weight[(slice(None), slice(count, 2 * count), *CENTRE)] = -basis * sqrt(square)


def pass_through(conv: nn.Conv3d, count: int) -> None:
    """The first `count` output channels are the input channels, unchanged."""
    conv.weight.mul_(UNUSED_SCALE)
    conv.bias.zero_()
    conv.weight[:count] = 0
    conv.weight[(slice(count), slice(count), *CENTRE)] = torch.eye(count)


def _silence_residuals(network: nn.Module) -> None:
    for module in network.modules():
        if isinstance(module, DecoderResnet):
            module.conv2.conv.weight.zero_()
            module.conv2.conv.bias.zero_()


def _with_negatives(values: Tensor) -> Tensor:
    return torch.cat((values, -values))


def _split(cell: Tensor, stride: Stride) -> Tensor:
    """3 t h w k → p (3 t' h' w') k, positions in the order time, height, width."""
    colours, t, h, w, k = cell.shape
    st, sh, sw = stride
    parts = cell.reshape(colours, st, t // st, sh, h // sh, sw, w // sw, k)
    return parts.permute(1, 3, 5, 0, 2, 4, 6, 7).reshape(st * sh * sw, -1, k)
