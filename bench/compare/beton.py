"""Writing FFCV's files, and taking the JPEG files out of them again."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

# FFCV draws a progress bar, which says little here.
os.environ.setdefault("TQDM_DISABLE", "1")

from ffcv.fields import IntField, RGBImageField  # noqa: E402
from ffcv.reader import Reader  # noqa: E402
from ffcv.writer import DatasetWriter  # noqa: E402


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
    # One worker: with more, the order of the images in the file changes from run to run.
    fields = {"image": RGBImageField(**image), "label": IntField()}
    DatasetWriter(str(path), fields, num_workers=1).from_indexed_dataset(Files(files))


def jpegs(path: Path) -> Iterator[bytes]:
    """The encoded images, in the order they were written from."""
    reader = Reader(str(path))
    sizes = {int(entry["ptr"]): int(entry["size"]) for entry in reader.alloc_table}
    with path.open("rb") as file:
        for image in reader.metadata["f0"]:
            place = int(image["data_ptr"])
            file.seek(place)
            yield file.read(sizes[place])
