"""Writes and reads TFRecord with the library tfrecord and its protocol buffers, and with crc32c for checksums."""

import gzip
import json
import os
import struct
import sys

from real_tfrecord import tfrecord

import crc32c
import numpy as np
from tfrecord import example_pb2

from records import H, N, NAMES, W, decoded, pixels, png, points


def write(folder):
    writer = tfrecord.TFRecordWriter(f"{folder}/one.tfrecord")
    for i in range(N):
        writer.write({
            "image/encoded": (png(i), "byte"), "image/format": (b"PNG", "byte"),
            "image/height": (H, "int"), "image/width": (W, "int"),
            "image/class/label": (i % 3 + 1, "int"), "image/class/text": (NAMES[i % 3].encode(), "byte"),
            "image/filename": (b"n%d.png" % i, "byte"), "score": (i / 4, "float"),
            "boxes": ([i, 1, 2][: 1 + i % 3], "int"), "caption": (f"caption {i}".encode(), "byte"),
        })
    writer.close()
    with open(f"{folder}/one.tfrecord", "rb") as one, gzip.open(f"{folder}/two.tfrecord.gz", "wb") as two:
        two.write(one.read())
    # The layout of TensorFlow Datasets.
    os.mkdir(f"{folder}/tfds")
    for split, numbers in [("train", range(0, 16)), ("test", range(16, N))]:
        for shard in range(2):
            writer = tfrecord.TFRecordWriter(f"{folder}/tfds/animals-{split}.tfrecord-{shard:05}-of-00002")
            for i in [i for i in numbers if i % 2 == shard]:
                writer.write({"image": (png(i), "byte"), "label": (i % 3, "int")})
            writer.close()
    with open(f"{folder}/tfds/label.labels.txt", "w") as names:
        names.write("".join(f"{name}\n" for name in NAMES))
    writer = tfrecord.TFRecordWriter(f"{folder}/raw.tfrecord")
    for i in range(N):
        writer.write({"image_raw": (pixels(i).tobytes(), "byte"), "height": (H, "int"), "width": (W, "int"),
                      "depth": (3, "int"), "label": (i % 3, "int")})
    writer.close()


def varint(n):
    return bytes([n]) if n < 128 else bytes([n & 127 | 128]) + varint(n >> 7)


def field(number, body):
    return varint(number << 3 | 2) + varint(len(body)) + body


def serialized(array, kind):
    """What tf.io.serialize_tensor writes: the type, the shape and the numbers."""
    shape = b"".join(field(2, b"\x08" + varint(size)) for size in array.shape)
    return b"\x08" + varint(kind) + field(2, shape) + field(4, array.tobytes())


def write_tensors(folder):
    def save(name, features):
        writer = tfrecord.TFRecordWriter(f"{folder}/{name}.tfrecord")
        for i in range(N):
            writer.write(features(i))
        writer.close()

    size = {"height": (H, "int"), "width": (W, "int")}
    depth = {**size, "depth": (3, "int")}
    wide = lambda i: pixels(i).astype("<u2") * 3
    real = lambda i: pixels(i).astype("<f4") / 2
    label = lambda i: {"label": (i % 3, "int")}
    save("tensors", lambda i: {
        "image": (serialized(pixels(i), 4), "byte"), "label": (serialized(np.array(i % 3), 9), "byte"),
        "points": (serialized(points(i), 1), "byte"), "score": (serialized(np.float32(i / 4), 1), "byte"),
    })
    save("floats", lambda i: {"image": (serialized(real(i), 1), "byte"), **label(i)})
    save("strings", lambda i: {"image": (b"\x08\x07\x12\x00B\x03abc", "byte"), **label(i)})
    save("raw_u16", lambda i: {"image_raw": (wide(i).tobytes(), "byte"), **depth, **label(i)})
    save("raw_f32", lambda i: {"image_raw": (real(i).tobytes(), "byte"), **depth, **label(i)})
    save("raw_i16", lambda i: {"image_raw": (wide(i).tobytes(), "byte"), "dtype": (b"int16", "byte"), **depth, **label(i)})
    save("no_depth", lambda i: {"image_raw": (real(i)[..., 0].tobytes(), "byte"), **size, **label(i)})


def masked(data):
    crc = crc32c.crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def check_frames(path):
    data = (gzip.open if path.endswith(".gz") else open)(path, "rb").read()
    at = 0
    while at < len(data):
        (length,) = struct.unpack_from("<Q", data, at)
        assert struct.unpack_from("<I", data, at + 8)[0] == masked(data[at : at + 8])
        record = data[at + 12 : at + 12 + length]
        assert struct.unpack_from("<I", data, at + 12 + length)[0] == masked(record)
        example_pb2.Example.FromString(record)
        at += 16 + length


def read(path):
    paths = sorted(f"{path}/{name}" for name in os.listdir(path) if "tfrecord" in name) if os.path.isdir(path) else [path]
    rows = []
    for one in paths:
        check_frames(one)
        compression = "gzip" if one.endswith(".gz") else None
        for row in tfrecord.tfrecord_loader(one, None, None, compression_type=compression):
            i = len(rows)
            rows.append({
                "same": bool((decoded(bytes(row["image/encoded"])) == pixels(i)).all()),
                "label": int(row["image/class/label"][0]),
                "text": bytes(row["image/class/text"]).decode(),
                "size": [int(row["image/height"][0]), int(row["image/width"][0])],
                "file": bytes(row["image/filename"]).decode(),
                "keys": sorted(row),
            })
            if "points" in row:
                array = np.frombuffer(bytes(row["points"]), bytes(row["points/dtype"]).decode())
                rows[-1]["points"] = bool((array.reshape(row["points/shape"]) == points(i)).all())
    print(json.dumps({"rows": rows, "files": [os.path.basename(p) for p in paths]}))


{"write": write, "tensors": write_tensors, "read": read}[sys.argv[1]](sys.argv[2])
