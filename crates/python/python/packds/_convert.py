"""Converts datasets to packs, and packs to other formats, with the command's options."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Union

import numpy as np

from . import _packds
from ._arrays import dtype_name, json_dict
from ._checks import names, path, truth, whole
from ._dataset import Dataset, PathLike, opened
from ._errors import OptionError, warn
from ._habits import OF_CONVERSIONS, OF_EXPORTS, with_habits
from ._progress import Progress
from ._types import ExportedImages, Filter, MaskOrder, Mode, OnError, Orientation, PackLayout
from ._words import Normalize, mean_and_std, selected

Size = Union[str, int, "tuple[int, int]", None]


@with_habits("packds.convert", OF_CONVERSIONS)
def convert(
    src: PathLike,
    dst: PathLike,
    *,
    mode: Mode | None = None,
    raw_fraction: float | None = None,
    quality: int | None = None,
    resize: Size = None,
    crop: Size = None,
    filter: Filter | None = None,
    orientation: Orientation | None = None,
    gray: bool = False,
    rgb: bool = False,
    dtype: Any = None,
    normalize: Normalize = None,
    jpeg_scaling: bool = False,
    check_decode: bool = False,
    seekable: bool = False,
    layout: PackLayout | None = None,
    codec: str | None = None,
    chunk: int | None = None,
    batch: int | None = None,
    shard_size: int | str | None = None,
    shards: int | None = None,
    keep_order: bool = False,
    seed: int = 0,
    split: str | None = None,
    root: PathLike | None = None,
    image_key: str | None = None,
    label_key: str | None = None,
    mask_key: str | None = None,
    mask_order: MaskOrder | None = None,
    images: PathLike | None = None,
    masks: PathLike | None = None,
    one_sample_per_file: bool = False,
    many_samples_per_file: bool = False,
    leave_out: str | Sequence[str] = (),
    from_format: str | None = None,
    on_error: OnError | None = None,
    max_pixels: int | None = None,
    jobs: int = 0,
    force: bool = False,
    dry_run: bool = False,
    progress: bool = True,
) -> dict[str, Any]:
    """Packs an image folder, a manifest or a dataset of another format into the file `dst`.

    The options are those of `packds convert`, which docs/reference/convert.md explains; `from_format` is its `--from`. The
    report contains warnings about the source, and sizes chosen by default (images of several sizes become 224 x 224). These
    are also issued as Python warnings.

    >>> report = packds.convert("photos", "photos.pack", resize="short:256", crop=224, progress=False)
    >>> report["n_samples"], report["skipped"]
    (28, [])

    Args:
        src: A folder of class folders, a flat folder of images, a manifest (.csv, .tsv, .jsonl), or a file, a folder or a pattern
            such as `train-{000..099}.tar` of another format (`formats()`).
        dst: The pack to write.
        mode: `raw` (the default) stores pixels, `encoded` stores image files, `mixed` stores pixels for some samples
            and files for the others.
        raw_fraction: With `mixed`, the share of samples that are stored as pixels, 0 to 1; by default 0.5.
        quality: Encodes images as JPEG of this quality, 1 to 100; by default files keep their bytes.
        resize: `short:N`, `long:N`, `max:N`, `none` or (width, height). By default, images are resized with
            `short:256` unless all have the same size.
        crop: `center:N`, `none`, a side or (width, height). By default, images are cropped to 224 unless all
            have the same size.
        filter: Pillow's filter for the resize: `nearest`, `box`, `bilinear` (the default), `bicubic` or `lanczos`.
        orientation: `apply` rotates images by their EXIF orientation; `ignore` (the default) does not, like torchvision.
        gray: Stores one channel. By default, three channels are stored, or as many as the arrays have.
        rgb: Stores three channels, even if the source has one.
        dtype: `u8` (the default), `f16`, `bf16` or `f32`, by any name that NumPy or PyTorch has for it. Floats are scaled to
            0..1, then normalized.
        normalize: `none` (the default), `imagenet`, `dataset` (measured first) or (mean, std). Float pixels are stored
            normalized; with `u8`, the values are only recorded for readers.
        jpeg_scaling: Decodes JPEGs at 1/2, 1/4 or 1/8 if that is large enough. This is faster, but pixels differ
            (docs/reference/pixels.md).
        check_decode: Decodes files even if they are stored unchanged, to find every damaged file and to measure mean and std.
        seekable: With `encoded`, adds an index to each JPEG, 1 to 2 % of its size, so that random crops decode faster.
        layout: `hwc` or `chw`; by default that of the source's arrays, else `hwc`.
        codec: `none` (the default) or `zstd[:LEVEL]`, after a filter for pixels.
        chunk: Samples per chunk; by default the largest power of two, up to 1024, that fits in 16 MiB.
        batch: The batch size with which chunks are aligned: `chunk` becomes its largest divisor that fits.
        shard_size: Writes a set of packs, each with at most about this many bytes, such as `8GB`; `dst` ends with `.packs`.
        shards: Writes a set of this many packs, or fewer if there are not enough chunks; `dst` ends with `.packs`.
        keep_order: Keeps the source's order. By default samples are shuffled, because reading a sorted pack by chunks is bad
            for training.
        seed: The seed of the order, and of the choice of raw samples.
        split: The split to convert; `all` writes one pack per split: dst.train.pack and so on.
        root: The folder to which a manifest's paths are relative; by default the manifest's folder.
        image_key, label_key, mask_key: The fields or columns with the images, labels and masks; by default found by name.
        mask_order: How run-length encoded masks in a manifest count the pixels: down the `columns` of the image, or along its
            `rows`; by default decided by the name of their column.
        images, masks: Subfolders with the images and the masks; each mask is named like its image. By default found by name.
        one_sample_per_file, many_samples_per_file: Takes each file of arrays, or each row of its arrays, as one sample. By
            default, each file in class folders is one sample.
        leave_out: One or several fields or columns to exclude.
        from_format: The source's format; by default detected from its contents and name.
        on_error: What to do if a file cannot be read or decoded: `stop` (the default), `skip`, or `substitute` a black image,
            with 0 in the column `valid`.
        max_pixels: Maximum number of pixels of an image; larger images cause an error. By default 178,956,970.
        jobs: Number of threads; 0 means one for each core.
        force: Replaces `dst` if it exists.
        dry_run: Writes nothing. Reports how the source is read (`source`), and the size of a pack in each mode.
        progress: Shows progress.

    Returns:
        The report: `n_samples`, `skipped`, `mean`, `std`, `warnings`, `notes`, ... With `split="all"`, one report per split, by
        name. With `dry_run=True`, the size of a pack in each mode.

    Raises:
        SourceNotFoundError: The source, or a file that a manifest names, does not exist.
        ConvertError: The source or an image is invalid, or `dst` cannot be written. Nothing is left at `dst`.
        OptionError: An option is invalid, or options contradict each other.
        KeyboardInterrupt: Nothing is left at `dst`.
    """
    given = given_options("convert", locals())
    with Progress(truth("progress", progress), "converting") as show:
        text = _packds.convert(path("src", src), path("dst", dst), given, truth("dry_run", dry_run), show)
    return report_with_warnings(text)


@with_habits("packds.export", OF_EXPORTS)
def export(
    pack: Dataset | PathLike,
    dst: PathLike,
    *,
    samples: Any = None,
    to: str | None = None,
    images: ExportedImages | None = None,
    chunk: int | None = None,
    shard: int | None = None,
    codec: str | None = None,
    per_sample: bool = False,
    zarr_version: int | None = None,
    jobs: int = 0,
    force: bool = False,
    progress: bool = True,
) -> dict[str, Any]:
    """Writes a pack's samples in another format, determined by the name `dst` or by `to`.

    The options are those of `packds export`; docs/reference/formats.md says what each format keeps.

    >>> report = packds.export("train.pack", "train.npz", progress=False)
    >>> report["format"], report["n_samples"]
    ('npz', 28)
    >>> np.load("train.npz")["image"].shape
    (28, 64, 64, 3)

    The options `--class` and `--where` of the command are `samples` in Python:

    >>> ds = packds.open("train.pack")
    >>> packds.export(ds, "cats.npz", samples=ds.select("label = 'cat'"), progress=False)["n_samples"]
    4

    Args:
        pack: A `Dataset` or a path.
        dst: The file or folder to write.
        samples: The samples to export: a slice, a mask, or indices; by default all. They keep the pack's order.
        to: The format; by default determined by the name `dst`.
        images: `pixels` (arrays) or `files` (the pack's own files, or PNG if it has none); the default depends on the format.
        chunk: Samples per chunk (HDF5, Zarr), row group (Parquet) or record batch (Arrow); by default as in the pack.
        shard: Samples per shard (Zarr) or per file (WebDataset, TFRecord, Parquet, MDS, LitData); by default, one for all
            samples, but 64 MiB per file for MDS and LitData.
        codec: `none`, `gzip[:1-9]`, `zstd[:1-19]`, `blosc`, `lz4` or `snappy`, if the format supports it.
        per_sample: Writes one .npy file per sample, in class folders (npy).
        zarr_version: 2 or 3 (the default).
        jobs: Number of threads; 0 means one for each core.
        force: Replaces `dst` if it is a file; folders are never replaced.
        progress: Shows progress.

    Returns:
        The report: `format`, `n_samples`, `fields`, and `lost`: what the format could not store.

    Raises:
        ConvertError: The pack is damaged, or `dst` cannot be written. Nothing is left at `dst`.
        OptionError: An option is unknown, or does not apply to the format.
    """
    given = given_options("export", locals())
    dataset = opened(pack)
    chosen = None if samples is None else sorted(set(selected(dataset, samples)))
    with Progress(truth("progress", progress), "exporting") as show:
        text = _packds.export(dataset._pack, path("dst", dst), given, chosen, show)
    report: dict[str, Any] = json_dict(text)
    return report


def report_with_warnings(text: str) -> dict[str, Any]:
    """The report of a conversion. Its warnings and notes are also issued as Python warnings, because pixels may differ from what
    was expected."""
    report: dict[str, Any] = json_dict(text)
    # With split="all", there is a report for each split, by name.
    for name, one in {"": report}.items() if "warnings" in report else report.items():
        for text in [*one["warnings"], *one["notes"]]:
            warn(f"{name}: {text}" if name else text)
    return report


def writer_report(text: str) -> dict[str, Any]:
    """The report of a writer. Its notes are also issued as Python warnings. Its warnings are not, because they concern fields
    that the program itself chose."""
    report: dict[str, Any] = json_dict(text)
    for note in report["notes"]:
        warn(note)
    return report


def formats() -> dict[str, str]:
    """The formats of this build, each with a short description. Packs can be exported to most of them.

    >>> "npz" in formats()
    True
    """
    return {name: holds for name, holds, _ in _packds.formats()}


def given_options(command: str, values: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The names and values of the given options, as strings. The value of a switch is empty."""
    given: list[tuple[str, str]] = []
    for name, _, _, is_switch in _packds.options(command):
        value = values.get(name)
        if value is None:
            continue
        if is_switch:
            given += [(name, "")] if truth(name, value) else []
            continue
        value = _TEXTS[name](value) if name in _TEXTS else value
        for one in value if name in ("leave_out", "rename", "column") else [value]:
            # `item()` makes a NumPy number a Python number, whose `str` is what the native module parses.
            one = one.item() if isinstance(one, np.generic) else one
            given.append((name, os.fspath(one) if isinstance(one, os.PathLike) else str(one)))
    return given


def _listed(name: str, values: Sequence[Any] | str) -> str:
    """A list as the command writes it."""
    if isinstance(values, str):
        return values
    if not isinstance(values, Sequence):
        raise OptionError(f"{name}: expected a list, found {values!r}")
    return ",".join(str(value) for value in values)


def _size(name: str, size: Size, prefix: str) -> str | None:
    if size is None or isinstance(size, str):
        return size
    if not isinstance(size, Sequence):
        side = whole(name, size, 32)
        if not prefix:
            raise OptionError(f"{name}: a single number is ambiguous", f"pass {name}='short:{side}' or (width, height)")
        return f"{prefix}{side}"
    if len(size) != 2:
        raise OptionError(f"{name}: expected (width, height), found {size!r}")
    width, height = (whole(name, side, 32) for side in size)
    return f"{prefix}{width}x{height}"


def _normalize(normalize: Any) -> str | None:
    if normalize is None or isinstance(normalize, str):
        return normalize
    return "/".join(",".join(repr(number) for number in numbers) for numbers in mean_and_std(normalize))


#: For each option that takes more than strings and numbers, the function that converts its value to strings.
_TEXTS: dict[str, Callable[[Any], Any]] = {
    "resize": lambda size: _size("resize", size, ""),
    "crop": lambda size: _size("crop", size, "center:"),
    "dtype": dtype_name,
    "normalize": _normalize,
    "leave_out": lambda left_out: names("leave_out", left_out),
    "column": lambda column: names("column", column),
    "ratio": lambda ratio: _listed("ratio", ratio),
    "names": lambda listed: _listed("names", listed),
}

_CONVERSIONS = _packds.options("convert")
#: All options of a conversion.
CONVERT_OPTIONS = [name for name, *_ in _CONVERSIONS]
#: The options of a conversion that apply to writers, which have no source. General options come last.
WRITER_OPTIONS = [name for name, heading, _, _ in _CONVERSIONS if heading not in ("Source", "")]
WRITER_OPTIONS += [name for name, heading, _, _ in _CONVERSIONS if heading == ""]


def writer_options(options: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The options of a conversion whose samples come from a program."""
    return given_options("convert", options)
