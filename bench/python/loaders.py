#!/usr/bin/env python3
"""Measures packds's Python package, PyTorch's DataLoader and other loaders on the same images in the same run.

    bench/setup-peers
    bench/.venv/bin/pip install --no-deps target/wheels/packds-*.whl
    bench/python/loaders.py IMAGES --out DIR

IMAGES is a folder of class folders of JPEG files. There are three comparisons: `pixels` loads raw images of 224x224x3
in random order; `files` loads the JPEG files with RandomResizedCrop(224) and flip; `overhead` measures the microseconds
that Python adds per batch. Details are in bench/python/README.md.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

BENCH = Path(__file__).resolve().parent.parent
sys.path[0] = str(BENCH)

from common.venv import enter_venv  # noqa: E402


@dataclass(frozen=True)
class Case:
    """A loader of a comparison, with a number of threads or worker processes."""

    comparison: str
    title: str
    module: str
    variant: str = ""
    input: str = ""  # the module that writes its files, if not `module`
    package: str = ""
    order: str = "per-sample"
    least: int = 1  # workers
    unit: str = "workers"
    n_workers: int = 1

    @property
    def name(self) -> str:
        return f"{self.title}, {self.n_workers} {self.unit if self.n_workers != 1 else self.unit[:-1]}"

    @property
    def ours(self) -> bool:
        return self.module == "packds_loader"


OURS: dict[str, Any] = {"module": "packds_loader", "package": "packds"}
CASES = (
    Case("pixels", "packds.Loader", variant="numpy", unit="threads", **OURS),
    Case("pixels", "packds.Loader, tensors", variant="torch", unit="threads", **OURS),
    Case("pixels", "packds.torch.IterableDataset", variant="iterable", least=0, **OURS),
    Case("pixels", "packds.torch.MapDataset", variant="map", least=0, **OURS),
    Case("pixels", "ImageFolder (PNG)", "torch_loader", "images", "images", "torchvision", least=0),
    Case("pixels", "FFCV", "ffcv", package="ffcv"),
    Case("pixels", "LitData", "litdata", package="litdata", order="chunk"),
    Case("pixels", "MDS", "mds", package="mosaicml-streaming"),
    Case("pixels", "WebDataset", "webdataset", package="webdataset", order="chunk"),
    Case("files", "packds.Loader", variant="numpy-crops", unit="threads", **OURS),
    Case("files", "packds.Loader, tensors", variant="torch-crops", unit="threads", **OURS),
    Case("files", "packds.torch.IterableDataset", variant="iterable-crops", least=0, **OURS),
    Case("files", "packds.torch.MapDataset", variant="map-crops", least=0, **OURS),
    Case("files", "ImageFolder", "compare.peers.image_folder", package="torchvision", least=0),
)
# The shapes of images that a loader may deliver: channels last or channels first.
SHAPES = ([["uint8", 224, 224, 3]], [["uint8", 3, 224, 224]])


def say(text: str) -> None:
    print(f"loaders: {text}", file=sys.stderr, flush=True)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("images", type=Path, metavar="IMAGES")
    add("--out", type=Path, required=True, metavar="DIR", help="folder for inputs, loaders.json and a chart per comparison")
    add("--only", default="pixels,files,overhead", help="comparisons, comma-separated [pixels,files,overhead]")
    add("--n", type=int, default=4096, help="images per comparison [4096]")
    add("--batch", type=int, default=64, help="[64]")
    add("--workers", default="0,1,2", help="numbers of threads or worker processes, comma-separated [0,1,2]")
    add("--seconds", type=float, default=3.0, help="minimum duration per loader and round [3]")
    add("--rounds", type=int, default=5, help="rounds; figures are their medians [5]")
    add("--seed", type=int, default=0, help="[0]")
    add("--quick", action="store_true", help="256 images, 2 rounds of 0.3 s: checks that everything runs, not how fast")
    options = parser.parse_args()
    if options.quick:
        options.n, options.batch, options.seconds, options.rounds = 256, 32, 0.3, 2
    options.n = options.n // options.batch * options.batch
    options.workers = [int(count) for count in options.workers.split(",")]
    if not options.images.is_dir() or options.n == 0:
        parser.error("IMAGES must be a folder, and --n at least one batch")
    return options


def make_inputs(options: argparse.Namespace) -> None:
    """Makes the inputs: pixels as a pair of .npy files, and copies of the JPEG files in class folders and in a pack."""
    import numpy as np
    from PIL import Image

    import packds
    from compare.inputs import Source, center_crop, short_side

    source = Source.read(options.images)
    labels, names = source.labels(options.n), source.chosen(options.n)
    pair, files, pack = (options.out / name for name in ("pixels", "files", "files-pack"))
    for folder in (pair, files, pack):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    images = np.lib.format.open_memmap(pair / "images.npy", "w+", np.uint8, (options.n, 224, 224, 3))
    for number, (which, label) in enumerate(zip(names, labels, strict=True)):
        path = source.files[which]
        with Image.open(path) as image:
            images[number] = np.asarray(center_crop(short_side(image.convert("RGB"), 256), 224))
        copy = files / f"{label:06}" / f"{number:08}.jpg"
        copy.parent.mkdir(exist_ok=True)
        shutil.copyfile(path, copy)
    images.flush()
    np.save(pair / "labels.npy", np.array(labels))
    packds.convert(files, pack / "images.pack", mode="encoded", seekable=True, progress=False)


class Comparison:
    """The installed loaders of a comparison, each in a process that imports its libraries once."""

    def __init__(self, name: str, options: argparse.Namespace) -> None:
        from python.runner import Worker

        self.name, self.options = name, options
        self.left_out: dict[str, str] = {}
        self.running: list[tuple[Case, Worker]] = []
        self.rounds: dict[str, list[dict[str, Any]]] = {}
        logs = options.out / "logs"
        logs.mkdir(exist_ok=True)
        workers: dict[str, Worker] = {}
        for case in [case for case in CASES if case.comparison == name]:
            reason = None if installed(case.package) else f"{case.package} is not installed"
            if reason is None:
                worker = workers.get(case.module) or Worker(case.module, logs / f"{name}-{case.module}.log")
                workers[case.module] = worker
                reason = worker.start.get("error") or self.write(case)
            if reason is not None:
                self.left_out[case.title] = reason
                say(f"{case.title}: left out: {reason}")
                continue
            self.running += [(replace(case, n_workers=n), worker) for n in options.workers if n >= case.least]
        self.workers = list(workers.values())

    def folder(self, case: Case) -> Path:
        if case.comparison == "files":
            return Path(self.options.out / ("files-pack" if case.ours else "files"))
        return Path(self.options.out / (case.input or case.module))

    def write(self, case: Case) -> str | None:
        """Writes the loader's files. Returns the reason if this fails."""
        from python.runner import Worker

        folder = self.folder(case)
        if case.comparison == "files" or folder.exists():
            return None
        folder.mkdir()
        writer = Worker(case.input or case.module, self.options.out / "logs" / f"write-{folder.name}.log")
        job = {"data": str(self.options.out / "pixels"), "n_samples": self.options.n}
        answer = writer.ask(kind="write", folder=str(folder), chunk=self.options.batch, **job)
        writer.stop()
        error: str | None = answer.get("error")
        return error

    def request(self, case: Case) -> dict[str, Any]:
        request = {"folder": str(self.folder(case)), "variant": case.variant, "batch": self.options.batch}
        return request | {"threads": case.n_workers, "order": case.order, "seed": self.options.seed, "drop_last": False}

    def check(self, expected: str, labels_sum: int) -> None:
        """Checks that one epoch of each loader has every image once. Compares pixels, or if images are cropped, shapes and
        labels."""
        for case, worker in list(self.running):
            answer = worker.ask(kind="check", request=self.request(case))
            wrong = answer.get("error")
            if wrong is None and (answer["n_samples"], answer["labels_sum"]) != (self.options.n, labels_sum):
                wrong = f"delivers {answer['n_samples']} samples whose labels sum to {answer['labels_sum']}"
            elif wrong is None and self.name == "pixels" and answer["checksum"] != expected:
                wrong = f"delivers wrong pixels: {answer['checksum']}, expected {expected}"
            elif wrong is None and answer["images"] not in SHAPES:
                wrong = f"delivers images of {answer['images']}"
            if wrong is not None:
                self.left_out[case.name] = wrong
                say(f"{case.name}: left out: {wrong}")
                self.running.remove((case, worker))

    def run(self) -> None:
        """Runs rounds. Each round measures all loaders in turn, every second round in reverse order."""
        options = {"cold": False, "step_s": 0.0, "seconds": self.options.seconds, "rounds": 1}
        for number in range(self.options.rounds):
            say(f"{self.name}: round {number + 1} of {self.options.rounds}")
            for case, worker in self.running[:: -1 if number % 2 else 1]:
                answer = worker.ask(kind="run", request=self.request(case), options=options)
                if "error" in answer:
                    self.left_out[case.name] = answer["error"]
                else:
                    self.rounds.setdefault(case.name, []).append(answer)

    def report(self) -> dict[str, Any]:
        from python.measure import median_of

        for worker in self.workers:
            worker.stop()
        rows: list[dict[str, Any]] = []
        for case, _ in self.running:
            if every := self.rounds.get(case.name):
                rates = [one["images_per_s"] for one in every]
                row = {"name": case.name, "ours": case.ours, "order": case.order, "workers": case.n_workers}
                rows.append(row | median_of(every) | {"range": [min(rates), max(rates)]})
        rows.sort(key=lambda row: -row["images_per_s"])
        return {"name": self.name, "rows": rows, "left_out": self.left_out}


