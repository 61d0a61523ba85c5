"""Zarr groups made and read by zarr-python: `write DIR` makes sources, `read DIR` prints what an export contains."""

import hashlib
import json
import os
import sys

import numpy as np
import zarr
from zarr.codecs import BloscCodec, BytesCodec, Crc32cCodec, GzipCodec, ShardingCodec, TransposeCodec, ZstdCodec
from zarr.codecs.numcodecs import BZ2, Adler32, Shuffle, Zlib

from hdf5 import H, N, W, labels, pixels


def common(path, version, chunks, names=True, **options):
    group = zarr.open_group(path, mode="w", zarr_format=version)
    image = group.create_array("images", shape=(N, H, W, 3), dtype="u1", chunks=chunks, **options)
    image[:] = pixels()
    label = group.create_array("labels", shape=(N,), dtype="i8", chunks=(4,))
    label[:] = labels()
    label.attrs["classes"] = ["cat", "dog", "owl"]
    wide = group.create_array("wide", shape=(N, 3), dtype=">i4" if version == 2 else "i4", chunks=(4, 2), fill_value=7)
    wide[:4] = np.arange(12).reshape(4, 3)
    if names:
        caption = group.create_array("caption", shape=(N,), dtype=str, chunks=(4,))
        caption[:] = np.array([f"picture {i} ä" for i in range(N)], dtype=object)
    return group


def write(folder):
    def at(name):
        return os.path.join(folder, name)

    split = (4, 4, 2, 3)
    for name, codecs in {
        "plain": None,
        "gzip": GzipCodec(),
        "zstd": ZstdCodec(checksum=True),
        "blosc": BloscCodec(),
        "bitshuffle": BloscCodec(cname="zstd", shuffle="bitshuffle", typesize=2),
        "zlib": Zlib(),
        "bz2": BZ2(),
        "shuffled": [Shuffle(elementsize=4), Zlib()],
        "crc32c": [Crc32cCodec()],
        "adler32": [Adler32(), GzipCodec()],
    }.items():
        common(at(f"{name}3.zarr"), 3, split, compressors=codecs)
    common(at("sharded3.zarr"), 3, (2, 3, 5, 3), shards=(4, 6, 5, 3), compressors=ZstdCodec())
    start = ShardingCodec(
        chunk_shape=(2, 3, 5, 3),
        codecs=[TransposeCodec(order=(0, 3, 1, 2)), BytesCodec(), BZ2(), Crc32cCodec()],
        index_codecs=[BytesCodec(endian="big")],
        index_location="start",
    )
    common(at("start3.zarr"), 3, (4, 6, 5, 3), serializer=start, compressors=None)
    common(at("big3.zarr"), 3, split, filters=[TransposeCodec(order=(3, 0, 2, 1))], serializer=BytesCodec(endian="big"))
    import numcodecs

    for name, codec in {
        "plain": None,
        "gzip": numcodecs.GZip(),
        "zstd": numcodecs.Zstd(),
        "blosc": numcodecs.Blosc(),
        "zlib": numcodecs.Zlib(),
        "bz2": numcodecs.BZ2(),
    }.items():
        common(at(f"{name}2.zarr"), 2, split, compressors=codec)
    common(at("fortran2.zarr"), 2, split, order="F")
    for name, filters in {
        "shuffled": [numcodecs.Shuffle(elementsize=2)],
        "crc32c": [numcodecs.CRC32C()],
        "adler32": [numcodecs.Adler32()],
    }.items():
        common(at(f"{name}2.zarr"), 2, split, filters=filters, compressors=numcodecs.Zlib())
    for name in ["consolidated2.zarr", "consolidated3.zarr"]:
        common(at(name), int(name[-6]), split)
        zarr.consolidate_metadata(at(name))


def bombs(folder):
    """Replaces a chunk of each codec with one that unpacks to far more zeros than a chunk can contain."""
    import numcodecs

    zeros = np.zeros(1 << 23, "u1")
    for codec in [numcodecs.GZip(), numcodecs.Zstd(), numcodecs.Blosc(), numcodecs.Zlib(), numcodecs.BZ2()]:
        with open(os.path.join(folder, f"{codec.codec_id}2.zarr/images/1.0.0.0"), "wb") as file:
            file.write(codec.encode(zeros))


def describe(array):
    data = array[:]
    if array.dtype.kind in "OT" or data.dtype.kind in "OT":
        value = [v.hex() if isinstance(v, bytes) else str(v) for v in data.tolist()]
    elif data.ndim == 1:
        value = data.tolist()
    else:
        value = hashlib.sha256(data.tobytes()).hexdigest()
    numbers = data.dtype.kind not in "OT" and data.size < 10000
    return {
        "bytes": data.tobytes().hex() if numbers else None,
        "shape": array.shape,
        "chunks": array.chunks,
        "shards": array.shards,
        "dtype": str(data.dtype),
        "dims": getattr(array.metadata, "dimension_names", None),
        "value": value,
        "classes": array.attrs.get("classes", []),
    }


def read(path):
    group = zarr.open_group(path, mode="r")
    json.loads(group.attrs["packds"])
    found = {name: describe(array) for name, array in group.arrays()}
    found["expected"] = {"image": hashlib.sha256(pixels().tobytes()).hexdigest(), "label": labels().tolist()}
    print(json.dumps(found))


if __name__ == "__main__":
    {"write": write, "read": read, "bombs": bombs}[sys.argv[1]](sys.argv[2])
