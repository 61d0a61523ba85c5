"""Writes datasets with texts, clips and tables that are easy to misread: texts.py DIR. Prints the pixels and the texts."""

import gzip
import io
import json
import os
import struct
import sys
import zipfile
from pathlib import Path

# lmdb.py in this folder is not the library.
sys.path = [p for p in sys.path if os.path.abspath(p or ".") != os.path.dirname(os.path.abspath(__file__))]
import h5py
import lmdb
import numpy as np
from PIL import Image

N = 12
PIXELS = np.random.default_rng(19).integers(0, 256, (N, 8, 9, 3), dtype=np.uint8)
WORDS = [f"Street {i}" for i in range(N)]


def png(pixels):
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "PNG")
    return out.getvalue()


def image(path, i):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(PIXELS[i % N]).save(path)


def text(path, lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines))


def words(root):
    with lmdb.open(str(root / "str"), map_size=1 << 24) as env, env.begin(write=True) as txn:
        for i in range(N):
            txn.put(f"image-{i + 1:09d}".encode(), png(PIXELS[i]))
            txn.put(f"label-{i + 1:09d}".encode(), WORDS[i].encode())
        txn.put(b"num-samples", str(N).encode())
    for i in range(N):
        image(root / f"icdar/word_{i + 1}.png", i)
        image(root / f"named/{i}.png", i)
        image(root / f"captions/Images/{i}.png", i)
    quoted = [word.replace("Street 1", 'say \\"hi\\", you') for word in WORDS]
    text(root / "icdar/gt.txt", [f'word_{i + 1}.png, "{word}"' for i, word in enumerate(quoted)])
    text(root / "named/labels.csv", ["path,label", *(f"{i}.png,{word}" for i, word in enumerate(WORDS))])
    rows = [f"{i % N}.png,A dog , number {i} , runs ." if i % 3 else f"{i % N}.png,A cat ." for i in range(2 * N)]
    text(root / "captions/captions.txt", ["image,caption", *rows])


def clips(root):
    for clip in range(4):
        for frame in range(3):
            image(root / f"jester/20bn/{1000 + 4444 * clip}/{frame:05d}.png", clip + frame)
    text(root / "jester/train.csv", ["1000;Swiping Left", "5444;Thumb Up", "9888;No gesture"])
    text(root / "jester/test.csv", ["14332"])
    for i, study in enumerate(("a/positive", "a/negative")):
        for view in range(2):
            image(root / f"studies/{study}/{view}.png", 2 * i + view)
    text(root / "studies/labels.csv", ["studies/a/positive/,1", "studies/a/negative/,0"])
    text(root / "studies/more.csv", ["folder_path,label", "a/positive,1", "a/negative,0", "b/none,0"])
    for clip in range(4):
        for frame in range(3):
            image(root / f"two/clips/{1000 + 4444 * clip}/{frame}.png", clip + frame)
    for name in "ab":
        text(root / f"two/{name}.csv", ["path,label", *(f"{1000 + 4444 * clip},{clip % 2}" for clip in range(4))])
    for split in ("background", "evaluation"):
        for letter in ("Latin/character01", "Latin/character02", "Greek/character01"):
            for i in range(2):
                image(root / f"omniglot/images_{split}/{letter}/{i}.png", i)


def tables(root):
    rows = [f"{i}.png,{['HP', 'SSA'][i % 2]},{i % 7},{'train' if i < 8 else 'test'}" for i in range(N)]
    (root / "zipped").mkdir()
    for folder in ("zipped", "unzipped"):
        text(root / folder / "annotations.csv", ["Image Name,Majority Vote Label,Votes,Partition", *rows])
    with zipfile.ZipFile(root / "zipped/images.zip", "w") as out:
        for i in range(N):
            out.writestr(f"images/{i}.png", png(PIXELS[i]))
            image(root / f"unzipped/images/{i}.png", i)
    # The table does not list images, so the archive is not read with it.
    (root / "names").mkdir()
    text(root / "names/names.csv", ["code,meaning", "0,cat", "1,dog"])
    with zipfile.ZipFile(root / "names/images.zip", "w") as out:
        for i in range(N):
            out.writestr(f"{i % 2}/{i}.png", png(PIXELS[i]))
    for i in range(N):
        image(root / f"pets/{'train' if i < 8 else 'test'}/{i}.png", i)
    text(root / "pets/train.csv", ["Id,Eyes,Face,Score", *(f"{i},{i % 2},{i % 3},{i % 4}" for i in range(8))])
    text(root / "pets/test.csv", ["Id,Eyes,Face", *(f"{i},{i % 2},{i % 3}" for i in range(8, N))])