def installed(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def row_text(row: dict[str, Any] | None) -> str:
    """A row of a table, or its header."""
    if row is None:
        cells = ["images/s", "range", "first ms", "CPU s/1000", "cached"]
    else:
        cells = [f"{row['images_per_s']:,.0f}", " to ".join(f"{rate:,.0f}" for rate in row["range"])]
        cells += [
            f"{row['first_batch_ms']:.0f}",
            f"{row['cpu_s_per_1000'] or 0:.3f}",
            f"{row['cached_share_before']:.0%}",
        ]
    widths = (10, 20, 9, 11, 7)
    return f"{row['name'] if row else '':42}" + " ".join(
        f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True)
    )


def lines(report: dict[str, Any]) -> list[str]:
    machine, told = report["machine"], report["settings"]
    memory = f"{machine['memory_bytes'] / (1 << 30):.1f} GiB"
    text = [f"{machine['cpu']}, {machine['cores']} cores, {memory}, {machine['system']}"]
    text += [f"other work before: {report['busy']:.2f} cores"]
    text += [f"{told['n']} images, batches of {told['batch']}, cache warm, seed {told['seed']}"]
    text += [f"medians of {told['rounds']} rounds of {told['seconds']:g} s"]
    text += [", ".join(f"{name} {number}" for name, number in report["versions"].items())]
    for comparison in report["comparisons"]:
        text += ["", comparison["name"], *map(row_text, [None, *comparison["rows"]])]
        text += [f"left out: {name}: {reason}" for name, reason in comparison["left_out"].items()]
    if overhead := report.get("overhead"):
        text += ["", f"microseconds per batch of {overhead['batch']} images of 32x32, and what Python adds to Rust's"]
        for name, us in overhead["us_per_batch"].items():
            adds = overhead["python_adds_us"].get(name)
            text.append(f"{name:10}{us:8.1f}" + ("" if adds is None else f"{adds:+8.1f}"))
    return text


