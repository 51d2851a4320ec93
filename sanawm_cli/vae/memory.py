"""What the decoder carries from one chunk to the next."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from torch import Tensor


@dataclass(frozen=True, slots=True, eq=False)
class DecoderMemory:
    """The last input frames of each causal convolution, and whether the clip has started.

    `tails` maps the convolution's name to b c 2 h w; its size depends on the picture, never on the
    clip's length. Empty and not started: nothing has been decoded yet.
    """

    tails: Mapping[str, Tensor] = field(default_factory=dict)
    started: bool = False

    @property
    def nbytes(self) -> int:
        """Bytes held by the tails."""
        return sum(tail.nbytes for tail in self.tails.values())

    def with_tail(self, name: str, tail: Tensor) -> "DecoderMemory":
        """The same memory but for one tail."""
        return replace(self, tails={**self.tails, name: tail})

    def to_tensors(self) -> dict[str, Tensor]:
        """The tails by name, for a file; none before the clip has started."""
        return dict(self.tails)

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor]) -> "DecoderMemory":
        """The memory whose `to_tensors` is `tensors`."""
        return cls(tails=dict(tensors), started=bool(tensors))
