"""HDF5 files made and read by h5py: `write DIR` makes sources, `read FILE` prints what an export contains."""

import hashlib
import io
import json
import os
import sys

import h5py
import numpy as np
from PIL import Image

N, H, W = 11, 6, 5


def pixels():
    return np.random.default_rng(1).integers(0, 256, (N, H, W, 3), dtype=np.uint8)


def labels():
    return np.arange(N) % 3


def common(group, **options):
    group.create_dataset("images", data=pixels(), **options)
    label = group.create_dataset("labels", data=labels().astype("i8"))
    label.attrs["classes"] = ["cat", "dog", "owl"]


def write(folder):
    def make(name, **options):
        return h5py.File(os.path.join(folder, name), "w", **options)

    with make("contiguous.h5") as f:
        common(f)
        f["score"] = np.linspace(0, 1, N, dtype=np.float32)
        f["caption"] = [f"picture {i} ä" for i in range(N)]
        f["fixed"] = np.array([b"f%d" % i for i in range(N)], dtype="S5")
        f["good"] = np.arange(N) % 2 == 0
        f["half"] = np.ones((N, 2), dtype=np.float16)
        f["mean"] = np.zeros(3)
    with make("nested.h5") as f:
        common(f.create_group("a/b"))
    with make("userblock.h5", userblock_size=1024) as f:
        common(f, chunks=(2, 3, 5, 3), compression="gzip")
    with make("latest.h5", libver="latest") as f:
        common(f, chunks=(2, 3, 4, 2), compression="gzip")
    for name, options in {
        "gzip": {"compression": "gzip"},
        "shuffled": {"compression": "gzip", "shuffle": True, "fletcher32": True},
        "lzf": {"compression": "lzf", "shuffle": True},
        "checked": {"fletcher32": True},
        "chunked": {},
        "szip": {"scaleoffset": 0},
    }.items():
        with make(f"{name}.h5") as f:
            common(f, chunks=(4, 4, 2, 3), **options)
            f.create_dataset("wide", data=np.arange(N * 3).reshape(N, 3) * 1000, chunks=(2, 2), **options)
    with make("listed.h5") as f:
        f["images"], f["labels"] = pixels(), labels()
        f["classes"] = ["cat", "dog", "owl"]
    with make("big_endian.h5") as f:
        common(f)
        f["wide"] = np.arange(N * 3).reshape(N, 3).astype(">i4")
    with make("keys.h5") as f:
        for split, part in (("train", slice(0, 7)), ("test", slice(7, N))):
            f[f"x_{split}"] = pixels()[part]
            f[f"y_{split}"] = labels()[part][:, None]
    with make("groups.h5") as f:
        for split, part in (("train", slice(0, 7)), ("val", slice(7, N))):
            f[f"{split}/images"] = pixels()[part]
            f[f"{split}/labels"] = [["cat", "dog", "owl"][i] for i in labels()[part]]
    os.mkdir(os.path.join(folder, "several"))
    for i, part in enumerate((slice(0, 4), slice(4, N))):
        with make(f"several/part-{i}.h5") as f:
            f.create_dataset("images", data=pixels()[part], chunks=(3, H, W, 3) if i else None)
            f["labels"] = labels()[part]
    with make("files.h5") as f:
        data = f.create_dataset("images", (N,), dtype=h5py.vlen_dtype(np.uint8))
        for i, image in enumerate(pixels()):
            out = io.BytesIO()
            Image.fromarray(image).save(out, "PNG")
            data[i] = np.frombuffer(out.getvalue(), np.uint8)
        f["labels"] = labels()
    with make("unwritten.h5") as f:
        f.create_dataset("images", (N, H, W, 3), np.uint8)
        f.create_dataset("filled", (N, 2), np.int16, chunks=(2, 2), fillvalue=7)
        f["labels"] = labels()
    with make("odd.h5") as f:
        common(f)
        f["boxes"] = np.zeros(N, dtype=[("x", "i4"), ("y", "f4")])
        f["opaque"] = np.zeros(N, dtype="V5")
        f.create_dataset("elsewhere", (N, 2), np.uint8, external=[("/etc/passwd", 0, h5py.h5f.UNLIMITED)])
        f["version"] = 3
    with make("external.h5") as f:
        f.create_dataset("images", (N, H, W, 3), np.uint8, external=[("/etc/passwd", 0, h5py.h5f.UNLIMITED)])
    with make("virtual.h5") as f:
        layout = h5py.VirtualLayout((N, H, W, 3), np.uint8)
        layout[:] = h5py.VirtualSource("contiguous.h5", "images", (N, H, W, 3))
        f.create_virtual_dataset("images", layout)
    with make("huge.h5") as f:
        f.create_dataset("images", (1 << 40, 1 << 20, 3), np.uint8, chunks=(1, 64, 3), compression="gzip")
    # The layout version of a hypothetical newer library.
    with open(os.path.join(folder, "contiguous.h5"), "rb") as f:
        old = f.read()
    layout = b"\x08\x00\x18\x00\x00\x00\x00\x00"
    newer = old.replace(layout + b"\x03\x01", layout + b"\x09\x01")
    assert newer != old
    with open(os.path.join(folder, "newer.h5"), "wb") as f:
        f.write(newer)
    with make("loop.h5") as f:
        common(f)
        f["again/group"] = f["/"]
    with make("nothing.h5") as f:
        f["weights"] = np.zeros((3, 3))
    with make("short.h5") as f:
        common(f)
        f["labels2"] = 0
        del f["labels"]
        f["labels"] = labels()[:5]


