"""Writes .beton files with the library ffcv, and prints what its own reader finds in them."""

import json
import os
import sys

os.environ["TQDM_DISABLE"] = "1"

import numpy as np
import torch
from ffcv.fields import BytesField, FloatField, IntField, JSONField, NDArrayField, RGBImageField, TorchTensorField
from ffcv.reader import Reader
from ffcv.writer import DatasetWriter
from records import N, pixels


class Custom(IntField):
    """A field that the library does not know."""


class Samples:
    def __init__(self, sample):
        self.sample = sample

    def __len__(self):
        return N

    def __getitem__(self, index):
        return self.sample(int(index))


def save(path, fields, sample):
    DatasetWriter(path, fields, num_workers=1).from_indexed_dataset(Samples(sample))


def write(folder):
    fields = {
        "image": RGBImageField(), "photo": RGBImageField(write_mode="proportion"), "label": IntField(),
        "score": FloatField(), "raw": BytesField(), "array": NDArrayField(np.dtype("<f4"), (2, 3)), "notes": JSONField(),
        "tensor": TorchTensorField(torch.int16, (4,)),
    }

    def sample(i):
        array, tensor = np.arange(6, dtype="<f4").reshape(2, 3) + np.float32(i), torch.arange(4, dtype=torch.int16) + i
        raw = np.frombuffer(bytes([i] * (i + 1)), np.uint8)
        return pixels(i), np.concatenate([pixels(i)] * 3), i % 3, i / 7, raw, array, {"a": i}, tensor

    save(f"{folder}/all.beton", fields, sample)
    os.mkdir(f"{folder}/splits")
    for split in ["train", "val"]:
        fields = {"image": RGBImageField(), "label": IntField()}
        save(f"{folder}/splits/{split}.beton", fields, lambda i: (pixels(i), i % 3))
    save(f"{folder}/custom.beton", {"image": RGBImageField(), "mine": Custom()}, lambda i: (pixels(i), i))


def read(path):
    reader = Reader(path)
    with open(path, "rb") as file:
        data = file.read()
    sizes = {int(row["ptr"]): int(row["size"]) for row in reader.alloc_table}
    fields = {}
    for name, column in zip(reader.field_names, reader.metadata.dtype.names):
        values = reader.metadata[column]
        if name == "label":
            items = [np.int32(value).tobytes() for value in values]
        elif name == "score":
            items = [value.tobytes() for value in values]
        else:
            # The names of the place are those of the library's own types.
            key = next((key for key in ("data_ptr", "ptr") if key in (values.dtype.names or ())), None)
            places = [int(value[key] if key else value) for value in values]
            items = [data[place : place + sizes[place]] for place in places]
        if name == "notes":
            items = [json.dumps(json.loads(item[:-1]), separators=(",", ":")).encode() for item in items]
        fields[name] = [item.hex() for item in items]
    print(json.dumps(fields))


if __name__ == "__main__":
    {"write": write, "read": read}[sys.argv[1]](sys.argv[2])
