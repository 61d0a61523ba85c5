"""Zarr 3 by zarr-python: one chunked array without compression. Chunks are always read whole."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import zarr

from python.direct import Direct
from python.peers import Request


def write(images: np.ndarray, labels: np.ndarray, folder: Path, chunk: int) -> None:
    group = zarr.open_group(str(folder / "images.zarr"), mode="w")
    chunks = (min(chunk, len(images)), *images.shape[1:])
    image = group.create_array("image", shape=images.shape, chunks=chunks, dtype="uint8", compressors=None)
    for start in range(0, len(images), chunk):
        image[start : start + chunk] = images[start : start + chunk]
    group.create_array("label", data=labels)


class ZarrRows:
    def __init__(self, folder: Path, threads: int) -> None:
        zarr.config.set({"threading.max_workers": threads, "async.concurrency": max(threads, 2)})
        group = zarr.open_group(str(folder / "images.zarr"), mode="r")
        self.images, self.labels = group["image"], group["label"][:]
        self.shape = self.images.shape[1:]

    def take(self, indices: np.ndarray, out: np.ndarray) -> np.ndarray:
        for image, index in zip(out, indices.tolist(), strict=True):
            image[:] = self.images[index]
        return out

    def block(self, start: int, stop: int, out: np.ndarray) -> np.ndarray:
        block: np.ndarray = self.images[start:stop]
        return block


def rows(folder: Path, threads: int) -> ZarrRows:
    return ZarrRows(folder, threads)


def open(request: Request) -> Direct:
    return Direct(request, ZarrRows(request.folder, request.threads))
