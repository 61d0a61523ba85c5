"""Runs the peers one after another, and makes the rows of their report."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

from python.data import Data
from python.measure import median_of
from python.registry import Peer

BENCH = Path(__file__).resolve().parent.parent
FIGURES = ("batch_ms", "images_per_s", "first_batch_ms", "cpu_s_per_1000", "peak_rss_bytes", "wait_ms", "wait_share")


def say(text: str) -> None:
    print(f"run: {text}", file=sys.stderr, flush=True)


class Worker:
    """A peer's process, and what it answered when it started."""

    def __init__(self, module: str, log: Path) -> None:
        environment = os.environ | {"PYTHONPATH": str(BENCH), "CUDA_VISIBLE_DEVICES": ""}
        self.log = log.open("a")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "python.worker", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
            env=environment,
        )
        self.start = self.answer()

    def answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            lines = Path(self.log.name).read_text(errors="replace").strip().splitlines()
            return {"error": f"does not start: {lines[-1] if lines else 'it printed nothing'}"}
        answer: dict[str, Any] = json.loads(line)
        return answer

    def ask(self, **job: Any) -> dict[str, Any]:
        if "error" in self.start:
            return self.start
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(job) + "\n")
        self.process.stdin.flush()
        return self.answer()

    def stop(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()
        self.log.close()


class Runner:
    """All runs, peer by peer."""

    def __init__(self, options: argparse.Namespace, work: Path) -> None:
        self.options, self.work = options, work
        shutil.rmtree(work / "logs", ignore_errors=True)
        (work / "logs").mkdir(parents=True)
        self.orders, self.caches = options.orders.split(","), options.cache.split(",")
        self.data = Data.read(options.data.resolve(), work, options.images, options.batch)
        self.expected = self.data.checksum()
        self.written: dict[str, dict[str, Any]] = {}
        self.formats: list[dict[str, Any]] = []
        self.runs: list[dict[str, Any]] = []
        self.wrong: list[str] = []

    def settings(self, order: str) -> Iterator[tuple[str, int, float]]:
        """Cache, threads and step of each run of an order. Only warm runs have steps, because cold runs measure the disk."""
        for cache, threads in product(self.caches, self.options.threads):
            yield cache, threads, 0.0
            if cache == "warm" and self.options.step_ms:
                yield cache, threads, self.options.step_ms

    def peer(self, peer: Peer) -> None:
        """Runs one peer: writes its files, checks its samples, and times its runs."""
        say(f"{peer.format}: starting")
        missing = peer.missing()
        files: dict[str, Any] = {"bytes": None, "write_s": None}
        reason, imports = (f"{missing} is not installed" if missing else None), None
        if reason is None:
            worker = Worker(peer.module, self.work / "logs" / f"{peer.format}.log")
            imports, reason = worker.start.get("import_s"), worker.start.get("error")
            if reason is None:
                files = self.write(peer)
                reason = files.get("error")
        self.formats.append(self.format_row(peer, files, imports))
        for order in self.orders:
            refusal = reason or peer.refused.get(order)
            self.order(peer, order, None if refusal else worker, refusal)
        if missing is None:
            worker.stop()

    def format_row(self, peer: Peer, files: dict[str, Any], imports: float | None) -> dict[str, Any]:
        notes = [*peer.notes, *([f"imports take {imports:.1f} s, not included in any figure"] if imports else [])]
        return {
            "format": peer.format,
            "title": peer.title,
            "runtime": "python",
            "lossless": True,
            "bytes": files.get("bytes"),
            "write_s": files.get("write_s"),
            "chunk": peer.n_chunk(self.data.batch, self.data.image_bytes),
            "notes": notes,
        }

    def folder(self, peer: Peer) -> Path:
        return self.work / peer.writer

    def write(self, peer: Peer) -> dict[str, Any]:
        """Writes the files, unless another peer has already written the same files."""
        if peer.writer not in self.written:
            folder = self.folder(peer)
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            writer = Worker(peer.writer, self.work / "logs" / f"{peer.format}.log")
            job = {"data": str(self.data.folder), "folder": str(folder), "chunk": self.data.batch}
            job |= {"n_samples": self.data.n_samples}
            self.written[peer.writer] = writer.ask(kind="write", **job)
            writer.stop()
        return self.written[peer.writer]

    def forget(self, peer: Peer) -> None:
        """Removes a peer's files."""
        shutil.rmtree(self.folder(peer), ignore_errors=True)

    def forget_all(self, peers: list[Peer]) -> None:
        """Removes all written files, and the folder if it is empty. Logs are kept if a peer delivered wrong samples."""
        for peer in peers:
            self.forget(peer)
        shutil.rmtree(self.work / "data", ignore_errors=True)
        if not self.wrong:
            shutil.rmtree(self.work / "logs", ignore_errors=True)
        with contextlib.suppress(OSError):
            self.work.rmdir()

    def order(self, peer: Peer, order: str, worker: Worker | None, refusal: str | None) -> None:
        checked: dict[str, Any] = {}
        if worker is not None:
            checked = worker.ask(kind="check", request=self.request(peer, order, max(self.options.threads)))
            refusal = checked.get("error")
        if "checksum" in checked and checked["checksum"] != self.expected:
            self.wrong.append(
                f"{peer.format}, {order}: delivers {checked['n_samples']} samples of {checked['images']} with checksum "
                f"{checked['checksum']}, expected {self.data.n_samples} with {self.expected}"
            )
        if refusal:
            say(f"{peer.format}, {order}: skipped: {refusal}")
        for cache, threads, step_ms in self.settings(order):
            row = {"format": peer.format, "order": order, "cache": cache, "threads": threads}
            row |= {"batch": self.data.batch, "step_ms": step_ms}
            figures: dict[str, Any] = {"error": refusal}
            if worker is not None and refusal is None:
                figures = self.run(worker, self.request(peer, order, threads, step_ms > 0), cache == "cold", step_ms)
                if "images_per_s" in figures:
                    share = f"{figures['cached_share_before']:.0%} cached"
                    say(f"{peer.format}, {order}, {cache}, {threads}, {figures['images_per_s']:.0f} images/s, {share}")
            error = figures.get("error")
            row |= {name: figures.get(name) for name in (*FIGURES, "cached_share_before")}
            self.runs.append(row | {"checksum": checked.get("checksum"), "skipped": error})

    def request(self, peer: Peer, order: str, threads: int, ahead: bool = False) -> dict[str, Any]:
        options = self.options
        request = {"folder": str(self.folder(peer)), "variant": peer.variant, "batch": self.data.batch}
        return request | {"threads": threads, "order": order, "seed": options.seed, "ahead": ahead}

    def run(self, worker: Worker, request: dict[str, Any], cold: bool, step_ms: float) -> dict[str, Any]:
        """Runs a peer. All rounds of a warm run are in one process. Each round of a cold run has its own process."""
        options = {"cold": cold, "step_s": step_ms / 1e3}
        options |= {"seconds": self.options.seconds, "rounds": self.options.rounds}
        every = [
            worker.ask(kind="run", request=request, options=options) for _ in range(self.options.rounds if cold else 1)
        ]
        figures = next((answer for answer in every if "error" in answer), None) or median_of(every)
        if "peak_rss_bytes" in figures:
            figures["peak_rss_bytes"] = int(figures["peak_rss_bytes"])
        return figures
