"""The order-independent checksum of delivered samples, as in `packds bench formats`."""

from __future__ import annotations

from typing import Any

import numpy as np

LABEL = np.uint64(0x9E3779B97F4A7C15)
MIX = np.uint64(0xFF51AFD7ED558CCD)


def sample_hashes(images: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """The hash of each image (u8 [n, ...]) together with its label."""
    pixels = images.reshape(len(images), -1)
    # A word is 8 bytes; the last one is padded with zeros.
    pixels = np.pad(pixels, ((0, 0), (0, -pixels.shape[1] % 8))) if pixels.shape[1] % 8 else pixels
    words = np.ascontiguousarray(pixels).view("<u8")
    sums = words @ np.arange(1, 2 * words.shape[1], 2, dtype=np.uint64)
    hashes = (sums ^ (labels.astype(np.uint64) + np.uint64(1)) * LABEL) * MIX
    mixed: np.ndarray = hashes ^ hashes >> np.uint64(32)
    return mixed


class Checksum:
    """The sum of the hashes of all samples."""

    def __init__(self) -> None:
        self.n_samples, self.sum = 0, 0

    def add(self, images: Any, labels: Any) -> None:
        hashes = sample_hashes(np.asarray(images), np.asarray(labels).reshape(-1))
        self.n_samples += len(hashes)
        self.sum = (self.sum + int(hashes.sum(dtype=np.uint64))) % (1 << 64)

    @property
    def hex(self) -> str:
        return f"{self.sum:016x}"


def plain(pixels: bytes, label: int) -> int:
    """The hash of one sample, computed word by word. `sample_hashes` must agree with it."""
    pixels += bytes(-len(pixels) % 8)
    words = (int.from_bytes(pixels[at : at + 8], "little") for at in range(0, len(pixels), 8))
    total = sum(word * (2 * number + 1) for number, word in enumerate(words)) % (1 << 64)
    mixed = (total ^ (label + 1) * int(LABEL) % (1 << 64)) * int(MIX) % (1 << 64)
    return mixed ^ mixed >> 32


# Bytes 0, 1, 2, ... of a sample, its label, and its hash. packds's own tests use the same values.
VECTORS = ((16, 3, "1584a16a1ee369b6"), (16, 0, "faac668db4ab60e4"), (13, 3, "60daa66a6bbd6eb6"))


def self_test() -> None:
    """Compares `sample_hashes` with VECTORS and with `plain`."""
    for size, label, expected in VECTORS:
        checksum = Checksum()
        checksum.add(np.arange(size, dtype=np.uint8).reshape(1, size), np.array([label]))
        assert checksum.hex == expected, (size, label, checksum.hex)
    rng = np.random.default_rng(0)
    for size in (1, 7, 8, 9, 27, 150_528):
        images, labels = rng.integers(0, 256, (5, size), np.uint8), rng.integers(0, 1000, 5)
        slowly = [plain(image.tobytes(), int(label)) for image, label in zip(images, labels, strict=True)]
        assert sample_hashes(images, labels).tolist() == slowly, size
    one, other = Checksum(), Checksum()
    one.add(images, labels)
    other.add(images[::-1], labels[::-1])
    assert one.hex == other.hex and one.n_samples == 5
    other.add(images[:1], labels[:1] + 1)
    assert one.hex != other.hex
