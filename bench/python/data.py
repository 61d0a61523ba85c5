"""The images for all peers: a pair of .npy files, or a pack of raw images of one size."""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from python.checksum import Checksum

# A pack reader that works without packds is in the same folder as the format description.
DOCS = Path(__file__).resolve().parent.parent.parent / "docs" / "reference"


def pair(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """images.npy, u8 [n, h, w, 3], mapped, and labels.npy, i64 [n]."""
    return np.load(folder / "images.npy", mmap_mode="r"), np.load(folder / "labels.npy")


@dataclass(frozen=True)
class Data:
    """The first samples of a pair of .npy files."""

    folder: Path
    n_samples: int
    shape: tuple[int, ...]  # the shape of one image
    batch: int

    @staticmethod
    def read(path: Path, work: Path, most: int | None, batch: int) -> Data:
        """Reads the pair in a folder, or extracts a pair from a pack into `work`. Uses whole batches, at least four,
        like `packds bench formats`.
        """
        folder = path if path.is_dir() else from_pack(path, work / "data")
        images, labels = pair(folder)
        if images.dtype != np.uint8 or images.ndim != 4 or images.shape[3] != 3 or labels.shape != images.shape[:1]:
            raise SystemExit(f"run: {folder}: expected u8 [n, h, w, 3] and n labels")
        n_samples = min(len(images), most or len(images))
        batch = max(min(batch, n_samples // 4), 1)
        return Data(folder, n_samples // batch * batch, images.shape[1:], batch)

    @property
    def image_bytes(self) -> int:
        return int(np.prod(self.shape))

    def checksum(self) -> str:
        images, labels = pair(self.folder)
        checksum = Checksum()
        for start in range(0, self.n_samples, self.batch):
            checksum.add(images[start : start + self.batch], labels[start : start + self.batch])
        return checksum.hex


def from_pack(path: Path, folder: Path) -> Path:
    """Extracts images and labels from a pack. Its images must be the only field in the body."""
    sys.path.append(str(DOCS))
    from read_pack import Pack

    pack = Pack(path)
    image = pack.fields.get("image")
    if image is None or pack.body != [image] or not pack.strided or image["dtype"] != "u8":
        raise SystemExit(f"run: {path}: expected a pack of raw images of one size, without a codec")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    shape = (pack.n_samples, *image["shape"])
    images = np.lib.format.open_memmap(folder / "images.npy", "w+", np.uint8, shape)
    for chunk in range(pack.n_chunks):
        start = chunk * pack.chunk_samples
        place = pack.data_off + chunk * pack.chunk_stride
        part = images[start : start + pack.chunk_samples]
        part.reshape(-1)[:] = pack.file[place : place + part.nbytes]
    images.flush()
    np.save(folder / "labels.npy", pack.columns["label"].astype(np.int64))
    return folder
