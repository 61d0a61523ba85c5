"""Tiny datasets for the scripts of WebDataset, TFRecord and LMDB: the same pixels and labels in each."""

import io

import numpy as np
from PIL import Image

N, H, W = 20, 5, 7
NAMES = ["zebra", "ant", "sea lion"]


def pixels(i):
    return ((np.arange(H * W * 3) * 7 + i * 31) % 251).astype(np.uint8).reshape(H, W, 3)


def png(i):
    out = io.BytesIO()
    Image.fromarray(pixels(i)).save(out, "PNG")
    return out.getvalue()


def jpeg(i):
    out = io.BytesIO()
    Image.fromarray(pixels(i)).save(out, "JPEG", quality=90)
    return out.getvalue()


def decoded(data):
    return np.asarray(Image.open(io.BytesIO(data)))


def points(i):
    return np.arange(6, dtype=np.float32).reshape(2, 3) + i
