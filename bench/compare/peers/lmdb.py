"""LMDB, read-only and without locks, one value for each image, copied into buffers that are used again."""

from __future__ import annotations

import threading

import lmdb
import numpy as np

from compare.peers import Job
from compare.ring import Ring


class Peer(Ring):
    def __init__(self, job: Job) -> None:
        database = lmdb.open(str(job.path / "images.lmdb"), subdir=False, readonly=True, lock=False)
        local = threading.local()

        def fill(indices: np.ndarray, buffer: np.ndarray) -> np.ndarray:
            if not hasattr(local, "reading"):
                local.reading = database.begin(buffers=True)
            get = local.reading.get
            for out, index in zip(buffer.reshape(len(indices), -1), indices.tolist(), strict=True):
                out[:] = np.frombuffer(get(index.to_bytes(4, "big")), np.uint8)
            return buffer

        super().__init__(job, np.load(job.path / "labels.npy"), fill)