def medical(root):
    for i in range(6):
        image(root / f"nnunet/imagesTr/case_{i:03d}_0000.png", i)
        (root / "nnunet/labelsTr").mkdir(exist_ok=True)
        Image.fromarray(PIXELS[i, ..., 0] % 3).save(root / f"nnunet/labelsTr/case_{i:03d}.png")
        image(root / f"nnunet/imagesTs/case_{i + 6:03d}_0000.png", i)
    for i in range(3):
        (root / "nifti/imagesTr").mkdir(parents=True, exist_ok=True)
        (root / "nifti/labelsTr").mkdir(exist_ok=True)
        for folder in ("imagesTr", "labelsTr"):
            (root / f"nifti/{folder}/._case_{i}.nii.gz").write_bytes(b"\0\5\x16\7")
            (root / f"nifti/{folder}/case_{i}.nii.gz").write_bytes(b"\x1f\x8b" + bytes(60))


def bands(path, channels, compression=1):
    """Writes a TIFF file of bytes with this number of channels and one strip. No tag marks a channel as alpha."""
    height, width = PIXELS.shape[1:3]
    data = np.arange(height * width * channels, dtype=np.uint8).tobytes()
    bits = struct.pack(f"<{channels}H", *[8] * channels)
    tags = [(256, 3, 1, width), (257, 3, 1, height), (258, 3, channels, 8), (259, 3, 1, compression), (262, 3, 1, 2)]
    tags += [(273, 4, 1, 8), (277, 3, 1, channels), (278, 3, 1, height), (279, 4, 1, len(data))]
    start = 8 + len(data)
    tags[2] = (258, 3, channels, start)
    directory = start + len(bits)
    body = struct.pack("<H", len(tags)) + b"".join(struct.pack("<HHII", *tag) for tag in tags) + bytes(4)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"II*\0" + struct.pack("<I", directory) + data + bits + body)


def doubtful(root):
    """Folders and tables that are easy to mistake for something else."""
    for i in range(4):
        for series in ("01", "02"):
            image(root / f"series/{series}/t{i:03d}.png", i)
            (root / f"series/{series}_GT/SEG").mkdir(parents=True, exist_ok=True)
            Image.fromarray(PIXELS[i, ..., 0] % 3).save(root / f"series/{series}_GT/SEG/man_seg{i:03d}.png")
        for folder in ("images", "train_npz"):
            (root / f"arrays/{folder}").mkdir(parents=True, exist_ok=True)
        np.save(root / f"arrays/images/{i}.npy", PIXELS[i].astype(np.uint16))
        image(root / f"arrays/masks/{i}.png", i)
        image(root / f"faces/aligned/face_{i}_aligned.png", i)
        image(root / f"faces/original/face_{i}.png", i)
        image(root / f"depth/{i}_colors.png", i)
        image(root / f"depth/{i}_depth.png", i)
        image(root / f"camera/train/{i}.png", i)
        image(root / f"camera/test/{i + 4}.png", i)
    (root / "arrays/train_npz").rmdir()
    images = [{"id": str(i), "file_name": f"{i}.png"} for i in range(4)]
    labels = [{"id": str(i), "image_id": str(i), "category_id": i % 2} for i in range(4)]
    categories = [{"id": 0, "name": "empty"}, {"id": 1, "name": "peccary"}]
    coco = {"images": images, "annotations": labels, "categories": categories}
    (root / "camera/train_annotations.json").write_text(json.dumps(coco))
    text(root / "camera/sample_submission.csv", ["Id,Category", *(f"{i + 4},0" for i in range(4))])
    text(root / "urls/train.tsv", [f"a cat {i}\thttp://example.org/{i}.jpg" for i in range(4)])
    (root / "packed").mkdir()
    for name, array in (("x", PIXELS), ("y", np.arange(N) % 2)):
        with h5py.File(root / "array.h5", "w") as out:
            out[name] = array
        (root / f"packed/train_{name}.h5.gz").write_bytes(gzip.compress((root / "array.h5").read_bytes()))
    (root / "array.h5").unlink()
    text(root / "packed/meta.csv", ["index,tumor", "0,1"])
    for i in range(N):
        image(root / f"birds/{'ab'[i % 2]}/{i}.png", i)
    rows = [f"{i},{'ab'[i % 2]}/{i}.png,{i % 3},sky/{i}.jpg" for i in range(N)]
    text(root / "birds/metadata.csv", ["img_id,img_filename,y,place_filename", *rows])


root = Path(sys.argv[1])
for part in (words, clips, tables, medical, doubtful):
    part(root)
for i in range(3):
    bands(root / f"four/{i}.tif", 4)
    # JPEG 2000, which is not read.
    bands(root / f"many/{i}.tif", 13, 34712)
    (root / "cmyk").mkdir(exist_ok=True)
    Image.fromarray(PIXELS[i]).convert("CMYK").save(root / f"cmyk/{i}.tif")
masks = [(PIXELS[i, ..., 0] % 3).tobytes().hex() for i in range(6)]
print(json.dumps({"words": WORDS, "masks": masks, "pixels": PIXELS.tobytes().hex()}))
