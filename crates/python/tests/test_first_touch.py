"""Damage never goes unnoticed: every function that reads returns the same as before the damage, or an error that names it."""

import json
import pathlib
import struct
from collections.abc import Mapping

import numpy as np
import pytest

import packds
from conftest import REPOSITORY

GOLDEN = sorted((REPOSITORY / "fixtures" / "golden" / "v1").glob("*.pack"))


def places(path: pathlib.Path) -> list[tuple[str, int]]:
    """The first byte of every section and column, and of the body, with their names in errors."""
    data = path.read_bytes()
    (footer,) = struct.unpack_from("<Q", data, len(data) - 64 + 8)
    (n,) = struct.unpack_from("<I", data, footer)
    found = []
    for number in range(n):
        tag, _, offset, length = struct.unpack_from("<4sIQQ", data, footer + 8 + 32 * number)
        if length:
            found.append((f"section `{tag.decode()}`", offset))
    info = packds.open(path).info()
    found += [(f"column `{c['name']}`", c["offset"]) for c in info["columns"] if c["bytes"]]
    if info["n_samples"]:
        found.append(("chunk 0", info["data_offset"]))
    return found


def plain(value):
    """A value that `==` compares bit by bit."""
    if isinstance(value, np.ndarray):
        return (value.shape, str(value.dtype), value.tobytes())
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value if value == value else "nan"


def batches(path, **options):
    loader = packds.Loader(path, batch_size=2, **options)
    return [plain(list(batch) if isinstance(batch, tuple) else batch) for batch, _ in zip(loader, range(4))]


def in_full(path):
    loader = packds.Loader(path, batch_size=2)
    return [batch.ids for batch, _ in zip(loader.batches(), range(4))]


WAYS = {
    "open": lambda path: len(packds.open(path)),
    "info": lambda path: {k: v for k, v in packds.open(path).info().items() if k != "path"},
    "labels": lambda path: packds.open(path).labels,
    "columns": lambda path: dict(packds.open(path).columns),
    "classes": lambda path: packds.open(path).classes,
    "stats": lambda path: packds.open(path).stats,
    "source_path": lambda path: [packds.open(path).source_path(i) for i in range(min(4, len(packds.open(path))))],
    "ds[i]": lambda path: [packds.open(path)[i] for i in range(min(8, len(packds.open(path))))],
    "ds[i] of one": lambda path: (ds := packds.open(path)) and [ds[i] for i in range(min(8, len(ds)))],
    "slice": lambda path: packds.open(path)[:4],
    "samples": lambda path: packds.open(path).samples([0, 1] if len(packds.open(path)) > 1 else []),
    "every field": lambda path: (ds := packds.open(path)) and len(ds) and ds.sample(0, list(ds.fields)),
    "raw": lambda path: [packds.open(path).raw(0, name) for name in packds.open(path).fields],
    "iteration": lambda path: [sample for sample, _ in zip(packds.open(path), range(4))],
    "loader": batches,
    "loader, always": lambda path: batches(path, checksums="always"),
    "loader, direct": lambda path: batches(path, access="direct", order="sequential"),
    "loader, augmented": lambda path: batches(path, augment="rrc4"),
    "batches": in_full,
}
# Without the checksums of samples and chunks, those of columns and sections are still verified.
UNCHECKED = {
    "ds[i], off": lambda path: (ds := packds.open(path, checksums="off")) and [ds[i] for i in range(min(8, len(ds)))],
    "loader, off": lambda path: batches(path, checksums="off"),
    "loader, off, augmented": lambda path: batches(path, checksums="off", augment="rrc4"),
}


def outcome(way, path):
    try:
        return plain(way(path))
    except Exception as error:  # Any error is returned, because the caller compares its text.
        return f"{type(error).__name__}: {error}"


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda path: path.stem)
def test_each_way_of_reading_is_as_before_or_names_the_damage(golden, tmp_path):
    path = tmp_path / "a.pack"
    path.write_bytes(golden.read_bytes())
    ways = WAYS | UNCHECKED
    expected = {name: outcome(way, path) for name, way in ways.items()}
    for place, at in places(golden):
        damaged = bytearray(golden.read_bytes())
        damaged[at] ^= 1
        path.write_bytes(damaged)
        for name, way in ways.items():
            if name in UNCHECKED and place == "chunk 0":
                continue
            found = outcome(way, path)
            is_named = isinstance(found, str) and place in found
            assert is_named or found == expected[name], (place, name)
    # All values are valid JSON, so the comparison above covered everything.
    json.dumps(expected["info"])
