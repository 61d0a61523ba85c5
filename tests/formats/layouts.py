"""Writes unusual sources that occur in practice: layouts.py write DIR | torch DIR."""

import io
import json
import os
import struct
import sys
import tarfile
import zipfile
import zlib

import numpy as np

N = 6
NAMES = ["cat", "dog", "owl"]
PIXELS = np.random.default_rng(3).integers(0, 256, (N, 8, 9, 3), dtype=np.uint8)
LABELS = [0, 1, 2, 0, 1, 2]


def png(array):
    from PIL import Image

    out = io.BytesIO()
    Image.fromarray(array).save(out, "PNG")
    return out.getvalue()


def npy(array):
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def tar(path, members):
    with tarfile.open(path, "w") as out:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            out.addfile(info, io.BytesIO(data))


def hdf5(at):
    import h5py
    import zarr

    with h5py.File(at("enum.h5"), "w") as f:
        f["images"] = PIXELS
        kind = h5py.enum_dtype({"owl": 2, "cat": 0, "dog": 1}, basetype="i2")
        f.create_dataset("labels", data=np.array(LABELS, "i2"), dtype=kind)
    for name, value in (("listed", NAMES), ("text", json.dumps(NAMES))):
        with h5py.File(at(f"{name}.h5"), "w") as f:
            f["images"], f["labels"] = PIXELS, np.array(LABELS)
            f.attrs["class_names"] = value
    group = zarr.open_group(at("listed.zarr"), mode="w")
    for name, data in (("images", PIXELS), ("labels", np.array(LABELS))):
        group.create_array(name, data=data)
    group.attrs["class_names"] = NAMES


def one_hot(at):
    """One-hot labels in each format, and vectors that are not one-hot."""
    import h5py
    import zarr
    from safetensors.numpy import save_file

    rows = np.eye(3)[LABELS]
    np.savez(at("hot.npz"), x=PIXELS, y=rows, class_names=np.array(NAMES))
    np.savez(at("unnamed-hot.npz"), x=PIXELS, kind=rows.astype("u1"))
    os.mkdir(at("hot"))
    np.save(at("hot/X.npy"), PIXELS)
    np.save(at("hot/Y.npy"), rows.astype("f4"))
    save_file({"images": PIXELS, "labels": rows.astype("i8")}, at("hot.safetensors"))
    with h5py.File(at("hot.h5"), "w") as f:
        f["images"], f["label"], f["class_names"] = PIXELS, rows, np.array(NAMES, "S3")
    group = zarr.open_group(at("hot.zarr"), mode="w")
    for name, data in (("images", PIXELS), ("labels", rows.astype(bool))):
        group.create_array(name, data=data)
    for name, data in (("many-hot", np.ones((N, 3))), ("none-hot", np.zeros((N, 3))), ("half-hot", rows * 0.5)):
        np.savez(at(f"{name}.npz"), x=PIXELS, y=data)
    np.savez(at("attributes.npz"), x=PIXELS, attributes=np.ones((N, 3)))


