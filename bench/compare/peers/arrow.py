"""A memory-mapped Arrow file: `take` of a column of fixed-size binary, seen as a NumPy array without a copy."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from compare.peers import Job
from compare.ring import Ring


class Peer(Ring):
    def __init__(self, job: Job) -> None:
        reader = pa.ipc.open_file(pa.memory_map(str(job.path / "images.arrow")))
        column = reader.get_batch(0).column("image")

        def fill(indices: np.ndarray, _: np.ndarray) -> np.ndarray:
            return np.frombuffer(column.take(pa.array(indices)).buffers()[1], np.uint8)

        super().__init__(job, np.load(job.path / "labels.npy"), fill)
