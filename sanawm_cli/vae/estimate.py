"""What the VAE will weigh, known from its config alone. Torch-free: plans print these numbers."""

from collections.abc import Iterator
from math import prod

from sanawm_cli.configs import VaeConfig
from sanawm_cli.grid import FrameGrid
from sanawm_cli.vae.layout import KERNEL, RGB, decoder_stages, encoder_stages

TailShape = tuple[int, int, int, int, int]  # b c t h w


def parameter_count(config: VaeConfig) -> int:
    """Weights and biases of both networks; the latent statistics are buffers and not counted."""
    pixels, latents = RGB * config.patch**2, config.latent_channels
    coarsest = config.encoder_channels[-1]
    encoder = _conv(pixels, latents)
    for stage in encoder_stages(config):
        encoder += _residual(stage.inputs) * stage.layers
        encoder += _conv(stage.inputs, stage.outputs // stage.positions)
    encoder += _residual(coarsest) * config.encoder_layers[-1] + _conv(coarsest, latents + 1)

    stages = decoder_stages(config)
    decoder = _conv(latents, stages[0].inputs)
    decoder += _residual(stages[0].inputs) * config.decoder_layers[-1]
    for stage in stages:
        decoder += _conv(stage.inputs, stage.outputs * stage.positions)
        decoder += _residual(stage.outputs) * stage.layers
    return encoder + decoder + _conv(stages[-1].outputs, pixels)


def decoder_tail_shapes(config: VaeConfig, height: int, width: int) -> dict[str, TailShape]:
    """Name and shape of every tail in the decoder's memory, in running order, for one clip.

    height, width: of the picture, in pixels. Raises PlanError for a size off the latent grid.
    """
    h, w = _latent_size(config, height, width)
    stages = decoder_stages(config)

    def tail(channels: int) -> TailShape:
        return 1, channels, KERNEL - 1, h, w

    shapes = {"conv_in": tail(config.latent_channels)}
    for name in _resnet_convs("mid_block", config.decoder_layers[-1]):
        shapes[name] = tail(stages[0].inputs)
    for i, stage in enumerate(stages):
        shapes[f"up_blocks.{i}.upsamplers.0"] = tail(stage.inputs)
        h, w = h * stage.stride[1], w * stage.stride[2]
        for name in _resnet_convs(f"up_blocks.{i}", stage.layers):
            shapes[name] = tail(stage.outputs)
    shapes["conv_out"] = tail(stages[-1].outputs)
    return shapes


def decoder_memory_bytes(config: VaeConfig, height: int, width: int, itemsize: int) -> int:
    """Exact bytes of the decoder's memory for one clip of height × width pixels.

    `itemsize`: bytes per number in the decoder's dtype. While a chunk is decoded there are two
    memories, the one that went in and the one that comes out.
    """
    shapes = decoder_tail_shapes(config, height, width)
    return itemsize * sum(prod(shape) for shape in shapes.values())


def decoder_peak_bytes(
    config: VaeConfig, height: int, width: int, *, latents: int, itemsize: int
) -> int:
    """Estimated peak of the activations while one chunk of `latents` latents is decoded.

    At the published widths a convolution in a residual layer sees the most alive at once: the
    block's input, the layer's input, its activation, that with its tail in front, and that again
    with mirrored edges. A narrow decoder peaks when it puts the frames together. Weights, the two
    memories and the workspace of the convolution backend come on top.
    """
    t, (h, w) = latents, _latent_size(config, height, width)
    stages = decoder_stages(config)

    def padded(channels: int) -> int:
        return channels * (t + KERNEL - 1) * (h + KERNEL - 1) * (w + KERNEL - 1)

    def layer(channels: int) -> int:
        plain, tailed = channels * t * h * w, channels * (t + KERNEL - 1) * h * w
        return 2 * plain + tailed + padded(channels)

    coarse = stages[0].inputs * t * h * w
    peak = coarse + layer(stages[0].inputs)
    for stage in stages:
        before = padded(stage.inputs)
        t, h, w = t * stage.stride[0], h * stage.stride[1], w * stage.stride[2]
        fine = stage.outputs * t * h * w
        upsampling = coarse + fine + max(before, fine)
        peak = max(peak, upsampling, coarse + layer(stage.outputs))
        coarse = fine
    pixels = RGB * config.patch**2 * t * h * w
    return itemsize * max(peak, pixels + max(pixels, 2 * coarse + padded(stages[-1].outputs)))


def _latent_size(config: VaeConfig, height: int, width: int) -> tuple[int, int]:
    return FrameGrid(spatial_stride=config.spatial_stride).latent_size(height, width)


def _conv(inputs: int, outputs: int) -> int:
    return outputs * (inputs * KERNEL**3 + 1)


def _residual(width: int) -> int:
    return 2 * _conv(width, width)


def _resnet_convs(block: str, layers: int) -> Iterator[str]:
    for i in range(layers):
        yield from (f"{block}.resnets.{i}.conv1", f"{block}.resnets.{i}.conv2")
