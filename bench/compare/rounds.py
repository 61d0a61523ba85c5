"""Runs a comparison: each peer in its own process, alternating with packds, in rounds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from common.machine import busy_cores, resident, warm
from compare.comparisons import Comparison, Entry
from compare.inputs import Inputs, say
from compare.packds import Packds, PackdsError
from compare.peers import Job
from python.registry import installed

BENCH = Path(__file__).resolve().parent.parent


class PeerError(Exception):
    """A peer's process ended before it answered. The message has the path of its log."""


@dataclass(frozen=True)
class Settings:
    seconds: float
    rounds: int
    threads: tuple[int, ...]
    seed: int
    logs: Path


class Worker:
    """A peer's process."""

    def __init__(self, entry: Entry, job: Job, logs: Path) -> None:
        self.entry = entry
        self.log = logs / f"{Path(job.input).name}-{job.module}-{job.variant or 'only'}-{job.order}-{job.threads}.log"
        command = [sys.executable, "-m", "compare.worker", json.dumps(job.to_dict())]
        environment = os.environ | {"PYTHONPATH": str(BENCH), "CUDA_VISIBLE_DEVICES": ""}
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, env=environment
            )
        self.start: dict[str, Any] = self.answer()

    def answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            self.process.wait()
            last = (self.log.read_text(errors="replace").strip().splitlines() or ["it printed nothing"])[-1]
            raise PeerError(f"{self.entry.name} ended with status {self.process.returncode}: {last} (see {self.log})")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def run(self, seconds: float) -> dict[str, Any]:
        assert self.process.stdin is not None
        # If the process has ended, the missing answer shows it.
        with suppress(BrokenPipeError):
            self.process.stdin.write(f"{seconds}\n")
            self.process.stdin.flush()
        return self.answer()

    def stop(self) -> None:
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):
            self.process.stdin.close()
        try:
            self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


@dataclass
class Series:
    """The figures of a peer, and of the packds runs that alternate with it."""

    entry: Entry
    start: dict[str, Any]
    rounds: list[dict[str, Any]] = field(default_factory=list)
    packds: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def median(self, key: str) -> float:
        return float(median(result[key] for result in self.rounds))

    def ratios(self, pack: str) -> list[float]:
        pairs = zip(self.rounds, self.packds.get(pack, []), strict=False)
        return [ours["images_per_s"] / theirs["images_per_s"] for theirs, ours in pairs]


