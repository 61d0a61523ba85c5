"""Writes files with one sample each, with the usual libraries. Prints their contents."""

import json
import os
import sys

import numpy as np

ROOT = sys.argv[2]
CLASSES = ("cat", "dog")
rng = np.random.default_rng(7)
IMAGES = rng.integers(0, 255, (6, 20, 24, 3), dtype=np.uint8)
MASKS = (IMAGES[..., 0] > 128).astype(np.uint8)
VOLUMES = rng.random((6, 4, 10, 12)).astype("f4")


def at(path):
    path = os.path.join(ROOT, path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    return path


def write_hdf5(path, **arrays):
    import h5py

    with h5py.File(path, "w") as file:
        for name, array in arrays.items():
            packed = {"compression": "gzip"} if np.ndim(array) > 1 else {}
            file.create_dataset(name, data=array, **packed)


def write_zarr(path, **arrays):
    import zarr

    group = zarr.open_group(path, mode="w")
    for name, array in arrays.items():
        group.create_array(name, data=np.atleast_1d(array))


def write_table(format):
    """Files in a folder, and a table that lists them without folder and extension."""
    for k, image in enumerate(IMAGES):
        path = at(f"table/{format}/train/id{k}.{format}")
        np.save(path, image) if format == "npy" else np.savez(path, image=image)
    with open(at(f"table/{format}/train.csv"), "w") as out:
        out.write("id,label,age\n" + "".join(f"id{k},{CLASSES[k % 2]},{k + 20}\n" for k in range(6)))
    with open(at(f"table/{format}/tags.csv"), "w") as out:
        out.write("id,tags\n" + "".join(f"id{k},{k % 2} 3\n" for k in range(6)))


def write_safetensors(path, **arrays):
    from safetensors.numpy import save_file

    save_file({name: np.asarray(array) for name, array in arrays.items()}, path)


WRITERS = {
    "npy": lambda path, image, **_: np.save(path, image),
    "npz": lambda path, **arrays: np.savez(path, **arrays),
    "npz.gz": lambda path, **arrays: np.savez_compressed(path, **arrays),
    "safetensors": write_safetensors,
    "h5": write_hdf5,
    "zarr": write_zarr,
}


def write_all():
    for extension, save in WRITERS.items():
        end = extension.removesuffix(".gz")
        for i, (image, mask) in enumerate(zip(IMAGES, MASKS)):
            name = CLASSES[i // 3]
            save(at(f"classes/{extension}/{name}/{i}.{end}"), image=image)
            save(at(f"splits/{extension}/{('train', 'val')[i % 2]}/{name}/{i}.{end}"), image=image)
            save(at(f"pairs/{extension}/images/{i}.{end}"), image=image)
            save(at(f"pairs/{extension}/masks/{i}_mask.{end}"), image=mask)
            if end != "npy":
                save(at(f"flat/{extension}/{i}.{end}"), image=image, mask=mask, label=np.int64(i // 3))
    for i, volume in enumerate(VOLUMES):
        np.savez(at(f"volumes/{i}.npz"), image=volume)
        np.savez(at(f"depths/{i}.npz"), image=volume[: 2 + i % 2])
        np.savez(at(f"both/{CLASSES[i // 3]}/{i}.npz"), image=IMAGES[i], label=np.int64(i // 3))
        np.savez(at(f"sets/{i}.npz"), image=IMAGES, label=np.arange(6))

        np.savez(at(f"bad/{CLASSES[i // 3]}/{i}.npz"), image=IMAGES[i])
        np.save(at(f"big/{CLASSES[i // 3]}/{i}.npy"), IMAGES[i].astype(">i2"))
    write_table("npy")
    write_table("npz")
    with open(at("table/both.csv"), "w") as out:
        out.write("path,label\n" + "".join(f"flat/npz/{k}.npz,{k}\n" for k in range(6)))
    with open(at("bad/cat/0.npz"), "r+b") as file:
        file.truncate(40)
    with open(at("bad/dog/4.npz"), "r+b") as file:
        file.write(b"\0" * 30)
    for k, image in enumerate(IMAGES):
        write_hdf5(at(f"maps/{k}.h5"), image=image / 255, mask=MASKS[k])
    np.savez(at("one.npz"), image=IMAGES[0].transpose(2, 0, 1))
    np.savez(at("plane/0.npz"), image=VOLUMES[0, 0], mask=MASKS[0, :10, :12])
    np.savez(at("name.npz"), volume=VOLUMES[0])
    return contents()


def write_torch():
    import torch

    for i, image in enumerate(IMAGES):
        tensor = torch.from_numpy(image)
        torch.save(tensor, at(f"classes/pt/{CLASSES[i // 3]}/{i}.pt"))
        torch.save((tensor, i // 3), at(f"tuples/{i}.pt"))
        torch.save({"image": tensor, "label": i // 3, "name": f"{i}"}, at(f"dicts/{i}.pt"))
        torch.save(tensor.permute(2, 0, 1), at(f"views/cat/{i}.pt"))
    torch.save(torch.from_numpy(IMAGES[0]).permute(2, 0, 1).contiguous().float(), at("image.pt"))
    return contents()


def contents():
    return {
        "images": IMAGES.tobytes().hex(),
        "masks": MASKS.tobytes().hex(),
        "volumes": VOLUMES.tobytes().hex(),
        "train": IMAGES[::2].tobytes().hex(),
        "labels": [i // 3 for i in range(6)],
    }


print(json.dumps({"write": write_all, "torch": write_torch}[sys.argv[1]]()))
