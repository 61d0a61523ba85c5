"""DALI on the CPU over a COCO file: its random crop for boxes, resize and flip, as in its SSD example.

`threads` is the number of DALI's threads.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
from nvidia.dali import fn, pipeline_def, types

from python.peers import Request


@pipeline_def
def pipeline(folder: str, annotations: str, seed: int) -> Any:
    files, boxes, classes, ids = fn.readers.coco(
        file_root=folder, annotations_file=annotations, ratio=True, ltrb=True, random_shuffle=True, seed=seed,
        pad_last_batch=False, image_ids=True, name="reader",
    )  # fmt: skip
    anchor, shape, boxes, classes = fn.random_bbox_crop(
        boxes, classes, aspect_ratio=[0.5, 2.0], scaling=[0.3, 1.0], thresholds=[0.0, 0.1, 0.3, 0.5, 0.7, 0.9],
        bbox_layout="xyXY", allow_no_crop=True, num_attempts=40, seed=seed,
    )  # fmt: skip
    images = fn.decoders.image_slice(files, anchor, shape, device="cpu", output_type=types.RGB)
    images = fn.resize(images, size=[224, 224])
    flip = fn.random.coin_flip(probability=0.5, seed=seed)
    return fn.flip(images, horizontal=flip), fn.bb_flip(boxes, horizontal=flip, ltrb=True), classes, ids


class Loader:
    def __init__(self, request: Request) -> None:
        document = json.loads(request.folder.read_text())
        self.labels = {image["id"]: image["label"] for image in document["images"]}
        self.request, self.n_images = request, len(document["images"])
        self.pipe = pipeline(
            str(request.folder.parent), str(request.folder), request.seed,
            batch_size=request.batch, num_threads=request.threads, device_id=None,
        )  # fmt: skip
        self.pipe.build()

    def epoch(self, number: int) -> Iterator[tuple[Any, Any]]:
        whole, rest = divmod(self.n_images, self.request.batch)
        for step in range(whole + (rest > 0 and not self.request.drop_last)):
            images, boxes, _, ids = self.pipe.run()
            n = rest if step == whole else self.request.batch
            labels = np.array([self.labels[int(np.asarray(ids.at(row))[0])] for row in range(n)])
            if len(boxes) < n:
                raise SystemExit(f"a batch has {n} images and boxes for {len(boxes)}")
            yield images.as_array()[:n], labels


def open(request: Request) -> Loader:
    return Loader(request)