def arrays(at):
    unlabeled = np.array([0, 1, -1, 0, 1, 1])
    np.savez(at("unlabeled.npz"), x=PIXELS, y=unlabeled, classes=np.array(["a", "b"]))
    np.savez(at("none.npz"), x=PIXELS, y=np.full(N, -1), classes=np.array(["a", "b"]))
    np.savez(at("large.npz"), x=PIXELS, y=np.array([0, 1, 2**63, 0, 1, 1], dtype=np.uint64))
    np.savez(at("keys.npz"), img=PIXELS[..., 0] // 128, x=PIXELS, labels=np.array(LABELS))
    np.save(at("nothing.npy"), np.zeros((0, 8, 9, 3), np.uint8))
    with zipfile.ZipFile(at("twice.npz"), "w") as out:
        out.writestr("x.npy", npy(PIXELS))
        out.writestr("y.npy", npy(np.array(LABELS)))
        out.writestr("x.npy", npy(PIXELS + 1))
    os.mkdir(at("sketches"))
    for name, n in (("cat", 800), ("dog", 900)):
        np.save(at(f"sketches/{name}.npy"), np.zeros((n, 784), np.uint8))
    os.makedirs(at("vectors/cat"))
    for k in range(3):
        np.save(at(f"vectors/cat/{k}.npy"), np.arange(5, dtype=np.float32) + k)
    os.makedirs(at("vectors_mixed/cat"))
    np.save(at("vectors_mixed/cat/0.npy"), PIXELS[0])
    np.save(at("vectors_mixed/cat/1.npy"), np.arange(5))
    os.mkdir(at("corrupted"))
    for name in ("brightness", "fog"):
        np.save(at(f"corrupted/{name}.npy"), PIXELS)
    np.save(at("corrupted/labels.npy"), np.array(LABELS))

    def tensors(name, places):
        # A dictionary cannot have repeated names, so the header is built as text.
        tensor = '"{}":{{"dtype":"U8","shape":[6,8,9,3],"data_offsets":[{},{}]}}'
        header = ",".join(tensor.format(*place) for place in places)
        header = ("{" + header + "}").encode()
        with open(at(name), "wb") as out:
            out.write(struct.pack("<Q", len(header)) + header + PIXELS.tobytes() * 2)

    n = PIXELS.size
    tensors("twice.safetensors", [("image", 0, n), ("image", n, 2 * n)])
    tensors("apart.safetensors", [("image", 0, n), ("other", n, 2 * n)])
    tensors("over.safetensors", [("image", 0, n), ("other", n - 8, 2 * n - 8)])
    tensors("tensors", [("image", 0, n)])


def splits(at):
    """6 samples for training, and 4 for testing."""
    import h5py
    import zarr

    half, ids = PIXELS[:4], np.array(LABELS[:4])
    with h5py.File(at("rest.h5"), "w") as f:
        f["images"], f["labels"] = PIXELS, np.array(LABELS)
        f["test_images"], f["test_labels"] = half, ids
    group = zarr.open_group(at("rest.zarr"), mode="w")
    for name, data in (("images", PIXELS), ("labels", np.array(LABELS)), ("test/images", half), ("test/labels", ids)):
        group.create_array(name, data=data)
    np.savez(at("rest.npz"), images=PIXELS, labels=np.array(LABELS), test_images=half, test_labels=ids)
    from safetensors.numpy import save_file

    whole = {"x_train": PIXELS, "y_train": np.array(LABELS), "x_test": half, "y_test": ids}
    save_file(whole, at("halves.safetensors"))
    os.mkdir(at("numbered"))
    for name in ("train00-6", "train01-6", "test00-6"):
        np.savez(at(f"numbered/{name}.npz"), x=PIXELS, y=np.array(LABELS))
    os.mkdir(at("beside"))
    for name in ("train", "more"):
        np.savez(at(f"beside/{name}.npz"), x=PIXELS, y=np.array(LABELS))
    with h5py.File(at("answers.h5"), "w") as f:
        f["images"], f["ans"] = PIXELS, np.array(LABELS)
    two = {"targets_1": np.array(LABELS), "targets_2": np.array(LABELS)}
    np.savez(at("two.npz"), x=PIXELS, **two)
    for name, values in (("ages", {"age": LABELS}), ("counts", {"n": [1, 1, 2, 2, 3, 3]}), ("indexes", {"n": range(N)})):
        np.savez(at(f"{name}.npz"), x=PIXELS, **{key: np.array(list(value)) for key, value in values.items()})
    one_hot(at)
    objects = np.array([{"a": 1}], dtype=object)
    np.savez(at("objects.npz"), x=PIXELS, y=np.array(LABELS), about=objects)
    os.mkdir(at("apart"))
    for name, data in (("x", PIXELS), ("z", np.array(LABELS))):
        with h5py.File(at(f"apart/{name}.h5"), "w") as f:
            f[name] = data


def tables(at):
    import pyarrow as pa
    import pyarrow.parquet as pq

    images = [{"bytes": png(image), "path": None} for image in PIXELS]
    table = pa.table({"image": images, "label": LABELS})
    for split in ("train", "test"):
        os.makedirs(at(f"converted/default/{split}"))
        pq.write_table(table, at(f"converted/default/{split}/0000.parquet"))
    pq.write_table(pa.table({"image": images, "": LABELS}), at("nameless.parquet"))
    os.mkdir(at("mixed"))
    pq.write_table(table, at("mixed/a.parquet"))
    tar(at("mixed/b.tar"), [("0.png", png(PIXELS[0]))])


def write(folder):
    def at(name):
        return os.path.join(folder, name)

    hdf5(at)
    arrays(at)
    splits(at)
    beside(at)
    odd(at)
    tables(at)
    classes = ["cat"] * 3 + ["dog"] * 3
    tar(at("folders.tar"), [(f"{c}/{k}.png", png(i)) for k, (c, i) in enumerate(zip(classes, PIXELS))])
    captioned = []
    for k, c in enumerate(classes):
        captioned += [(f"{c}/{k}.png", png(PIXELS[k])), (f"{c}/{k}.txt", b"a " + c.encode())]
    tar(at("captioned.tar"), captioned)
    members = []
    for k, image in enumerate(PIXELS):
        text = b"x1" if k == 3 else b"%d" % LABELS[k]
        members += [(f"{k}.cls", text), (f"{k}.png", png(image))]
    tar(at("number.tar"), members)
    with open(at("zlib.tfrecord"), "wb") as out:
        out.write(zlib.compress(b"a record" * 20))
    with open(at("zeros.jsonl"), "w") as out:
        for k, image in enumerate(PIXELS):
            with open(at(f"{k}.png"), "wb") as file:
                file.write(png(image))
            row = {"path": f"{k}.png", "caption": "a\0b" if k == 4 else "plain"}
            out.write(json.dumps(row) + "\n")
    return {"pixels": PIXELS.tobytes().hex(), "labels": LABELS}


def beside(at):
    """Labels in separate files with the same names as the images."""
    import h5py
    from safetensors.numpy import save_file

    os.mkdir(at("kana"))
    for split, n in (("train", N), ("test", 4)):
        np.savez_compressed(at(f"kana/k49-{split}-imgs.npz"), PIXELS[:n])
        np.savez_compressed(at(f"kana/k49-{split}-labels.npz"), np.array(LABELS[:n], np.uint8))
    os.mkdir(at("cancer"))
    for split, n in (("train", N), ("test", 4)):
        for name, data in (("x", PIXELS[:n]), ("y", np.array(LABELS[:n], np.uint8).reshape(n, 1, 1, 1))):
            with h5py.File(at(f"cancer/level_2_split_{split}_{name}.h5"), "w") as f:
                f.create_dataset(name, data=data, chunks=(2, *data.shape[1:]), compression="gzip")
    os.mkdir(at("shards"))
    for k in range(2):
        half = slice(3 * k, 3 * k + 3)
        save_file({"a": PIXELS[half], "images": PIXELS[half]}, at(f"shards/images_{k}.safetensors"))
        save_file({"ids": np.array(LABELS[half])}, at(f"shards/labels_{k}.safetensors"))
    np.save(at("v6_data.npy"), PIXELS)
    np.save(at("v6_labels.npy"), np.array(LABELS))
    for name, labels in (("short", LABELS[:4]), ("owned", LABELS)):
        own = {"y": np.array(LABELS)} if name == "owned" else {}
        np.savez(at(f"{name}.npz"), x=PIXELS, **own)
        np.savez(at(f"{name}_labels.npz"), np.array(labels))
    os.mkdir(at("doubled"))
    for ending in ("", "_labels"):
        with h5py.File(at(f"doubled/a{ending}.h5"), "w") as f:
            f["x"], f["y"] = PIXELS, np.array(LABELS)
    for name, n in (("few", 20), ("several", 60)):
        os.mkdir(at(name))
        for k in range(2):
            np.save(at(f"{name}/{k}.npy"), np.zeros((n + (k if name == "several" else 0), 784), np.uint8))
    os.makedirs(at("stacks"))
    os.makedirs(at("alike"))
    for name, n in (("cat", 30), ("dog", 40), ("../alike/cat", 30), ("../alike/dog", 30)):
        np.save(at(f"stacks/{name}.npy"), np.zeros((n, 28, 28), np.uint8))


def odd(at):
    """Sources that cause warnings or errors with advice."""
    import h5py
    import pyarrow as pa
    import pyarrow.parquet as pq

    tar(at("inside.tar"), [m for k, i in enumerate(PIXELS) for m in ((f"{k}.json", b'{"label": %d}' % LABELS[k]), (f"{k}.png", png(i)))])
    tar(at("dots.tar"), [m for k, i in enumerate(PIXELS) for m in ((f"im.{k}.cls", b"%d" % LABELS[k]), (f"im.{k}.png", png(i)))])
    struct_of = [{"bytes": png(i), "path": None} for i in PIXELS]
    pq.write_table(pa.table({"image": struct_of, "label": [[k, k + 1][: 1 + k % 2] for k in LABELS]}), at("lists.parquet"))
    os.makedirs(at("hive/label=0"))
    pq.write_table(pa.table({"image": struct_of}), at("hive/label=0/part-0.parquet"))
    texts = [" ".join(map(str, i[..., 0].ravel())) for i in PIXELS]
    pq.write_table(pa.table({"image": texts, "label": LABELS}), at("texts.parquet"))
    with open(at("texts.csv"), "w") as out:
        out.write("emotion,image\n" + "".join(f"{k},{text} {text * 20}\n" for k, text in zip(LABELS, texts)))
    with h5py.File(at("each.h5"), "w") as f:
        for k in range(20):
            f[f"{k:04}"] = PIXELS[k % N]
    np.savez(at("turned.npz"), X=np.zeros((28, 32, 3, 60), np.uint8), y=np.zeros(60, np.int64))
    masks = (PIXELS[..., 0] % 3).astype(np.uint8)
    np.savez(at("masked.npz"), image=PIXELS.astype(np.float32), mask=masks, label=np.array(LABELS))


def write_torch(folder):
    import torch

    images = torch.from_numpy(PIXELS)
    torch.save({"images": images, "labels": LABELS}, f"{folder}/ids.pt")
    torch.save({"images": images, "labels": [NAMES[k] for k in LABELS]}, f"{folder}/names.pt")
    torch.save((images, LABELS), f"{folder}/pair.pt")
    torch.save({"images": images, "labels": LABELS, "score": [0.5, 1, 2.0, 3, 4, 5]}, f"{folder}/scores.pt")
    torch.save({"images": [*images], "labels": LABELS}, f"{folder}/samples.pt")
    torch.save({"images": PIXELS, "labels": LABELS}, f"{folder}/numpy.pt")
    halves = {"x_train": images, "y_train": LABELS, "x_test": images[:4], "y_test": LABELS[:4]}
    torch.save(halves, f"{folder}/halves.pt")
    return {"pixels": PIXELS.tobytes().hex(), "labels": LABELS}


print(json.dumps({"write": write, "torch": write_torch}[sys.argv[1]](sys.argv[2])))
