"""Writes sources like those of tutorials and competitions: people.py DIR. Prints the labels of each, in the source's order."""

import gzip
import io
import json
import sys
import tarfile
from pathlib import Path

# The folder of this script has its own webdataset.py, so it must not be searched.
sys.path.pop(0)

import h5py
import numpy as np
import pandas as pd
import webdataset
from PIL import Image

N = 12
LABELS = [i % 3 for i in range(N)]
NAMES = [["cat", "dog", "owl"][label] for label in LABELS]
PIXELS = np.random.default_rng(5).integers(0, 256, (N, 8, 9, 3), dtype=np.uint8)
MASKS = np.random.default_rng(6).integers(0, 3, (N, 8, 9), dtype=np.uint8)


def images(folder, names):
    folder.mkdir(parents=True, exist_ok=True)
    for name, pixels in zip(names, PIXELS, strict=True):
        Image.fromarray(pixels).save(folder / name)


def tables(root):
    ids = [f"id_{i:02d}" for i in range(N)]
    images(root / "train_images", [f"{i}.png" for i in ids])
    images(root / "test_images", [f"{i}.png" for i in ids])
    frame = pd.DataFrame({"id_code": ids, "diagnosis": LABELS})
    frame.to_csv(root / "train.csv", index=False)
    frame.to_csv(root / "train_index.csv")
    frame.to_csv(root / "train_semicolon.csv", index=False, sep=";", encoding="utf-8-sig")
    frame.to_csv(root / "train.csv.gz", index=False)
    named = pd.DataFrame({"filepaths": [f"train_images/{i}.png" for i in ids], "label": NAMES})
    named.to_csv(root / "named.csv")
    named.assign(label=np.array(LABELS, float)).to_csv(root / "floats.csv", index=False)
    named.rename(columns={"label": "labels"}).to_csv(root / "lists.csv", index=False)
    named.to_json(root / "named.json", orient="records", indent=1)
    named.assign(split=["val" if i % 4 == 0 else "train" for i in range(N)]).to_csv(root / "splits.csv", index=False)
    (root / "labels.json").write_text(json.dumps({f"train_images/{i}.png": name for i, name in zip(ids, NAMES, strict=True)}))
    lines = [f"train_images/{i}.png {label}\n" for i, label in zip(ids, LABELS, strict=True)]
    (root / "lines.txt").write_text("".join(lines))


def masks(root):
    one_hot = np.eye(3, dtype=np.float32)[MASKS]
    forms = {
        "bool": MASKS > 1, "f32": MASKS.astype("f4"), "i64": MASKS.astype("i8"), "u16": MASKS.astype("u2"),
        "channel": MASKS[..., None], "one_hot": one_hot, "one_hot_first": one_hot.transpose(0, 3, 1, 2),
    }
    for name, form in forms.items():
        np.savez(root / f"{name}.npz", images=PIXELS, masks=form)
        with h5py.File(root / f"{name}.h5", "w") as file:
            file["images"], file["masks"] = PIXELS, form
    with h5py.File(root / "label_map.h5", "w") as file:
        file["image"], file["label"] = PIXELS, MASKS
    with h5py.File(root / "one.h5", "w") as file:
        file["image"], file["label"] = PIXELS[0, :, :, 0].astype("f4"), MASKS[0]
    np.savez(root / "halves.npz", images=PIXELS, masks=MASKS / 2)


def tars(root):
    with webdataset.TarWriter(str(root / "stems.tar")) as out:
        for i in range(N):
            out.write({"__key__": f"{i:03d}", "input.png": PIXELS[i], "output.cls": LABELS[i]})

    def add(out, name, data):
        info = tarfile.TarInfo(name)
        info.size = len(data)
        out.addfile(info, io.BytesIO(data))

    def png(i):
        data = io.BytesIO()
        Image.fromarray(PIXELS[i]).save(data, "PNG")
        return data.getvalue()

    with tarfile.open(root / "folders.tar", "w") as out:
        for i in range(N):
            data = io.BytesIO()
            np.save(data, PIXELS[i])
            add(out, f"{i:03d}/image.npy", data.getvalue())
            add(out, f"{i:03d}/label.cls", str(LABELS[i]).encode())
    by_class = sorted(range(N), key=lambda i: (NAMES[i], i))
    with tarfile.open(root / "classes.tar.gz", "w:gz") as out:
        for i in by_class:
            add(out, f"data/{NAMES[i]}/{i}.png", png(i))
    with tarfile.open(root / "splits.tar", "w") as out:
        for i in range(N):
            add(out, f"{'train' if i < 8 else 'val'}/{NAMES[i]}/{i}.png", png(i))
    (root / "per_class").mkdir()
    for name in sorted(set(NAMES)):
        with tarfile.open(root / "per_class" / f"{name}.tar", "w") as out:
            for i in by_class:
                if NAMES[i] == name:
                    add(out, f"{i}.png", png(i))
    return [LABELS[i] for i in by_class]


def foreign(root):
    (root / "pointer.parquet").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n")
    (root / "page.npz").write_text("<!DOCTYPE html>\n<html><body>Sign in</body></html>")
    with gzip.open(root / "x.npy.gz", "wb") as out:
        np.save(out, PIXELS)
    Image.fromarray(PIXELS[0]).save(root / "one.png")
    for folder, factor in (("deep", 2), ("white", 200)):
        (root / folder).mkdir()
        for name in ("a.png", "b.tif"):
            Image.fromarray(PIXELS[0, ..., 0].astype(np.uint16) * factor).save(root / folder / name)
    (root / "depth").mkdir()
    for number in range(3):
        Image.fromarray(PIXELS[0]).save(root / "depth" / f"rgb_{number}.jpg")
        Image.fromarray(PIXELS[0, ..., 0].astype(np.uint16) * 200).save(root / "depth" / f"sync_depth_{number}.png")


root = Path(sys.argv[1])
for part in ("tables", "masks", "tars", "foreign"):
    (root / part).mkdir()
tables(root / "tables")
masks(root / "masks")
by_class = tars(root / "tars")
foreign(root / "foreign")
np.savez(root / "masks" / "three.npz", image=PIXELS, mask=np.eye(3, dtype=np.uint8)[MASKS % 3])
print(json.dumps({
    "three": (MASKS % 3).tobytes().hex(),
    "labels": LABELS, "by_class": by_class, "pixels": PIXELS.tobytes().hex(), "masks": MASKS.tobytes().hex(),
    "bool": (MASKS > 1).astype(np.uint8).tobytes().hex(),
}))
