"""Batches of a peer's rows without a framework, filled by the consumer's own thread or by several threads in advance."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from common.ring import Ring
from python.peers import Request, Rows, random

# Indices of single samples, or the start and end of a block.
Step = np.ndarray | tuple[int, int]


def steps(request: Request, n_samples: int, epoch: int) -> list[Step]:
    """The batches of an epoch."""
    n_batches = n_samples // request.batch if request.drop_last else -(-n_samples // request.batch)
    starts = [number * request.batch for number in range(n_batches)]
    if request.order == "per-sample":
        order = random(request.seed, epoch).permutation(n_samples)
        return [order[start : start + request.batch] for start in starts]
    if request.order == "chunk":
        random(request.seed, epoch).shuffle(starts)
    return [(start, min(start + request.batch, n_samples)) for start in starts]


class Direct:
    """A loader of a peer's rows."""

    def __init__(self, request: Request, rows: Rows) -> None:
        self.request, self.rows = request, rows
        ahead = request.ahead or request.threads > 1
        self.ring = Ring((request.batch, *rows.shape), request.threads, ahead)

    def epoch(self, number: int) -> Iterator[tuple[Any, Any]]:
        yield from self.ring.run(steps(self.request, len(self.rows.labels), number), self.fill)

    def fill(self, step: Step, buffer: np.ndarray) -> tuple[Any, Any]:
        if isinstance(step, tuple):
            images, labels = self.rows.block(*step, buffer[: step[1] - step[0]]), self.rows.labels[slice(*step)]
        else:
            images, labels = self.rows.take(step, buffer[: len(step)]), self.rows.labels[step]
        return images.reshape(-1, *self.rows.shape), labels
