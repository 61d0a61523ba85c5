"""A memory-mapped Arrow file: `take` on a column of fixed-size binary, viewed as a NumPy array without a copy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from python.direct import Direct
from python.peers import Request


def binary(images: np.ndarray) -> pa.Array:
    """The images as a column that shares their memory."""
    images = np.ascontiguousarray(images)
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(images[0].nbytes), len(images), [None, pa.py_buffer(images)])


def pixels(column: pa.Array) -> np.ndarray:
    """The images of a column as rows of bytes, without a copy."""
    width = column.type.byte_width
    every = np.frombuffer(column.buffers()[1], np.uint8)
    return every[column.offset * width : (column.offset + len(column)) * width].reshape(-1, width)


def write(images: np.ndarray, labels: np.ndarray, folder: Path, chunk: int) -> None:
    shape = pa.field("image", pa.binary(images[0].nbytes), metadata={"shape": " ".join(map(str, images.shape[1:]))})
    batch = pa.record_batch([binary(images), pa.array(labels)], pa.schema([shape, pa.field("label", pa.int64())]))
    with pa.OSFile(str(folder / "images.arrow"), "wb") as sink, pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write_batch(batch)


class ArrowRows:
    def __init__(self, folder: Path) -> None:
        batch = pa.ipc.open_file(pa.memory_map(str(folder / "images.arrow"))).get_batch(0)
        self.column, self.labels = batch.column("image"), batch.column("label").to_numpy()
        self.shape = tuple(map(int, batch.schema.field("image").metadata[b"shape"].split()))

    def take(self, indices: np.ndarray, out: np.ndarray) -> np.ndarray:
        return pixels(self.column.take(pa.array(indices)))

    def block(self, start: int, stop: int, out: np.ndarray) -> np.ndarray:
        out.reshape(stop - start, -1)[:] = pixels(self.column.slice(start, stop - start))
        return out


def open(request: Request) -> Direct:
    return Direct(request, ArrowRows(request.folder))
