"""Tables and lists as competitions and papers bring them: lists.py DIR. Prints the labels and the names of the classes."""

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from PIL import Image

N = 12
LABELS = [i % 3 for i in range(N)]
NAMES = [["cat", "dog", "owl"][label] for label in LABELS]
PIXELS = np.random.default_rng(7).integers(0, 256, (N, 8, 9, 3), dtype=np.uint8)
FILES = [f"{i:04d}.png" for i in range(N)]
PATHS = [f"images/{name}" for name in FILES]


def images(folder, names=FILES):
    for name, pixels in zip(names, PIXELS, strict=True):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(path)


def tables(root):
    images(root / "images")
    frame = pd.DataFrame({"path": PATHS, "label": NAMES})
    box = {"xmin": 1, "ymin": 1, "xmax": 4, "ymax": 4}
    frame.assign(**box).to_csv(root / "box.csv", index=False)
    boxes = pd.concat([frame.assign(**box)] * 2)
    boxes.to_csv(root / "boxes.csv", index=False)
    boxes.groupby("path").agg(list).reset_index().to_json(root / "boxes.jsonl", orient="records", lines=True)
    pd.DataFrame({"image": PATHS * 2, "caption": [f"picture {i}" for i in range(2 * N)]}).to_csv(root / "captions.csv", index=False)
    tags = ["haze primary", "clear primary road", "clear", "haze", "primary", "road clear"] * 2
    pd.DataFrame({"image_name": PATHS, "tags": tags}).to_csv(root / "tags.csv", index=False)
    pd.DataFrame({"image_name": PATHS, "tags": [f"a{i} b{i}" for i in range(N)]}).to_csv(root / "other_tags.csv", index=False)
    frame.replace("cat", "None").to_csv(root / "none.csv", index=False)
    frame.replace("cat", "").to_csv(root / "empty.csv", index=False)
    frame.assign(label=["NA" if i % 4 == 0 else i % 3 for i in range(N)]).to_csv(root / "na_ids.csv", index=False)
    frame.assign(label=["-" if i % 4 == 0 else i % 3 for i in range(N)]).to_csv(root / "dash.csv", index=False)
    lines = [json.dumps({"path": path, "label": None if i == 0 else name}) for i, (path, name) in enumerate(zip(PATHS, NAMES, strict=True))]
    (root / "null.jsonl").write_text("\n".join(lines))
    halves = frame.assign(weight=[0.5 + i for i in range(N)])
    halves.to_csv(root / "decimal.csv", index=False, sep=";", decimal=",")
    halves.assign(label=halves.weight).to_csv(root / "decimal_label.csv", index=False, sep=";", decimal=",")


def encodings(root):
    images(root / "images")
    frame = pd.DataFrame({"path": PATHS, "label": [name.replace("owl", "\u00e9ider") for name in NAMES]})
    frame.to_csv(root / "utf16.csv", index=False, sep="\t", encoding="utf-16")
    frame.to_csv(root / "latin1.csv", index=False, encoding="latin-1")
    (root / "sep.csv").write_text("sep=;\r\n" + frame.to_csv(index=False, sep=";", lineterminator="\r\n"), newline="")


root = Path(sys.argv[1])
for part in (tables, encodings):
    (root / part.__name__).mkdir()
    part(root / part.__name__)
print(json.dumps({"labels": LABELS}))