def singles(folder):
    """Files with one dataset for each image."""

    def png(i):
        out = io.BytesIO()
        Image.fromarray(pixels()[i]).save(out, "PNG")
        return out.getvalue()

    def make(name, items):
        with h5py.File(os.path.join(folder, f"{name}.h5"), "w") as f:
            for path, item in items:
                f[path] = item

    names = ["cat", "dog", "owl"]
    order = sorted(range(N), key=lambda i: (labels()[i], i))
    grouped = [(i, f"{names[labels()[i]]}/{i:04}") for i in range(N)]
    make("classes", [(path, pixels()[i]) for i, path in grouped])
    make("opaque", [(path, np.void(png(i))) for i, path in grouped])
    make("bytes", [(path, np.frombuffer(png(i), np.uint8)) for i, path in grouped])
    make("flat", [(f"img{i:04}", pixels()[i]) for i in range(N)])
    make("single_splits", [(f"{'train' if i < 7 else 'test'}/{path}", pixels()[i]) for i, path in grouped])
    make("pairs", [(f"{group}/{i}", pixels()[i, :, :, 0]) for i in range(N) for group in ("images", "masks")])
    with h5py.File(os.path.join(folder, "packed.h5"), "w") as f:
        for i, path in grouped:
            f.create_dataset(path, data=pixels()[i], compression="gzip")
    make("weights", [("dense/kernel", np.zeros((4, 5), "f4")), ("dense/bias", np.zeros(5, "f4"))])
    make("table", [("rows", np.zeros(N, dtype=[("image", "u1", (4, 4)), ("label", "i8")]))])
    with h5py.File(os.path.join(folder, "linked.h5"), "w") as f:
        f["labels"] = labels()
        f["images"] = h5py.ExternalLink("contiguous.h5", "/images")
        f["more"] = h5py.ExternalLink("contiguous.h5", "/score")
    with h5py.File(os.path.join(folder, "link_beside.h5"), "w") as f:
        common(f)
        f["more"] = h5py.ExternalLink("contiguous.h5", "/score")
    with h5py.File(os.path.join(folder, "unit.h5"), "w") as f:
        f["images"] = (pixels() / 255).astype("f4")
        f["masks"] = pixels()[..., 0] % 3
    print(json.dumps({"order": order}))


def describe(dataset):
    if h5py.check_string_dtype(dataset.dtype):
        value = dataset.asstr()[:].tolist()
    elif h5py.check_vlen_dtype(dataset.dtype):
        value = [hashlib.sha256(item.tobytes()).hexdigest() for item in dataset[:]]
    elif dataset.ndim == 1:
        value = dataset[:].tolist()
    else:
        value = hashlib.sha256(dataset[:].tobytes()).hexdigest()
    classes = dataset.attrs.get("classes", [])
    return {
        "shape": dataset.shape,
        "dtype": str(dataset.dtype),
        "chunks": dataset.chunks,
        "compression": dataset.compression,
        "value": value,
        "classes": [str(name) for name in classes],
    }


def read(path):
    with h5py.File(path) as f:
        found = {name: describe(f[name]) for name in f}
        json.loads(f.attrs["packds"])
    found["expected"] = {"image": hashlib.sha256(pixels().tobytes()).hexdigest(), "label": labels().tolist()}
    print(json.dumps(found))


def dump(_):
    """The contents of every source."""
    print(json.dumps({"pixels": pixels().tobytes().hex(), "labels": labels().tolist()}))


if __name__ == "__main__":
    {"write": write, "singles": singles, "read": read, "dump": dump}[sys.argv[1]](sys.argv[2])
