"""The inputs of peers and packds, made once from a folder of JPEG files and kept.

All inputs of a comparison contain the same images: the pixels of the same PNG files, or the bytes of the same JPEG files.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import sys
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path

import numpy as np
from PIL import Image

SIDE = 224
EXTENSIONS = (".jpg", ".jpeg")


def say(text: str) -> None:
    print(f"peers: {text}", file=sys.stderr, flush=True)


def labelled_files(folder: Path) -> Iterator[tuple[Path, int]]:
    """The files in class folders with their class numbers, as in torchvision's ImageFolder."""
    for label, name in enumerate(sorted(entry.name for entry in folder.iterdir() if entry.is_dir())):
        for path in sorted((folder / name).iterdir()):
            yield path, label


def short_side(image: Image.Image, side: int) -> Image.Image:
    """torchvision's Resize(side) of a PIL image."""
    width, height = image.size
    if width <= height:
        return image.resize((side, int(side * height / width)), Image.Resampling.BILINEAR)
    return image.resize((int(side * width / height), side), Image.Resampling.BILINEAR)


def center_crop(image: Image.Image, side: int) -> Image.Image:
    left, top = round((image.width - side) / 2), round((image.height - side) / 2)
    return image.crop((left, top, left + side, top + side))


def boxes(seed: int, width: int, height: int, n: int) -> list[list[int]]:
    """Random boxes: left, top, width and height."""
    draw, found = random.Random(seed), []
    for _ in range(n):
        left, top = draw.randrange(width * 3 // 4), draw.randrange(height * 3 // 4)
        sides = draw.randint(width // 16, width - left), draw.randint(height // 16, height - top)
        found.append([left, top, *(max(1, side) for side in sides)])
    return found


@dataclass(frozen=True)
class Source:
    """The original images."""

    files: list[Path]
    classes: list[str]  # the class of each file

    @staticmethod
    def read(folder: Path) -> Source:
        files = sorted(path for path in folder.rglob("*") if path.suffix.lower() in EXTENSIONS and path.is_file())
        if not files:
            raise SystemExit(f"peers: no JPEG files in {folder}")
        parents = [path.relative_to(folder).parts[:-1] for path in files]
        return Source([path.resolve() for path in files], [parts[0] if parts else "all" for parts in parents])

    @cached_property
    def fingerprint(self) -> str:
        digest = hashlib.sha256()
        for path in self.files:
            digest.update(f"{path}\0{path.stat().st_size}\0".encode())
        return digest.hexdigest()[:8]

    def chosen(self, n: int) -> list[int]:
        """The file of each of n samples: evenly spaced files if there are more than n, otherwise all files, repeated."""
        count = len(self.files)
        return [i * count // n for i in range(n)] if n < count else [i % count for i in range(n)]

    def labels(self, n: int) -> list[int]:
        """The class numbers of n samples, as in ImageFolder."""
        classes = [self.classes[number] for number in self.chosen(n)]
        numbers = {name: label for label, name in enumerate(sorted(set(classes)))}
        return [numbers[name] for name in classes]


class Inputs:
    """Paths of the inputs below `out`. Each is made when first used."""

    def __init__(self, source: Source, out: Path, n_raw: int, n_encoded: int) -> None:
        self.source, self.n_raw, self.n_encoded = source, n_raw, n_encoded
        self.folder = out / f"inputs-{source.fingerprint}"
        self.folder.mkdir(parents=True, exist_ok=True)

    def make(self, name: str, maker: Callable[[Path], None]) -> Path:
        """The path of this input. If it exists, it is complete, because it gets this name only when finished."""
        path = self.folder / name
        if not path.exists():
            say(f"making {name}")
            working = path.with_name(f".{name}.making")
            if working.is_dir():
                shutil.rmtree(working)
            working.unlink(missing_ok=True)
            maker(working)
            working.rename(path)
        return path

    def png(self, name: str, change: Callable[[Image.Image], Image.Image]) -> Path:
        """One PNG per file of the source, in one folder, named by number."""

        def maker(path: Path) -> None:
            path.mkdir()
            for number, file in enumerate(self.source.files):
                with Image.open(file) as image:
                    change(image.convert("RGB")).save(path / f"{number:07}.png", compress_level=1)

        return self.make(name, maker)

    def linked(self, name: str, n: int, targets: Callable[[int], Path]) -> Path:
        """Class folders with n links to the files of the source, or to files made from them."""

        def maker(path: Path) -> None:
            for sample, number in enumerate(self.source.chosen(n)):
                target = targets(number)
                folder = path / self.source.classes[number]
                folder.mkdir(parents=True, exist_ok=True)
                (folder / f"{sample:07}{target.suffix.lower()}").symlink_to(os.path.abspath(target))

        return self.make(name, maker)

    @property
    def originals(self) -> Path:
        return self.linked(f"originals-{self.n_encoded}", self.n_encoded, lambda number: self.source.files[number])

    @property
    def detection(self) -> Path:
        """A COCO file with random boxes for links to the originals. The class of an image is that of its folder."""

        def maker(path: Path) -> None:
            path.mkdir()
            images, annotations = [], []
            labels = self.source.labels(self.n_encoded)
            for sample, (file, label) in enumerate(zip(sorted(self.originals.rglob("*.*")), sorted(labels), strict=True)):
                name = f"{sample:07}{file.suffix}"
                (path / name).symlink_to(os.path.realpath(file))
                with Image.open(file) as image:
                    width, height = image.size
                images.append({"id": sample, "file_name": name, "width": width, "height": height, "label": label})
                # COCO has 7 boxes per image.
                for box in boxes(sample, width, height, 7):
                    about = {"id": len(annotations), "image_id": sample, "category_id": label, "iscrowd": 0}
                    annotations.append({**about, "bbox": box, "area": box[2] * box[3]})
            categories = [{"id": label, "name": str(label)} for label in sorted(set(labels))]
            document = {"images": images, "annotations": annotations, "categories": categories}
            (path / "instances.json").write_text(json.dumps(document))

        return self.make(f"detection-{self.n_encoded}", maker) / "instances.json"

    @property
    def raw224_files(self) -> Path:
        png = self.png("png224", lambda image: center_crop(short_side(image, 256), SIDE))
        return self.linked(f"raw224-{self.n_raw}-files", self.n_raw, lambda number: png / f"{number:07}.png")

    @property
    def short256_files(self) -> Path:
        png = self.png("png256", lambda image: short_side(image, 256))
        return self.linked(f"short256-{self.n_encoded}-files", self.n_encoded, lambda number: png / f"{number:07}.png")

    @property
    def raw224(self) -> Path:
        """A folder with images.npy and labels.npy."""
        files = list(labelled_files(self.raw224_files))

        def maker(path: Path) -> None:
            path.mkdir()
            shape = (len(files), SIDE, SIDE, 3)
            images = np.lib.format.open_memmap(path / "images.npy", "w+", np.uint8, shape)
            for index, (file, _) in enumerate(files):
                with Image.open(file) as image:
                    images[index] = np.asarray(image)
            images.flush()
            np.save(path / "labels.npy", np.array([label for _, label in files], np.int64))

        return self.make(f"raw224-{self.n_raw}", maker)

    @property
    def raw224_lmdb(self) -> Path:
        return self.written("lmdb")

    @property
    def raw224_arrow(self) -> Path:
        return self.written("arrow")

    @property
    def raw224_beton(self) -> Path:
        return self.written("ffcv")

    def written(self, peer: str) -> Path:
        """A folder with the raw images, written by a module of python.peers."""

        def maker(path: Path) -> None:
            path.mkdir()
            images = np.load(self.raw224 / "images.npy", mmap_mode="r")
            labels = np.load(self.raw224 / "labels.npy")
            import_module(f"python.peers.{peer}").write(images, labels, path, len(images))

        return self.make(f"raw224-{self.n_raw}-{peer}", maker)

    def checksum224(self) -> int:
        images = np.load(self.raw224 / "images.npy", mmap_mode="r")
        return sum(zlib.crc32(image) for image in images)

    @property
    def raw256_beton(self) -> Path:
        return self.beton(f"raw256-{self.n_encoded}.beton", self.short256_files, {"write_mode": "raw"})

    @property
    def jpg256_beton(self) -> Path:
        options = {"write_mode": "jpg", "jpeg_quality": 90}
        return self.beton(f"jpg256-{self.n_encoded}.beton", self.short256_files, options)

    @property
    def jpg500_beton(self) -> Path:
        options = {"write_mode": "jpg", "max_resolution": 500, "jpeg_quality": 90}
        return self.beton(f"jpg500-{self.n_encoded}.beton", self.originals, options)

    def beton(self, name: str, folder: Path, options: dict[str, object]) -> Path:
        from compare import beton

        return self.make(name, lambda path: beton.write(path, list(labelled_files(folder)), options))

    @property
    def jpg256_files(self) -> Path:
        return self.beton_files(f"jpg256-{self.n_encoded}-files", self.jpg256_beton, self.short256_files)

    @property
    def jpg500_files(self) -> Path:
        return self.beton_files(f"jpg500-{self.n_encoded}-files", self.jpg500_beton, self.originals)

    def beton_files(self, name: str, written: Path, folder: Path) -> Path:
        """The JPEG files that FFCV wrote, extracted from its file."""
        from compare import beton

        def maker(path: Path) -> None:
            for (file, _), data in zip(labelled_files(folder), beton.jpegs(written), strict=True):
                target = path / file.parent.name / f"{file.stem}.jpg"
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(data)

        return self.make(name, maker)
