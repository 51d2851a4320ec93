"""Training batches, rendered in a process of their own while the last one is learned from."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.queues import Queue

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Pixels = NDArray[np.uint8]
WAITING = 3  # batches rendered ahead


@contextmanager
def batches(render: Callable[[int], Tensor], *, start: int) -> Iterator[Iterator[Tensor]]:
    """`render(start)`, `render(start + 1)`, …, uint8; the process ends with the block.

    `render` must be importable, or a `partial` of what is.
    """
    context = get_context("spawn")
    queue: Queue[Pixels] = context.Queue(WAITING)
    process = context.Process(target=_produce, args=(render, start, queue), daemon=True)
    process.start()
    try:
        yield iter(lambda: torch.from_numpy(queue.get()), None)
    finally:
        process.terminate()
        process.join()


def _produce(render: Callable[[int], Tensor], start: int, queue: Queue[Pixels]) -> None:
    torch.set_num_threads(1)
    index = start
    while True:
        queue.put(render(index).numpy())
        index += 1
