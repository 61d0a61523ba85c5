"""Writes LitData's chunks with the library litdata, and prints what its own reader returns."""

import json
import sys

import numpy as np
import torch
from litdata import StreamingDataset
from litdata.streaming import Cache
from litdata.types import Jpeg
from PIL import Image
from records import N, jpeg, pixels, png


def sample(i):
    return {
        "image": Image.fromarray(pixels(i)), "label": i % 3, "photo": Jpeg(bytes=jpeg(i)), "raw": bytes([i] * i),
        "file": png(i), "text": f"caption {i}", "flag": i % 2 == 0, "score": i / 7,
        "tensor": torch.arange(6, dtype=torch.int16).reshape(2, 3) + i, "vector": torch.arange(3, dtype=torch.float32) + i,
        "array": np.arange(6, dtype=np.uint32).reshape(2, 3) + np.uint32(i), "row": np.arange(4, dtype=np.float64) + i,
        "meta": {"a": i, "b": [i, f"x{i}"]},
    }


def save(out, make=sample, **settings):
    cache = Cache(input_dir=out, chunk_size=7, **settings)
    for i in range(N):
        cache[i] = make(i)
    cache.done()
    cache.merge()


def write(folder):
    save(f"{folder}/raw")
    for level in ["chunk", "batch", "sample"]:
        save(f"{folder}/{level}", compression="zstd:3", compression_level=level)
    save(f"{folder}/splits/train")
    save(f"{folder}/splits/val")
    save(f"{folder}/tuple", lambda i: (Image.fromarray(pixels(i)), i % 3))
    save(f"{folder}/pickled", lambda i: {"image": Image.fromarray(pixels(i)), "meta": {1, 2, i}.__class__})
    save(f"{folder}/table", lambda i: {"image": png(i), "label": i % 3})


def as_bytes(name, value, i):
    if name in ("photo", "file"):
        # The library decodes JPEG files, and packds keeps them.
        return jpeg(i) if name == "photo" else bytes(value)
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, list):
        return json.dumps(value, separators=(",", ":")).encode()
    if isinstance(value, bool):
        return bytes([value])
    if isinstance(value, (bytes, bytearray)):
        return bytes(value)
    if isinstance(value, torch.Tensor):
        value = value.numpy()
    return np.asarray(value, np.int32 if name == "label" else None).tobytes()


def flat(row, prefix=""):
    for key, value in row.items():
        if isinstance(value, dict):
            yield from flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def read(folder):
    fields = {}
    for i, row in enumerate(StreamingDataset(folder)):
        # Exports have the paths of the samples, which are no field of the pack.
        for name, value in flat({key: value for key, value in row.items() if key != "path"}):
            fields.setdefault(name, []).append(as_bytes(name, value, i).hex())
    print(json.dumps(fields))


if __name__ == "__main__":
    {"write": write, "read": read}[sys.argv[1]](sys.argv[2])
