"""Writes MDS with the library streaming, and prints what its own reader returns."""

import json
import sys
from decimal import Decimal

import numpy as np
from PIL import Image
from records import N, jpeg, pixels, png
from streaming import MDSWriter
from streaming.base.format import reader_from_json
from streaming.base.util import merge_index

COLUMNS = {
    "image": "png", "label": "int", "photo": "jpeg", "raw": "bytes", "text": "str", "u8": "uint8", "f16": "float16",
    "f64": "float64", "digits": "str_int", "float": "str_float", "decimal": "str_decimal", "array": "ndarray",
    "typed": "ndarray:float32", "fixed": "ndarray:int16:2,3", "gray": "pil", "deep": "pil", "json": "json",
}


def sample(i):
    return {
        "image": png(i), "label": i % 3, "photo": jpeg(i), "raw": bytes([i] * i), "text": f"caption {i}",
        "u8": np.uint8(i), "f16": np.float16(i / 2), "f64": np.float64(i / 3), "digits": i * 10**15, "float": i / 7,
        "decimal": Decimal(i) / 8, "array": np.arange(6, dtype=np.uint16).reshape(2, 3) + np.uint16(i),
        "typed": np.arange(300, dtype=np.float32).reshape(1, 300) + np.float32(i),
        "fixed": np.arange(6, dtype=np.int16).reshape(2, 3) + np.int16(i), "gray": Image.fromarray(pixels(i)[..., 0]),
        "deep": Image.fromarray(pixels(i)[..., 1].astype(np.float32)), "json": {"a": i, "b": [1, 2]},
    }


def save(out, numbers=range(N), compression=None):
    with MDSWriter(out=out, columns=COLUMNS, compression=compression, size_limit=10000, hashes=["sha1"]) as writer:
        for i in numbers:
            writer.write(sample(i))


def write(folder):
    save(f"{folder}/raw")
    for compression in ["zstd:7", "gz", "bz2", "br", "snappy"]:
        save(f"{folder}/{compression.partition(':')[0]}", compression=compression)
    for name in ["splits/train", "merged/0"]:
        save(f"{folder}/{name}", range(15))
    for name in ["splits/val", "merged/1"]:
        save(f"{folder}/{name}", range(15, N))
    merge_index(f"{folder}/merged")
    with MDSWriter(out=f"{folder}/pickled", columns={"image": "png", "meta": "pkl"}) as writer:
        writer.write({"image": png(0), "meta": {1, 2}})


def as_bytes(name, value, i):
    if name == "photo" and not isinstance(value, bytes):
        # The library decodes the file, and packds keeps it.
        assert np.asarray(value).shape == (5, 7, 3)
        return jpeg(i)
    if isinstance(value, (str, Decimal)):
        return str(value).encode()
    if isinstance(value, dict):
        return json.dumps(value, separators=(",", ":")).encode()
    if isinstance(value, bytes):
        return value
    return np.asarray(value, np.int32 if name == "label" else None).tobytes()


def read(folder):
    with open(f"{folder}/index.json") as file:
        shards = [reader_from_json(folder, "", shard) for shard in json.load(file)["shards"]]
    rows = [reader[k] for reader in shards for k in range(reader.samples)]
    fields = {name: [as_bytes(name, row[name], i).hex() for i, row in enumerate(rows)] for name in COLUMNS}
    print(json.dumps(fields))


if __name__ == "__main__":
    {"write": write, "read": read}[sys.argv[1]](sys.argv[2])
