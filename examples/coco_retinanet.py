#!/usr/bin/env python3
"""Trains torchvision's RetinaNet on boxes, with packds for data loading.

    python examples/coco_retinanet.py coco/annotations/instances_train2017.json --packs packs
    python examples/coco_retinanet.py shapes --packs packs --steps 200       # a set of drawn shapes, made by the script

The first run makes the pack: it contains the unchanged files and their boxes. The images are resized at random and padded
(scale jitter), and their boxes move with them. So the model only computes.

Needs PyTorch and torchvision.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torchvision

import packds


def draw_shapes(folder: Path, n_images: int) -> Path:
    """A small COCO set: up to four squares and bars of bright colours on dark noise."""
    folder.mkdir(parents=True, exist_ok=True)
    draw, noise = random.Random(0), np.random.default_rng(0)
    images: list[dict[str, Any]] = []
    annotations: list[dict[str, Any]] = []
    for number in range(n_images):
        width, height = draw.randint(96, 160), draw.randint(96, 160)
        pixels = noise.integers(0, 60, (height, width, 3), np.uint8)
        for _ in range(draw.randint(0, 4)):
            kind, side = draw.randrange(2), draw.randint(16, 40)
            sides = (side, side) if kind == 0 else (side * 2, side // 2)
            left, top = draw.randint(0, width - sides[0]), draw.randint(0, height - sides[1])
            pixels[top : top + sides[1], left : left + sides[0]] = [draw.randint(120, 255) for _ in range(3)]
            box = {"bbox": [left, top, *sides], "area": sides[0] * sides[1], "iscrowd": 0}
            annotations.append({"id": len(annotations), "image_id": number, "category_id": kind, **box})
        name = f"{number:04}.png"
        torchvision.io.write_png(torch.from_numpy(pixels).permute(2, 0, 1), str(folder / name))
        images.append({"id": number, "file_name": name, "width": width, "height": height})
    categories = [{"id": 0, "name": "square"}, {"id": 1, "name": "bar"}]
    path = folder / "instances.json"
    path.write_text(json.dumps({"images": images, "annotations": annotations, "categories": categories}))
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description="Train a RetinaNet with packds.")
    add = parser.add_argument
    add("data", help="a COCO file of instances, or shapes to draw a small set")
    add("--packs", type=Path, required=True, help="folder for the pack")
    add("--side", type=int, help="width and height of the training images [640; 128 for shapes]")
    add("--batch-size", type=int, default=4)
    add("--steps", type=int, default=1000)
    add("--lr", type=float, default=0.005)
    add("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args()

    is_drawn = options.data == "shapes"
    side = options.side or (128 if is_drawn else 640)
    options.packs.mkdir(parents=True, exist_ok=True)
    pack = options.packs / ("shapes.pack" if is_drawn else f"{Path(options.data).stem}.pack")
    if not pack.exists():
        source = draw_shapes(options.packs / "shapes", 64) if is_drawn else options.data
        packds.convert(source, pack, mode="encoded")

    augment = f"scalejitter{side}:0.5-1.5,flip,minbox:4,f32"
    loader = packds.Loader(pack, options.batch_size, augment=augment, output="torch", ragged="targets", seed=0)
    n_classes = len(loader.dataset.classes) + 1  # 0 is the background
    model = torchvision.models.detection.retinanet_resnet50_fpn(
        weights=None, weights_backbone=None, num_classes=n_classes, min_size=side, max_size=side
    ).to(options.device)
    optimizer = torch.optim.SGD(model.parameters(), options.lr, momentum=0.9)
    model.train()
    steps = itertools.chain.from_iterable(itertools.repeat(loader))
    for step, (images, targets) in enumerate(itertools.islice(steps, options.steps), 1):
        images = [image.to(options.device) for image in images]
        targets = [{key: target[key].to(options.device) for key in ("boxes", "labels")} for target in targets]
        losses = model(images, targets)
        loss = sum(losses.values())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 10 == 0 or step == options.steps:
            print(f"step {step} of {options.steps}: loss {loss.item():.3f}", flush=True)


if __name__ == "__main__":
    main()
