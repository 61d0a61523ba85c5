"""Writing FFCV's files, and taking the JPEG files out of them again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

# First: it says what FFCV is imported with.
from python.peers.ffcv import write_beton  # isort: skip

from ffcv.reader import Reader


class Files:
    """The indexed data set that FFCV writes from."""

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
    """The encoded images, in the order they were written from."""
    reader = Reader(str(path))
    sizes = {int(entry["ptr"]): int(entry["size"]) for entry in reader.alloc_table}
    with path.open("rb") as file:
        for image in reader.metadata["f0"]:
            place = int(image["data_ptr"])
            file.seek(place)
            yield file.read(sizes[place])
