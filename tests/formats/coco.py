"""Writes COCO files with masks of pycocotools, and compares the masks of two files."""

import json
import sys
from pathlib import Path

import numpy as np
from PIL import Image
from pycocotools import mask as masks
from pycocotools.coco import COCO

SIZES = [(40, 50), (7, 90), (64, 33), (1, 9), (100, 100)]


def blobs(dice, height, width):
    """A mask of rectangles, single pixels and a hole."""
    mask = np.zeros((height, width), np.uint8)
    for _ in range(dice.integers(1, 5)):
        top, left = dice.integers(height), dice.integers(width)
        mask[top:top + dice.integers(1, height + 1), left:left + dice.integers(1, width + 1)] ^= 1
    mask |= dice.random((height, width)) < 0.03
    if min(height, width) > 4:
        # A hole.
        mask[1:4, 1:4] = 1
        mask[2, 2] = 0
    return mask


def lengths(mask):
    """Uncompressed run lengths."""
    runs, before = [0], 0
    for pixel in mask.flatten(order="F"):
        if pixel != before:
            runs.append(0)
            before = pixel
        runs[-1] += 1
    return {"size": list(mask.shape), "counts": runs}


def segmentation(dice, number, height, width):
    if number % 3 == 2:
        return [[round(float(place), 2) for place in np.ravel(dice.random((9, 2)) * [width, height])] for _ in range(1 + number % 2)]
    mask = blobs(dice, height, width)
    if number % 3 == 1:
        return lengths(mask)
    packed = masks.encode(np.asfortranarray(mask))
    return {"size": packed["size"], "counts": packed["counts"].decode()}


def write(folder):
    dice = np.random.default_rng(5)
    images, annotations = [], []
    for image, (height, width) in enumerate(SIZES, 1):
        name = f"{image}.png"
        Image.fromarray(dice.integers(0, 255, (height, width, 3), np.uint8)).save(folder / name)
        images.append({"id": image, "file_name": name, "height": height, "width": width})
        for number in range(12):
            annotations.append({
                "id": len(annotations) + 1, "image_id": image, "category_id": 1, "bbox": [0, 0, width, height],
                "area": 1, "iscrowd": int(number % 3 != 2), "segmentation": segmentation(dice, number, height, width),
            })
    file = {"info": {}, "images": images, "annotations": annotations, "categories": [{"id": 1, "name": "blob"}]}
    (folder / "x.json").write_text(json.dumps(file))


def compare(one, other):
    one, other = COCO(one), COCO(other)
    assert sorted(one.anns) == sorted(other.anns)
    kinds = set()
    for number, own in one.anns.items():
        again = other.anns[number]
        assert own["image_id"] == again["image_id"]
        found, expected = other.annToMask(again), one.annToMask(own)
        kinds.add((type(own["segmentation"]).__name__, type(again["segmentation"]).__name__))
        differ = int((found != expected).sum())
        # pycocotools rounds the edges of polygons, and differently in the two directions.
        most = 3 * sum(found.shape) if isinstance(own["segmentation"], list) else 0
        assert differ <= most, (number, differ)
    print(json.dumps(sorted(kinds)))


if __name__ == "__main__":
    write(Path(sys.argv[2])) if sys.argv[1] == "write" else compare(*sys.argv[2:])
