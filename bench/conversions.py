#!/usr/bin/env python3
"""Exports a pack to every format, converts it back, and reports the time and packds's private memory.

Usage: bench/conversions.py PACK [--work DIR] [--limit MIB] [--formats NAMES] [--json]

Needs only Python. If a pack is much larger than the reported memory, packds never held all of it in memory. Pages of
mapped files do not count, because the system can reclaim them. With --limit, the system gives packds at most MIB of
memory (RLIMIT_DATA: heap, thread stacks, private mappings). The converted pack must have the same number of samples.
Only the tests compare the samples themselves.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from common.machine import describe
from common.process import memory_bytes

MIB = 1 << 20
# The names of targets. A format that can be written to one file is tested as one file, because that is harder.
TARGETS = {
    "image-folder": "images",
    "npy": "a.npy",
    "npz": "a.npz",
    "pt": "a.pt",
    "safetensors": "a.safetensors",
    "hdf5": "a.h5",
    "zarr": "a.zarr",
    "parquet": "a.parquet",
    "arrow": "a.arrow",
    "webdataset": "a.tar",
    "tfrecord": "a.tfrecord",
    "lmdb": "a.lmdb",
}


def size(path: Path) -> int:
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return sum(file.stat().st_size for file in files)


def run(command: list[str], limit: int | None) -> dict[str, float]:
    """Runs a command. Returns the seconds that it took, and its peak memory, sampled every 5 ms."""

    def confine() -> None:
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))

    start, peak = time.perf_counter(), 0
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors, preexec_fn=confine)
        while process.poll() is None:
            peak = max(peak, memory_bytes(process.pid, "RssAnon"))
            time.sleep(0.005)
        if process.returncode != 0:
            errors.seek(0)
            sys.exit(f"conversions: {' '.join(command)}\n{errors.read().decode(errors='replace')[-2000:]}")
    return {"seconds": time.perf_counter() - start, "peak_mib": peak / MIB}


def n_samples(packds: str, pack: Path) -> int:
    info = subprocess.run([packds, "info", str(pack), "--json"], check=True, capture_output=True)
    return int(json.loads(info.stdout)["n_samples"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pack", type=Path)
    parser.add_argument("--work", type=Path, help="folder for temporary files")
    parser.add_argument("--limit", type=int, metavar="MIB", help="memory limit for packds")
    parser.add_argument("--formats", default=",".join(TARGETS), help="comma-separated")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    packds = os.environ.get("PACKDS", str(Path(__file__).resolve().parent.parent / "target/release/packds"))
    limit = options.limit * MIB if options.limit else None
    rows = []
    for name in options.formats.split(","):
        with tempfile.TemporaryDirectory(dir=options.work, prefix="conversions-") as folder:
            target, again = Path(folder, TARGETS[name]), Path(folder, "again.pack")
            out = run([packds, "export", str(options.pack), str(target), "--to", name], limit)
            back = run([packds, "convert", str(target), str(again), "--keep-order", "--mode", "raw"], limit)
            row = {"format": name, "export": out, "convert": back, "bytes": size(target)}
            row["n_samples"] = n_samples(packds, again)
        rows.append(row)
        print(
            f"{name:13} out {out['seconds']:6.1f} s {out['peak_mib']:6.0f} MiB   "
            f"in {back['seconds']:6.1f} s {back['peak_mib']:6.0f} MiB   "
            f"{row['bytes'] / MIB:8.0f} MiB on disk   {row['n_samples']} samples",
            file=sys.stderr if options.json else sys.stdout,
            flush=True,
        )
    if options.json:
        document = {"machine": describe(), "pack_bytes": options.pack.stat().st_size, "limit": limit, "rows": rows}
        print(json.dumps(document, indent=1))
    if any(row["n_samples"] != n_samples(packds, options.pack) for row in rows):
        sys.exit("conversions: some samples were lost")


if __name__ == "__main__":
    main()
