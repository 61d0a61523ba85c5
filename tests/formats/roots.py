"""Writes the folders that published datasets are unpacked into, with several files or folders below: roots.py DIR.
Prints what they hold."""

import json
import os
import sys
from pathlib import Path

# Some modules in this script's folder have the names of libraries, so Python must not search this folder.
here = sys.path.pop(0)

import lmdb
import numpy as np
from PIL import Image
from scipy.io import savemat

sys.path.append(here)
from records import png

RANDOM = np.random.default_rng(4)
ROOT = Path(sys.argv[1])
TEXTS = ["Hotel", "Bar", "007", "Exit", "Open", "Hotel"]


def words(folder, start, n):
    """A database of text recognition."""
    (ROOT / folder).mkdir(parents=True)
    env = lmdb.open(str(ROOT / folder), map_size=1 << 24)
    with env.begin(write=True) as txn:
        txn.put(b"num-samples", str(n).encode())
        for i in range(n):
            txn.put(f"image-{i + 1:09}".encode(), png(start + i))
            txn.put(f"label-{i + 1:09}".encode(), TEXTS[(start + i) % 6].encode())
    env.close()


def idx(path, array):
    path = ROOT / path
    path.parent.mkdir(parents=True, exist_ok=True)
    head = bytes([0, 0, 8, array.ndim]) + b"".join(n.to_bytes(4, "big") for n in array.shape)
    path.write_bytes(head + array.tobytes())


def images(pattern, names):
    for name in names:
        path = ROOT / pattern.format(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(RANDOM.integers(0, 256, (12, 20, 3), dtype=np.uint8)).save(path)


words("words/training/MJ/MJ_train", 0, 5)
words("words/training/ST", 1, 5)
words("words/validation", 2, 5)
words("words/evaluation/CUTE80", 3, 5)
words("single/training/MJ", 0, 5)
words("single/validation", 2, 5)
words("rooms/bedroom_val_lmdb", 0, 5)
words("rooms/tower_val_lmdb", 1, 5)

digits = {split: RANDOM.integers(0, 256, (n, 28, 28), dtype=np.uint8) for split, n in (("train", 6), ("t10k", 4))}
for split, pixels in digits.items():
    idx(f"digits/MNIST/raw/{split}-images-idx3-ubyte", pixels)
    idx(f"digits/MNIST/raw/{split}-labels-idx1-ubyte", np.arange(len(pixels), dtype=np.uint8))
(ROOT / "digits/MNIST/processed").mkdir()
for name in ("training.pt", "test.pt"):
    (ROOT / "digits/MNIST/processed" / name).write_bytes(b"tensors")

houses = {}
os.mkdir(ROOT / "houses")
for split, n in (("train", 5), ("test", 3), ("extra", 4)):
    houses[split] = RANDOM.integers(0, 256, (n, 32, 32, 3), dtype=np.uint8)
    labels = np.arange(1, n + 1, dtype=np.uint8)[:, None]
    savemat(ROOT / f"houses/{split}_32x32.mat", {"X": np.moveaxis(houses[split], 0, -1), "y": labels})

images("captchas/{}.png", ["2b827", "m3n8x", "w6yxc", "4nc37", "gny6b"])
images("plain/{}.png", ["img01", "img02", "img03", "img04", "img05"])
images("market/bounding_box_train/{}.jpg", ["0002_c1s1_000451_03", "0002_c2s1_000301_01", "0007_c1s6_028546_01"])
images("market/bounding_box_test/{}.jpg", ["0001_c1s1_001051_00"])
images("market/query/{}.jpg", ["0001_c2s1_000301_00"])
for alphabet in ("Greek", "Latin"):
    for part in ("images_background", "images_evaluation"):
        for character in ("character01", "character02"):
            images(f"letters/{part}/{alphabet}_{part[7]}/{character}/{{}}.png", ["0001_01", "0001_02"])

print(json.dumps({
    "digits": digits["train"].tobytes().hex(),
    "houses": {split: pixels.tobytes().hex() for split, pixels in houses.items()},
}))
