"""Writes datasets as img2dataset and COCO do: downloads.py DIR."""

import io
import json
import os
import sys
from pathlib import Path

# webdataset.py in this folder is not the library.
sys.path = [p for p in sys.path if os.path.abspath(p or ".") != os.path.dirname(os.path.abspath(__file__))]
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import webdataset as wds
from PIL import Image

N = 12
PIXELS = np.random.default_rng(11).integers(0, 256, (N, 8, 9, 3), dtype=np.uint8)


def png(pixels):
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "PNG")
    return out.getvalue()


def images(folder, names):
    folder.mkdir(parents=True)
    for name, pixels in zip(names, PIXELS, strict=False):
        (folder / name).write_bytes(png(pixels))


def img2dataset(root):
    """Tar files with a Parquet file each, or folders of files."""
    for shard in range(2):
        name = f"{shard:05d}"
        keys = [f"{name}{i:04d}" for i in range(3)]
        meta = [{"caption": f"a {key}", "url": f"http://x/{key}", "key": key, "width": 9, "height": 8} for key in keys]
        (root / "tars").mkdir(parents=True, exist_ok=True)
        with wds.TarWriter(str(root / "tars" / f"{name}.tar")) as tar:
            for i, (key, row) in enumerate(zip(keys, meta, strict=True)):
                tar.write({"__key__": key, "png": png(PIXELS[i]), "txt": row["caption"], "json": row})
        folder = root / "files" / name
        images(folder, [f"{key}.png" for key in keys])
        for key, row in zip(keys, meta, strict=True):
            (folder / f"{key}.json").write_text(json.dumps(row, indent=4))
            (folder / f"{key}.txt").write_text(row["caption"])
        for parent in (root / "tars", root / "files"):
            pq.write_table(pa.Table.from_pylist(meta), parent / f"{name}.parquet")
            (parent / f"{name}_stats.json").write_text(json.dumps({"count": 3, "successes": 3}))


def coco(root):
    names = [f"{i:012d}.png" for i in range(N)]
    images(root / "train2017", names)
    pictures = [{"id": i, "file_name": name, "height": 8, "width": 9} for i, name in enumerate(names)]
    captions = [{"id": i, "image_id": i % N, "caption": f"picture {i}"} for i in range(2 * N)]
    (root / "annotations").mkdir()
    (root / "annotations" / "captions_train2017.json").write_text(json.dumps({"images": pictures, "annotations": captions}))


root = Path(sys.argv[1])
for part in (img2dataset, coco):
    (root / part.__name__).mkdir()
    part(root / part.__name__)
