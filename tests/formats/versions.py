"""Writes folders with two versions of each image, as for restoration, super-resolution and change detection: versions.py DIR.
Prints the pixels of the images, the files of the other versions and the masks of each source."""

import json
import sys
from pathlib import Path

# Some modules in this script's folder have the names of libraries, so Python must not search this folder.
sys.path.pop(0)

import numpy as np
from PIL import Image

RANDOM = np.random.default_rng(5)
ROOT = Path(sys.argv[1])


def scene():
    return RANDOM.integers(0, 256, (3, 4, 3), dtype=np.uint8).repeat(10, 0).repeat(10, 1)


def save(path, pixels):
    path = ROOT / path
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path)


def write(images, others, names, change, masks=None):
    """Writes one sample for each name. `change` turns the image into the other version."""
    for name in names:
        pixels = scene()
        save(images.format(name), pixels)
        save(others.format(name), change(pixels))
        if masks:
            save(masks.format(name), (pixels[..., 0] > 99).astype(np.uint8) * 255)


def darker(pixels):
    return pixels // 4


def prompts(root, names):
    """The folder of ControlNet: two versions of each image, and a JSON object with their names and a text on each line."""
    write(f"{root}/source/{{}}.png", f"{root}/target/{{}}.png", names, darker)
    rows = [{"source": f"source/{name}.png", "target": f"target/{name}.png", "prompt": f"image {name}"} for name in names]
    (ROOT / root / "prompt.json").write_text("".join(json.dumps(row) + "\n" for row in rows))


def half(pixels):
    return pixels[::2, ::2]


def noise(pixels):
    return RANDOM.integers(0, 256, pixels.shape, dtype=np.uint8)


numbers = ["1", "22", "100", "111"]
write("lol/our485/low/{}.png", "lol/our485/high/{}.png", numbers, darker)
write("lol/eval15/low/{}.png", "lol/eval15/high/{}.png", ["1", "23"], darker)
for split, names in (("train", ["train_1", "train_2", "train_3"]), ("val", ["val_1"])):
    folder = f"levir/{split}"
    write(f"{folder}/A/{{}}.png", f"{folder}/B/{{}}.png", names, noise, f"{folder}/label/{{}}.png")
names = ["train_1", "train_2", "val_1"]
write("listed/A/{}.png", "listed/B/{}.png", names, noise, "listed/label/{}.png")
(ROOT / "listed/list").mkdir()
for split in ("train", "val"):
    lines = [f"{name}.png" for name in names if name.startswith(split)]
    (ROOT / f"listed/list/{split}.txt").write_text("\n".join(lines) + "\n")
for split in ("train", "valid"):
    write(f"sr/DIV2K_{split}_LR_bicubic/X2/{{}}x2.png", f"sr/DIV2K_{split}_HR/{{}}.png", ["0801", "0802"], half)
for split in ("train", "test"):
    write(f"edges/{split}A/{{}}.png", f"edges/{split}B/{{}}.png", ["shoe_a", "shoe_b", "bag_a"], noise)
write("restored/input/{}.png", "restored/gt/{}.jpg", ["a", "b"], noise)
write("gaps/noisy/{}.png", "gaps/clean/{}.png", [f"img{i}" for i in range(10)], noise)
(ROOT / "gaps/clean/img9.png").rename(ROOT / "gaps/clean/other.png")
# The numbers are the same by chance.
write("chance/blur/{}.png", "chance/sharp/{}.png", ["1", "2", "3", "4"], noise)
for scale in ("X2", "X4"):
    write(f"scales/DIV2K_train_LR_bicubic/{scale}/{{}}{scale.lower()}.png", "scales/DIV2K_train_HR/{}.png", ["0801", "0802"], half)
write("three/input/{}.png", "three/target/{}.png", ["a", "b", "c"], darker)
write("three/edges/{}.png", "three/target/{}.png", ["a", "b", "c"], darker)
prompts("prompts", [str(i) for i in range(5)])

folders = {
    "lol/our485": ("low", "high", None),
    "lol/eval15": ("low", "high", None),
    "levir/train": ("A", "B", "label"),
    "levir/val": ("A", "B", "label"),
    "sr": ("DIV2K_train_LR_bicubic/X2", "DIV2K_train_HR", None),
    "edges": ("trainA", "trainB", None),
    "restored": ("input", "gt", None),
    "prompts": ("source", "target", None),
}


def files(folder):
    return [path for path in sorted((ROOT / folder).iterdir())]


def pixels(folder):
    return b"".join(np.asarray(Image.open(path)).tobytes() for path in files(folder)).hex()


print(json.dumps({
    source: {
        "images": pixels(f"{source}/{images}"),
        "others": [path.read_bytes().hex() for path in files(f"{source}/{others}")],
        "masks": masks and pixels(f"{source}/{masks}"),
    }
    for source, (images, others, masks) in folders.items()
}))
