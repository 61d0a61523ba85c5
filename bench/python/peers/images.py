"""An image folder: one PNG file per image, one folder per class. Read by torch_loader and dali."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image


def write(images: np.ndarray, labels: np.ndarray, folder: Path, chunk: int) -> None:
    for number, (image, label) in enumerate(zip(images, labels.tolist(), strict=True)):
        path = folder / f"{label:06}" / f"{number:08}.png"
        path.parent.mkdir(exist_ok=True)
        Image.fromarray(image).save(path, compress_level=1)


def listed(folder: Path) -> tuple[list[str], list[int]]:
    """The files below the folder, in order, and their labels."""
    paths = sorted(folder.glob("*/*.png"))
    return [str(path.relative_to(folder)) for path in paths], [int(path.parent.name) for path in paths]
