"""Runs one peer in its own process: reads a job, then commands from stdin, and answers each with a line of JSON.

The output of the peer's libraries goes to stderr.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
import zlib
from itertools import pairwise
from typing import Any, TextIO

import numpy as np

from common.process import cpu_seconds, memory_bytes
from compare.peers import Job
from python.peers import Loading

# Number of batches left out at the start of each epoch. FFCV allocates five new buffers in each epoch, and these
# batches are the first to touch them.
START_BATCHES = 6


def first_batch_s(loading: Loading, number: int) -> float:
    """Times the first batch of an epoch, then runs the epoch to its end."""
    start, first = time.perf_counter(), None
    for _ in loading.epoch(number):
        first = first or time.perf_counter() - start
    if first is None:
        raise SystemExit("the peer delivers no batch: there are fewer images than one batch")
    return first


def timed(loading: Loading, seconds: float, first_epoch: int, job: Job) -> dict[str, Any]:
    """Runs whole epochs until `seconds` have passed.

    The rate excludes the first batches of each epoch: the cost of starting an epoch is negligible in a large dataset,
    so it should not count in this small one. `images_per_s_with_starts` includes it.
    """
    skipped = max(1, min(START_BATCHES, job.n_images // job.batch // 2))
    waits: list[float] = []
    all_images, epoch = 0, first_epoch
    cpu, start = cpu_seconds(os.getpid()), time.perf_counter()
    while time.perf_counter() - start < seconds:
        arrivals = []
        for images, labels in loading.epoch(epoch):
            arrivals.append(time.perf_counter())
            if len(images) != job.batch or len(labels) != job.batch:
                raise SystemExit(f"a batch has {len(images)} images and {len(labels)} labels, expected {job.batch}")
        waits += [after - before for before, after in pairwise(arrivals[skipped - 1 :])]
        all_images += len(arrivals) * job.batch
        epoch += 1
    total_s = time.perf_counter() - start
    return {
        "images_per_s": len(waits) * job.batch / sum(waits),
        "images_per_s_with_starts": all_images / total_s,
        "p99_batch_ms": float(np.percentile(waits, 99)) * 1e3,
        "cpu_s_per_1000": (cpu_seconds(os.getpid()) - cpu) / all_images * 1e3,
        "anon_bytes": memory_bytes(os.getpid(), "RssAnon"),
        "peak_rss_bytes": memory_bytes(os.getpid(), "VmHWM"),
        "epochs": epoch - first_epoch,
    }


def delivered(loading: Loading) -> dict[str, Any]:
    """The contents of one epoch, independent of order: `checksum` is the sum of the images' CRC-32."""
    n_images, checksum, labels_sum, total, shapes = 0, 0, 0, 0.0, set()
    for images, labels in loading.epoch(0):
        images = np.asarray(images)
        shapes.add((str(images.dtype), *images.shape[1:]))
        n_images += len(images)
        labels_sum += int(np.asarray(labels).sum())
        total += float(images.mean(dtype=np.float64)) * len(images)
        checksum += sum(zlib.crc32(image.tobytes()) for image in images)
    return {
        "n_images": n_images,
        "images": sorted(shapes),
        "checksum": checksum,
        "labels_sum": labels_sum,
        "mean": total / max(n_images, 1),
    }


def serve(job: Job, commands: TextIO, answers: TextIO) -> None:
    def answer(value: dict[str, Any]) -> None:
        answers.write(json.dumps(value) + "\n")
        answers.flush()

    start = time.perf_counter()
    module = importlib.import_module(job.module)
    imported = time.perf_counter()
    loading: Loading = module.open(job.request)
    made = time.perf_counter()
    if job.whole:
        answer(delivered(loading))
        return
    cold, warm = first_batch_s(loading, 0), first_batch_s(loading, 1)
    # One-time costs in the first epoch of a process: FFCV compiles, TensorFlow traces, the DataLoader
    # forks.
    compile_s = made - imported + max(cold - warm, 0.0)
    answer({"import_s": imported - start, "compile_s": compile_s, "first_batch_ms": warm * 1e3})
    epoch = 2
    for line in commands:
        result = timed(loading, float(line), epoch, job)
        epoch += result["epochs"]
        answer(result)


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    serve(Job(**json.loads(sys.argv[1])), sys.stdin, answers)
    answers.flush()
    # Endless threads of the peer must not keep the process alive.
    os._exit(0)


if __name__ == "__main__":
    main()
