"""Latents to frames, chunk by chunk.

Every layer takes (x, memory) and returns (y, memory): a convolution reads its own tail and puts the
next one in its place. Cutting a clip into other chunks changes nothing but rounding.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sanawm_cli.configs import VaeConfig
from sanawm_cli.vae.layout import KERNEL, RGB, Stage, decoder_stages
from sanawm_cli.vae.memory import DecoderMemory
from sanawm_cli.vae.parts import activate, depth_to_space, unpatchify

Streamed = tuple[Tensor, DecoderMemory]


class DecoderConv(nn.Module):
    """Causal convolution, the picture mirrored at its edges: b c t h w → b d t h w.

    `name` is its place in the memory. The frames before x are its tail there; at the clip's start
    they are the first frame, repeated.
    """

    def __init__(self, inputs: int, outputs: int, *, name: str) -> None:
        super().__init__()
        self.name = name
        self.conv = nn.Conv3d(inputs, outputs, KERNEL)

    def forward(self, x: Tensor, memory: DecoderMemory) -> Streamed:
        left = KERNEL - 1
        first = x[:, :, :1].expand(-1, -1, left, -1, -1)
        tail = memory.tails[self.name] if memory.started else first
        x = torch.cat((tail, x), dim=2)  # b c 2+t h w
        # A clone: a view would keep the whole chunk alive until the next one.
        memory = memory.with_tail(self.name, x[:, :, -left:].clone())
        x = F.pad(x, (1, 1, 1, 1, 0, 0), mode="reflect")  # b c 2+t h+2 w+2
        return self.conv(x), memory


class DecoderResnet(nn.Module):
    """x + conv(activate(conv(activate(x)))), b c t h w."""

    def __init__(self, width: int, *, name: str) -> None:
        super().__init__()
        self.conv1 = DecoderConv(width, width, name=f"{name}.conv1")
        self.conv2 = DecoderConv(width, width, name=f"{name}.conv2")

    def forward(self, x: Tensor, memory: DecoderMemory) -> Streamed:
        y, memory = self.conv1(activate(x), memory)
        y = activate(y)  # on its own line: conv1's output is freed before conv2 runs
        y, memory = self.conv2(y, memory)
        return x + y, memory


class Upsampler(nn.Module):
    """b c t h w → b d t·st h·sh w·sw, the input tiled over the convolution's channels and added.

    The first latent of a clip stands for one frame, so there the st - 1 frames in front of it go.
    """

    def __init__(self, stage: Stage, *, name: str) -> None:
        super().__init__()
        self.stride = stage.stride
        self.conv = DecoderConv(stage.inputs, stage.outputs * stage.positions, name=name)

    def forward(self, x: Tensor, memory: DecoderMemory) -> Streamed:
        y, memory = self.conv(x, memory)  # b (r c) t h w
        y = (y.unflatten(1, (-1, x.shape[1])) + x.unsqueeze(1)).flatten(1, 2)
        y = depth_to_space(y, self.stride)  # b d t·st h·sh w·sw
        return (y if memory.started else y[:, :, self.stride[0] - 1 :]), memory


class UpBlock(nn.Module):
    """A stage's upsampler, then its residual layers."""

    def __init__(self, stage: Stage, *, name: str) -> None:
        super().__init__()
        self.upsamplers = nn.ModuleList([Upsampler(stage, name=f"{name}.upsamplers.0")])
        self.resnets = nn.ModuleList(
            DecoderResnet(stage.outputs, name=f"{name}.resnets.{i}") for i in range(stage.layers)
        )

    def forward(self, x: Tensor, memory: DecoderMemory) -> Streamed:
        for layer in (*self.upsamplers, *self.resnets):
            x, memory = layer(x, memory)
        return x, memory


class DecoderMidBlock(nn.Module):
    """The residual layers at the coarsest scale."""

    def __init__(self, width: int, layers: int, *, name: str) -> None:
        super().__init__()
        self.resnets = nn.ModuleList(
            DecoderResnet(width, name=f"{name}.resnets.{i}") for i in range(layers)
        )

    def forward(self, x: Tensor, memory: DecoderMemory) -> Streamed:
        for layer in self.resnets:
            x, memory = layer(x, memory)
        return x, memory


class Decoder(nn.Module):
    """b c n h w → b 3 f h' w' and the memory after this chunk; n ≥ 1, h and w ≥ 2."""

    def __init__(self, config: VaeConfig) -> None:
        super().__init__()
        self.patch = config.patch
        stages = decoder_stages(config)
        width, pixels = stages[0].inputs, RGB * config.patch**2
        self.conv_in = DecoderConv(config.latent_channels, width, name="conv_in")
        self.mid_block = DecoderMidBlock(width, config.decoder_layers[-1], name="mid_block")
        self.up_blocks = nn.ModuleList(
            UpBlock(stage, name=f"up_blocks.{i}") for i, stage in enumerate(stages)
        )
        self.conv_out = DecoderConv(stages[-1].outputs, pixels, name="conv_out")

    def forward(self, latents: Tensor, memory: DecoderMemory) -> Streamed:
        x, memory = self.conv_in(latents, memory)
        for block in (self.mid_block, *self.up_blocks):
            x, memory = block(x, memory)
        x, memory = self.conv_out(activate(x), memory)
        return unpatchify(x, self.patch), DecoderMemory(memory.tails, started=True)