TITLES = {
    "pixels": "Images per second from raw images of 224x224x3",
    "files": "Images per second from JPEG files, RandomResizedCrop(224) and flip",
}


def chart(comparison: dict[str, Any], report: dict[str, Any]) -> str:
    """A chart of a comparison, for the largest number of threads or worker processes."""
    from python.chart import bars

    most = max((row["workers"] for row in comparison["rows"]), default=0)
    shown = [row for row in comparison["rows"] if row["workers"] == most]
    rows = [(row["name"], row["images_per_s"], *row["range"], row["ours"]) for row in shown]
    settings, machine = report["settings"], report["machine"]
    what = f"{settings['n']:,} images in the page cache, batches of {settings['batch']}; {machine['cpu']}, {machine['cores']} cores."
    what += " Lines: range of the rounds."
    return bars(TITLES[comparison["name"]], what, "images/s", rows)


def main() -> None:
    enter_venv()
    options = arguments()
    if installed("packds") is None:
        raise SystemExit("loaders: packds is not installed here: pip install --no-deps target/wheels/packds-*.whl")
    from common.machine import busy_cores, describe

    options.out = options.out.resolve()
    options.out.mkdir(parents=True, exist_ok=True)
    told = {name: getattr(options, name) for name in ("n", "batch", "workers", "seconds", "rounds", "seed")}
    report: dict[str, Any] = {"machine": describe(), "busy": busy_cores(), "settings": told}
    packages = sorted({case.package for case in CASES} | {"torch", "numpy"})
    report["versions"] = {name: number for name in packages if (number := installed(name))}
    report["comparisons"] = []
    names = options.only.split(",")
    if {"pixels", "files"} & set(names):
        from python.data import Data, pair

        make_inputs(options)
        data = Data.read(options.out / "pixels", options.out, None, options.batch)
        expected, labels_sum = data.checksum(), int(pair(data.folder)[1].sum())
        for case in CASES:
            # Files of an earlier run may have other images.
            if case.comparison == "pixels":
                shutil.rmtree(options.out / (case.input or case.module), ignore_errors=True)
    for name in ("pixels", "files"):
        if name in names:
            comparison = Comparison(name, options)
            comparison.check(expected, labels_sum)
            comparison.run()
            found = comparison.report()
            (options.out / f"{name}.svg").write_text(chart(found, report))
            report["comparisons"].append(found)
    if "overhead" in names:
        from python.overhead import measure

        report["overhead"] = measure(options.out, options.seconds, options.rounds, options.seed)
    (options.out / "loaders.json").write_text(json.dumps(report, indent=1) + "\n")
    print("\n".join(lines(report)))


if __name__ == "__main__":
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
    main()
