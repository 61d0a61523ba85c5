"""Writes images of unusual types, and files of types that are not read: pictures.py DIR. Prints the pixels and labels of each."""

import io
import json
import os
import struct
import sys
import tarfile
import zipfile
from pathlib import Path

# Some modules in this script's folder have the names of libraries, so Python must not search this folder.
sys.path.pop(0)

import h5py
import numpy as np
import pandas as pd
import scipy.io
import zarr
from PIL import Image

N = 6
SUBJECTS = ["s1", "s2", "s10"]
PIXELS = np.random.default_rng(7).integers(0, 256, (N, 12, 10), dtype=np.uint8)
COLORS = np.random.default_rng(8).integers(0, 256, (N, 9, 8, 3), dtype=np.uint8)


def encoded(pixels, kind, **options):
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, kind, **options)
    return out.getvalue()


def faces(root):
    """Faces like those of ORL: 8-bit gray .pgm files in a folder for each person. The size of the images differs between persons."""
    for i in range(N):
        folder = root / SUBJECTS[i // 2]
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(PIXELS[i, i // 2 :]).save(folder / f"{i + 1}.pgm")


def containers(root):
    """The same PPM, TGA and QOI files in a folder, an archive, a tar file of samples and a table."""
    root.mkdir()
    kinds = [("ppm", "PPM", {}), ("tga", "TGA", {"compression": "tga_rle"}), ("qoi", "QOI", {})]
    files = []
    for i in range(N):
        extension, kind, options = kinds[i % 3]
        files.append((f"{i}.{extension}", encoded(COLORS[i], kind, **options)))
    (root / "folder").mkdir()
    for name, data in files:
        (root / "folder" / name).write_bytes(data)
    with zipfile.ZipFile(root / "archive.zip", "w") as out:
        for i, (name, data) in enumerate(files):
            out.writestr(f"{'ab'[i % 2]}/{name}", data)
    with tarfile.open(root / "samples.tar", "w") as out:
        for i, (name, data) in enumerate(files):
            for member, content in ((name, data), (f"{i}.cls", str(i % 2).encode())):
                info = tarfile.TarInfo(member)
                info.size = len(content)
                out.addfile(info, io.BytesIO(content))
    table = {"image": [{"bytes": data, "path": name} for name, data in files], "label": [i % 2 for i in range(N)]}
    pd.DataFrame(table).to_parquet(root / "table.parquet", index=False)


def unread(root):
    """Folders of files that are not read, mixed folders, and files with misleading names."""
    head = {
        "dcm": b"\0" * 128 + b"DICM",
        "nii.gz": b"\x1f\x8b\x08\0",
        "heic": b"\0\0\0\x18ftypheic\0\0\0\0mif1heic",
        "avif": b"\0\0\0\x1cftypavif\0\0\0\0",
        "jxl": b"\xff\x0a\0\0",
        "jp2": b"\0\0\0\x0cjP  \r\n\x87\n",
        "exr": b"\x76\x2f\x31\x01",
        "mat": b"MATLAB 5.0 MAT-file",
        "raw": bytes(range(200)),
        "svg": b"<svg xmlns='http://www.w3.org/2000/svg'/>",
        "pdf": b"%PDF-1.7",
        "psd": b"8BPS",
        "cr2": b"CR2",
    }
    for extension, data in head.items():
        for name in ("a/1", "b/2", "b/3"):
            path = root / extension.replace(".", "_") / f"{name}.{extension}"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data.ljust(600, b"\1"))
    for folder in ("mixed", "lying"):
        (root / folder / "a").mkdir(parents=True)
        Image.fromarray(COLORS[0]).save(root / folder / "a" / "0.png")
    for name in ("1.heic", "2.heic", "3.dcm"):
        (root / "mixed" / "a" / name).write_bytes(b"x" * 600)
    (root / "lying" / "a" / "IMG_1.jpg").write_bytes(head["heic"].ljust(600, b"\1"))


def frames(root):
    """Animations and a TIFF of several pages, next to files of one image each."""
    root.mkdir()
    first, *more = [Image.fromarray(pixels) for pixels in COLORS[:3]]
    for name in ("a.gif", "b.webp", "c.png", "d.tif"):
        first.save(root / name, save_all=True, append_images=more)
    for name in ("e.gif", "f.webp", "g.png", "h.tif"):
        first.save(root / name)


def archive(files):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as zipped:
        for name, data in files.items():
            zipped.writestr(name, data)
    return out.getvalue()


def archives(root):
    """An archive of archives, as on Kaggle, and a table whose images are in an archive."""
    root.mkdir()
    train = archive({f"{'ab'[i % 2]}/{i}.png": encoded(COLORS[i], "PNG") for i in range(N)})
    test = archive({f"{i}.png": encoded(COLORS[i], "PNG") for i in range(N)})
    (root / "kaggle.zip").write_bytes(archive({"train.zip": train, "test1.zip": test, "sampleSubmission.csv": "id,label\n"}))
    (root / "table.zip").write_bytes(archive({"labels.csv": "file,label\n0.png,1\n", "images.zip": test}))


def several(root):
    """Files with an array for each class, files with an array for each image, and the results of the hints' lines of Python."""
    root.mkdir()
    by_class = {"cat": COLORS[:2], "dog": COLORS[2:]}
    by_image = {f"{'ab'[i % 2]}/{i}": pixels for i, pixels in enumerate(COLORS)}
    np.savez(root / "class.npz", **by_class)
    with h5py.File(root / "class.h5", "w") as f:
        for name, pixels in by_class.items():
            f[name] = pixels
    group = zarr.open_group(root / "image.zarr", mode="w")
    for name, pixels in by_image.items():
        group.create_array(name, shape=pixels.shape, dtype="u1")[:] = pixels
    with h5py.File(root / "class.h5") as f:
        names = list(f)
        images = np.concatenate([f[k][:] for k in names])
        labels = np.repeat(range(len(names)), [len(f[k]) for k in names])
        np.savez(root / "joined.npz", images=images, labels=labels, classes=names)
    f, out = group, str(root / "out") + "/"
    for k in by_image:
        os.makedirs(os.path.dirname(out + k), exist_ok=True)
        np.save(out + k, f[k])


def matlab(root):
    """The files of SVHN in both versions of MAT-files, and the result of the hint's line of Python."""
    root.mkdir()
    x, y = np.moveaxis(COLORS, 0, -1), np.array([[i % 2] for i in range(N)], np.uint8)
    scipy.io.savemat(root / "5.mat", {"X": x, "y": y})
    with h5py.File(root / "73.mat", "w", userblock_size=512) as f:
        f["X"], f["y"] = x.T, y.T
    data = bytearray((root / "73.mat").read_bytes())
    data[:19] = b"MATLAB 7.3 MAT-file"
    (root / "73.mat").write_bytes(data)
    f = h5py.File(root / "73.mat")
    images = f["X"][:].transpose(0, 3, 2, 1)
    np.savez(root / "73.npz", images=images, labels=f["y"][:].ravel())


def tiffs(root):
    """TIFF files of types that cannot be decoded, one in each folder."""
    color, deep = Image.fromarray(COLORS[0]), np.arange(72).reshape(9, 8)
    kinds = {
        "floats": (Image.fromarray(deep.astype(np.float32)), None), "ints": (Image.fromarray(deep.astype(np.int32)), None),
        "jpeg": (color, "jpeg"), "lab": (color.convert("LAB"), None),
    }
    for name, (image, compression) in kinds.items():
        (root / name).mkdir(parents=True)
        image.save(root / name / "x.tif", compression=compression)
    for name, planar in (("bands", 1), ("planes", 2)):
        bands(root / name / "sub", np.arange(13 * 64, dtype=np.uint16).reshape(8, 8, 13), planar)


def bands(root, pixels, planar):
    """A TIFF of 13 bands of 16 bits, like those of EuroSAT. Pillow does not write such files."""
    height, width, n = pixels.shape
    root.mkdir(parents=True)
    data = (pixels if planar == 1 else np.moveaxis(pixels, -1, 0)).astype("<u2").tobytes()
    n_strips, at = (1, 8) if planar == 1 else (n, 8)
    lists = at + len(data)
    entries = [
        (256, 3, 1, width), (257, 3, 1, height), (258, 3, n, lists), (259, 3, 1, 1), (262, 3, 1, 1),
        (273, 4, n_strips, at if n_strips == 1 else lists + 2 * n), (277, 3, 1, n), (278, 3, 1, height),
        (279, 4, n_strips, len(data) if n_strips == 1 else lists + 2 * n + 4 * n), (284, 3, 1, planar),
        (338, 3, n - 1, lists + 2 * n + 8 * n),
    ]
    size = len(data) // n_strips
    tail = struct.pack(f"<{n}H", *[16] * n)
    tail += struct.pack(f"<{n}I", *[at + i * size for i in range(n)]) + struct.pack(f"<{n}I", *[size] * n)
    tail += struct.pack(f"<{n - 1}H", *[0] * (n - 1))
    directory = struct.pack("<H", len(entries)) + b"".join(struct.pack("<HHII", *entry) for entry in entries) + bytes(4)
    head = struct.pack("<2sHI", b"II", 42, lists + len(tail))
    (root / "x.tif").write_bytes(head + data + tail + directory)


root = Path(sys.argv[1])
faces(root / "faces")
containers(root / "containers")
unread(root / "unread")
frames(root / "frames")
archives(root / "archives")
several(root / "several")
matlab(root / "matlab")
tiffs(root / "tiffs")
print(json.dumps({
    # In the order of torchvision's folders and files.
    "faces": [PIXELS[i, i // 2 :].tobytes().hex() for i in (0, 1, 4, 5, 2, 3)],
    "colors": COLORS.tobytes().hex(),
    "by_class": COLORS[[0, 2, 4, 1, 3, 5]].tobytes().hex(),
}))
