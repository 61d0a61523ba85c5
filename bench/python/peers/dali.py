"""DALI without a GPU: its reader of .npy files, one per image, or (`images`) its decoder over an image folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from nvidia.dali import fn, pipeline_def, types

from python.peers import Request
from python.peers.images import listed

LABEL_DIGITS = 6


def write(images: np.ndarray, labels: np.ndarray, folder: Path, chunk: int) -> None:
    for number, (image, label) in enumerate(zip(images, labels.tolist(), strict=True)):
        np.save(folder / f"{number:08}-{label:0{LABEL_DIGITS}}.npy", image)


@pipeline_def
def from_images(folder: Path, reading: dict[str, Any]) -> tuple[Any, Any]:
    files, labels = listed(folder)
    data, label = fn.readers.file(file_root=str(folder), files=files, labels=labels, **reading)
    return fn.decoders.image(data, device="cpu", output_type=types.RGB), label


@pipeline_def
def from_numpy(folder: Path, reading: dict[str, Any]) -> tuple[Any, Any]:
    images = fn.readers.numpy(file_root=str(folder), file_filter="*.npy", **reading)
    # The reader returns no labels, so they are in the file names.
    return images, fn.get_property(images, key="source_info")


def labels_of(names: np.ndarray) -> np.ndarray:
    end = names.shape[1] - len(".npy")
    digits = names[:, end - LABEL_DIGITS : end].astype(np.int64) - ord("0")
    labels: np.ndarray = digits @ 10 ** np.arange(LABEL_DIGITS - 1, -1, -1)
    return labels


class Loader:
    def __init__(self, request: Request) -> None:
        self.request, self.named = request, request.variant != "images"
        reading = {
            "name": "reader",
            "shuffle_after_epoch": request.order == "per-sample",
            "pad_last_batch": True,
        }
        self.pipeline = (from_numpy if self.named else from_images)(
            request.folder,
            reading,
            batch_size=request.batch,
            num_threads=request.threads,
            device_id=None,
            seed=request.seed,
        )
        self.pipeline.build()
        self.n_samples = self.pipeline.epoch_size("reader")

    def epoch(self, number: int) -> Iterator[tuple[Any, Any]]:
        for start in range(0, self.n_samples, self.request.batch):
            count = min(self.request.batch, self.n_samples - start)
            if count < self.request.batch and self.request.drop_last:
                self.pipeline.run()
                return
            images, about = (np.asarray(output.as_tensor())[:count] for output in self.pipeline.run())
            yield images, labels_of(about) if self.named else about.reshape(-1)


def open(request: Request) -> Loader:
    return Loader(request)
