"""PyTorch's DataLoader: over a .npy file (`npy`), or torchvision's ImageFolder with RandomResizedCrop (`imagefolder`).

`threads` are worker processes, which live from epoch to epoch.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from compare.peers import Job


class NpyImages(Dataset):  # type: ignore[type-arg]
    def __init__(self, job: Job) -> None:
        self.images = np.load(job.path / "images.npy", mmap_mode="r")
        self.labels = np.load(job.path / "labels.npy")

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return torch.from_numpy(np.array(self.images[index])), int(self.labels[index])


def image_folder(job: Job) -> Any:
    from torchvision import datasets, transforms

    steps = [transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(), transforms.PILToTensor()]
    return datasets.ImageFolder(str(job.path), transforms.Compose(steps))


class Peer:
    def __init__(self, job: Job) -> None:
        torch.manual_seed(job.seed)
        self.loader = DataLoader(
            NpyImages(job) if job.variant == "npy" else image_folder(job),
            batch_size=job.batch,
            shuffle=True,
            num_workers=job.threads,
            persistent_workers=True,
            drop_last=not job.whole,
        )

    def epoch(self, number: int) -> Iterator[tuple[Any, Any]]:
        yield from self.loader
