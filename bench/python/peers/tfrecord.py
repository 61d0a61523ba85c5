"""TFRecord by tf.data: one file per chunk, raw pixels, each batch parsed in one call."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import tensorflow as tf

from python.peers import Request

FEATURES = {"image": tf.io.FixedLenFeature([], tf.string), "label": tf.io.FixedLenFeature([], tf.int64)}


def example(image: np.ndarray, label: int) -> bytes:
    pixels = tf.train.Feature(bytes_list=tf.train.BytesList(value=[image.tobytes()]))
    number = tf.train.Feature(int64_list=tf.train.Int64List(value=[label]))
    features = tf.train.Features(feature={"image": pixels, "label": number})
    data: bytes = tf.train.Example(features=features).SerializeToString()
    return data


def write(images: np.ndarray, labels: np.ndarray, folder: Path, chunk: int) -> None:
    for start in range(0, len(images), chunk):
        with tf.io.TFRecordWriter(str(folder / f"{start // chunk:06}.tfrecord")) as writer:
            for index in range(start, min(start + chunk, len(images))):
                writer.write(example(images[index], int(labels[index])))
    (folder / "shape.json").write_text(json.dumps(images.shape[1:]))


class Loader:
    def __init__(self, request: Request) -> None:
        shape = json.loads((request.folder / "shape.json").read_text())

        def parse(records: Any) -> tuple[Any, Any]:
            parsed = tf.io.parse_example(records, FEATURES)
            pixels = tf.io.decode_raw(parsed["image"], tf.uint8, fixed_length=int(np.prod(shape)))
            return tf.reshape(pixels, (-1, *shape)), parsed["label"]

        tf.random.set_seed(request.seed)
        paths = sorted(str(path) for path in request.folder.glob("*.tfrecord"))
        in_order = request.order == "sequential"
        options = tf.data.Options()
        options.threading.private_threadpool_size = request.threads
        options.threading.max_intra_op_parallelism = 1
        options.deterministic = in_order
        readers = 1 if in_order else request.threads
        files = tf.data.Dataset.from_tensor_slices(paths)
        self.batches = (
            (files if in_order else files.shuffle(len(paths)))
            .interleave(
                lambda path: tf.data.TFRecordDataset(path, buffer_size=1 << 20).batch(request.batch),
                cycle_length=readers,
                num_parallel_calls=readers,
            )
            .map(parse, num_parallel_calls=request.threads)
            .prefetch(2)
            .with_options(options)
        )

    def epoch(self, number: int) -> Iterator[tuple[Any, Any]]:
        yield from self.batches.as_numpy_iterator()


def open(request: Request) -> Loader:
    return Loader(request)
