"""What a render tells while it runs. The engine emits these; how they look is not its business."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from sanawm_cli.plan.chunks import Chunk, Plan

Stage = Literal["encode prompt", "load weights", "encode first frame", "verify"]


@dataclass(frozen=True, slots=True)
class StageBegan:
    """Something that takes a while and is not a chunk."""

    stage: Stage


@dataclass(frozen=True, slots=True)
class RenderBegan:
    """Everything is loaded; chunks follow, each of `passes` passes of the network."""

    plan: Plan
    passes: int


@dataclass(frozen=True, slots=True)
class PassDone:
    """The network has passed over a chunk: `passes` times so far, of `of`."""

    chunk: Chunk
    passes: int
    of: int


@dataclass(frozen=True, slots=True)
class ChunkDone:
    """A chunk is in the video. Seconds of its parts."""

    chunk: Chunk
    network_seconds: float
    decode_seconds: float
    encode_seconds: float

    @property
    def seconds(self) -> float:
        """All of it."""
        return self.network_seconds + self.decode_seconds + self.encode_seconds


@dataclass(frozen=True, slots=True)
class Remark:
    """Something that a person should know."""

    text: str


Event = StageBegan | RenderBegan | PassDone | ChunkDone | Remark
OnEvent = Callable[[Event], None]
