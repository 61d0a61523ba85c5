"""Batches filled into buffers that are used again, by one thread in turn or by several ahead of the caller."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from compare.peers import Job

IMAGE = (224, 224, 3)

# fill(indices, buffer) returns the images: in the buffer, or elsewhere where the peer hands out memory of its own.
Fill = Callable[[np.ndarray, np.ndarray], np.ndarray]


class Ring:
    """Runs a peer's `fill` over random orders of the images."""

    def __init__(self, job: Job, labels: np.ndarray, fill: Fill) -> None:
        self.job, self.labels, self.fill = job, labels, fill
        slots = job.threads + 2 if job.threads > 1 else 2
        self.buffers = [np.zeros((job.batch, *IMAGE), np.uint8) for _ in range(slots)]
        self.pool = ThreadPoolExecutor(job.threads) if job.threads > 1 else None

    def epoch(self, number: int) -> Iterator[tuple[Any, Any]]:
        order = np.random.default_rng((self.job.seed, number)).permutation(self.job.n_images)
        end = len(order) if self.job.whole else len(order) // self.job.batch * self.job.batch
        steps = [order[start : start + self.job.batch] for start in range(0, end, self.job.batch)]
        if self.pool is None:
            for step, indices in enumerate(steps):
                yield self.load(step, indices)
            return
        ahead: deque[Future[tuple[Any, Any]]] = deque()
        for step, indices in enumerate(steps):
            # The caller still holds one batch, so all slots but one may be under way.
            if len(ahead) == len(self.buffers) - 1:
                yield ahead.popleft().result()
            ahead.append(self.pool.submit(self.load, step, indices))
        while ahead:
            yield ahead.popleft().result()

    def load(self, step: int, indices: np.ndarray) -> tuple[Any, Any]:
        buffer = self.buffers[step % len(self.buffers)][: len(indices)]
        return self.fill(indices, buffer).reshape(-1, *IMAGE), self.labels[indices]
