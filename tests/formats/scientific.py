"""Writes files with SciPy, h5py and Pillow: scientific.py DIR. Prints the contents that packds must read."""

import gzip
import json
import sys
from pathlib import Path

# Some modules in this script's folder have the names of libraries, so Python must not search this folder.
sys.path.pop(0)

import h5py
import numpy as np
import scipy.io
from PIL import Image

N = 6
PIXELS = np.random.default_rng(5).integers(0, 256, (N, 9, 8, 3), dtype=np.uint8)
PLANES = np.random.default_rng(6).normal(size=(N, 9, 8)).astype(np.float32)
IDS = np.array([1, 2, 10, 1, 2, 10], np.uint8)


def matlab(root):
    """The files of SVHN, and arrays of other shapes and types."""
    (root / "svhn").mkdir(parents=True)
    for name, part in (("train", slice(0, 4)), ("test", slice(4, 6))):
        scipy.io.savemat(
            root / f"svhn/{name}_32x32.mat",
            {"X": np.moveaxis(PIXELS[part], 0, -1), "y": IDS[part, None]},
            do_compression=name == "train",
        )
    scipy.io.savemat(root / "rows.mat", {"images": PLANES, "labels": IDS.astype(float), "note": "text", "more": {"a": 1}})
    scipy.io.savemat(root / "columns.mat", {"images": PIXELS.reshape(N, -1).T.astype(np.int16), "labels": IDS[:, None]})
    scipy.io.savemat(root / "cells.mat", {"images": np.array([PIXELS[0], "a"], object), "labels": IDS})
    # Flowers-102.
    (root / "flowers/jpg").mkdir(parents=True)
    for i in range(N):
        Image.fromarray(PIXELS[i]).save(root / f"flowers/jpg/image_{i + 1:05}.png")
    scipy.io.savemat(root / "flowers/imagelabels.mat", {"labels": IDS})
    scipy.io.savemat(root / "flowers/setid.mat", {"trnid": [6, 1], "valid": [4, 2], "tstid": [5, 3]})
    # A scene with bands and its map of classes, next to another file (Indian Pines).
    (root / "scene").mkdir()
    scipy.io.savemat(root / "scene/pines.mat", {"pines": np.moveaxis(PLANES, 0, -1)})
    scipy.io.savemat(root / "scene/pines_gt.mat", {"gt": (PLANES[0] % 3).astype(np.uint8)})
    scipy.io.savemat(root / "old.mat", {"X": PLANES[0]}, format="4")


def pcam(root):
    """Images and labels in separate compressed files, with masks for one split."""
    root.mkdir()
    for split, part in (("train", slice(0, 4)), ("test", slice(4, 6))):
        fields = {"x": PIXELS[part], "y": (IDS[part] % 2).reshape(-1, 1, 1, 1)}
        if split == "train":
            fields["mask"] = PIXELS[part, ..., :1] % 2
        for name, array in fields.items():
            path = root / f"level_2_split_{split}_{name}.h5"
            with h5py.File(path, "w") as file:
                file[name] = array
            path.with_name(path.name + ".gz").write_bytes(gzip.compress(path.read_bytes()))
            path.unlink()
        (root / f"level_2_split_{split}_meta.csv").write_text("coord_x,coord_y\n1,2\n")


def masks(root):
    """Masks of another size than their images. Returns the masks as Pillow resizes them."""
    resized = {}
    for folder, size in (("smaller", (7, 8)), ("larger", (40, 45)), ("other", (9, 9))):
        for kind in ("images", "masks"):
            (root / folder / kind).mkdir(parents=True)
        for i in range(N):
            image = Image.fromarray(np.repeat(np.repeat(PIXELS[i, :9, :8], 2, 0), 2, 1))
            mask = Image.fromarray(PIXELS[i, ..., 0] % 4).resize(size, Image.NEAREST)
            image.save(root / folder / f"images/{i}.png")
            mask.save(root / folder / f"masks/{i}.png")
            resized[folder] = resized.get(folder, b"") + mask.resize(image.size, Image.NEAREST).tobytes()
    return {folder: masks.hex() for folder, masks in resized.items()}


root = Path(sys.argv[1])
matlab(root / "matlab")
pcam(root / "pcam")
print(json.dumps({
    "pixels": PIXELS.tobytes().hex(),
    "planes": PLANES.tobytes().hex(),
    "columns": PIXELS.astype(np.int16).tobytes().hex(),
    "ids": IDS.tolist(),
    "scene": [np.ascontiguousarray(np.moveaxis(PLANES, 0, -1)).tobytes().hex(), (PLANES[0] % 3).astype(np.uint8).tobytes().hex()],
    **masks(root / "masks"),
}))
