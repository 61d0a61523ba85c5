"""Plain arrays, written and read by numpy, safetensors, torch and torchvision.

arrays.py write DIR     files of numpy and safetensors
arrays.py torch DIR     files of torch, and CIFAR and MNIST as torchvision reads them
arrays.py read PATH...  what is in files or folders
Each prints JSON: for each file, the type, shape and digest of each array.
"""

import gzip
import hashlib
import json
import os
import pickle
import sys

import numpy as np

N = 60


def digest(array):
    array = np.ascontiguousarray(array)
    return [str(array.dtype), list(array.shape), hashlib.md5(array.tobytes()).hexdigest()]


def data():
    rng = np.random.default_rng(5)
    images = rng.integers(0, 256, (N, 8, 6, 3), dtype=np.uint8)
    labels = rng.integers(0, 3, N).astype(np.int32)
    vectors = rng.random((N, 5)).astype(np.float16)
    return {"image": images, "label": labels, "vector": vectors}


def write(folder):
    from safetensors.numpy import save_file

    all = data()
    os.makedirs(f"{folder}/npy")
    for name, array in all.items():
        np.save(f"{folder}/npy/{name}.npy", array)
    np.savez(f"{folder}/a.npz", **all)
    np.savez_compressed(f"{folder}/deflated.npz", **all)
    save_file(all, f"{folder}/a.safetensors")
    objects = np.array([{"a": 1}, None], dtype=object)
    np.save(f"{folder}/objects.npy", objects, allow_pickle=True)
    np.save(f"{folder}/fortran.npy", np.asfortranarray(all["image"]))
    return {name: digest(array) for name, array in all.items()}


def write_torch(folder):
    import torch
    from torch.utils.data import TensorDataset

    all = {name: torch.from_numpy(array) for name, array in data().items()}
    torch.save({**all, "lr": 0.1, "name": "x"}, f"{folder}/dict.pt")
    torch.save((all["image"], all["label"], all["vector"]), f"{folder}/tuple.pt")
    torch.save({"set": {"image": all["image"]}, "label": all["label"]}, f"{folder}/nested.pt")
    torch.save([*all.values()], f"{folder}/old.pt", _use_new_zipfile_serialization=False)
    torch.save(TensorDataset(*all.values()), f"{folder}/set.pt")
    torch.save([*all["image"]], f"{folder}/samples.pt")
    twice = {name: torch.stack([t, t], 1).flatten(0, 1)[::2] for name, t in all.items()}
    torch.save(twice, f"{folder}/views.pt")
    torch.save(all["image"].permute(0, 3, 1, 2), f"{folder}/permuted.pt")

    class Harmful:
        def __reduce__(self):
            return (os.system, (f"touch {folder}/called",))

    torch.save({"image": all["image"], "x": Harmful()}, f"{folder}/harmful.pt")
    return {name: digest(tensor.numpy()) for name, tensor in all.items()}


def write_published(folder):
    """CIFAR-10 in both versions and MNIST, and their contents as read by torchvision."""
    from torchvision import datasets

    rng = np.random.default_rng(6)
    python = f"{folder}/cifar/cifar-10-batches-py"
    binary = f"{folder}/cifar-bin"
    raw = f"{folder}/mnist/MNIST/raw"
    for path in (python, binary, raw):
        os.makedirs(path)
    names = [f"data_batch_{i}" for i in range(1, 6)] + ["test_batch"]
    for name in names:
        pixels = rng.integers(0, 256, (30, 3072), dtype=np.uint8)
        labels = rng.integers(0, 10, 30).tolist()
        files = [f"{name}_{i}.png" for i in range(30)]
        with open(f"{python}/{name}", "wb") as out:
            batch = {"data": pixels, "labels": labels, "filenames": files}
            pickle.dump(batch, out, protocol=2 if name != "data_batch_2" else 4)
        with open(f"{binary}/{name}.bin", "wb") as out:
            for label, row in zip(labels, pixels):
                out.write(bytes([label]) + row.tobytes())
    classes = [f"class {i}" for i in range(10)]
    with open(f"{python}/batches.meta", "wb") as out:
        pickle.dump({"label_names": classes}, out, protocol=2)
    with open(f"{binary}/batches.meta.txt", "w") as out:
        out.write("\n".join(classes) + "\n\n")

    class Cifar(datasets.CIFAR10):
        def _check_integrity(self):
            return True

        def _load_meta(self):
            self.classes = classes

    def idx(name, array):
        head = bytes([0, 0, 8, array.ndim]) + b"".join(n.to_bytes(4, "big") for n in array.shape)
        with open(f"{raw}/{name}", "wb") as out:
            out.write(head + array.tobytes())
        with gzip.open(f"{folder}/mnist/{name}.gz", "wb") as out:
            out.write(head + array.tobytes())

    for split, n in (("train", 20), ("t10k", 10)):
        idx(f"{split}-images-idx3-ubyte", rng.integers(0, 256, (n, 28, 28), dtype=np.uint8))
        idx(f"{split}-labels-idx1-ubyte", rng.integers(0, 10, n, dtype=np.uint8))
    out = {}
    for split, train in (("train", True), ("test", False)):
        cifar = Cifar(f"{folder}/cifar", train=train)
        planes = cifar.data.transpose(0, 3, 1, 2)
        out[f"cifar-{split}"] = [digest(planes), digest(np.array(cifar.targets, dtype=np.int32))]
        mnist = datasets.MNIST(f"{folder}/mnist", train=train)
        images, labels = mnist.data.numpy(), mnist.targets.numpy().astype(np.int32)
        out[f"mnist-{split}"] = [digest(images), digest(labels)]
    return out


def read(path):
    if os.path.isdir(path):
        names = [name[:-4] for name in os.listdir(path) if name.endswith(".npy")]
        return {name: digest(np.load(f"{path}/{name}.npy")) for name in names}
    if path.endswith(".npy"):
        return {"image": digest(np.load(path, mmap_mode="r"))}
    if path.endswith(".npz"):
        with np.load(path) as file:
            arrays = {name: file[name] for name in file.files}
        out = {name: digest(a) for name, a in arrays.items() if name not in ("packds", "classes")}
        out["fields"] = [field["name"] for field in json.loads(str(arrays["packds"]))["fields"]]
        if "classes" in arrays:
            out["classes"] = arrays["classes"].tolist()
        return out
    if path.endswith(".safetensors"):
        from safetensors import safe_open

        with safe_open(path, "numpy") as file:
            return {name: digest(file.get_tensor(name)) for name in file.keys()}
    import torch

    options = {}
    if "weights_only" in torch.load.__kwdefaults__:
        options["weights_only"] = True
    if "mmap" in torch.load.__kwdefaults__:
        options["mmap"] = True
    loaded = torch.load(path, **options)
    tensors = {k: v for k, v in loaded.items() if isinstance(v, torch.Tensor)}
    return {name: digest(tensor.numpy()) for name, tensor in tensors.items()}


if __name__ == "__main__":
    command, *paths = sys.argv[1:]
    commands = {"write": write, "torch": write_torch, "published": write_published}
    if command in commands:
        print(json.dumps(commands[command](paths[0])))
    else:
        print(json.dumps([read(path) for path in paths]))
