"""The memory of a whole network between chunks, with a sliding window for the softmax blocks.

Gated-delta blocks carry one state, whatever the length. Softmax blocks carry the keys and values
of earlier chunks one by one, so that each chunk can read just those its plan names (a window,
perhaps with the first chunk as a sink); a chunk that no later one names is dropped at once.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, fields, replace

import torch
from torch import Tensor

from sanawm_cli.errors import SessionError
from sanawm_cli.model.memory import AttentionMemory, BlockMemory, DeltaMemory, KeyValue

Segment = Mapping[int, AttentionMemory]


@dataclass(frozen=True, slots=True)
class WindowMemory:
    """What every block remembers.

    latest:   each block's memory of the newest chunk (before the first: nothing).
    segments: chunk index → that chunk's tokens, by softmax block.
    """

    latest: tuple[BlockMemory, ...]
    segments: Mapping[int, Segment]

    def extend(
        self, index: int, absorbed: tuple[BlockMemory, ...], *, keep: Collection[int]
    ) -> "WindowMemory":
        """The memory after chunk `index`; of all chunks so far only those in `keep` stay."""
        own = {
            block: memory
            for block, memory in enumerate(absorbed)
            if isinstance(memory, AttentionMemory)
        }
        segments = {**self.segments, index: own}
        latest = tuple(_without_tokens(memory) for memory in absorbed)
        return WindowMemory(latest, {i: segments[i] for i in sorted(segments) if i in keep})

    def view(self, context: tuple[int, ...]) -> "WindowView":
        """What a chunk with this context may read."""
        return WindowView(self, context)

    def resident_bytes(self) -> int:
        """Bytes of all tensors held."""
        return sum(t.numel() * t.element_size() for _, t in self.named_tensors())

    def named_tensors(self) -> Iterator[tuple[str, Tensor]]:
        """Every tensor under a stable name, for sessions."""
        for block, memory in enumerate(self.latest):
            yield from _named(f"latest.{block}", memory)
        for chunk, segment in self.segments.items():
            for block, attention in segment.items():
                for branch in ("main", "camera"):
                    yield from _named(f"chunk.{chunk}.{block}.{branch}", getattr(attention, branch))

    def with_tensors(self, tensors: Mapping[str, Tensor]) -> "WindowMemory":
        """The memory that `named_tensors` was read from; `self` is one of the same shapes.

        Raises SessionError naming a tensor that is missing or of another shape or precision.
        """
        latest = tuple(
            _filled(f"latest.{block}", memory, tensors) for block, memory in enumerate(self.latest)
        )
        chunks = sorted({int(name.split(".")[1]) for name in tensors if name.startswith("chunk.")})
        segments = {
            chunk: {
                block: replace(
                    memory,
                    main=_key_value(f"chunk.{chunk}.{block}.main", memory.main, tensors),
                    camera=_key_value(f"chunk.{chunk}.{block}.camera", memory.camera, tensors),
                )
                for block, memory in enumerate(latest)
                if isinstance(memory, AttentionMemory)
            }
            for chunk in chunks
        }
        return WindowMemory(latest, segments)


@dataclass(frozen=True, slots=True)
class WindowView:
    """The past of one chunk. Keys and values are put together for one block at a time."""

    memory: WindowMemory
    context: tuple[int, ...]

    def block(self, index: int) -> BlockMemory:
        """State of a gated-delta block, or the window of a softmax block in time order."""
        latest = self.memory.latest[index]
        if isinstance(latest, DeltaMemory):
            return latest
        chunks = [self.memory.segments[chunk][index] for chunk in self.context]
        return replace(
            latest,
            main=_joined([latest.main, *(chunk.main for chunk in chunks)]),
            camera=_joined([latest.camera, *(chunk.camera for chunk in chunks)]),
        )


def _joined(parts: list[KeyValue]) -> KeyValue:
    return KeyValue(
        torch.cat([part.key for part in parts], 2), torch.cat([part.value for part in parts], 2)
    )


def _without_tokens(memory: BlockMemory) -> BlockMemory:
    """A softmax block's memory without its tokens, which live in the segments."""
    if isinstance(memory, DeltaMemory):
        return memory

    def none(tokens: KeyValue) -> KeyValue:
        shape = list(tokens.key.shape)
        shape[2] = 0
        return KeyValue(tokens.key.new_empty(shape), tokens.value.new_empty(shape))

    return replace(memory, main=none(memory.main), camera=none(memory.camera))


def _named(prefix: str, memory: BlockMemory | KeyValue) -> Iterator[tuple[str, Tensor]]:
    for field in fields(memory):
        value = getattr(memory, field.name)
        if isinstance(value, Tensor):
            yield f"{prefix}.{field.name}", value


def _filled(prefix: str, like: BlockMemory, tensors: Mapping[str, Tensor]) -> BlockMemory:
    found = {
        name: _found(f"{prefix}.{name}", value, tensors) for name, value in _tensor_fields(like)
    }
    return replace(like, **found)  # type: ignore[arg-type]  # every one of them is a tensor


def _tensor_fields(memory: BlockMemory) -> list[tuple[str, Tensor]]:
    return [(name.removeprefix("."), value) for name, value in _named("", memory)]


def _key_value(prefix: str, like: KeyValue, tensors: Mapping[str, Tensor]) -> KeyValue:
    """`like` has no tokens: their number is the one thing that may differ."""
    key = _found(f"{prefix}.key", like.key, tensors, tokens_axis=2)
    value = _found(f"{prefix}.value", like.value, tensors, tokens_axis=2)
    return KeyValue(key, value)


def _found(
    name: str, like: Tensor, tensors: Mapping[str, Tensor], *, tokens_axis: int | None = None
) -> Tensor:
    """A tensor by name, which must be as `like` is, except along `tokens_axis`."""
    found = tensors.get(name)
    if found is None:
        raise SessionError(f"the session's state has no tensor {name}")
    shapes = [list(t.shape) for t in (found, like)]
    if tokens_axis is not None and found.ndim == like.ndim:
        for shape in shapes:
            del shape[tokens_axis]
    if shapes[0] != shapes[1] or found.dtype != like.dtype:
        raise SessionError(
            f"the session's state has {name} as {tuple(found.shape)} {found.dtype}, "
            f"this network needs {tuple(like.shape)} {like.dtype}"
        )
    return found
