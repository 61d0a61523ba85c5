"""The time that Python adds per batch, compared with `packds bench load` of the same build.

The images are so small that all other costs are minor.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import packds

N_SAMPLES, SIDE, BATCH = 4096, 32, 8


def make(folder: Path, seed: int) -> Path:
    path = folder / "overhead.pack"
    if not path.exists():
        images = np.random.default_rng(seed).integers(0, 256, (N_SAMPLES, SIDE, SIDE, 3), np.uint8)
        arrays = {"image": images, "label": np.arange(N_SAMPLES)}
        packds.from_dataset(arrays, path, progress=False)
    return path


def rust_us(path: Path, seconds: float, seed: int) -> float:
    """Microseconds per batch in Rust alone."""
    command = [sys.executable, "-m", "packds", "bench", "load", str(path), "--json", f"--batch={BATCH}"]
    command += [f"--seed={seed}", "--jobs=1", "--order=sequential", f"--seconds={max(1.0, seconds):g}"]
    report = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return BATCH / float(report["images_per_s"]) * 1e6


def ways(path: Path, seed: int) -> dict[str, Callable[[], int]]:
    """Ways to consume an epoch. Each returns the epoch's number of samples."""

    def loader(output: str) -> packds.Loader:
        return packds.Loader(path, BATCH, order="sequential", seed=seed, threads=1, output=output)

    arrays, tensors = loader("numpy"), loader("torch")
    return {
        "numpy": lambda: sum(len(labels) for _, labels in arrays),
        "batches": lambda: sum(len(batch) for batch in arrays.batches()),
        "torch": lambda: sum(len(labels) for _, labels in tensors),
    }


def epochs_us(epoch: Callable[[], int], seconds: float) -> float:
    """Microseconds per batch of the median epoch."""
    every, end = [], time.perf_counter() + seconds
    while not every or time.perf_counter() < end:
        start = time.perf_counter()
        n_samples = epoch()
        every.append(time.perf_counter() - start)
        if n_samples != N_SAMPLES:
            raise SystemExit(f"overhead: an epoch has {n_samples} samples, expected {N_SAMPLES}")
    return median(every) / (N_SAMPLES / BATCH) * 1e6


def measure(folder: Path, seconds: float, rounds: int, seed: int) -> dict[str, Any]:
    """Medians over rounds. Each round runs Rust and all Python variants in turn, every second round in reverse order."""
    path = make(folder, seed)
    every: dict[str, Callable[[], float]] = {"rust": partial(rust_us, path, seconds, seed)}
    for name, epoch in ways(path, seed).items():
        epoch()  # Warm-up: imports, and the first access to the pack.
        every[name] = partial(epochs_us, epoch, seconds)
    rows: list[dict[str, float]] = []
    for number in range(rounds):
        names = list(every)[:: -1 if number % 2 else 1]
        rows.append({name: every[name]() for name in names})
    us = {name: median(row[name] for row in rows) for name in every}
    adds = {name: median(row[name] - row["rust"] for row in rows) for name in every if name != "rust"}
    return {"batch": BATCH, "image": [SIDE, SIDE, 3], "us_per_batch": us, "python_adds_us": adds, "rounds": rows}
