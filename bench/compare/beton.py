"""Writes FFCV's files, and extracts JPEG files from them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

# Must be imported before ffcv, because it sets variables that ffcv reads when imported.
from python.peers.ffcv import write_beton  # isort: skip

from ffcv.reader import Reader


class Files:
    """The indexed dataset for FFCV's writer."""

    def __init__(self, files: list[tuple[Path, int]]) -> None:
        self.files = files

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> tuple[np.ndarray, int]:
        path, label = self.files[index]
        with Image.open(path) as image:
            return np.array(image.convert("RGB")), label


def write(path: Path, files: list[tuple[Path, int]], image: dict[str, Any]) -> None:
    write_beton(path, Files(files), image)


def jpegs(path: Path) -> Iterator[bytes]:
    """The encoded images, in the order of their source."""
    reader = Reader(str(path))
    sizes = {int(entry["ptr"]): int(entry["size"]) for entry in reader.alloc_table}
    with path.open("rb") as file:
        for image in reader.metadata["f0"]:
            place = int(image["data_ptr"])
            file.seek(place)
            yield file.read(sizes[place])
