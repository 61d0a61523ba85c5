"""Peers that augment, one module each, with a function `open` as in python.peers, where the other peers are."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from python.peers import Request


@dataclass(frozen=True)
class Job:
    """The input of a peer, and how to load it."""

    module: str
    variant: str  # distinguishes inputs of the same module
    order: str
    input: str  # the file or folder it reads
    n_images: int
    batch: int
    threads: int
    seed: int
    whole: bool  # also delivers a smaller last batch; only used to check the samples

    @property
    def request(self) -> Request:
        whole = {"drop_last": not self.whole}
        return Request(Path(self.input), self.variant, self.batch, self.threads, self.order, self.seed, **whole)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)
