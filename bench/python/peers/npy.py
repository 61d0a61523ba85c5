"""A memory-mapped .npy file: `take` into reused buffers. Variant `new`: a new array per batch."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from python.direct import Direct
from python.peers import Request


def write(images: np.ndarray, labels: np.ndarray, folder: Path, chunk: int) -> None:
    np.save(folder / "images.npy", images)
    np.save(folder / "labels.npy", labels)


class NpyRows:
    def __init__(self, folder: Path) -> None:
        self.images = np.load(folder / "images.npy", mmap_mode="r")
        self.labels = np.load(folder / "labels.npy")
        self.shape = self.images.shape[1:]
        # A slice of a memmap is a new memmap, which takes longer to create than a small copy. A plain array avoids
        # this.
        self.flat = np.asarray(self.images).reshape(len(self.images), -1)

    def take(self, indices: np.ndarray, out: np.ndarray) -> np.ndarray:
        # With mode="raise", NumPy gathers into a temporary array first. mode="clip" writes directly to `out`.
        return np.take(self.flat, indices, axis=0, out=out.reshape(len(indices), -1), mode="clip")

    def block(self, start: int, stop: int, out: np.ndarray) -> np.ndarray:
        out.reshape(stop - start, -1)[:] = self.flat[start:stop]
        return out


class NewArrays(NpyRows):
    def take(self, indices: np.ndarray, out: np.ndarray) -> np.ndarray:
        taken: np.ndarray = self.flat[indices]
        return taken

    def block(self, start: int, stop: int, out: np.ndarray) -> np.ndarray:
        return self.flat[start:stop].copy()


def rows(folder: Path, threads: int) -> NpyRows:
    return NpyRows(folder)


def open(request: Request) -> Direct:
    return Direct(request, NewArrays(request.folder) if request.variant == "new" else NpyRows(request.folder))
