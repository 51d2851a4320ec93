"""One block of the network: mixer, rays, cross-attention, feed-forward."""

from dataclasses import replace
from typing import cast

import torch
from torch import Tensor, nn

from sanawm_cli.configs import BlockKind, NetworkConfig
from sanawm_cli.model.context import ChunkContext, TimeVectors
from sanawm_cli.model.cross import CrossAttention
from sanawm_cli.model.ffn import TemporalFFN
from sanawm_cli.model.memory import BlockMemory, KeyValue
from sanawm_cli.model.mixers import DeltaMixer, SoftmaxMixer
from sanawm_cli.model.parts import Linear, Modulation, wide


class Block(nn.Module):
    """A residual block; `kind` decides how its tokens mix and what it remembers."""

    def __init__(self, config: NetworkConfig, kind: BlockKind) -> None:
        super().__init__()
        self.scale_shift_table = nn.Parameter(torch.empty(6, config.width))
        self.attn = DeltaMixer(config) if kind == "delta" else SoftmaxMixer(config)
        self.plucker_proj = Linear(config.width, config.width)
        self.cross_attn = CrossAttention(config)
        self.mlp = TemporalFFN(config)

    def forward(
        self, x: Tensor, time: TimeVectors, context: ChunkContext, text: KeyValue, past: BlockMemory
    ) -> tuple[Tensor, BlockMemory]:
        """x: b t s c. Returns x and the block's memory of this chunk."""
        mix, ffn = self.modulation(time)
        x, seen = self.attend(x, mix, context, text, past)  # b t s c
        y, tail = self.mlp(ffn.enter(x), past.ffn_tail, context.size)  # b t s c, b 1 s c
        return ffn.leave(x, y), replace(seen, ffn_tail=tail)

    def remember(
        self, x: Tensor, time: TimeVectors, context: ChunkContext, text: KeyValue, past: BlockMemory
    ) -> BlockMemory:
        """The memory that `forward` returns, without what only its output needs."""
        mix, ffn = self.modulation(time)
        x, seen = self.attend(x, mix, context, text, past)
        tail = self.mlp.spatial(ffn.enter(x)[:, -1:], context.size)
        return replace(seen, ffn_tail=tail)

    def attend(
        self, x: Tensor, mix: Modulation, context: ChunkContext, text: KeyValue, past: BlockMemory
    ) -> tuple[Tensor, BlockMemory]:
        """Everything before the feed-forward."""
        y, seen = cast(tuple[Tensor, BlockMemory], self.attn(mix.enter(x), past, context))
        x = mix.leave(x, y)
        if context.camera is not None:
            x = x + self.plucker_proj(context.camera.plucker)
        return x + self.cross_attn(x, text, context.text.mask), seen

    def modulation(self, time: TimeVectors) -> tuple[Modulation, Modulation]:
        """Shift, scale and gate per frame, for the mixer and for the feed-forward."""
        table = wide(self.scale_shift_table) + wide(time.modulation)  # b t 6 c
        vectors = [v[:, :, None] for v in table.unbind(2)]  # b t 1 c each
        return Modulation(*vectors[:3]), Modulation(*vectors[3:])
