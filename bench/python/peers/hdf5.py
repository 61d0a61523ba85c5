"""HDF5 by h5py: one chunked dataset without filters, read into reused buffers (`read_direct`)."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np

from python.direct import Direct
from python.peers import Request


def write(images: np.ndarray, labels: np.ndarray, folder: Path, chunk: int) -> None:
    with h5py.File(folder / "images.h5", "w", libver="latest") as file:
        chunks = (min(chunk, len(images)), *images.shape[1:])
        image = file.create_dataset("image", images.shape, np.uint8, chunks=chunks)
        for start in range(0, len(images), chunk):
            image[start : start + chunk] = images[start : start + chunk]
        file["label"] = labels


class Hdf5Rows:
    def __init__(self, folder: Path) -> None:
        self.file = h5py.File(folder / "images.h5", "r")
        self.images, self.labels = self.file["image"], self.file["label"][:]
        self.shape = self.images.shape[1:]

    def take(self, indices: np.ndarray, out: np.ndarray) -> np.ndarray:
        for number, index in enumerate(indices.tolist()):
            self.images.read_direct(out, np.s_[index], np.s_[number])
        return out

    def block(self, start: int, stop: int, out: np.ndarray) -> np.ndarray:
        self.images.read_direct(out, np.s_[start:stop])
        return out


def rows(folder: Path, threads: int) -> Hdf5Rows:
    return Hdf5Rows(folder)


def open(request: Request) -> Direct:
    return Direct(request, Hdf5Rows(request.folder))
