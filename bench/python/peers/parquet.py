"""Parquet by pyarrow: one row group per chunk, fixed-size binary, not compressed. Row groups are always read whole."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from python.direct import Direct
from python.peers import Request
from python.peers.arrow import binary, pixels


def write(images: np.ndarray, labels: np.ndarray, folder: Path, chunk: int) -> None:
    about = {"shape": json.dumps(images.shape[1:]), "chunk": str(chunk)}
    fields = [pa.field("image", pa.binary(images[0].nbytes)), pa.field("label", pa.int64())]
    schema = pa.schema(fields, about)
    path = folder / "images.parquet"
    with pq.ParquetWriter(path, schema, compression="none", use_dictionary=False, write_statistics=False) as writer:
        for start in range(0, len(images), chunk):
            group = slice(start, start + chunk)
            writer.write_batch(pa.record_batch([binary(images[group]), pa.array(labels[group])], schema))


class ParquetRows:
    def __init__(self, folder: Path) -> None:
        self.path, self.local = folder / "images.parquet", threading.local()
        about = self.file.schema_arrow.metadata
        self.shape, self.chunk = tuple(json.loads(about[b"shape"])), int(about[b"chunk"])
        self.labels = self.file.read(["label"]).column("label").to_numpy()

    @property
    def file(self) -> pq.ParquetFile:
        if not hasattr(self.local, "file"):
            self.local.file = pq.ParquetFile(self.path, memory_map=True)
        return self.local.file

    def group(self, number: int) -> np.ndarray:
        # The caller has its own threads, so pyarrow's are off.
        column = self.file.read_row_group(number, ["image"], use_threads=False).column("image")
        return pixels(column.combine_chunks())

    def take(self, indices: np.ndarray, out: np.ndarray) -> np.ndarray:
        for image, index in zip(out.reshape(len(indices), -1), indices.tolist(), strict=True):
            image[:] = self.group(index // self.chunk)[index % self.chunk]
        return out

    def block(self, start: int, stop: int, out: np.ndarray) -> np.ndarray:
        assert start % self.chunk == 0 and stop - start <= self.chunk
        return self.group(start // self.chunk)


def open(request: Request) -> Direct:
    return Direct(request, ParquetRows(request.folder))
