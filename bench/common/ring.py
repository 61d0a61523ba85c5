"""Batches in reused buffers, filled by the calling thread or by several threads in advance."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import numpy as np

Step = TypeVar("Step")
Batch = TypeVar("Batch")


class Ring:
    """Buffers of the same shape, and the threads that fill them."""

    def __init__(self, shape: Sequence[int], threads: int, ahead: bool) -> None:
        slots = threads + 2 if ahead else 2
        self.buffers = [np.zeros(shape, np.uint8) for _ in range(slots)]
        self.pool = ThreadPoolExecutor(threads) if ahead else None

    def run(self, steps: Sequence[Step], fill: Callable[[Step, np.ndarray], Batch]) -> Iterator[Batch]:
        """The results of `fill(step, buffer)` for each step, in order."""
        if self.pool is None:
            for number, step in enumerate(steps):
                yield fill(step, self.buffers[number % 2])
            return
        under_way: deque[Future[Batch]] = deque()
        for number, step in enumerate(steps):
            # The caller still uses one batch, so all other slots may be in progress.
            if len(under_way) == len(self.buffers) - 1:
                yield under_way.popleft().result()
            under_way.append(self.pool.submit(fill, step, self.buffers[number % len(self.buffers)]))
        while under_way:
            yield under_way.popleft().result()
