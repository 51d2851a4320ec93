"""The short convolution over time that a gated-delta block's keys go through.

Depthwise, four taps, the last of which is "now". A causal pass (reaching into the previous
chunk) plus an anti-causal pass inside the chunk with the same taps, less the centre tap, which
both passes counted.
"""

import torch
from torch import Tensor
from torch.nn import functional as F

from sanawm_cli.model.memory import KEY_TAIL
from sanawm_cli.model.parts import wide


def key_convolution(key: Tensor, weight: Tensor, tail: Tensor) -> Tensor:
    """key (b t s c), weight (c 1 4), tail (b 3 s c) → (b t s c), at least float32.

    As seven shifted products: the tap for an offset of o frames is weight[3 − |o|].
    """
    frames = key.shape[1]
    line = torch.cat((wide(tail), wide(key)), 1)
    taps = wide(weight)[:, 0].unbind(-1)
    total = line[:, KEY_TAIL:] * taps[KEY_TAIL]
    for offset in range(1, KEY_TAIL + 1):
        tap = taps[KEY_TAIL - offset]
        total = total + line[:, KEY_TAIL - offset : KEY_TAIL - offset + frames] * tap
        if offset < frames:  # later frames of this chunk; beyond its end there is nothing
            total[:, : frames - offset] += line[:, KEY_TAIL + offset :] * tap
    return total


def key_tail(key: Tensor) -> Tensor:
    """The last three frames of key (b t s c), zeros on the left when the chunk has fewer.

    Never older frames, even if they are known (upstream behaviour).
    """
    return F.pad(key[:, -KEY_TAIL:], (0, 0, 0, 0, max(KEY_TAIL - key.shape[1], 0), 0))
