#!/usr/bin/env python3
"""Measures the Python peers of `packds bench formats`; see bench/python/README.md.

    bench/setup-peers
    bench/python/run.py DATA --out peers.json

DATA is a pack of raw images of one size, or a folder with images.npy and labels.npy. Runs in bench/.venv if it exists, else in
the current environment.
"""

from __future__ import annotations

import argparse
import json
import platform
import signal
import sys
from importlib.util import find_spec
from pathlib import Path

BENCH = Path(__file__).resolve().parent.parent
sys.path[0] = str(BENCH)

from common.venv import counts, enter_venv  # noqa: E402


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure the Python peers of packds bench formats.")
    add = parser.add_argument
    add("data", type=Path, nargs="?", metavar="DATA", help="a pack of raw images, or a folder with images.npy and labels.npy")
    add("--out", type=Path, default=Path("peers.json"), help="the report [peers.json]")
    add("--work", type=Path, help="folder for the peers' files [next to the report]")
    add("--keep", action="store_true", help="keep the peers' files")
    add("--peers", help="names of formats, comma-separated; see --list [all]")
    add("--orders", default="sequential,per-sample,chunk", help="orders, comma-separated [sequential,per-sample,chunk]")
    add("-j", "--jobs", dest="threads", type=counts, default=(1, 2), help="numbers of threads or worker processes, comma-separated [1,2]")
    add("--images", type=int, help="use at most this many images, from the start [all; four batches with --quick]")
    add("--batch", type=int, help="samples per batch, and per chunk [64; 32 with --quick]")
    add("--step-ms", type=float, default=50.0, help="duration of a training step, in additional runs; 0: none [50]")
    add("--cache", default="warm,cold", help="states of the page cache, comma-separated [warm,cold]")
    add("--seconds", type=float, default=1.0, help="minimum duration of a round of a warm run [1]")
    add("--rounds", type=int, default=3, help="rounds; figures are their medians [3]")
    add("--seed", type=int, default=0, help="seed of the orders [0]")
    add("--quick", action="store_true", help="four batches of 32, one round of 0.2 s: checks that everything runs, not how fast")
    add("--list", action="store_true", help="list the peers, and missing packages")
    add("--self-test", action="store_true", help="only test the checksum")
    options = parser.parse_args()
    if options.quick:
        options.batch = options.batch or 32
        options.images = options.images or 4 * options.batch
        options.seconds, options.rounds = 0.2, 1
    options.batch = options.batch or 64
    if options.data is None and not (options.list or options.self_test):
        parser.error("the argument DATA is missing")
    return options


def main() -> None:
    options = arguments()
    enter_venv()

    from python.registry import PEERS

    if options.self_test:
        from python.checksum import self_test

        self_test()
        print("the checksum is correct")
        return
    if options.list:
        for peer in PEERS:
            missing = peer.missing()
            print(f"{peer.format:20} {peer.title}" + (f" (left out: {missing} is not installed)" if missing else ""))
        return
    if find_spec("numpy") is None:
        raise SystemExit("run: NumPy is not installed; bench/setup-peers makes an environment with all peers")

    from python.runner import Runner, say

    names = options.peers.split(",") if options.peers else [peer.format for peer in PEERS]
    unknown = set(names) - {peer.format for peer in PEERS}
    if unknown:
        raise SystemExit(f"run: unknown peer {', '.join(sorted(unknown))}; --list shows them")
    chosen = [peer for peer in PEERS if peer.format in names]
    options.out.parent.mkdir(parents=True, exist_ok=True)
    # Handled like Ctrl-C, so that written files are removed.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    runner = Runner(options, (options.work or options.out.with_suffix(".work")).resolve())
    versions = {"python": platform.python_version()}
    try:
        for number, peer in enumerate(chosen):
            runner.peer(peer)
            versions |= peer.versions()
            if not options.keep and peer.writer not in {later.writer for later in chosen[number + 1 :]}:
                runner.forget(peer)
    finally:
        if not options.keep:
            runner.forget_all(chosen)
    rows = {"n_samples": runner.data.n_samples, "formats": runner.formats, "runs": runner.runs}
    report = {"versions": dict(sorted(versions.items())), **rows}
    options.out.write_text(json.dumps(report, indent=1) + "\n")
    for line in runner.wrong:
        say(line)
    if runner.wrong:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