class Runner:
    """Runs a comparison with each number of threads."""

    def __init__(self, comparison: Comparison, inputs: Inputs, packds: Packds | None, settings: Settings) -> None:
        self.comparison, self.inputs, self.packds, self.settings = comparison, inputs, packds, settings
        self.n_images = inputs.n_raw if comparison.raw else inputs.n_encoded
        self.left_out: dict[str, str] = {}
        self.checks: dict[str, Any] = {}
        self.packs: dict[str, Path] = {}
        self.entries = self.installed()

    def installed(self) -> list[tuple[Entry, Path]]:
        """The peers that can run. Makes their inputs."""
        found = []
        for entry in self.comparison.entries:
            missing = [name for name in entry.packages if not installed(name)]
            if missing:
                self.left_out[entry.name] = f"{missing[0].replace('|', ' or ')} is not installed"
                continue
            try:
                found.append((entry, getattr(self.inputs, entry.input)))
            except ImportError as error:
                self.left_out[entry.name] = f"does not import: {error}"
        return found

    def versions(self) -> dict[str, str]:
        names = {name for entry, _ in self.entries for name in entry.packages}
        return dict(sorted(filter(None, map(installed, names))))

    def make_packs(self) -> None:
        if self.packds is not None and not self.packds.loads:
            self.left_out["packds"] = "this packds does not support bench load"
        for pack in self.comparison.packs:
            if self.packds is None or not self.entries:
                self.left_out["packds"] = "no packds command, or no peer to compare with"
            elif pack.seekable and not self.packds.seeks:
                self.left_out[f"packds {pack.name}"] = "this packds does not support convert --seekable"
            else:
                self.packs[pack.name] = self.packds.make(pack, self.inputs, self.n_images)

    def job(self, entry: Entry, path: Path, threads: int, whole: bool = False) -> Job:
        settings, batch = self.settings, self.comparison.batch
        return Job(
            entry.module, entry.variant, entry.order, str(path), self.n_images, batch, threads, settings.seed, whole
        )

    def check(self) -> None:
        """Checks one whole epoch of every peer against the expected samples."""
        expected = self.inputs.checksum224() if self.comparison.lossless else None
        labels_sum = sum(self.inputs.source.labels(self.n_images))
        for entry, path in list(self.entries):
            say(f"{self.comparison.name}: checking {entry.name}")
            try:
                worker = Worker(entry, self.job(entry, path, self.settings.threads[0], whole=True), self.settings.logs)
            except PeerError as error:
                self.drop(entry, str(error))
                continue
            worker.stop()
            self.checks[entry.name] = worker.start
            wrong = self.wrong(worker.start, expected, labels_sum)
            if wrong:
                self.drop(entry, wrong)
        for name, path in self.packs.items():
            assert self.packds is not None
            n_samples = self.packds.about(path)["n_samples"]
            self.checks[f"packds {name}"] = {"n_images": n_samples}
            if expected is not None:
                self.checks[f"packds {name}"]["checksum"] = self.packds.checksum(path)
            if n_samples != self.n_images or self.checks[f"packds {name}"].get("checksum") != expected:
                raise SystemExit(f"peers: {path} does not have the images that the peers read; remove it and run again")

    def wrong(self, delivered: dict[str, Any], expected: int | None, labels_sum: int) -> str | None:
        shapes = [tuple(shape) for shape in delivered["images"]]
        if delivered["n_images"] != self.n_images:
            return f"delivers {delivered['n_images']} images, expected {self.n_images}"
        if shapes not in ([("uint8", 224, 224, 3)], [("uint8", 3, 224, 224)]):
            return f"delivers images of {shapes}"
        if delivered["labels_sum"] != labels_sum:
            return f"delivers wrong labels: their sum is {delivered['labels_sum']}, expected {labels_sum}"
        if expected is not None and delivered["checksum"] != expected:
            return f"delivers wrong pixels: checksum {delivered['checksum']}, expected {expected}"
        return None

    def drop(self, entry: Entry, reason: str) -> None:
        say(f"{self.comparison.name}: leaving out {entry.name}: {reason}")
        self.left_out[entry.name] = reason
        self.entries = [(other, path) for other, path in self.entries if other != entry]

    def warm_inputs(self) -> dict[str, Any]:
        """Reads every input into the page cache. Returns its size, and the share that stayed there."""
        # The images of a file with annotations are next to it.
        inputs = (path.parent if path.suffix == ".json" else path for _, path in self.entries)
        paths = {path.name: path for path in [*inputs, *self.packs.values()]}
        sizes = {name: warm(path) for name, path in paths.items()}
        return {name: {"bytes": sizes[name], "resident": resident(path)} for name, path in paths.items()}

    def run(self, threads: int) -> dict[str, Any]:
        """Runs all rounds with this number of threads."""
        busy, files = busy_cores(), self.warm_inputs()
        workers: list[tuple[Worker, Series]] = []
        try:
            for entry, path in list(self.entries):
                say(f"{self.comparison.name}, {threads} threads: starting {entry.name}")
                try:
                    worker = Worker(entry, self.job(entry, path, threads), self.settings.logs)
                except PeerError as error:
                    self.drop(entry, str(error))
                    continue
                workers.append((worker, Series(entry, worker.start)))
            for number in range(self.settings.rounds):
                say(f"{self.comparison.name}, {threads} threads: round {number + 1} of {self.settings.rounds}")
                workers = [pair for pair in workers if self.round(*pair, threads)]
        finally:
            for worker, _ in workers:
                worker.stop()
        return self.result(threads, busy, files, [series for _, series in workers])

    def round(self, worker: Worker, series: Series, threads: int) -> bool:
        """Runs one peer, then packds on each pack. Returns False if the peer failed."""
        try:
            series.rounds.append(worker.run(self.settings.seconds))
        except PeerError as error:
            self.drop(series.entry, str(error))
            return False
        for name in list(self.packs) if self.packds is not None and self.packds.loads else []:
            try:
                series.packds.setdefault(name, []).append(self.load(name, threads))
            except PackdsError as error:
                say(str(error))
                self.left_out[f"packds {name}"] = str(error)
                del self.packs[name]
        return True

    def load(self, name: str, threads: int) -> dict[str, Any]:
        assert self.packds is not None
        comparison = self.comparison
        return self.packds.load(self.packs[name], comparison.batch, threads, comparison.augment, self.settings.seconds)

    def result(self, threads: int, busy: float, files: dict[str, Any], all_series: list[Series]) -> dict[str, Any]:
        keys = ("images_per_s", "images_per_s_with_starts", "p99_batch_ms", "cpu_s_per_1000")
        peers = []
        for series in all_series:
            rates = [result["images_per_s"] for result in series.rounds]
            ratios = {name: series.ratios(name) for name in series.packds}
            peers.append(
                {"name": series.entry.name, **series.start}
                | {key: series.median(key) for key in keys}
                | {"anon_bytes": max(result["anon_bytes"] for result in series.rounds)}
                | {"peak_rss_bytes": max(result["peak_rss_bytes"] for result in series.rounds)}
                | {"range": [min(rates), max(rates)], "rounds": series.rounds}
                | {"packds_over_peer": {n: [median(r), min(r), max(r)] for n, r in ratios.items() if r}}
            )
        return {
            "threads": threads,
            "other_work_cores": busy,
            "inputs": files,
            "peers": peers,
            "packds": {name: self.ours(name, all_series) for name in self.packs if self.has(name, all_series)},
        }

    @staticmethod
    def has(name: str, all_series: list[Series]) -> bool:
        return any(series.packds.get(name) for series in all_series)

    @staticmethod
    def ours(name: str, all_series: list[Series]) -> dict[str, Any]:
        """The medians of packds's reports for a pack. Text values are from the last run."""
        runs = [run for series in all_series for run in series.packds.get(name, [])]
        numbers = {
            key: median(run[key] for run in runs)
            for key, value in runs[0].items()
            if isinstance(value, (int, float)) and not isinstance(value, bool)
        }
        rates = [run["images_per_s"] for run in runs]
        return runs[-1] | numbers | {"range": [min(rates), max(rates)], "runs": len(runs)}
