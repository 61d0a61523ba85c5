"""Writes tables and lists like those of competitions and papers: lists.py DIR. Prints the labels and the class names."""

import csv
import json
import os
import sys
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"

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


def papers(root):
    # Food-101: paths without extensions in meta/, next to images/.
    classes = ["pie", "waffles"]
    paths = [f"{classes[i % 2]}/{i}" for i in range(N)]
    images(root / "food" / "images", [f"{path}.jpg" for path in paths])
    (root / "food" / "meta").mkdir()
    (root / "food" / "meta" / "train.txt").write_text("\n".join(paths))
    # FGVC-Aircraft: an id and a label of one or more words.
    images(root / "fgvc" / "images", [f"{i:07d}.jpg" for i in range(N)])
    variants = [f"{i:07d} {['707-320', 'A320 family', 'BAe 146'][i % 3]}\n" for i in range(N)]
    (root / "fgvc" / "images_family_train.txt").write_text("".join(variants))
    # DTD: the lists are in labels/, and must not be mistaken for boxes.
    paths = [f"{['banded', 'blotchy'][i % 2]}/{i}.jpg" for i in range(N)]
    images(root / "dtd" / "images", paths)
    (root / "dtd" / "labels").mkdir()
    (root / "dtd" / "labels" / "train1.txt").write_text("\n".join(paths))
    # SUN397: paths from the root of the dataset, with classes of several folders.
    paths = [f"{['a/abbey', 'b/bar/indoor'][i % 2]}/{i}.jpg" for i in range(N)]
    images(root / "sun", paths)
    (root / "sun" / "Training_01.txt").write_text("".join(f"/{path}\n" for path in paths))
    # Stanford Cars and Flowers-102: labels in MATLAB files. Their contents are not read.
    images(root / "cars" / "cars_train")
    (root / "cars" / "devkit").mkdir()
    (root / "cars" / "devkit" / "cars_meta.mat").write_bytes(b"MATLAB 5.0 MAT-file")
    images(root / "flowers" / "jpg")
    (root / "flowers" / "imagelabels.mat").write_bytes(b"MATLAB 5.0 MAT-file")
    images(root / "flat")
    (root / "flat" / "labels.mat").write_bytes(b"MATLAB 5.0 MAT-file")
    # YOLO: text files of numbers that describe boxes.
    images(root / "yolo" / "images")
    (root / "yolo" / "labels").mkdir()
    (root / "yolo" / "labels" / "0000.txt").write_text("0 0.5 0.5 0.2 0.1\n")


def runs_mask(classes, order="F"):
    """A mask, decoded as on Kaggle: its pixels are counted down the columns, or along the rows with order `C`."""
    mask = np.zeros(8 * 9, np.uint8)
    for label, text in classes.items():
        numbers = [int(word) for word in text.split()]
        for start, n in zip(numbers[::2], numbers[1::2], strict=True):
            mask[start - 1 : start - 1 + n] = label
    return mask.reshape(8, 9, order=order).tobytes().hex()


def others(root):
    images(root / "images")
    rle = ["1 3 10 5" if i % 2 else None for i in range(N)]
    pd.DataFrame({"ImageId": FILES, "EncodedPixels": rle}).to_csv(root / "rle.csv", index=False)
    pd.DataFrame({"ImageId": FILES, "mask": rle}).to_csv(root / "order.csv", index=False)
    pd.DataFrame({"ImageId": FILES, "rle": ["5 2 3 1"] + rle[1:]}).to_csv(root / "relative.csv", index=False)
    pd.DataFrame({"ImageId": FILES, "rle": ["70 4"] + rle[1:]}).to_csv(root / "outside.csv", index=False)
    pd.DataFrame({"ImageId": FILES, "rle": rle, "encoding": rle}).to_csv(root / "two.csv", index=False)
    pd.DataFrame({"img": FILES, "rle_mask": rle}).to_csv(root / "carvana.csv", index=False)
    # Arrays of 16 bits, and arrays whose height and width are unclear.
    for folder, pixels in (("planes", PIXELS[..., 0].astype(np.uint16)), ("bands", PIXELS.astype(np.uint16))):
        (root / folder).mkdir()
        for i, plane in enumerate(pixels):
            np.save(root / folder / f"{i}.npy", plane)
        pd.DataFrame({"path": [f"{folder}/{i}.npy" for i in range(N)], "rle": rle}).to_csv(root / f"{folder}.csv", index=False)
    # Two objects of two classes for each image. They overlap.
    objects = [(name, label, "1 3 10 5" if label == 1 else "3 2") for name in FILES for label in (1, 2)]
    pd.DataFrame(objects, columns=["ImageId", "ClassId", "EncodedPixels"]).to_csv(root / "objects.csv", index=False)
    pd.DataFrame([(f"{name}_{'Fish' if label == 1 else 'Sugar'}", runs if name == FILES[1] else None) for name, label, runs in objects], columns=["Image_Label", "EncodedPixels"]).to_csv(root / "joined.csv", index=False)
    pd.DataFrame([(name, runs, i) for i, (name, _, runs) in enumerate(objects)], columns=["ImageId", "EncodedPixels", "area"]).to_csv(root / "areas.csv", index=False)
    pd.DataFrame({"path": PATHS, "label": ["1 3"] * N}).to_csv(root / "pairs.csv", index=False)
    pd.DataFrame({"path": PATHS, "label": LABELS}).to_csv(root / "ids.csv", index=False)
    (root / "classes.txt").write_text("cat\ndog\nowl\n")
    (root / "nested.json").write_text(json.dumps([{"path": path, "meta": {"label": name}} for path, name in zip(PATHS, NAMES, strict=True)]))
    for name, pixels, labels in [("sizes", PIXELS, LABELS[:10]), ("last", np.moveaxis(PIXELS, 0, 3), LABELS), ("unlabelled", np.moveaxis(PIXELS, 0, 3), None)]:
        (root / name).mkdir()
        np.save(root / name / "images.npy", np.ascontiguousarray(pixels))
        if labels is not None:
            np.save(root / name / "labels.npy", np.array(labels))


