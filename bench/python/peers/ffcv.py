"""FFCV: a raw .beton file, kept in the page cache. Its own shuffle, QUASI_RANDOM, works on pages of 8 MiB."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# FFCV already calls OpenCV from several threads, so OpenCV must not start more threads.
os.environ.setdefault("OPENCV_FOR_THREADS_NUM", "1")
# Hide FFCV's progress bar.
os.environ.setdefault("TQDM_DISABLE", "1")

import numpy as np
from ffcv.fields import IntField, RGBImageField
from ffcv.fields.decoders import IntDecoder, SimpleRGBImageDecoder
from ffcv.loader import Loader, OrderOption
from ffcv.transforms import ToTensor
from ffcv.writer import DatasetWriter

from python.peers import Request

COMPILES = True  # in the first batch of a process

ORDERS = {
    "sequential": OrderOption.SEQUENTIAL,
    "per-sample": OrderOption.RANDOM,
    "chunk": OrderOption.QUASI_RANDOM,
}


class Pairs:
    """The indexed dataset for FFCV's writer."""

    def __init__(self, images: np.ndarray, labels: np.ndarray) -> None:
        self.images, self.labels = images, labels

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> tuple[np.ndarray, int]:
        return np.array(self.images[index]), int(self.labels[index])


def write_beton(path: Path, pairs: Any, image: dict[str, Any]) -> None:
    # One worker: with more, the order of images in the file differs between runs.
    fields = {"image": RGBImageField(**image), "label": IntField()}
    DatasetWriter(str(path), fields, num_workers=1).from_indexed_dataset(pairs)


def write(images: np.ndarray, labels: np.ndarray, folder: Path, chunk: int) -> None:
    write_beton(folder / "images.beton", Pairs(images, labels), {"write_mode": "raw"})


class Batches:
    """A loader with this pipeline for images. The pipeline for labels is always the same."""

    def __init__(self, path: Path, request: Request, image: list[Any]) -> None:
        self.loader = Loader(
            str(path),
            batch_size=request.batch,
            num_workers=request.threads,
            os_cache=True,
            order=ORDERS[request.order],
            drop_last=request.drop_last,
            seed=request.seed,
            pipelines={"image": image, "label": [IntDecoder(), ToTensor()]},
        )

    def epoch(self, number: int) -> Iterator[tuple[Any, Any]]:
        yield from self.loader


def open(request: Request) -> Batches:
    return Batches(request.folder / "images.beton", request, [SimpleRGBImageDecoder(), ToTensor()])
