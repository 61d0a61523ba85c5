"""PyTorch's DataLoader over a COCO file with torchvision's transforms for boxes, as in SSD.

`threads` is the number of persistent worker processes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset
from torchvision import tv_tensors
from torchvision.transforms import v2

from python.peers import Request


class Coco(Dataset[Any]):
    def __init__(self, path: Path) -> None:
        document = json.loads(path.read_text())
        self.folder, self.images = path.parent, document["images"]
        self.boxes: dict[int, list[list[float]]] = {image["id"]: [] for image in self.images}
        for annotation in document["annotations"]:
            left, top, width, height = annotation["bbox"]
            self.boxes[annotation["image_id"]].append([left, top, left + width, top + height])
        steps = [v2.RandomIoUCrop(), v2.Resize((224, 224)), v2.RandomHorizontalFlip(), v2.SanitizeBoundingBoxes()]
        self.transform = v2.Compose(steps)

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> tuple[Any, Any, int]:
        image = self.images[index]
        with Image.open(self.folder / image["file_name"]) as file:
            pixels = tv_tensors.Image(v2.functional.pil_to_tensor(file.convert("RGB")))
        size = (image["height"], image["width"])
        boxes = tv_tensors.BoundingBoxes(self.boxes[image["id"]], format="XYXY", canvas_size=size, dtype=torch.float32)
        labels = torch.full((len(boxes),), image["label"])
        pixels, target = self.transform(pixels, {"boxes": boxes, "labels": labels})
        return pixels, target, image["label"]


def collate(samples: list[tuple[Any, Any, int]]) -> tuple[Any, list[Any], Any]:
    images, targets, labels = zip(*samples, strict=True)
    return torch.stack(images), list(targets), torch.tensor(labels)


class Loader:
    def __init__(self, request: Request) -> None:
        torch.manual_seed(request.seed)
        self.loader = DataLoader(
            Coco(request.folder),
            batch_size=request.batch,
            shuffle=True,
            num_workers=request.threads,
            persistent_workers=request.threads > 0,
            drop_last=request.drop_last,
            collate_fn=collate,
        )

    def epoch(self, number: int) -> Iterator[tuple[Any, Any]]:
        for images, targets, labels in self.loader:
            if len(targets) != len(images):
                raise SystemExit(f"a batch has {len(images)} images and {len(targets)} targets")
            yield images, labels


def open(request: Request) -> Loader:
    return Loader(request)
