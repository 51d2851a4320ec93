"""The gated delta rule over the frames of a chunk, forward from the past and backward inside.

Per head, a frame brings keys k, values v (columns are its tokens), step sizes β per token and a
decay γ. The state S (value × key) moves as

    S ← γ S;   S ← S + ((v − S k)·β) kᵀ

Main values, the normaliser (the same rule with value 1) and the camera branch all use it.
What a frame reads is the sum of the state after its own forward update and the state of a
backward pass that starts from zero at the chunk's end and excludes the frame itself.
"""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Scan:
    """Result of a scan.

    states: (b h t v k), what each frame reads, forward plus backward.
    last:   (b h v k), the forward state after the chunk, for the next one.
    """

    states: Tensor
    last: Tensor

    def read(self, query: Tensor) -> Tensor:
        """S q for the queries of each frame: (b h t s k) → (b h t s v)."""
        return query @ self.states.mT


def scan_reference(key: Tensor, value: Tensor, beta: Tensor, decay: Tensor, past: Tensor) -> Scan:
    """The rule word for word, frame by frame.

    key (b h t s k), value (b h t s v), beta (b h t s), decay (b h t), past (b h v k).
    """

    def advance(state: Tensor, t: int) -> Tensor:
        k, v = key[:, :, t].mT, value[:, :, t].mT
        state = decay[:, :, t, None, None] * state
        return state + ((v - state @ k) * beta[:, :, t, None]) @ k.mT

    frames = key.shape[2]
    forward = [past]
    for t in range(frames):
        forward.append(advance(forward[-1], t))
    backward = [torch.zeros_like(past)]
    for t in reversed(range(1, frames)):
        backward.append(advance(backward[-1], t))
    states = torch.stack([f + b for f, b in zip(forward[1:], reversed(backward), strict=True)], 2)
    return Scan(states, forward[-1])


def scan(key: Tensor, value: Tensor, beta: Tensor, decay: Tensor, past: Tensor) -> Scan:
    """`scan_reference` with the sums over tokens taken first, for all frames in two products.

    One frame is S ← γ S (1 − A) + B with A = Σ β k kᵀ and B = Σ β v kᵀ. Forward and backward
    share A and B, and what is left of the recurrence are products of d×d matrices.
    """
    weighted = key * beta[..., None]
    keep = torch.eye(key.shape[-1], dtype=key.dtype, device=key.device) - key.mT @ weighted
    keep = decay[..., None, None] * keep  # b h t k k
    add = value.mT @ weighted  # b h t v k
    frames = key.shape[2]
    forward = [past]
    for t in range(frames):
        forward.append(forward[-1] @ keep[:, :, t] + add[:, :, t])
    backward = [torch.zeros_like(past)]
    for t in reversed(range(1, frames)):
        backward.append(backward[-1] @ keep[:, :, t] + add[:, :, t])
    states = torch.stack([f + b for f, b in zip(forward[1:], reversed(backward), strict=True)], 2)
    return Scan(states, forward[-1])
