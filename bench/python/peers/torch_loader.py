"""PyTorch's DataLoader over the rows of another peer (the variant names its module), or over an image folder.

`threads` is the number of persistent worker processes. In the order `per-sample`, samples are fetched one by one; in other
orders, in blocks of a batch. Image files are always fetched one by one.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from python.direct import Step, steps
from python.peers import Request, Rows


class OpenedRows(Dataset):  # type: ignore[type-arg]
    """Rows, opened again in each process, because open HDF5 and LMDB files must not be used across a fork."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.opened: tuple[int, Rows] | None = None
        self.labels = self.open().labels
        self.opened = None

    def open(self) -> Rows:
        module = importlib.import_module(f"python.peers.{self.request.variant}")
        rows: Rows = module.rows(self.request.folder, 1)
        return rows

    @property
    def rows(self) -> Rows:
        if self.opened is None or self.opened[0] != os.getpid():
            self.opened = os.getpid(), self.open()
        return self.opened[1]

    def __len__(self) -> int:
        return len(self.labels)


class Samples(OpenedRows):
    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        image = self.rows.take(np.array([index]), np.empty((1, *self.rows.shape), np.uint8))
        return torch.from_numpy(image.reshape(self.rows.shape)), int(self.labels[index])


class Blocks(OpenedRows):
    """A dataset with batches as items."""

    def __getitem__(self, step: Step) -> tuple[torch.Tensor, torch.Tensor]:
        start, stop = step
        images = self.rows.block(start, stop, np.empty((stop - start, *self.rows.shape), np.uint8))
        return torch.from_numpy(images), torch.from_numpy(self.labels[start:stop])


class BlockOrder:
    """A sampler of the blocks of each epoch."""

    def __init__(self, request: Request, n_samples: int) -> None:
        self.request, self.n_samples, self.epoch = request, n_samples, 0

    def __iter__(self) -> Iterator[Step]:
        return iter(steps(self.request, self.n_samples, self.epoch))

    def __len__(self) -> int:
        return len(steps(self.request, self.n_samples, 0))


def image_folder(request: Request) -> Any:
    from torchvision.datasets import ImageFolder

    folder = ImageFolder(str(request.folder), lambda image: torch.from_numpy(np.array(image)))
    # ImageFolder numbers the classes by sorted name. The folder names here are the labels.
    folder.target_transform = lambda target: int(folder.classes[target])
    return folder


class Loader:
    def __init__(self, request: Request) -> None:
        torch.manual_seed(request.seed)
        options: dict[str, Any] = {"num_workers": request.threads, "persistent_workers": request.threads > 0}
        self.blocks: BlockOrder | None = None
        if request.variant == "images" or request.order == "per-sample":
            data = image_folder(request) if request.variant == "images" else Samples(request)
            shuffle = request.order == "per-sample"
            options |= {"batch_size": request.batch, "shuffle": shuffle, "drop_last": request.drop_last}
        else:
            data = Blocks(request)
            self.blocks = BlockOrder(request, len(data))
            options |= {"batch_size": None, "sampler": self.blocks}
        self.loader = DataLoader(data, **options)

    def epoch(self, number: int) -> Iterator[tuple[Any, Any]]:
        if self.blocks is not None:
            self.blocks.epoch = number
        yield from self.loader


def open(request: Request) -> Loader:
    return Loader(request)
