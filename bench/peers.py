#!/usr/bin/env python3
"""Compares packds with other loaders on the images of a folder; see bench/README.md.

    bench/setup-peers
    bench/peers.py IMAGES

Runs in bench/.venv if it exists, else in the current environment.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
from pathlib import Path

from common.venv import counts, enter_venv

BENCH = Path(__file__).resolve().parent


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Compare packds with other loaders on the same images.")
    add = parser.add_argument
    add("images", type=Path, metavar="IMAGES", help="a folder of JPEG files, ideally with one subfolder per class")
    add("--out", type=Path, default=BENCH / "out", help="folder for inputs, which are kept, and the report [bench/out]")
    add("--seconds", type=float, default=5.0, help="duration of each measurement in a round [5]")
    add("--rounds", type=int, default=5, help="rounds; figures are their medians [5]")
    add("-j", "--jobs", dest="threads", type=counts, default=(1, 2), help="numbers of threads, comma-separated [1,2]")
    add("--raw-images", type=int, default=10_000, help="number of images in the raw comparison [10000]")
    add("--encoded-images", type=int, default=2000, help="number of images in the other comparisons [2000]")
    add("--only", help="names of comparisons, comma-separated [all]")
    add("--seed", type=int, default=0, help="seed of the peers' orders and crops [0]")
    add("--packds", type=Path, help="the packds command [target/release/packds, or packds on the path]")
    add("--quick", action="store_true", help="2560 and 640 images, 2 rounds of 1 s: checks that everything runs, not how fast")
    add("--inputs-only", action="store_true", help="only make the inputs and check what each peer delivers")
    add("--json", action="store_true", help="print the report as one JSON document")
    options = parser.parse_args()
    if options.quick:
        options.seconds, options.rounds, options.raw_images, options.encoded_images = 1.0, 2, 2560, 640
    if options.raw_images < 512 or options.encoded_images < 128:
        parser.error("expected at least two batches: 512 raw images, 128 encoded images")
    if not options.images.is_dir():
        parser.error(f"{options.images} is not a folder")
    return options


def packds_binary(given: Path | None) -> Path | None:
    if given is not None:
        if not given.is_file():
            raise SystemExit(f"peers: {given} is not a file")
        return given.resolve()
    target = Path(os.environ.get("CARGO_TARGET_DIR", BENCH.parent / "target"))
    built = target / "release" / "packds"
    found = built if built.is_file() else shutil.which("packds")
    return Path(found).resolve() if found else None


def main() -> None:
    enter_venv()
    options = arguments()

    from common.machine import describe
    from compare import report
    from compare.comparisons import COMPARISONS
    from compare.inputs import Inputs, Source, say
    from compare.packds import Packds
    from compare.rounds import Runner, Settings

    names = options.only.split(",") if options.only else [comparison.name for comparison in COMPARISONS]
    unknown = set(names) - {comparison.name for comparison in COMPARISONS}
    if unknown:
        raise SystemExit(f"peers: unknown comparison {', '.join(sorted(unknown))}")
    binary = packds_binary(options.packds)
    packds = Packds(binary) if binary else None
    if packds is None:
        say("no packds command: build it with cargo build --release --bin packds; the peers run alone")
    elif not packds.loads:
        say("this packds does not support bench load; the peers run alone")
    source = Source.read(options.images)
    inputs = Inputs(source, options.out.resolve(), options.raw_images, options.encoded_images)
    logs = inputs.folder / "logs"
    logs.mkdir(exist_ok=True)
    settings = Settings(options.seconds, options.rounds, options.threads, options.seed, logs)

    done = []
    for comparison in COMPARISONS:
        if comparison.name not in names:
            continue
        runner = Runner(comparison, inputs, packds, settings)
        runner.make_packs()
        runner.check()
        results = (
            [] if options.inputs_only or not runner.entries else [runner.run(number) for number in options.threads]
        )
        about = {"name": comparison.name, "what": comparison.what, "batch": comparison.batch}
        about |= {"lossless": comparison.lossless}
        about |= {"n_images": runner.n_images, "versions": runner.versions(), "left_out": runner.left_out}
        done.append(about | {"checks": runner.checks, "results": results})

    whole = {
        "machine": describe(),
        "packds": packds.version if packds else "no packds",
        "n_files": len(source.files),
        "settings": {"seconds": options.seconds, "rounds": options.rounds, "seed": options.seed},
        "comparisons": done,
    }
    text = json.dumps(whole, indent=2)
    (options.out / "peers.json").write_text(text + "\n")
    print(text if options.json else "\n".join(report.lines(whole)).rstrip())


if __name__ == "__main__":
    main()
