"""FFCV with its files in the page cache: variants are ORDER-raw for images as they are, ORDER-rrc for
RandomResizedCrop(224) and flip, with ORDER quasi or random."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

# FFCV resizes with OpenCV in its own threads; without this, OpenCV could add threads of its own to them.
os.environ.setdefault("OPENCV_FOR_THREADS_NUM", "1")

from ffcv.fields.decoders import IntDecoder, RandomResizedCropRGBImageDecoder, SimpleRGBImageDecoder  # noqa: E402
from ffcv.loader import Loader, OrderOption  # noqa: E402
from ffcv.transforms import RandomHorizontalFlip, ToTensor  # noqa: E402

from compare.peers import Job  # noqa: E402


class Peer:
    def __init__(self, job: Job) -> None:
        order, what = job.variant.split("-")
        image = [SimpleRGBImageDecoder(), ToTensor()]
        if what == "rrc":
            image = [RandomResizedCropRGBImageDecoder((224, 224)), RandomHorizontalFlip(), ToTensor()]
        self.loader = Loader(
            job.input,
            batch_size=job.batch,
            num_workers=job.threads,
            os_cache=True,
            order=OrderOption.QUASI_RANDOM if order == "quasi" else OrderOption.RANDOM,
            drop_last=not job.whole,
            seed=job.seed,
            pipelines={"image": image, "label": [IntDecoder(), ToTensor()]},
        )

    def epoch(self, number: int) -> Iterator[tuple[Any, Any]]:
        yield from self.loader