def written(root):
    images(root)
    frame = pd.DataFrame({"file": FILES, "label": NAMES})
    flags = pd.get_dummies(frame.label).astype(int)
    pd.concat([frame[["file"]], flags], axis=1).to_csv(root / "flags.csv", index=False)
    pd.concat([frame[["file"]], flags.astype(float)], axis=1).to_csv(root / "float_flags.csv", index=False)
    pd.DataFrame({"photo": FILES, "label": NAMES}).to_csv(root / "photo.csv", index=False)
    frame.to_csv(root / "index.csv")
    frame.to_csv(root / "crlf.csv", index=False, lineterminator="\r\n", quoting=csv.QUOTE_ALL)
    lesions = {"lesion_id": [f"HAM_{i}" for i in range(N)], "image_id": [Path(name).stem for name in FILES], "dx": NAMES}
    ages = {"dx_type": ["histo", "consensus"] * (N // 2), "age": [40.0, np.nan, 55.0] * (N // 3), "sex": ["male", "female"] * (N // 2)}
    pd.DataFrame(lesions | ages).to_csv(root / "ham.csv", index=False)
    pd.DataFrame({"file": FILES, "diagnosis": LABELS, "age": range(N)}).to_csv(root / "diagnosis.csv", index=False)
    frame.assign(split=["train", "train", "val"] * (N // 3)).to_csv(root / "split.csv", index=False)
    frame.assign(fold=[i % 5 for i in range(N)]).to_csv(root / "fold.csv", index=False)
    with (root / "comma.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerows([["file", "label", ""], *([name, label, ""] for name, label in zip(FILES, NAMES, strict=True))])
    with (root / "dict.csv").open("w", newline="") as file:
        rows = csv.DictWriter(file, ["file", "label", "note"])
        rows.writeheader()
        rows.writerows({"file": name, "label": label, "note": 'says "a, b"\nand more'} for name, label in zip(FILES, NAMES, strict=True))
    with (root / "dict.tsv").open("w", newline="") as file:
        rows = csv.DictWriter(file, ["file", "label"], dialect="excel-tab")
        rows.writeheader()
        rows.writerows({"file": name, "label": label} for name, label in zip(FILES, NAMES, strict=True))
    # pandas reads such quotes with skipinitialspace. They begin after the first 64 KiB.
    plain = "".join(f"{name}, {label}\n" for name, label in zip(FILES, NAMES, strict=True))
    (root / "late.csv").write_text("file, label\n" + plain * 400 + '0000.png, "cat"\n')
    assert pd.read_csv(root / "late.csv", skipinitialspace=True).label.unique().tolist() == list(dict.fromkeys(NAMES))


def imagefolder(root):
    from datasets import load_dataset

    images(root / "train")
    rows = [{"file_name": name, "text": f"picture {i}", "n": i} for i, name in enumerate(FILES)]
    lines = "\n".join(json.dumps(row) for row in rows)
    (root / "train" / "metadata.jsonl").write_text(lines)
    read = load_dataset("imagefolder", data_dir=str(root), split="train", cache_dir=str(root.with_suffix(".cache")))
    # An image that the table does not name; datasets leaves it out, too.
    Image.fromarray(PIXELS[0]).save(root / "train" / "extra.png")
    again = load_dataset("imagefolder", data_dir=str(root), split="train", cache_dir=str(root.with_suffix(".cache2")))
    assert again["text"] == read["text"] == [row["text"] for row in rows]


def parquet(root):
    """Splits with metadata.parquet, one of the three forms that Hugging Face documents for folders of images."""
    from datasets import load_dataset

    for split in ("train", "test"):
        images(root / split)
        frame = pd.DataFrame({"file_name": FILES, "text": [f"{split} {i}" for i in range(len(FILES))]})
        frame.assign(score=[i / 2 for i in range(len(FILES))]).to_parquet(root / split / "metadata.parquet")
    read = load_dataset("imagefolder", data_dir=str(root), cache_dir=str(root.with_suffix(".cache")))
    assert {split: len(read[split]) for split in read} == {"train": len(FILES), "test": len(FILES)}
    frame = pd.DataFrame({"path": [f"train/{name}" for name in FILES], "label": NAMES, "when": pd.Timestamp("2026-01-02", tz="UTC")})
    frame.to_parquet(root / "rows.parquet")


root = Path(sys.argv[1])
for part in (tables, encodings, papers, others, written, imagefolder, parquet):
    (root / part.__name__).mkdir()
    part(root / part.__name__)
print(json.dumps({"labels": LABELS, "runs": {"one": runs_mask({1: "1 3 10 5"}), "two": runs_mask({1: "1 3 10 5", 2: "3 2"}), "none": runs_mask({}), "rows": runs_mask({1: "1 3 10 5"}, "C")}}))
