"""LitData: chunks of 64 MB. It shuffles chunks, and samples within each chunk."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from litdata import StreamingDataLoader, StreamingDataset, optimize

from python.peers import Request


def sample(images: np.ndarray, labels: np.ndarray, index: int) -> dict[str, Any]:
    return {"image": np.array(images[index]), "label": int(labels[index])}


def write(images: np.ndarray, labels: np.ndarray, folder: Path, chunk: int) -> None:
    optimize(
        fn=partial(sample, images, labels),
        inputs=list(range(len(images))),
        output_dir=str(folder / "chunks"),
        chunk_bytes="64MB",
        num_workers=1,
        start_method="fork",
        verbose=False,
    )


class Loader:
    def __init__(self, request: Request) -> None:
        data = StreamingDataset(
            str(request.folder / "chunks"),
            shuffle=request.order == "chunk",
            seed=request.seed,
            drop_last=request.drop_last,
        )
        self.loader = StreamingDataLoader(
            data, batch_size=request.batch, num_workers=request.threads, persistent_workers=True
        )

    def epoch(self, number: int) -> Iterator[tuple[Any, Any]]:
        for batch in self.loader:
            yield batch["image"], batch["label"]


def open(request: Request) -> Loader:
    return Loader(request)
