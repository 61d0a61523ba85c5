"""Packs from samples of packs, without decoding images."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from . import _packds
from ._arrays import json_dict
from ._checks import path, truth
from ._convert import given_options
from ._dataset import Dataset, PathLike, opened
from ._errors import OptionError, warn
from ._habits import OF_EDITS, with_habits
from ._progress import Progress
from ._words import selected


@with_habits("packds.subset", OF_EDITS)
def subset(
    pack: Dataset | PathLike,
    dst: PathLike,
    *,
    samples: Any = None,
    chunk: int | None = None,
    dry_run: bool = False,
    jobs: int = 0,
    force: bool = False,
    progress: bool = True,
) -> dict[str, Any]:
    """Writes some samples of a pack to a new pack.

    >>> ds = packds.open("train.pack")
    >>> packds.subset(ds, "cats.pack", samples=ds.select("label = 'cat'"), progress=False)["n_samples"]
    4

    Args:
        pack: A `Dataset` or a path.
        dst: The pack to write.
        samples: The samples to copy: a slice, a mask, or indices, each once; by default all. They keep the pack's order.
        chunk: Samples per chunk; by default as in the pack.
        dry_run: Says what would be written, without writing anything.
        jobs: Number of threads; 0 means one for each core.
        force: Replaces an existing pack.
        progress: Shows progress.

    Returns:
        The report: `output`, `n_samples`, `bytes_copied`, `bytes_out` and others.

    Raises:
        ConvertError: The pack is damaged, or `dst` cannot be written. Nothing is left at `dst`.
        OptionError: An option has a wrong value.
    """
    given = given_options("edit", locals())
    dataset = opened(pack)
    chosen, told = (None, None) if samples is None else _packds.in_file_order(selected(dataset, samples))
    report = _edited([dataset], dst, ("subset", {"samples": samples is not None}), given, chosen, progress)
    if told is not None:
        warn(told)
        report["warnings"].append(told)
    return report


@with_habits("packds.merge", OF_EDITS)
def merge(
    packs: Dataset | PathLike | Sequence[Dataset | PathLike],
    dst: PathLike,
    *,
    chunk: int | None = None,
    dry_run: bool = False,
    jobs: int = 0,
    force: bool = False,
    progress: bool = True,
) -> dict[str, Any]:
    """Writes all samples of several packs to one new pack. Classes are joined by name.

    >>> parts = packds.split("train.pack", "part.pack", ratio=(0.5, 0.5), progress=False)
    >>> packds.merge(["part.train.pack", "part.val.pack"], "whole.pack", progress=False)["n_samples"]
    28

    Args:
        packs: One or several datasets or paths. The samples of the first pack come first. A set alone becomes one pack.
        dst: The pack to write.
        chunk: Samples per chunk; by default as in the first pack.
        dry_run: Says what would be written, without writing anything.
        jobs: Number of threads; 0 means one for each core.
        force: Replaces an existing pack.
        progress: Shows progress.

    Returns:
        The report: `output`, `n_samples`, `bytes_copied`, `bytes_out` and others.

    Raises:
        ConvertError: A pack is damaged, the fields of two packs differ, or `dst` cannot be written. Nothing is left at `dst`.
        OptionError: An option has a wrong value.
    """
    given = given_options("edit", locals())
    return _edited(_several(packs), dst, ("merge", {}), given, None, progress)


@with_habits("packds.split", OF_EDITS)
def split(
    pack: Dataset | PathLike,
    dst: PathLike,
    *,
    ratio: Sequence[float] | str | None = None,
    folds: int | None = None,
    by: str | None = None,
    names: Sequence[str] | str | None = None,
    group_by: str | None = None,
    stratify: str | None = None,
    seed: int | None = None,
    chunk: int | None = None,
    dry_run: bool = False,
    jobs: int = 0,
    force: bool = False,
    progress: bool = True,
) -> dict[str, dict[str, Any]]:
    """Divides the samples of a pack among new packs. A sample stays on its side when data is added.

    >>> reports = packds.split("train.pack", "out.pack", ratio=(0.5, 0.5), progress=False)
    >>> sorted(reports), sum(report["n_samples"] for report in reports.values())
    (['train', 'val'], 28)

    Args:
        pack: A `Dataset` or a path.
        dst: The name of the packs to write: `out.pack` becomes `out.train.pack` and `out.val.pack`.
        ratio: The shares of the new packs, which add up to 1.
        folds: The number of new packs of equal share, for cross-validation.
        by: A field: each of its values becomes a pack.
        names: The names of the new packs; by default `train`, `val` and `test`, or `part0`, `part1` and so on.
        group_by: A field whose equal values stay together.
        stratify: A field whose values have the same proportions in all new packs.
        seed: The seed of the random choice; by default 0.
        chunk: Samples per chunk; by default as in the pack.
        dry_run: Says what would be written, without writing anything.
        jobs: Number of threads; 0 means one for each core.
        force: Replaces existing packs.
        progress: Shows progress.

    Returns:
        The report of each new pack, by its name: `output`, `n_samples`, `bytes_copied`, `bytes_out` and others.

    Raises:
        ConvertError: The pack is damaged, or a new pack cannot be written.
        OptionError: The options contradict each other, or a new pack would get no samples.
    """
    values = locals()
    how, given = given_options("split", values), given_options("edit", values)
    dataset = opened(pack)
    described = dict(how)
    reports = {}
    for name, output, samples in _packds.sides(dataset._pack, path("dst", dst), how, truth("force", force)):
        reports[name] = _edited([dataset], output, ("split", {**described, "side": name}), given, samples, progress)
    return reports


@with_habits("packds.append", OF_EDITS)
def append(
    dst: PathLike,
    packs: Dataset | PathLike | Sequence[Dataset | PathLike],
    *,
    dry_run: bool = False,
    jobs: int = 0,
    progress: bool = True,
) -> dict[str, Any]:
    """Adds packs to a set, as a new version. A set is a folder of packs that reads as one pack.

    >>> packds.append("photos.packs", "train.pack", progress=False)["version"]
    1
    >>> len(packds.open("photos.packs"))
    28

    Args:
        dst: The set, whose name ends with `.packs`. It is created if it does not exist.
        packs: One or several datasets or paths. All their samples are added, in this order.
        dry_run: Says what would be written, without writing anything.
        jobs: Number of threads; 0 means one for each core.
        progress: Shows progress.

    Returns:
        The report: `output`, `version`, `n_samples`, `n_shards`, `added`, `bytes_copied` and others.

    Raises:
        ConvertError: A pack is damaged or does not fit, or another process committed this version first. The set stays as it was.
        OptionError: An option has a wrong value.
    """
    given = given_options("append", locals())
    if isinstance(dst, Dataset):
        raise OptionError("dst: expected the path of a set, found an open one", "an open set is one version, and stays so")
    handles = [pack._pack for pack in _several(packs)]
    with Progress(truth("progress", progress), "copying") as show:
        text = _packds.append(path("dst", dst), handles, given, show)
    return _reported(text)


def _several(packs: Dataset | PathLike | Sequence[Dataset | PathLike]) -> list[Dataset]:
    """The packs that were given: one, or several."""
    if isinstance(packs, (str, os.PathLike, Dataset)):
        return [opened(packs)]
    if isinstance(packs, bytes) or not isinstance(packs, Sequence):
        raise OptionError(f"packs: expected datasets or paths, found {packs!r}")
    return [opened(pack) for pack in packs]


@with_habits("packds.reorder", OF_EDITS)
def reorder(
    pack: Dataset | PathLike,
    dst: PathLike,
    *,
    by: str | None = None,
    seed: int | None = None,
    chunk: int | None = None,
    dry_run: bool = False,
    jobs: int = 0,
    force: bool = False,
    progress: bool = True,
) -> dict[str, Any]:
    """Writes all samples of a pack in another order: shuffled, or sorted.

    >>> packds.reorder("train.pack", "shuffled.pack", seed=1, progress=False)["n_samples"]
    28

    Args:
        pack: A `Dataset` or a path.
        dst: The pack to write.
        by: The field to sort by, or `path`; by default the samples are shuffled. Samples with equal values keep their order.
        seed: The seed of the shuffled order; by default 0.
        chunk: Samples per chunk; by default as in the pack.
        dry_run: Says what would be written, without writing anything.
        jobs: Number of threads; 0 means one for each core.
        force: Replaces an existing pack.
        progress: Shows progress.

    Returns:
        The report: `output`, `n_samples`, `bytes_copied`, `bytes_out` and others.

    Raises:
        ConvertError: `by` and `seed` are both given, the pack has no such field or is damaged, or `dst` cannot be written.
            Nothing is left at `dst`.
        OptionError: An option has a wrong value.
    """
    values = locals()
    how, given = given_options("reorder", values), given_options("edit", values)
    dataset = opened(pack)
    samples = _packds.reordered(dataset._pack, how)
    return _edited([dataset], dst, ("reorder", dict(how)), given, samples, progress)


@with_habits("packds.relabel", OF_EDITS)
def relabel(
    pack: Dataset | PathLike,
    dst: PathLike,
    table: PathLike | None = None,
    *,
    field: str | None = None,
    only: bool = False,
    rename: Mapping[str, str] | None = None,
    chunk: int | None = None,
    dry_run: bool = False,
    jobs: int = 0,
    force: bool = False,
    progress: bool = True,
) -> dict[str, Any]:
    """Writes a pack with other labels: those of a table, or renamed classes.

    >>> old = packds.open("train.pack").classes[0]
    >>> report = packds.relabel("train.pack", "named.pack", rename={old: "first"}, progress=False)
    >>> packds.open("named.pack").classes[0]
    'first'

    Args:
        pack: A `Dataset` or a path.
        dst: The pack to write.
        table: A `.csv`, `.tsv`, `.jsonl` or `.parquet` file with a column `path` or `sample`, and a column of new classes.
        field: The label field to change; by default the only one.
        only: Leaves out samples without a row in the table.
        rename: The new name of each class to rename. Two classes with one new name are joined.
        chunk: Samples per chunk; by default as in the pack.
        dry_run: Says what would be written, without writing anything.
        jobs: Number of threads; 0 means one for each core.
        force: Replaces an existing pack.
        progress: Shows progress.

    Returns:
        The report: `output`, `n_samples`, `bytes_copied`, `bytes_out` and others.

    Raises:
        ConvertError: The pack has no such field or class or is damaged, a row of the table is wrong, or `dst` cannot be
            written. Nothing is left at `dst`.
        OptionError: An option has a wrong value.
    """
    if rename is not None and not isinstance(rename, Mapping):
        raise OptionError(f"rename: expected a dict of class names, found {rename!r}")
    pairs = [f"{old}={new}" for old, new in (rename or {}).items()]
    values = {**locals(), "rename": pairs}
    how, given = given_options("relabel", values), given_options("edit", values)
    file = None if table is None else path("table", table)
    described: dict[str, Any] = {name: value for name, value in how if name != "rename"}
    if pairs:
        described["rename"] = pairs
    if file:
        described["table"] = os.path.basename(file)
    return _edited([opened(pack)], dst, ("relabel", described), given, None, progress, relabelled=(file, how))


@with_habits("packds.add_field", OF_EDITS)
def add_field(
    pack: Dataset | PathLike,
    dst: PathLike,
    table: PathLike,
    *,
    column: Sequence[str] | str | None = None,
    name: str | None = None,
    dtype: Any = None,
    chunk: int | None = None,
    dry_run: bool = False,
    jobs: int = 0,
    force: bool = False,
    progress: bool = True,
) -> dict[str, Any]:
    """Writes a pack with more fields: the columns of a table, or an array.

    >>> np.save("score.npy", np.arange(28, dtype=np.float32))
    >>> packds.add_field("train.pack", "more.pack", "score.npy", progress=False)["n_samples"]
    28
    >>> packds.open("more.pack").columns["score"][3]
    np.float32(3.0)

    Args:
        pack: A `Dataset` or a path.
        dst: The pack to write.
        table: A `.csv`, `.tsv`, `.jsonl` or `.parquet` file with a column `path` or `sample` and a row for each sample, or
            a `.npy` file with an item for each sample, in the order of the pack.
        column: The columns to add; by default all besides `path` or `sample`.
        name: The name of the new field; by default that of the column, or of the `.npy` file.
        dtype: The type of the values, such as `u8`, `np.float32`, `string` or `json`; by default as they are in the table.
        chunk: Samples per chunk; by default as in the pack.
        dry_run: Says what would be written, without writing anything.
        jobs: Number of threads; 0 means one for each core.
        force: Replaces an existing pack.
        progress: Shows progress.

    Returns:
        The report: `output`, `n_samples`, `bytes_copied`, `bytes_out` and others.

    Raises:
        ConvertError: The table does not fit the pack, the pack has such a field or is damaged, or `dst` cannot be written.
            Nothing is left at `dst`.
        OptionError: An option has a wrong value.
    """
    # These types have no elements.
    is_text = isinstance(dtype, str) and dtype in ("string", "json")
    values = {**locals(), "dtype": None if is_text else dtype}
    how, given = given_options("add_field", values), given_options("edit", values)
    if is_text:
        how.append(("dtype", str(dtype)))
    file = path("table", table)
    described: dict[str, Any] = {key: value for key, value in how if key != "column"}
    columns = [value for key, value in how if key == "column"]
    if columns:
        described["column"] = columns
    described["table"] = os.path.basename(file)
    return _edited([opened(pack)], dst, ("add-field", described), given, None, progress, added=(file, how))


@with_habits("packds.compact", OF_EDITS)
def compact(
    dst: PathLike,
    *,
    shard_size: int | str | None = None,
    delete_old: bool = False,
    clean: bool = False,
    dry_run: bool = False,
    jobs: int = 0,
    progress: bool = True,
) -> dict[str, Any]:
    """Joins small neighbouring shards of a set, as a new version. Saved training states stay valid.

    >>> days = packds.split("train.pack", "day.pack", ratio=(0.5, 0.5), progress=False)
    >>> packds.append("daily.packs", ["day.train.pack", "day.val.pack"], progress=False)["n_shards"]
    2
    >>> packds.compact("daily.packs", progress=False)["n_shards"]
    1

    Args:
        dst: The set.
        shard_size: A new shard has at most about this many bytes: a number, or a text such as "8GB", the default.
        delete_old: Deletes older versions, and all files that the latest version does not use.
        clean: Deletes files that no version uses, such as those that a killed process left behind.
        dry_run: Says what would be joined and deleted, without doing it.
        jobs: Number of threads; 0 means one for each core.
        progress: Shows progress.

    Returns:
        The report: `output`, `version`, `n_shards`, `joined`, `deleted`, `old_bytes` and others.

    Raises:
        ConvertError: A shard is damaged, or another process is writing to the set. The set keeps its latest version.
        OptionError: An option has a wrong value.
    """
    given = given_options("compact", locals())
    with Progress(truth("progress", progress), "copying") as show:
        text = _packds.compact(path("dst", dst), given, show)
    return _reported(text)


@with_habits("packds.drop_field", OF_EDITS)
def drop_field(
    pack: Dataset | PathLike,
    dst: PathLike,
    fields: Sequence[str] | str,
    *,
    chunk: int | None = None,
    dry_run: bool = False,
    jobs: int = 0,
    force: bool = False,
    progress: bool = True,
) -> dict[str, Any]:
    """Writes a pack without some of its fields. Fields that describe an image are left out with it.

    >>> packds.drop_field("train.pack", "less.pack", ["source_id"], progress=False)["n_samples"]
    28
    >>> "source_id" in packds.open("less.pack").fields
    False

    Args:
        pack: A `Dataset` or a path.
        dst: The pack to write.
        fields: The name of a field, or a list of names.
        chunk: Samples per chunk; by default as in the pack.
        dry_run: Says what would be written, without writing anything.
        jobs: Number of threads; 0 means one for each core.
        force: Replaces an existing pack.
        progress: Shows progress.

    Returns:
        The report: `output`, `n_samples`, `bytes_copied`, `bytes_out` and others.

    Raises:
        ConvertError: The pack has no such field, a field that is kept needs it, the pack is damaged, or `dst` cannot be
            written. Nothing is left at `dst`.
        OptionError: An option has a wrong value.
    """
    given = given_options("edit", locals())
    names = [fields] if isinstance(fields, str) else fields
    if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        raise OptionError(f"fields: expected names of fields, found {fields!r}")
    return _edited([opened(pack)], dst, ("drop-field", {"fields": list(names)}), given, None, progress, list(names))


def _edited(
    packs: list[Dataset],
    dst: PathLike,
    command: tuple[str, dict[str, Any]],
    given: list[tuple[str, str]],
    samples: list[int] | None,
    progress: bool,
    drop: list[str] | None = None,
    relabelled: tuple[PathLike | None, list[tuple[str, str]]] | None = None,
    added: tuple[PathLike, list[tuple[str, str]]] | None = None,
) -> dict[str, Any]:
    name, how = command
    with Progress(truth("progress", progress), "copying") as show:
        handles = [pack._pack for pack in packs]
        text = _packds.edit(handles, path("dst", dst), (name, json.dumps(how)), given, samples, drop, relabelled, added, show)
    return _reported(text)


def _reported(text: str) -> dict[str, Any]:
    """The report, after its warnings were issued."""
    report: dict[str, Any] = json_dict(text)
    for warning in report["warnings"]:
        warn(warning)
    return report
