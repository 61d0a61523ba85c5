"""Writes archives like those that people download: archive.py write DIR. Each contains the files of a folder with the same name."""

import bz2
import gzip
import io
import lzma
import os
import pickle
import shutil
import struct
import sys
import tarfile
import zipfile

import numpy as np
import zstandard
from PIL import Image

RNG = np.random.default_rng(5)


def save(path, shape=(6, 7, 3)):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    Image.fromarray(RNG.integers(0, 256, shape, dtype=np.uint8)).save(path)


def write(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as out:
        out.write(data)


def classes(root):
    for name in ("dog", "cat"):
        for i in (2, 1, 3):
            save(f"{root}/pets/{name}/{name}.{i}.png")
    os.makedirs(f"{root}/pets/owl")
    write(f"{root}/pets/README.txt", b"pets")
    write(f"{root}/pets/cat/._cat.1.png", b"\x00\x05\x16\x07")
    write(f"{root}/__MACOSX/pets/cat/._cat.1.png", b"\x00\x05\x16\x07")


def pairs(root):
    for i in range(3):
        save(f"{root}/images/{i}.png")
        save(f"{root}/masks/{i}.png", (6, 7))


def pairs_of_arrays(root):
    for folder, shape in (("images", (6, 7, 3)), ("masks", (6, 7))):
        os.makedirs(f"{root}/{folder}")
        for i in range(3):
            np.save(f"{root}/{folder}/{i}.npy", RNG.integers(0, 3, shape, dtype=np.uint8))


def beside(root):
    for i in range(3):
        save(f"{root}/{i}_image.png")
        save(f"{root}/{i}_mask.png", (6, 7))


def splits(root):
    for split in ("train", "test"):
        for name in ("a", "b"):
            save(f"{root}/{split}/{name}/1.png")


def cifar(root):
    for i in (1, 2):
        batch = {b"data": RNG.integers(0, 256, (4, 3072), dtype=np.uint8), b"labels": [0, 1, 2, 3]}
        write(f"{root}/cifar-10-batches-py/data_batch_{i}", pickle.dumps(batch, protocol=2))


def mnist(root):
    images = RNG.integers(0, 256, (3, 28, 28), dtype=np.uint8)
    for name, head, data in (
        ("train-images-idx3-ubyte", struct.pack(">IIII", 2051, 3, 28, 28), images.tobytes()),
        ("train-labels-idx1-ubyte", struct.pack(">II", 2049, 3), b"\x00\x01\x02"),
    ):
        write(f"{root}/gzip/{name}.gz", gzip.compress(head + data))


def zarr_store(root):
    import zarr

    group = zarr.open_group(root, mode="w")
    group.create_array("images", data=RNG.integers(0, 256, (4, 5, 6, 3), dtype=np.uint8))
    group.create_array("labels", data=np.arange(4))


def names(root):
    for folder, _, files in sorted(os.walk(root)):
        yield os.path.relpath(folder, root) + "/"
        for name in files:
            yield os.path.relpath(os.path.join(folder, name), root)


def zip_folder(root, path, method):
    with zipfile.ZipFile(path, "w", method) as out:
        for name in names(root):
            if name != "./":
                out.write(f"{root}/{name}", name)


def tar_folder(root, path, mode="w"):
    with tarfile.open(path, mode) as out:
        out.add(root, ".")


def write_all(at):
    for make in (classes, pairs, splits, cifar, mnist, zarr_store, pairs_of_arrays, beside):
        root = at(make.__name__)
        make(root)
        zip_folder(root, f"{root}.zip", zipfile.ZIP_DEFLATED)
        tar_folder(root, f"{root}.tar.gz", "w:gz")
    root = at("classes")
    zip_folder(root, at("stored.zip"), zipfile.ZIP_STORED)
    zip_folder(root, at("bzip2.zip"), zipfile.ZIP_BZIP2)
    tar_folder(root, at("classes.tar.xz"), "w:xz")
    tar_folder(root, at("classes.tar.bz2"), "w:bz2")
    for name in ("classes", "pairs", "splits", "cifar", "pairs_of_arrays", "beside"):
        tar_folder(at(name), at(f"{name}.tar"))
    with open(at("classes.tar"), "rb") as data:
        write(at("classes.tar.zst"), zstandard.compress(data.read()))
    # The same archive under another name, so that only its bytes show its type.
    shutil.copy(at("classes.tar.xz"), at("download"))
    with zipfile.ZipFile(at("nested.zip"), "w") as out:
        out.write(at("classes.zip"), "inner/classes.zip")


def tar_of_tars(at):
    """ILSVRC's archive, which is a tar file that contains a tar file for each class, and a folder of these tar files."""
    for name in ("n02", "n01"):
        with tarfile.open(at(f"{name}.tar"), "w") as out:
            for i in (1, 2):
                save(at(f"files/{name}_{i}.JPEG"), (16, 16, 3))
                out.add(at(f"files/{name}_{i}.JPEG"), f"{name}_{i}.JPEG")
        os.makedirs(at("classes_of_tars"), exist_ok=True)
        os.rename(at(f"{name}.tar"), at(f"classes_of_tars/{name}.tar"))
    with tarfile.open(at("ILSVRC2012_img_train.tar"), "w") as out:
        for name in ("n01", "n02"):
            out.add(at(f"classes_of_tars/{name}.tar"), f"{name}.tar")
    tar_folder(at("classes_of_tars"), at("classes_of_tars.tar.gz"), "w:gz")
    zip_folder(at("classes_of_tars"), at("classes_of_tars.zip"), zipfile.ZIP_STORED)


def single(at):
    out = io.BytesIO()
    np.save(out, RNG.integers(0, 256, (4, 5, 6, 3), dtype=np.uint8))
    write(at("x.npy"), out.getvalue())
    rows = b"path,label\n" + b"".join(b"classes/pets/cat/cat.%d.png,%d\n" % (i, i) for i in (1, 2, 3))
    write(at("rows.csv"), rows)
    for name, data in (("x.npy", out.getvalue()), ("rows.csv", rows)):
        write(at(f"{name}.gz"), gzip.compress(data))
        write(at(f"{name}.xz"), lzma.compress(data))
        write(at(f"{name}.bz2"), bz2.compress(data))
        write(at(f"{name}.zst"), zstandard.compress(data))
        with zipfile.ZipFile(at(f"{name}.zip"), "w") as out:
            out.writestr(name, data)


if __name__ == "__main__":
    folder = os.path.abspath(sys.argv[2])

    def below(name):
        return os.path.join(folder, name)

    write_all(below)
    tar_of_tars(below)
    single(below)
