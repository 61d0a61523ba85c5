#!/usr/bin/env python3
"""Trains torchvision's Mask R-CNN on boxes and masks, with packds for data loading.

    python examples/coco_maskrcnn.py coco/annotations/instances_train2017.json --packs packs
    python examples/coco_maskrcnn.py shapes --packs packs --steps 200       # a set of drawn shapes, made by the script

The first run makes the pack: it contains the unchanged files, their boxes and the outlines of their objects. The images are resized
at random and padded (scale jitter). Their boxes and outlines move with them, and the loader's threads fill the outlines to masks.

Needs PyTorch and torchvision.
"""

from __future__ import annotations

import argparse
import itertools
import random
from pathlib import Path

import numpy as np
import torch
import torchvision

import packds

#: The outlines of the shapes, in a square of side 1.
SHAPES = {
    "triangle": [[0.5, 0.0], [1.0, 1.0], [0.0, 1.0]],
    "arrow": [[0.0, 0.0], [1.0, 0.5], [0.0, 1.0], [0.3, 0.5]],
}


def draw_shapes(pack: Path, n_images: int) -> None:
    """A small set, written sample by sample: up to four triangles and arrows of bright colours on dark noise."""
    draw, noise = random.Random(0), np.random.default_rng(0)
    schema = {"image": "image", "boxes": "boxes", "box_labels": "box_labels", "polygons": "polygons"}
    with packds.write(pack, schema, classes=list(SHAPES), mode="encoded", quality=90) as writer:
        for _ in range(n_images):
            width, height = draw.randint(96, 160), draw.randint(96, 160)
            pixels = noise.integers(0, 60, (height, width, 3), np.uint8)
            boxes, labels, outlines = [], [], []
            for _ in range(draw.randint(1, 4)):
                label, side = draw.randrange(len(SHAPES)), draw.randint(20, 48)
                left, top = draw.randint(0, width - side), draw.randint(0, height - side)
                ring = np.array(list(SHAPES.values())[label]) * side + [left, top]
                fill(pixels, ring, [draw.randint(120, 255) for _ in range(3)])
                boxes.append([left, top, left + side, top + side])
                labels.append(label)
                outlines.append([ring])
            writer.add(image=pixels, boxes=boxes, box_labels=labels, polygons=outlines)


def fill(pixels: np.ndarray, ring: np.ndarray, color: list[int]) -> None:
    """Paints the pixels inside a ring."""
    x, y = np.meshgrid(np.arange(pixels.shape[1]) + 0.5, np.arange(pixels.shape[0]) + 0.5)
    inside = np.zeros(pixels.shape[:2], bool)
    for (x0, y0), (x1, y1) in zip(ring, np.roll(ring, -1, 0)):
        if y0 != y1:
            inside ^= ((y0 <= y) != (y1 <= y)) & (x0 + (y - y0) / (y1 - y0) * (x1 - x0) <= x)
    pixels[inside] = color


def main() -> None:
    parser = argparse.ArgumentParser(description="Train a Mask R-CNN with packds.")
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
    pack = options.packs / ("outlines.pack" if is_drawn else f"{Path(options.data).stem}.pack")
    if not pack.exists():
        if is_drawn:
            draw_shapes(pack, 64)
        else:
            packds.convert(options.data, pack, mode="encoded")

    augment = f"scalejitter{side}:0.5-1.5,flip,minbox:4,f32"
    loader = packds.Loader(pack, options.batch_size, augment=augment, output="torch", ragged="targets", seed=0)
    n_classes = len(loader.dataset.classes) + 1  # 0 is the background
    model = torchvision.models.detection.maskrcnn_resnet50_fpn(
        weights=None, weights_backbone=None, num_classes=n_classes, min_size=side, max_size=side
    ).to(options.device)
    optimizer = torch.optim.SGD(model.parameters(), options.lr, momentum=0.9)
    model.train()
    steps = itertools.chain.from_iterable(itertools.repeat(loader))
    for step, (images, targets) in enumerate(itertools.islice(steps, options.steps), 1):
        images = [image.to(options.device) for image in images]
        targets = [{key: target[key].to(options.device) for key in ("boxes", "labels", "masks")} for target in targets]
        losses = model(images, targets)
        loss = sum(losses.values())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 10 == 0 or step == options.steps:
            print(f"step {step} of {options.steps}: loss {loss.item():.3f}, of masks {losses['loss_mask'].item():.3f}", flush=True)


if __name__ == "__main__":
    main()
