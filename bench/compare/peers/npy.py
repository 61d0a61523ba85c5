"""A memory-mapped .npy file: `take` into buffers that are used again (`ring`), or new arrays (`new`)."""

from __future__ import annotations

import numpy as np

from compare.peers import Job
from compare.ring import Ring


class Peer(Ring):
    def __init__(self, job: Job) -> None:
        images = np.load(job.path / "images.npy", mmap_mode="r").reshape(job.n_images, -1)

        def take(indices: np.ndarray, buffer: np.ndarray) -> np.ndarray:
            # mode="clip": with "raise", NumPy takes into memory of its own first and copies.
            return np.take(images, indices, axis=0, out=buffer.reshape(len(indices), -1), mode="clip")

        def new(indices: np.ndarray, _: np.ndarray) -> np.ndarray:
            taken: np.ndarray = images[indices]
            return taken

        super().__init__(job, np.load(job.path / "labels.npy"), take if job.variant == "ring" else new)
