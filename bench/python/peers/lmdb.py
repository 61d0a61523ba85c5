"""LMDB, read-only and without locks, one value per image, copied into reused buffers."""

from __future__ import annotations

import threading
from pathlib import Path

import lmdb
import numpy as np

from python.direct import Direct
from python.peers import Request

PER_TRANSACTION = 1000


def write(images: np.ndarray, labels: np.ndarray, folder: Path, chunk: int) -> None:
    size = images.nbytes + images.nbytes // 4 + (64 << 20)
    with lmdb.open(str(folder / "images.lmdb"), subdir=False, map_size=size, lock=False) as database:
        for start in range(0, len(images), PER_TRANSACTION):
            with database.begin(write=True) as writing:
                for index in range(start, min(start + PER_TRANSACTION, len(images))):
                    writing.put(index.to_bytes(4, "big"), images[index].tobytes(), append=True)
    np.save(folder / "labels.npy", labels)
    np.save(folder / "shape.npy", images.shape[1:])


class LmdbRows:
    def __init__(self, folder: Path) -> None:
        self.labels = np.load(folder / "labels.npy")
        self.shape = tuple(np.load(folder / "shape.npy").tolist())
        self.database = lmdb.open(str(folder / "images.lmdb"), subdir=False, readonly=True, lock=False)
        self.local = threading.local()

    def take(self, indices: np.ndarray, out: np.ndarray) -> np.ndarray:
        # One long read transaction per thread.
        if not hasattr(self.local, "reading"):
            self.local.reading = self.database.begin(buffers=True)
        get = self.local.reading.get
        for image, index in zip(out.reshape(len(indices), -1), indices.tolist(), strict=True):
            image[:] = np.frombuffer(get(index.to_bytes(4, "big")), np.uint8)
        return out

    def block(self, start: int, stop: int, out: np.ndarray) -> np.ndarray:
        return self.take(np.arange(start, stop), out)


def rows(folder: Path, threads: int) -> LmdbRows:
    return LmdbRows(folder)


def open(request: Request) -> Direct:
    return Direct(request, LmdbRows(request.folder))
