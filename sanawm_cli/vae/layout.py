"""How a VaeConfig becomes stages. Torch-free: both the networks and the estimates use them."""

from dataclasses import dataclass
from math import prod

from sanawm_cli.configs import Stride, VaeConfig
from sanawm_cli.errors import WeightsError

RGB = 3
KERNEL = 3  # of every convolution, in time, height and width


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Residual layers at one scale, and the resampling beside them.

    An encoder stage has its layers at `inputs` channels and goes down to `outputs` after them; a
    decoder stage goes up from `inputs` first and has its layers at `outputs` channels.
    """

    inputs: int
    outputs: int
    layers: int
    stride: Stride

    @property
    def positions(self) -> int:
        """Fine positions per coarse one."""
        return prod(self.stride)


def encoder_stages(config: VaeConfig) -> tuple[Stage, ...]:
    """The encoder's stages, finest first.

    Raises WeightsError when the channels, layers and strides do not fit each other.
    """
    channels = config.encoder_channels
    _expect_counts("encoder", channels, config.encoder_layers, config.encoder_strides)
    widths = (config.latent_channels, *channels[:-1])
    stages = tuple(
        Stage(inputs=i, outputs=o, layers=n, stride=s)
        for i, o, n, s in zip(
            widths, channels, config.encoder_layers[:-1], config.encoder_strides, strict=True
        )
    )
    for stage in stages:
        if stage.outputs % stage.positions or stage.inputs * stage.positions % stage.outputs:
            raise WeightsError(
                f"VAE config: the encoder cannot go from {stage.inputs} to {stage.outputs} channels"
                f" with stride {stage.stride}"
            )
    return stages


def decoder_stages(config: VaeConfig) -> tuple[Stage, ...]:
    """The decoder's stages, coarsest first.

    Channels and layers are listed finest first, as published; strides and factors are not.
    Raises WeightsError when the channels, layers and strides do not fit each other.
    """
    channels = config.decoder_channels[::-1]
    _expect_counts("decoder", channels, config.decoder_layers, config.decoder_strides)
    _expect_counts("decoder", channels, config.decoder_layers, config.decoder_factors)
    stages = tuple(
        Stage(inputs=c, outputs=c // f, layers=n, stride=s)
        for c, n, s, f in zip(
            channels,
            config.decoder_layers[-2::-1],
            config.decoder_strides,
            config.decoder_factors,
            strict=True,
        )
    )
    needed = (*channels[1:], stages[-1].outputs)
    for stage, outputs, factor in zip(stages, needed, config.decoder_factors, strict=True):
        folds = stage.inputs % stage.positions == 0 and stage.positions % factor == 0
        if not folds or stage.outputs != outputs:
            raise WeightsError(
                f"VAE config: the decoder cannot go from {stage.inputs} to {outputs} channels"
                f" with stride {stage.stride} and factor {factor}"
            )
    return stages


def _expect_counts(
    network: str,
    channels: tuple[int, ...],
    layers: tuple[int, ...],
    strides: tuple[Stride, ...] | tuple[int, ...],
) -> None:
    if not channels or len(strides) != len(channels) or len(layers) != len(channels) + 1:
        raise WeightsError(
            f"VAE config: the {network} has {len(channels)} channel counts, {len(layers)} layer"
            f" counts and {len(strides)} strides; expected n, n + 1 and n"
        )
