"""Chunks, what each may read, and the plan that lists them."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from sanawm_cli.errors import PlanError
from sanawm_cli.grid import FrameGrid
from sanawm_cli.preset.settings import StreamSettings, Window

PlanGrid = Literal["remainder", "uniform", "by hand"]
FrameSource = Literal["chunk plan", "frames", "seconds", "poses", "preset"]

# A context that grows with the clip makes a plan that is quadratic in it.
MAX_CONTEXT_ENTRIES = 4_000_000


@dataclass(frozen=True, slots=True)
class Chunk:
    """Latents [start, stop), frames [first_frame, stop_frame), and the chunks it may read.

    `context` names the earlier chunks whose keys and values attention sees, in time order.
    """

    index: int
    start: int
    stop: int
    first_frame: int
    stop_frame: int
    context: tuple[int, ...]

    @property
    def latents(self) -> int:
        """How many latents it has."""
        return self.stop - self.start

    @property
    def frames(self) -> int:
        """How many frames it shows."""
        return self.stop_frame - self.first_frame


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A clip cut into chunks. `requested` is the count that `source` named, before any rounding.

    Where the camera's poses said how long the clip is, `requested` is their number.
    """

    source: FrameSource
    requested: int
    frames: int
    latents: int
    fps: int
    grid: PlanGrid
    chunks: tuple[Chunk, ...]

    @property
    def seconds(self) -> float:
        """Length of the clip."""
        return self.frames / self.fps

    @property
    def unused_poses(self) -> int:
        """Poses left over at the end, where the poses said how long the clip is."""
        return self.requested - self.frames if self.source == "poses" else 0

    def kept_after(self, index: int) -> tuple[int, ...]:
        """Chunks up to `index` that later chunks read; none after the last.

        A chunk that has left a context never comes back: all is in the next chunk's context.
        """
        return self.chunks[index + 1].context if index + 1 < len(self.chunks) else ()

    def dropped_after(self, index: int) -> tuple[int, ...]:
        """Chunks that are in memory once chunk `index` is done and that no later chunk reads."""
        kept = set(self.kept_after(index))
        return tuple(i for i in (*self.chunks[index].context, index) if i not in kept)

    def as_json(self, memory: Mapping[str, int]) -> dict[str, object]:
        """The plan for machines. `memory`: bytes by part, from `MemoryEstimate.as_json`."""
        return {
            "frames": {"requested": self.requested, "rendered": self.frames},
            "latents": self.latents,
            "fps": self.fps,
            "chunks": [
                {
                    "index": chunk.index,
                    "latents": [chunk.start, chunk.stop],
                    "frames": [chunk.first_frame, chunk.stop_frame],
                    "context": list(chunk.context),
                }
                for chunk in self.chunks
            ],
            "memory": dict(memory),
        }


def context_of(index: int, *, window: Window, sink: bool) -> tuple[int, ...]:
    """Earlier chunks that chunk `index` reads. `window` counts chunks, the sink among them.

    With the sink on, chunk 0 stays when it would leave the window, and takes one of its places.
    """
    if window == "all" or index <= window:
        return tuple(range(index))
    if not sink:
        return tuple(range(index - window, index))
    return (0, *range(index - window + 1, index))


def cut(
    sizes: tuple[int, ...], *, stream: StreamSettings, frame_grid: FrameGrid
) -> tuple[Chunk, ...]:
    """Chunks of the given sizes (latents), one after the other from the start of the clip.

    Raises PlanError where the contexts together would be too long a list.
    """
    window, sink = stream.window, stream.sink
    reach = len(sizes) if window == "all" else min(window, len(sizes))
    if len(sizes) * reach > MAX_CONTEXT_ENTRIES:
        raise PlanError(
            f"a window of {window} over {len(sizes)} chunks is more than a plan can list",
            hint="use a smaller window or larger chunks",
        )
    bounds = [0]
    for size in sizes:
        bounds.append(bounds[-1] + size)
    return tuple(
        Chunk(i, a, b, *frame_grid.frame_range(a, b), context_of(i, window=window, sink=sink))
        for i, (a, b) in enumerate(pairwise(bounds))
    )
