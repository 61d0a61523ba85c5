"""One module for each peer. Each has a class `Peer`, made from a `Job`, whose `epoch` yields batches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol


@dataclass(frozen=True)
class Job:
    """What a peer loads, and how."""

    module: str  # its module in this package
    variant: str  # what tells it from others of the same module
    input: str  # the file or folder it reads
    n_images: int
    batch: int
    threads: int
    seed: int
    whole: bool  # also the last batch, if it is smaller: only to check what is delivered

    @property
    def path(self) -> Path:
        return Path(self.input)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


class Loading(Protocol):
    """A peer at work."""

    def epoch(self, number: int) -> Iterator[tuple[Any, Any]]:
        """Batches of (images, labels) in random order, in memory that later batches may use again."""
        ...
