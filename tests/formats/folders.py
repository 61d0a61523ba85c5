"""Writes folders like those of published datasets with masks, depth images and several versions of images: folders.py DIR."""

import sys
from pathlib import Path

# Some modules in this script's folder have the names of libraries, so Python must not search this folder.
sys.path.pop(0)

import h5py
import numpy as np
from PIL import Image

RANDOM = np.random.default_rng(9)
ROOT = Path(sys.argv[1])


def photo():
    return Image.fromarray(RANDOM.integers(0, 256, (30, 40, 3), dtype=np.uint8))


def mask():
    return Image.fromarray(RANDOM.integers(0, 3, (30, 40), dtype=np.uint8))


def deep():
    return Image.fromarray(RANDOM.integers(0, 40000, (30, 40)).astype(np.uint16))


def colours():
    palette = np.array([[0, 0, 0], [128, 0, 0], [0, 128, 0]], np.uint8)
    return Image.fromarray(palette[np.array(mask())])


def write(pattern, make, names=("000001", "000002", "000003", "000004")):
    for name in names:
        path = ROOT / pattern.format(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        make().save(path)


def pairs(source, images, masks, make=mask):
    write(f"{source}/{images}/{{}}.png", photo)
    write(f"{source}/{masks}/{{}}.png", make)


pairs("depth", "rgb", "depth", deep)
pairs("letters", "x", "y")
pairs("short", "img", "lbl")
pairs("words", "Original", "Ground Truth")
for name in ("000001", "000002", "000003", "000004"):
    pixels = RANDOM.integers(0, 240, (3, 4, 3)).repeat(10, 0).repeat(10, 1)
    for folder in ("clear", "rainy"):
        path = ROOT / "alike" / folder / f"{name}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray((pixels + RANDOM.integers(0, 16, pixels.shape)).astype(np.uint8)).save(path)
for folder in ("00000", "00001"):
    write(f"signs/{folder}/{{}}.ppm", photo, ["00000_00000", "00000_00001", "00001_00000"])
    write(f"faces/{folder}/{{}}.pgm", lambda: photo().convert("L"), ["1", "2", "3"])
for version, make in (("color", photo), ("grayscale", lambda: photo().convert("L")), ("segmented", photo)):
    for leaf in ("Apple___healthy", "Corn___rust"):
        write(f"plants/{version}/{leaf}/{{}}.jpg", make)
write("cats/cat.{}.jpg", photo, "0123")
write("cats/dog.{}.jpg", photo, "0123")
write("ages/{}.jpg", photo, ["25_0_2_2017", "25_1_0_2018", "7_0_0_2017", "7_1_1_2019"])
write("frames/frame_{}.jpg", photo)
write("faces/00000/{}.pgm", lambda: photo().convert("L"), ["4", "5"])
(ROOT / "faces/00000/4.pgm").rename(ROOT / "faces/00000/1.pgm.bad")
(ROOT / "faces/00000/5.pgm").rename(ROOT / "faces/00000/2.pgm~")
for place in ("a/abbey", "c/church/indoor", "c/church/outdoor"):
    write(f"sun/{place}/{{}}.jpg", photo)
    write(f"sun(2)/{place}/{{}}.jpg", photo, "12")
    write(f"sun(2)/{place}/{{}}.PNG", photo, "3")
for place in ("broken", "good"):
    write(f"bottle/test/{place}/{{}}.png", photo)
write("bottle/ground_truth/broken/{}_mask.png", mask)
write("pets/images/{}.jpg", photo)
write("pets/annotations/trimaps/{}.png", mask)
write("food/images/{}/1.jpg", photo, ["pie", "soup"])
write("dtd/images/{}/1.jpg", photo, ["banded", "dotted"])
for file, content in (
    ("pets/annotations/list.txt", "000001 1 1 1\n000002 2 1 1\n"),
    ("pets/annotations/README", "x"),
    ("food/meta/train.json", '{"pie": ["pie/1"], "soup": ["soup/1"]}'),
    ("food/meta/labels.txt", "x"),
    ("dtd/imdb/imdb.mat", "x"),
):
    (ROOT / file).parent.mkdir(parents=True, exist_ok=True)
    (ROOT / file).write_text(content)
for split in ("train", "test"):
    for group in ("a/x", "b/y"):
        write(f"told/{split}/{group}/{{}}.jpg", photo)
    (ROOT / "told" / split / "a/x/0.heic").write_bytes(b"x")
(ROOT / "told/test/a/x/1.dcm").write_bytes(b"x")
for part in (1, 2):
    (ROOT / "brats").mkdir(exist_ok=True)
    with h5py.File(ROOT / f"brats/slice_{part}.h5", "w") as file:
        file["image"] = RANDOM.random((60, 60, 4))
        file["mask"] = np.zeros((60, 60, 3), np.uint8)
for split in ("train", "test"):
    write(f"cracks/{split}_img/{{}}.jpg", photo)
    write(f"cracks/{split}_lab/{{}}.png", mask)
for folder, make in (("2_Ortho_RGB", photo), ("5_Labels_all", mask), ("1_DSM", deep)):
    end = {"2_Ortho_RGB": "_RGB", "5_Labels_all": "_label"}.get(folder, "")
    write(f"potsdam/{folder}/{{}}{end}.tif", make)
for folder, make in (("image_2", photo), ("semantic", mask), ("instance", deep), ("semantic_rgb", colours)):
    write(f"kitti/training/{folder}/{{}}_10.png", make)
write("kitti/testing/image_2/{}_10.png", photo)
write("chest/CXR_png/{}.png", photo)
for side in ("left", "right"):
    write(f"chest/ManualMask/{side}Mask/{{}}.png", mask)
for area in ("Rural", "Urban"):
    write(f"land/{area}/images_png/{{}}.png", photo)
    write(f"land/{area}/masks_png/{{}}.png", mask)
for letter, make in (("A", photo), ("B", mask), ("C", photo)):
    write(f"shadows/train_{letter}/{{}}.png", make)
for patient in range(3):
    for part, make in (("flair", photo), ("t1", photo), ("seg", mask)):
        write(f"patients/BraTS_{patient}/{part}.png", make, [""])
for split in ("training", "test"):
    write(f"vessels/{split}/images/{{}}_{split}.tif", photo)
    write(f"vessels/{split}/1st_manual/{{}}_manual1.gif", mask)
    write(f"vessels/{split}/mask/{{}}_{split}_mask.gif", mask)
write("roads/{}_sat.jpg", photo)
write("roads/{}_mask.png", mask)
write("stems/{}.jpg", photo)
write("stems/{}.png", mask)
write("versions/{}.jpg", photo)
write("versions/{}.png", photo)
write("rain/rain-{}.png", photo)
write("rain/norain-{}.png", photo)
write("arrays/images/{}.png", photo)
write("arrays/masks/{}.png", mask)
for path in (ROOT / "arrays/masks").iterdir():
    np.save(path.with_suffix(".npy"), np.array(Image.open(path)))
    path.unlink()
pairs("coloured", "images", "masks", colours)
TABLE = "name, r, g, b\nroad, 128, 0, 0\n\"grass, wet\", 0, 128, 0\nsky, 0, 0, 0\n"
pairs("table", "images", "masks", colours)
(ROOT / "table/class_dict.csv").write_text(TABLE)
red, green, _ = np.array(Image.open(ROOT / "table/masks/000001.png")).transpose(2, 0, 1)
(ROOT / "table.ids").write_bytes(np.where(red > 0, 0, np.where(green > 0, 1, 2)).astype(np.uint8).tobytes())
pairs("sets", "train", "train_labels", colours)
pairs("sets", "val", "val_labels", colours)
(ROOT / "sets/class_dict.csv").write_text(TABLE)
write("sat/train/{}_sat.jpg", photo)
write("sat/train/{}_mask.png", colours)
(ROOT / "sat/class_dict.csv").write_text(TABLE)
pairs("lacking", "images", "masks", colours)
(ROOT / "lacking/class_dict.csv").write_text("name,r,g,b\nroad,128,0,0\n")
pairs("broken", "images", "masks", colours)
(ROOT / "broken/class_dict.csv").write_text("name,r,g,b\nroad,128,0,300\n")
pairs("binary", "images", "masks", lambda: Image.fromarray(np.minimum(np.array(mask()), 1) * np.uint8(255)))
pairs("wide", "images", "masks", deep)
