"""One module per peer. Each has two functions:

    write(images, labels, folder, chunk)   writes the peer's files into an empty folder, with its own writer
    open(request) -> Loading               loads these files

`images` are u8 [n, h, w, 3] in a mapped file, `labels` are i64 [n]; `chunk` is the number of samples stored together.
`COMPILES = True` means that the loader compiles code during the first batch. Cold runs exclude this batch. Modules with
random access also have `rows(folder, threads) -> Rows`, for torch_loader.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

ORDERS = ("sequential", "per-sample", "chunk")


@dataclass(frozen=True)
class Request:
    """What to load, and how."""

    folder: Path
    variant: str  # distinguishes peers of the same module
    batch: int  # samples per batch, and per chunk if the format has chunks
    threads: int
    order: str
    seed: int = 0
    ahead: bool = False  # load while the caller computes, even with one thread
    drop_last: bool = False


class Loading(Protocol):
    """A running peer."""

    def epoch(self, number: int) -> Iterator[tuple[Any, Any]]:
        """Batches of (images, labels), in memory that later batches may reuse."""
        ...


class Rows(Protocol):
    """Files with random access from several threads. Images are returned in `out` or in other memory."""

    labels: np.ndarray

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one image."""
        ...

    def take(self, indices: np.ndarray, out: np.ndarray) -> np.ndarray: ...

    def block(self, start: int, stop: int, out: np.ndarray) -> np.ndarray: ...


def random(seed: int, epoch: int) -> np.random.Generator:
    return np.random.default_rng((seed, epoch))
