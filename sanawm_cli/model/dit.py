"""The diffusion transformer of streaming SANA-WM.

Two verbs: `velocity` reads the past and returns the prediction, `absorb` returns the memory of
a finished chunk. Neither changes anything.
"""

import math
from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn

from sanawm_cli.configs import NetworkConfig
from sanawm_cli.model.block import Block
from sanawm_cli.model.context import (
    CameraContext,
    CameraInputs,
    ChunkContext,
    TextContext,
    TimeTable,
    TimeVectors,
)
from sanawm_cli.model.cross import TextEmbedder, text_context
from sanawm_cli.model.memory import AttentionMemory, BlockMemory, DeltaMemory, KeyValue, Past
from sanawm_cli.model.parts import (
    TEXT_NORM_EPS,
    Linear,
    Projection,
    RMSNorm,
    modulated_norm,
    wide,
)
from sanawm_cli.model.rays import ray_transforms
from sanawm_cli.model.rope import rotation

PLUCKER_CHANNELS = 48
TIME_FREQUENCIES = 128


class TimeEmbedder(nn.Module):
    """Integer timesteps → vectors: 256-wide sinusoid, then Linear, SiLU, Linear."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.mlp = nn.Sequential(
            Linear(2 * TIME_FREQUENCIES, width), nn.SiLU(), Linear(width, width)
        )

    def forward(self, timesteps: Tensor) -> Tensor:
        """b t int64 → b t c."""
        # float32 angles, as upstream: at timestep 1000 the rounding of a frequency shows in the
        # network's output. The exponential of the float32 exponent is rounded once, from
        # float64: libraries' float32 exp differ in the last bit from machine to machine.
        steps = torch.arange(TIME_FREQUENCIES, dtype=torch.float32, device=timesteps.device)
        exponents = -math.log(10000.0) * steps / TIME_FREQUENCIES
        frequencies = torch.exp(exponents.double()).float()
        angles = timesteps[..., None].float() * frequencies
        return self.mlp(torch.cat((angles.cos(), angles.sin()), -1))


class FinalLayer(nn.Module):
    """Modulated norm and the projection back to latent channels."""

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        self.scale_shift_table = nn.Parameter(torch.empty(2, config.width))
        self.linear = Linear(config.width, config.latent_channels)

    def forward(self, x: Tensor, time: TimeVectors) -> Tensor:
        """b t s c → b t s latent_channels."""
        table = wide(self.scale_shift_table) + wide(time.embedding)[:, :, None]  # b t 2 c
        shift, scale = (v[:, :, None] for v in table.unbind(2))
        return self.linear(modulated_norm(x, shift, scale))


class Network(nn.Module):
    """Streaming SANA-WM. Parameter names are those of the published checkpoints."""

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        self.config = config
        width = config.width
        self.x_embedder = Projection(config.latent_channels, width)
        self.t_embedder = TimeEmbedder(width)
        self.t_block = nn.Sequential(nn.SiLU(), Linear(width, 6 * width))
        self.y_embedder = TextEmbedder(config)
        self.attention_y_norm = RMSNorm(width, TEXT_NORM_EPS)
        self.plucker_embedder = Projection(PLUCKER_CHANNELS, width)
        self.blocks = nn.ModuleList(Block(config, kind) for kind in config.kinds)
        self.final_layer = FinalLayer(config)

    @property
    def layers(self) -> list[Block]:
        """The blocks, in order."""
        return [cast(Block, block) for block in self.blocks]

    @property
    def dtype(self) -> torch.dtype:
        """Precision of the products."""
        return self.x_embedder.proj.weight.dtype

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.x_embedder.proj.weight.device

    # --- conditioning: once per clip, render, chunk ------------------------------------------

    def text_context(self, embeds: Tensor, mask: Tensor) -> TextContext:
        """embeds (b l text_channels) and mask (b l), 1 = text → what cross-attention reads."""
        text = self.attention_y_norm(self.y_embedder(embeds)).to(self.dtype)
        return text_context(text, mask.bool(), [block.cross_attn for block in self.layers])

    def time_vectors(self, timesteps: Tensor) -> TimeVectors:
        """Integer timesteps per frame (b t) → their vectors."""
        embedding = self.t_embedder(timesteps)
        modulation = self.t_block(embedding).unflatten(-1, (6, -1))
        return TimeVectors(embedding, modulation)

    def time_table(self, timesteps: Sequence[int]) -> TimeTable:
        """The vectors of a render's few timesteps, to be looked up frame by frame."""
        unique = tuple(sorted(set(timesteps)))
        return TimeTable(unique, self.time_vectors(torch.tensor([unique], device=self.device)))

    def chunk_context(
        self,
        text: TextContext,
        camera: CameraInputs | None,
        *,
        latents: range,
        size: tuple[int, int],
    ) -> ChunkContext:
        """Everything that holds for all steps of the chunk of these latents."""
        head = self.config.head_dim
        seen = None
        if camera is not None:
            plucker = self.plucker_embedder(self.tokens(camera.plucker))
            seen = CameraContext(
                ray_transforms(camera.raymap, size),
                rotation(head, head // 2, latents, size, self.device),
                plucker,
            )
        return ChunkContext(text, rotation(head, head, latents, size, self.device), seen, size)

    # --- the two verbs ------------------------------------------------------------------------

    def velocity(self, x: Tensor, time: TimeVectors, context: ChunkContext, past: Past) -> Tensor:
        """Predicted velocity of the noisy latents x (b c t h w), in the precision of x."""
        tokens = self.x_embedder(self.tokens(x))  # b t s c
        for index, block in enumerate(self.layers):
            text = context.text.blocks[index]
            tokens, _ = block(tokens, time, context, text, past.block(index))
        out = self.final_layer(tokens, time)  # b t s latent_channels
        return out.movedim(-1, 1).unflatten(-1, context.size).to(x.dtype)

    def absorb(
        self, x: Tensor, time: TimeVectors, context: ChunkContext, past: Past
    ) -> tuple[BlockMemory, ...]:
        """Memory of the clean chunk x (b c t h w), whose `time` is timestep 0 in every frame."""
        tokens = self.x_embedder(self.tokens(x))
        memories: list[BlockMemory] = []
        last = self.config.blocks - 1
        for index, block in enumerate(self.layers):
            text = context.text.blocks[index]
            if index == last:
                seen = block.remember(tokens, time, context, text, past.block(index))
            else:
                tokens, seen = block(tokens, time, context, text, past.block(index))
            memories.append(own(seen))
        return tuple(memories)

    def empty_memory(self, batch: int, tokens: int) -> tuple[BlockMemory, ...]:
        """Every block's memory before the first chunk, for `tokens` tokens per latent."""
        heads, d, width = self.config.heads, self.config.head_dim, self.config.width
        like = self.x_embedder.proj.weight
        state_dtype = torch.promote_types(like.dtype, torch.float32)

        def state(rows: int) -> Tensor:
            return like.new_zeros((batch, heads, rows, d), dtype=state_dtype)

        def nothing() -> KeyValue:
            none = like.new_zeros((batch, heads, 0, d))
            return KeyValue(none, none)

        tail = like.new_zeros((batch, 1, tokens, width))
        delta = DeltaMemory(
            state(d), state(1), state(d), like.new_zeros((batch, 3, tokens, width)), tail
        )
        attention = AttentionMemory(nothing(), nothing(), tail)
        return tuple(delta if kind == "delta" else attention for kind in self.config.kinds)

    @staticmethod
    def tokens(x: Tensor) -> Tensor:
        """b c t h w → b t s c."""
        return x.flatten(3).movedim(1, -1)


def own(memory: BlockMemory) -> BlockMemory:
    """`memory` in storage of its own: slices would keep a pass's whole activations alive."""
    if isinstance(memory, DeltaMemory):
        return DeltaMemory(
            memory.state.clone(),
            memory.norm.clone(),
            memory.camera.clone(),
            memory.key_tail.clone(memory_format=torch.contiguous_format),
            memory.ffn_tail.clone(memory_format=torch.contiguous_format),
        )
    return AttentionMemory(
        _own_tokens(memory.main),
        _own_tokens(memory.camera),
        memory.ffn_tail.clone(memory_format=torch.contiguous_format),
    )


def _own_tokens(tokens: KeyValue) -> KeyValue:
    return KeyValue(
        tokens.key.clone(memory_format=torch.contiguous_format),
        tokens.value.clone(memory_format=torch.contiguous_format),
    )
