"""Writes data sets with a column of objects, as Hugging Face has them: objects.py DIR."""

import json
import sys
from pathlib import Path

import datasets
import numpy as np
from PIL import Image

ROOT = Path(sys.argv[1])
SIZES = {"bbox": [[10.0, 5.0, 8.0, 4.0], [0.0, 0.0, 20.0, 10.0]], "category": [1, 0], "area": [32.0, 200.0], "id": [3, 4]}
NONE = {"bbox": [], "category": [], "area": [], "id": []}
CORNERS = {"bbox": [[10.0, 5.0, 18.0, 9.0], [0.0, 0.0, 20.0, 10.0]], "category": [1, 0], "area": [32.0, 200.0], "id": [3, 4]}
UNSURE = {"bbox": [[1.0, 1.0, 8.0, 4.0]], "category": [1], "area": [32.0], "id": [3]}


def features():
    objects = {
        "bbox": datasets.List(datasets.List(datasets.Value("float32"))),
        "category": datasets.List(datasets.ClassLabel(names=["cat", "dog"])),
        "area": datasets.List(datasets.Value("float64")),
        "id": datasets.List(datasets.Value("int64")),
    }
    return datasets.Features({"image": datasets.Image(), "objects": objects})


def image(shade):
    return Image.fromarray(np.full((10, 20, 3), shade, np.uint8))


for name, objects in (("sizes", SIZES), ("corners", CORNERS), ("unsure", UNSURE)):
    rows = {"image": [image(1), image(2)], "objects": [objects, NONE]}
    datasets.Dataset.from_dict(rows, features=features()).to_parquet(str(ROOT / f"{name}.parquet"))

folder = ROOT / "folder"
folder.mkdir()
rows = []
for number, objects in enumerate((SIZES, NONE)):
    image(number).save(folder / f"{number}.png")
    own = {"bbox": objects["bbox"], "categories": objects["category"]}
    rows.append(json.dumps({"file_name": f"{number}.png", "objects": own}) + "\n")
(folder / "metadata.jsonl").write_text("".join(rows))
