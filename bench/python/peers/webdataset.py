"""WebDataset: one tar file per chunk, images as .npy members, batched in the worker processes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import webdataset as wds

from python.peers import Request


def write(images: np.ndarray, labels: np.ndarray, folder: Path, chunk: int) -> None:
    with wds.ShardWriter(str(folder / "%06d.tar"), maxcount=chunk, maxsize=1 << 40, verbose=0) as writer:
        for number, (image, label) in enumerate(zip(images, labels.tolist(), strict=True)):
            writer.write({"__key__": f"{number:08}", "npy": np.asarray(image), "cls": label})


class Loader:
    def __init__(self, request: Request) -> None:
        shards = sorted(str(path) for path in request.folder.glob("*.tar"))
        data = (
            wds.WebDataset(shards, shardshuffle=len(shards) if request.order == "chunk" else False, seed=request.seed)
            .decode()
            .to_tuple("npy", "cls")
            .batched(request.batch)
        )
        # A worker reads whole shards, so more workers than shards would idle.
        workers = min(request.threads, len(shards))
        self.loader = wds.WebLoader(data, batch_size=None, num_workers=workers, persistent_workers=True)

    def epoch(self, number: int) -> Iterator[tuple[Any, Any]]:
        yield from self.loader


def open(request: Request) -> Loader:
    return Loader(request)
