"""Measures one peer in one process. checksum.py computes the checksum."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from common.machine import evict, resident, to_disk, warm
from common.process import cpu_seconds, memory_bytes
from python.checksum import Checksum
from python.data import pair
from python.peers import Request

# Number of batches left out at the start of each epoch, as in bench/peers.py. Batches prepared in advance do not show a
# loader's speed, and the time to start an epoch is negligible in a large dataset.
START_BATCHES = 6


def write(module: ModuleType, data: Path, n_samples: int, folder: Path, chunk: int) -> dict[str, Any]:
    """Calls the peer's writer, and syncs its files to disk."""
    images, labels = pair(data)
    start = time.perf_counter()
    module.write(images[:n_samples], labels[:n_samples], folder, chunk)
    size = to_disk(folder)
    return {"bytes": size, "write_s": time.perf_counter() - start}


def check(module: ModuleType, request: Request) -> dict[str, Any]:
    """Describes the contents of one epoch."""
    checksum, shapes, labels_sum = Checksum(), set(), 0
    for images, labels in module.open(request).epoch(0):
        images = np.asarray(images)
        shapes.add((str(images.dtype), *images.shape[1:]))
        checksum.add(images, labels)
        labels_sum += int(np.asarray(labels).sum())
    return {
        "checksum": checksum.hex,
        "n_samples": checksum.n_samples,
        "images": sorted(shapes),
        "labels_sum": labels_sum,
    }


@dataclass
class Waits:
    """The time that the consumer waited for each batch, and the number of images."""

    seconds: list[float] = field(default_factory=list)
    images: list[int] = field(default_factory=list)
    cpu_s: float = 0.0
    cpu_images: int = 0  # number of images that `cpu_s` covers

    def add_epoch(self, seconds: list[float], images: list[int], left_out: int) -> None:
        """Adds an epoch without its first batches: `left_out` of them, but at most half."""
        skipped = min(left_out, max(1, len(seconds) // 2), len(seconds) - 1)
        self.seconds += seconds[skipped:]
        self.images += images[skipped:]

    def figures(self, batch: int, step_s: float) -> dict[str, Any]:
        full = [wait for wait, count in zip(self.seconds, self.images, strict=True) if count == batch] or self.seconds
        waited, worked = sum(self.seconds), step_s * len(self.seconds)
        return {
            "batch_ms": spread([wait + step_s for wait in full]),
            "images_per_s": sum(self.images) / (waited + worked),
            "cpu_s_per_1000": self.cpu_s / self.cpu_images * 1e3 if self.cpu_images else None,
            "wait_ms": spread(full) if step_s else None,
            "wait_share": waited / (waited + worked) if step_s else None,
        }


def spread(seconds: list[float]) -> dict[str, float]:
    return {"median": float(np.median(seconds)) * 1e3, "p95": float(np.percentile(seconds, 95)) * 1e3}


def cpu() -> float:
    return cpu_seconds(os.getpid())


@dataclass
class Clock:
    """Consumes a loader's batches, working `step_s` on each."""

    loading: Any
    step_s: float
    limit_s: float  # time limit of an epoch after its first batch; a longer epoch is cut off
    left_out: int  # number of batches at the start of each epoch that do not count
    number: int = 0
    cut: bool = False
    cpu_at_first: float = 0.0

    def epoch(self, waits: Waits) -> None:
        """Runs the whole next epoch."""
        begin = cpu()
        images = self.take(waits, time.perf_counter())[1]
        waits.cpu_s += cpu() - begin
        waits.cpu_images += sum(images)

    def first_epoch(self, waits: Waits, start: float) -> float:
        """Returns the time from `start` to the first batch. CPU time is counted after the first batch, because FFCV compiles before it."""
        first_s, images = self.take(waits, start)
        waits.cpu_s = cpu() - self.cpu_at_first
        waits.cpu_images = sum(images[1:])
        return first_s

    def take(self, waits: Waits, start: float) -> tuple[float, list[int]]:
        seconds: list[float] = []
        images: list[int] = []
        before = start
        for batch, _ in self.loading.epoch(self.number):
            seconds.append(time.perf_counter() - before)
            images.append(len(batch))
            if sum(seconds[1:]) > self.limit_s:
                self.cut = True
                break
            if not images[1:]:
                self.cpu_at_first = cpu()
            if self.step_s:
                time.sleep(self.step_s)
            before = time.perf_counter()
        self.number += 1
        if not seconds:
            raise SystemExit("an epoch has no batch")
        waits.add_epoch(seconds, images, self.left_out)
        return seconds[0], images


def run(module: ModuleType, request: Request, cold: bool, step_s: float, seconds: float, rounds: int) -> dict[str, Any]:
    """Measures one run. A cold run, or a run with a training step, measures the first epoch. Other runs measure rounds of
    later epochs; if the first epoch takes longer than all rounds may take, they measure only its first part.
    """
    (evict if cold else warm)(request.folder)
    share = resident(request.folder)
    only_first = cold or step_s > 0
    first = Waits()
    start = time.perf_counter()
    # A cold epoch is reported as a whole, because readahead for its first batches may already load most of the files.
    left_out = int(getattr(module, "COMPILES", False)) if cold else START_BATCHES
    limit_s = max(20 * seconds, 10.0) if only_first else seconds * rounds
    clock = Clock(module.open(request), step_s, limit_s, left_out)
    first_s = clock.first_epoch(first, start)
    measured = [first] if only_first or clock.cut else warm_rounds(clock, seconds, rounds)
    return median_of([waits.figures(request.batch, step_s) for waits in measured]) | {
        "first_batch_ms": first_s * 1e3,
        "peak_rss_bytes": memory_bytes(os.getpid(), "VmHWM"),
        "cached_share_before": share,
    }


def warm_rounds(clock: Clock, seconds: float, rounds: int) -> list[Waits]:
    every = [Waits() for _ in range(rounds)]
    for waits in every:
        end = time.perf_counter() + seconds
        while time.perf_counter() < end and not clock.cut:
            clock.epoch(waits)
    return [waits for waits in every if waits.seconds]


def median_of(every: list[dict[str, Any]]) -> dict[str, Any]:
    """Medians of each figure, including nested ones."""
    return {key: middle([figures[key] for figures in every]) for key in every[0]}


def middle(values: list[Any]) -> Any:
    if isinstance(values[0], dict):
        return median_of(values)
    return None if values[0] is None else float(np.median(values))
