"""MosaicML Streaming: shards of 64 MiB, on the local disk only. `py1e` shuffles by shards, `naive` all samples."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from streaming import MDSWriter, StreamingDataset
from streaming.base.util import clean_stale_shared_memory
from torch.utils.data import DataLoader

from python.peers import Request


def write(images: np.ndarray, labels: np.ndarray, folder: Path, chunk: int) -> None:
    columns = {"image": f"ndarray:uint8:{','.join(map(str, images.shape[1:]))}", "label": "int"}
    with MDSWriter(out=str(folder / "shards"), columns=columns, size_limit=1 << 26) as writer:
        for image, label in zip(images, labels.tolist(), strict=True):
            writer.write({"image": np.asarray(image), "label": label})


class Loader:
    def __init__(self, request: Request) -> None:
        # Leftovers of an earlier process would prevent this process from starting.
        clean_stale_shared_memory()
        data = StreamingDataset(
            local=str(request.folder / "shards"),
            shuffle=request.order != "sequential",
            shuffle_algo="naive" if request.order == "per-sample" else "py1e",
            shuffle_seed=request.seed,
            batch_size=request.batch,
        )
        self.loader = DataLoader(
            data,
            batch_size=request.batch,
            num_workers=request.threads,
            persistent_workers=True,
            drop_last=request.drop_last,
        )

    def epoch(self, number: int) -> Iterator[tuple[Any, Any]]:
        for batch in self.loader:
            yield batch["image"], batch["label"]


def open(request: Request) -> Loader:
    return Loader(request)
