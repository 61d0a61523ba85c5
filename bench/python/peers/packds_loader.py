"""packds in Python: its Loader, and its datasets in PyTorch's DataLoader.

Variants: `numpy` and `torch` are `packds.Loader` with `threads` threads; `map` and `iterable` are those of `packds.torch` in a
DataLoader with `threads` worker processes. With `-crops`, images are files of any size, and each is randomly cropped, resized
and flipped.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader

import packds
from packds.torch import IterableDataset, MapDataset
from python.peers import Request

ORDERS = {"sequential": "sequential", "per-sample": "random", "chunk": "window"}
CROPS = "rrc224,flip"


def write(images: np.ndarray, labels: np.ndarray, folder: Path, chunk: int) -> None:
    packds.from_dataset({"image": images, "label": labels}, folder / "images.pack", chunk=chunk, progress=False)


class Threads:
    """packds.Loader."""

    def __init__(self, request: Request, output: str, augment: str | None) -> None:
        self.loader = packds.Loader(
            request.folder / "images.pack",
            request.batch,
            order=ORDERS[request.order],
            seed=request.seed,
            threads=max(1, request.threads),
            drop_last=request.drop_last,
            augment=augment,
            output=output,
        )

    def epoch(self, number: int) -> Iterator[tuple[Any, Any]]:
        self.loader.set_epoch(number)
        yield from self.loader


class Processes:
    """packds.torch in a DataLoader. The workers of `map` are persistent."""

    def __init__(self, request: Request, kind: str, crops: bool) -> None:
        torch.manual_seed(request.seed)
        pack = request.folder / "images.pack"
        options: dict[str, Any] = {"num_workers": request.threads}
        self.data: Any
        if kind == "map":
            images: dict[str, Any] = {"images": "pil", "transform": self.transform()} if crops else {"images": "numpy"}
            self.data = MapDataset(pack, **images)
            options |= {"batch_size": request.batch, "shuffle": request.order != "sequential"}
            options |= {"drop_last": request.drop_last, "persistent_workers": request.threads > 0}
        else:
            # Even without workers, only one thread should load.
            whole: dict[str, Any] = {"order": ORDERS[request.order], "seed": request.seed, "threads": 1}
            whole |= {"drop_last": request.drop_last, "augment": CROPS if crops else None}
            self.data = IterableDataset(pack, request.batch, **whole)
            options |= {"batch_size": None}
        self.loader = DataLoader(self.data, **options)

    @staticmethod
    def transform() -> Any:
        from torchvision import transforms

        return transforms.Compose(
            [transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(), transforms.PILToTensor()]
        )

    def epoch(self, number: int) -> Iterator[tuple[Any, Any]]:
        if hasattr(self.data, "set_epoch"):
            self.data.set_epoch(number)
        yield from self.loader


def open(request: Request) -> Threads | Processes:
    kind, _, crops = request.variant.partition("-")
    if kind in ("numpy", "torch"):
        return Threads(request, kind, CROPS if crops else None)
    return Processes(request, kind, bool(crops))
