"""tf.data over image files: decodes only the crop (`decode_and_crop_jpeg`), resizes and flips."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from compare.inputs import labelled_files
from python.peers import Request


def load(path: Any, label: Any) -> tuple[Any, Any]:
    data = tf.io.read_file(path)
    begin, size, _ = tf.image.sample_distorted_bounding_box(
        tf.io.extract_jpeg_shape(data),
        bounding_boxes=tf.zeros((1, 0, 4)),
        area_range=(0.08, 1.0),
        aspect_ratio_range=(3 / 4, 4 / 3),
        max_attempts=10,
        use_image_if_no_bounding_boxes=True,
    )
    window = tf.stack([begin[0], begin[1], size[0], size[1]])
    image = tf.image.resize(tf.image.decode_and_crop_jpeg(data, window, channels=3), (224, 224))
    return tf.cast(tf.image.random_flip_left_right(image) + 0.5, tf.uint8), label


class Loader:
    def __init__(self, request: Request) -> None:
        tf.random.set_seed(request.seed)
        paths, labels = zip(*((str(path), label) for path, label in labelled_files(request.folder)), strict=True)
        options = tf.data.Options()
        options.threading.private_threadpool_size = request.threads
        options.threading.max_intra_op_parallelism = 1
        options.deterministic = False
        self.batches = (
            tf.data.Dataset.from_tensor_slices((list(paths), list(labels)))
            .shuffle(len(paths))
            .map(load, num_parallel_calls=request.threads)
            .batch(request.batch, drop_remainder=request.drop_last)
            .prefetch(2)
            .with_options(options)
        )

    def epoch(self, number: int) -> Iterator[tuple[Any, Any]]:
        yield from self.batches


def open(request: Request) -> Loader:
    return Loader(request)
