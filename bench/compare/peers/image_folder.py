"""PyTorch's DataLoader over torchvision's ImageFolder with RandomResizedCrop.

`threads` is the number of persistent worker processes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

from python.peers import Request


class Loader:
    def __init__(self, request: Request) -> None:
        torch.manual_seed(request.seed)
        steps = [transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(), transforms.PILToTensor()]
        self.loader = DataLoader(
            datasets.ImageFolder(str(request.folder), transforms.Compose(steps)),
            batch_size=request.batch,
            shuffle=True,
            num_workers=request.threads,
            persistent_workers=request.threads > 0,
            drop_last=request.drop_last,
        )

    def epoch(self, number: int) -> Iterator[tuple[Any, Any]]:
        yield from self.loader


def open(request: Request) -> Loader:
    return Loader(request)
