#!/usr/bin/env python3
"""Trains a small denoising network on images of all shapes, in buckets by aspect ratio, as diffusion models are trained.

    python examples/aspect_buckets.py photos --packs packs --area 65536 --step 64
    python examples/aspect_buckets.py shapes --packs packs --steps 200       # a set of drawn images, made by the script

The first run makes the pack, which contains the unchanged files. Each batch has images of one size. Of the sizes with about
the same area, it is the one with the nearest aspect ratio, so little of an image is cropped. The network predicts the noise that
was added to the images. It does so for pixels. A latent diffusion model would encode them first.

Needs PyTorch.
"""

from __future__ import annotations

import argparse
import itertools
import random
from collections import Counter
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

import packds

SHAPES = [(96, 96), (128, 72), (72, 128), (144, 64), (64, 144), (100, 80)]


def draw_images(path: Path, n_images: int) -> None:
    """A pack of images of several shapes: a bright ellipse on a colour gradient."""
    draw = random.Random(0)
    with packds.write(path, {"image": "image"}, mode="encoded", quality=90) as writer:
        for _ in range(n_images):
            width, height = draw.choice(SHAPES)
            rows, columns = np.mgrid[0:1:height * 1j, 0:1:width * 1j]
            colours = [[draw.randint(0, 160), draw.randint(0, 95), draw.randint(-60, 60)] for _ in range(3)]
            pixels = np.stack([a + b * rows + c * columns for a, b, c in colours], 2)
            x, y = draw.uniform(0.3, 0.7), draw.uniform(0.3, 0.7)
            pixels[(rows - y) ** 2 + (columns - x) ** 2 < 0.04] = [draw.randint(160, 255) for _ in range(3)]
            writer.add(image=pixels.clip(0, 255).astype(np.uint8))


class Denoiser(nn.Module):
    """Predicts the noise in images of any size. `level` says how much of each image is noise, from 0 to 1."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.level = nn.Sequential(nn.Linear(1, width), nn.SiLU(), nn.Linear(width, width))
        self.first = nn.Conv2d(3, width, 3, padding=1)
        self.down = nn.Conv2d(width, width, 3, stride=2, padding=1)
        self.middle = nn.Sequential(nn.SiLU(), nn.Conv2d(width, width, 3, padding=1), nn.SiLU(), nn.Conv2d(width, width, 3, padding=1))
        self.last = nn.Conv2d(2 * width, 3, 3, padding=1)

    def forward(self, images: torch.Tensor, level: torch.Tensor) -> torch.Tensor:
        first = F.silu(self.first(images) + self.level(level[:, None])[:, :, None, None])
        small = self.down(first)
        small = F.silu(small + self.middle(small))
        return self.last(torch.cat([first, F.interpolate(small, size=first.shape[2:])], 1))


def main() -> None:
    parser = argparse.ArgumentParser(description="Train a denoising network in buckets by aspect ratio, with packds.")
    add = parser.add_argument
    add("data", help="a folder of images, or shapes to draw a small set")
    add("--packs", type=Path, required=True, help="folder for the pack")
    add("--area", type=int, help="pixels of an image [65536; 4096 for shapes]")
    add("--step", type=int, help="the sides are multiples of it [64; 16 for shapes]")
    add("--batch-size", type=int, default=8)
    add("--steps", type=int, default=1000)
    add("--lr", type=float, default=0.001)
    add("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args()

    is_drawn = options.data == "shapes"
    area, multiple = options.area or (4096 if is_drawn else 65536), options.step or (16 if is_drawn else 64)
    options.packs.mkdir(parents=True, exist_ok=True)
    pack = options.packs / f"{Path(options.data).name}.pack"
    if not pack.exists():
        if is_drawn:
            draw_images(pack, 256)
        else:
            packds.convert(options.data, pack, mode="encoded")

    buckets = f"area:{area}/{multiple}"
    # Values from -1 to 1.
    augment = "cover,flip,norm:0.5/0.5,chw"
    loader = packds.Loader(
        pack, options.batch_size, augment=augment, buckets=buckets, fields=["image"], as_tuple=True, output="torch"
    )
    for notice in loader.notices():
        print(notice)
    torch.manual_seed(0)
    model = Denoiser().to(options.device)
    optimizer = torch.optim.AdamW(model.parameters(), options.lr)
    seen: Counter[str] = Counter()
    steps = itertools.chain.from_iterable(itertools.repeat(loader))
    for step, (images,) in enumerate(itertools.islice(steps, options.steps), 1):
        seen[f"{images.shape[3]}x{images.shape[2]}"] += len(images)
        images = images.to(options.device)
        noise, level = torch.randn_like(images), torch.rand(len(images), device=options.device)
        share = level[:, None, None, None]
        noisy = (1 - share).sqrt() * images + share.sqrt() * noise
        loss = F.mse_loss(model(noisy, level), noise)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0 or step == options.steps:
            print(f"step {step} of {options.steps}: loss {loss.item():.3f}", flush=True)
    print("images of each size: " + ", ".join(f"{size} {n}" for size, n in sorted(seen.items())))


if __name__ == "__main__":
    main()
