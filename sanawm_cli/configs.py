"""Sizes of the model's parts. Data only, torch-free: plans and presets need them too.

The same classes describe the published model and the miniature; only the numbers differ.
"""

from dataclasses import dataclass
from math import prod, sqrt
from typing import Literal

AttentionScale = Literal["padded", "head"]
BlockKind = Literal["delta", "softmax"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkConfig:
    """The diffusion transformer.

    `attention_scale` names the softmax scale: "padded" is 1/√128 at head size 112 as in the
    streaming releases, "head" is 1/√head_dim as in the bidirectional one.
    """

    latent_channels: int = 128
    width: int = 2240
    heads: int = 20
    blocks: int = 20
    softmax_every: int = 4
    ffn_ratio: float = 3.0
    text_channels: int = 2304
    attention_scale: AttentionScale = "padded"

    @property
    def head_dim(self) -> int:
        """Channels per head."""
        return self.width // self.heads

    @property
    def ffn_hidden(self) -> int:
        """Hidden channels of the FFN after its gate."""
        return int(self.width * self.ffn_ratio)

    @property
    def kinds(self) -> tuple[BlockKind, ...]:
        """Mixer of each block: every `softmax_every`-th block attends, the others recur."""
        return tuple(
            "softmax" if (i + 1) % self.softmax_every == 0 else "delta" for i in range(self.blocks)
        )

    @property
    def softmax_scale(self) -> float:
        """Scale of the query-key products in softmax self-attention."""
        d = self.head_dim
        if self.attention_scale == "head" or d in (32, 64, 128) or d >= 256:
            return 1 / sqrt(d)
        return 1 / sqrt(128 if d <= 128 else 256)


Stride = tuple[int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class VaeConfig:
    """The causal video VAE (LTX-2 family). Strides are (time, height, width) per down block.

    Decoder channels and layers are listed as published, finest stage first; decoder strides and
    factors (by how much a stage narrows) in the order in which stages run, coarsest first. In
    published config files the strides are in that order too, the factors are not.
    """

    latent_channels: int = 128
    encoder_channels: tuple[int, ...] = (256, 512, 1024, 2048)
    encoder_layers: tuple[int, ...] = (4, 6, 6, 2, 2)
    encoder_strides: tuple[Stride, ...] = ((1, 2, 2), (2, 1, 1), (2, 2, 2), (2, 2, 2))
    decoder_channels: tuple[int, ...] = (256, 512, 1024)
    decoder_layers: tuple[int, ...] = (5, 5, 5, 5)
    decoder_strides: tuple[Stride, ...] = ((2, 2, 2), (2, 2, 2), (2, 2, 2))
    decoder_factors: tuple[int, ...] = (2, 2, 2)
    patch: int = 4
    scaling_factor: float = 1.0

    @property
    def temporal_stride(self) -> int:
        """Frames per latent."""
        return prod(s[0] for s in self.encoder_strides)

    @property
    def spatial_stride(self) -> int:
        """Pixels per latent, each way."""
        return self.patch * prod(s[1] for s in self.encoder_strides)


@dataclass(frozen=True, slots=True, kw_only=True)
class TextConfig:
    """The text encoder: `kind` "bytes" is the built-in one; "embeds" takes embeddings only."""

    kind: Literal["bytes", "embeds"] = "embeds"
    tokens: int = 300
    channels: int = 2304
