"""Packs of the same files, and packds's own loading figures."""

from __future__ import annotations

import json
import subprocess
import zlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from compare.inputs import Inputs


class PackdsError(Exception):
    """A packds command failed. The message has the command and the first lines of its stderr."""


@dataclass(frozen=True)
class Pack:
    """A pack of a comparison, made from `files` with `options`."""

    name: str
    files: str  # the name of a property of Inputs
    options: tuple[str, ...]
    seekable: bool = False


@dataclass(frozen=True)
class Packds:
    """The packds command."""

    binary: Path

    def call(self, *arguments: str) -> str:
        done = subprocess.run([self.binary, *arguments], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            lines = " / ".join(done.stderr.strip().splitlines()[:3])
            raise PackdsError(f"packds {' '.join(arguments)}: exit status {done.returncode}: {lines}")
        return done.stdout

    def understands(self, *arguments: str, option: str = "") -> bool:
        try:
            return option in self.call(*arguments, "--help")
        except PackdsError:
            return False

    @cached_property
    def version(self) -> str:
        return self.call("--version").splitlines()[0]

    @cached_property
    def loads(self) -> bool:
        return self.understands("bench", "load")

    @cached_property
    def seeks(self) -> bool:
        return self.understands("convert", option="--seekable")

    def make(self, pack: Pack, inputs: Inputs, n_images: int) -> Path:
        """The pack. It is made again if the packds command is newer."""
        files = getattr(inputs, pack.files)
        path = inputs.folder / f"{pack.name}-{n_images}.pack"
        if path.exists() and path.stat().st_mtime < self.binary.stat().st_mtime:
            path.unlink()
        options = [*pack.options, *(["--seekable"] if pack.seekable else [])]
        return inputs.make(path.name, lambda working: self.convert(files, working, options))

    def convert(self, files: Path, path: Path, options: list[str]) -> None:
        self.call("convert", str(files), str(path), "--force", *options)

    def about(self, path: Path) -> dict[str, Any]:
        about: dict[str, Any] = json.loads(self.call("info", str(path), "--json"))
        return about

    def checksum(self, path: Path) -> int:
        """The sum of the CRC-32 of all images in a pack of raw images of one size."""
        about = self.about(path)
        shape = (about["n_samples"], about["sample_stride"])
        images = np.memmap(path, np.uint8, "r", about["data_offset"], shape)
        return sum(zlib.crc32(image) for image in images)

    def load(self, path: Path, batch: int, threads: int, augment: str | None, seconds: float) -> dict[str, Any]:
        arguments = ["bench", "load", str(path), "--order", "window", "--batch", str(batch)]
        arguments += ["--jobs", str(threads), "--seconds", f"{seconds:g}", "--json"]
        if augment:
            arguments += ["--augment", augment]
        figures: dict[str, Any] = json.loads(self.call(*arguments))
        return figures
