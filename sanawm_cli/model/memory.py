"""What a block carries from chunk to chunk. One frozen class per kind of block; zeros or no tokens
mean exactly "nothing yet", since every convolution pads with zeros.

Upstream keeps these in a list of ten slots:

    DeltaMemory      state 0, norm 1, camera 2, key_tail 4, ffn_tail 9
    AttentionMemory  main.key 0, main.value 1, camera.key 2, camera.value 3, ffn_tail 9
"""

from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

KEY_TAIL = 3  # latents the key convolution looks back


@dataclass(frozen=True, slots=True)
class KeyValue:
    """Keys and values of some tokens in time order, each (b h n d)."""

    key: Tensor
    value: Tensor


@dataclass(frozen=True, slots=True)
class DeltaMemory:
    """A gated-delta block's past, folded into states of fixed size."""

    state: Tensor  # b h d d   [value, key], at least float32
    norm: Tensor  # b h 1 d    the same rule with value 1
    camera: Tensor  # b h d d
    key_tail: Tensor  # b 3 s c   last frames into the key convolution
    ffn_tail: Tensor  # b 1 s c   last frame into the temporal convolution


@dataclass(frozen=True, slots=True)
class AttentionMemory:
    """A softmax block's past: keys already rotated to their place in the clip.

    From `absorb` it holds one chunk's tokens; going into a forward pass, those of the whole
    window.
    """

    main: KeyValue
    camera: KeyValue
    ffn_tail: Tensor  # b 1 s c


BlockMemory = DeltaMemory | AttentionMemory


class Past(Protocol):
    """Where a forward pass reads the blocks' memories, one block at a time."""

    def block(self, index: int) -> BlockMemory:
        """What block `index` may see of earlier chunks."""
        ...
