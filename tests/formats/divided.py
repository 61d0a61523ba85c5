"""Writes folders whose splits or fields are in lists and tables next to the images: divided.py DIR."""

import sys
from pathlib import Path

# Some modules in this script's folder have the names of libraries, so Python must not search this folder.
sys.path.pop(0)

import numpy as np
import pandas as pd
from PIL import Image

ROOT = Path(sys.argv[1])
N = 6


def save(path, value, mode="RGB"):
    path = ROOT / path
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new(mode, (9, 8), (value, value, value) if mode == "RGB" else value).save(path)


def write(path, text):
    (ROOT / path).parent.mkdir(parents=True, exist_ok=True)
    (ROOT / path).write_text(text)


def voc():
    for i in range(N):
        save(f"voc/JPEGImages/2007_{i:06}.png", 10 * i)
        write(f"voc/Annotations/2007_{i:06}.xml", "<annotation><object><bndbox/></object></annotation>")
        if i < 4:
            save(f"voc/SegmentationClass/2007_{i:06}.png", i, "L")
    lists = {"Segmentation/train": [0, 2], "Segmentation/val": [1, 3], "Segmentation/trainval": range(4), "Main/train": [0, 4], "Main/val": [1, 5]}
    for name, numbers in lists.items():
        write(f"voc/ImageSets/{name}.txt", "".join(f"2007_{i:06}\n" for i in numbers))


def celeba():
    for i in range(N):
        save(f"celeba/img_align_celeba/{i:06}.jpg", 10 * i)
    names = [f"{i:06}.jpg" for i in range(N)]
    sign = [1 if i % 3 else -1 for i in range(N)]
    pd.DataFrame({"image_id": names, "Bald": sign, "Young": sign[::-1]}).to_csv(ROOT / "celeba/list_attr_celeba.csv", index=False)
    split = pd.DataFrame({"image_id": names, "partition": [0, 0, 0, 0, 1, 2]})
    split.iloc[::-1].to_csv(ROOT / "celeba/list_eval_partition.csv", index=False)


def gtsrb():
    for label in (0, 3):
        for i in range(N):
            save(f"gtsrb/GTSRB/Final_Training/Images/{label:05}/{label}{i:04}.ppm", 10 * i + label)
    for i in range(N):
        save(f"gtsrb/GTSRB/Final_Test/Images/{i:05}.ppm", i)
    rows = pd.DataFrame({"Filename": [f"{i:05}.ppm" for i in range(N)], "Width": 9, "ClassId": [3, 0, 0, 3, 3, 0]})
    rows.to_csv(ROOT / "gtsrb/GT-final_test.csv", index=False, sep=";")


def birds():
    for i in range(N):
        save(f"birds/{i % 3:03}.bird_{'abc'[i % 3]}/{i}.jpg", 10 * i)
    names = [f"{i % 3:03}.bird_{'abc'[i % 3]}/{i}.jpg" for i in range(N)]
    rows = pd.DataFrame({"img_id": range(N), "img_filename": names, "y": [int(i % 3 == 1) for i in range(N)], "place": [i // 3 for i in range(N)]})
    rows.to_csv(ROOT / "birds/metadata.csv", index=False)


for make in (voc, celeba, gtsrb, birds):
    make()
