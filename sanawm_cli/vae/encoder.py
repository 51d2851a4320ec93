"""Frames to latents. Reads a whole clip, most often one picture, so it carries no memory."""

import torch
from torch import Tensor, nn

from sanawm_cli.configs import VaeConfig
from sanawm_cli.vae.layout import KERNEL, RGB, Stage, encoder_stages
from sanawm_cli.vae.parts import activate, patchify, space_to_depth


def repeat_first_frame(x: Tensor, times: int) -> Tensor:
    """x: b c t h w, with its first frame `times` more times in front."""
    return torch.cat((x[:, :, :1].expand(-1, -1, times, -1, -1), x), dim=2)


class EncoderConv(nn.Module):
    """Causal convolution, zeros around the picture: b c t h w → b d t h w."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.conv = nn.Conv3d(inputs, outputs, KERNEL, padding=(0, KERNEL // 2, KERNEL // 2))

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.conv(repeat_first_frame(x, KERNEL - 1))
        return y


class EncoderResnet(nn.Module):
    """x + conv(activate(conv(activate(x)))), b c t h w."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv1 = EncoderConv(width, width)
        self.conv2 = EncoderConv(width, width)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.conv2(activate(self.conv1(activate(x))))
        return x + y


class Downsampler(nn.Module):
    """b c t h w → b d ⌈t/st⌉ h/sh w/sw, plus the input folded alike and averaged to d channels."""

    def __init__(self, stage: Stage) -> None:
        super().__init__()
        self.stride = stage.stride
        self.conv = EncoderConv(stage.inputs, stage.outputs // stage.positions)

    def forward(self, x: Tensor) -> Tensor:
        x = repeat_first_frame(x, self.stride[0] - 1)
        y = space_to_depth(self.conv(x), self.stride)  # b d t/st h/sh w/sw
        folded = space_to_depth(x, self.stride)  # b (d g) t/st h/sh w/sw
        return y + torch.unflatten(folded, 1, (y.shape[1], -1)).mean(dim=2)


class DownBlock(nn.Module):
    """A stage's residual layers, then its downsampler."""

    def __init__(self, stage: Stage) -> None:
        super().__init__()
        self.resnets = nn.ModuleList(EncoderResnet(stage.inputs) for _ in range(stage.layers))
        self.downsamplers = nn.ModuleList([Downsampler(stage)])

    def forward(self, x: Tensor) -> Tensor:
        for layer in (*self.resnets, *self.downsamplers):
            x = layer(x)
        return x


class EncoderMidBlock(nn.Module):
    """The residual layers at the coarsest scale."""

    def __init__(self, width: int, layers: int) -> None:
        super().__init__()
        self.resnets = nn.ModuleList(EncoderResnet(width) for _ in range(layers))

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.resnets:
            x = layer(x)
        return x


class Encoder(nn.Module):
    """b 3 t h w → b (latent channels + 1) t' h' w': the posterior's mean, then one log-variance."""

    def __init__(self, config: VaeConfig) -> None:
        super().__init__()
        self.patch = config.patch
        width = config.encoder_channels[-1]
        self.conv_in = EncoderConv(RGB * config.patch**2, config.latent_channels)
        self.down_blocks = nn.ModuleList(DownBlock(stage) for stage in encoder_stages(config))
        self.mid_block = EncoderMidBlock(width, config.encoder_layers[-1])
        self.conv_out = EncoderConv(width, config.latent_channels + 1)

    def forward(self, pixels: Tensor) -> Tensor:
        x = self.conv_in(patchify(pixels, self.patch))
        for block in self.down_blocks:
            x = block(x)
        y: Tensor = self.conv_out(activate(self.mid_block(x)))
        return y
