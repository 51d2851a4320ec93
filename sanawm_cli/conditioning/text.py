"""Prompts to embeddings: an encoder's interface, the built-in one, and embeddings from files."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from sanawm_cli.conditioning.clip import TextEmbeds
from sanawm_cli.configs import TextConfig
from sanawm_cli.errors import InputError


@dataclass(frozen=True, slots=True)
class EncodedPrompt:
    """Embeddings of a prompt, and how many of its tokens did not fit."""

    text: TextEmbeds
    dropped_tokens: int


class TextEncoder(Protocol):
    """Anything that turns a prompt into embeddings."""

    def encode(self, prompt: str) -> EncodedPrompt:
        """Embeddings 1 l c and mask 1 l of a prompt."""
        ...


class ByteTextEncoder(nn.Module):
    """One vector per UTF-8 byte plus a sinusoid of its place; no vocabulary, no dependency.

    An empty (negative) prompt is one zero byte, since attention needs something to look at.
    """

    def __init__(self, config: TextConfig) -> None:
        super().__init__()
        self.config = config
        # Without the initial draw: on the meta device it makes torch import its compiler (2 s).
        self.embed = nn.Embedding.from_pretrained(torch.empty(256, config.channels))

    def encode(self, prompt: str) -> EncodedPrompt:
        """Embeddings 1 l c of the prompt's first `config.tokens` bytes, and how many were left."""
        data = prompt.encode() or b"\0"
        kept = data[: self.config.tokens]
        device = self.embed.weight.device
        tokens = torch.tensor(list(kept), device=device)
        embeds = self.embed(tokens) + self._places(len(kept)).to(device)
        mask = torch.ones(1, len(kept), dtype=torch.bool, device=device)
        return EncodedPrompt(TextEmbeds(embeds[None], mask), len(data) - len(kept))

    def _places(self, count: int) -> Tensor:
        """Sinusoids of 0 … count−1, count c."""
        half = self.config.channels // 2
        rates = torch.pow(10000.0, -torch.arange(half, dtype=torch.float32) / half)
        angles = torch.arange(count, dtype=torch.float32)[:, None] * rates
        return torch.cat((angles.sin(), angles.cos()), -1).to(self.embed.weight.dtype)


@dataclass(frozen=True, slots=True)
class SavedPrompts:
    """What an embeddings file holds; `negative` is None when there is none."""

    text: TextEmbeds
    negative: TextEmbeds | None


def load_text_embeds(path: Path, channels: int) -> SavedPrompts:
    """Read embeddings (l c or 1 l c) and mask (l or 1 l) from a safetensors file.

    Its tensors are `embeds` and `mask`, and `negative_embeds` and `negative_mask` for guidance;
    without a mask all tokens count. Raises InputError for anything else.
    """
    try:
        if not path.is_file():
            raise InputError(f"{path}: no such embeddings file")
        tensors = load_file(path)
    except (OSError, SafetensorError) as error:
        raise InputError(f"{path}: not a readable safetensors file: {error}") from error
    if "embeds" not in tensors:
        raise InputError(f"{path}: no tensor named embeds", hint="it holds embeds and mask")
    text = _embeds(path, tensors, "embeds", "mask", channels)
    negative = None
    if "negative_embeds" in tensors:
        negative = _embeds(path, tensors, "negative_embeds", "negative_mask", channels)
    return SavedPrompts(text, negative)


def _embeds(
    path: Path, tensors: dict[str, Tensor], name: str, mask_name: str, channels: int
) -> TextEmbeds:
    embeds = tensors[name]
    embeds = embeds[None] if embeds.ndim == 2 else embeds
    if embeds.ndim != 3 or embeds.shape[0] != 1 or embeds.shape[2] != channels:
        raise InputError(
            f"{path}: {name} is {tuple(tensors[name].shape)}, expected (tokens, {channels})"
        )
    mask = tensors.get(mask_name, torch.ones(embeds.shape[:2]))
    mask = (mask[None] if mask.ndim == 1 else mask).bool()
    if mask.shape != embeds.shape[:2]:
        raise InputError(
            f"{path}: {mask_name} is {tuple(tensors[mask_name].shape)}, "
            f"expected ({embeds.shape[1]},)"
        )
    values = embeds.float()
    if not embeds.is_floating_point() or not bool(torch.isfinite(values).all()):
        raise InputError(f"{path}: {name} holds values that are not finite float32 numbers")
    if not bool(mask.any()):
        raise InputError(f"{path}: {mask_name} leaves no token: the prompt would be empty")
    return TextEmbeds(values, mask)
