"""Data sets into packs, and packs into other formats, with the command's options."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Union

import numpy as np

from . import _packds
from ._arrays import dtype_name, json_dict
from ._checks import names, path, truth, whole
from ._dataset import Dataset, PathLike, opened
from ._errors import OptionError, in_words, warn
from ._habits import OF_CONVERSIONS, OF_EXPORTS, with_habits
from ._progress import Progress
from ._types import ExportedImages, Filter, Mode, OnError, Orientation, PackLayout
from ._words import Normalize, mean_and_std

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
    keep_order: bool = False,
    seed: int = 0,
    split: str | None = None,
    root: PathLike | None = None,
    image_key: str | None = None,
    label_key: str | None = None,
    mask_key: str | None = None,
    leave_out: str | Sequence[str] = (),
    from_format: str | None = None,
    on_error: OnError | None = None,
    max_pixels: int | None = None,
    jobs: int = 0,
    force: bool = False,
    dry_run: bool = False,
    progress: bool = True,
) -> dict[str, Any]:
    """Packs an image folder, a manifest or a data set of another format into the file `dst`.

    The options are those of `packds convert`, which docs/reference/convert.md explains; `from_format` is its `--from`. What is doubtful about
    the source, and sizes that were decided here (images of several sizes become 224 x 224), are warnings of Python's, and stand
    in the report.

    Args:
        src: A folder of class folders, a flat folder of images, a manifest (.csv, .tsv, .jsonl), or a file, a folder or a pattern such
            as `train-{000..099}.tar` of another format (`formats()`).
        dst: The pack to write.
        mode: `raw` stores pixels (the default), `encoded` image files, `mixed` some of each.
        raw_fraction: With `mixed` the share of samples that are stored as pixels, 0 to 1; by default 0.5.
        quality: Encodes images as JPEG of this quality, 1 to 100; by default files keep their bytes.
        resize: `short:N`, `long:N`, `max:N`, `none` or (width, height). By default images of one size stay, others get `short:256`.
        crop: `center:N`, `none`, a side or (width, height). By default images of one size stay, others get 224.
        filter: Of the resize, as Pillow does it: `nearest`, `box`, `bilinear` (the default), `bicubic` or `lanczos`.
        orientation: `apply` turns images as their EXIF orientation says, `ignore` (the default) leaves them, as torchvision does.
        gray: One channel. By default three, or as many as arrays have.
        rgb: Three channels, also where the source has one.
        dtype: `u8` (the default), `f16`, `bf16` or `f32`, in any spelling of NumPy's or PyTorch's. Floats are 0 to 1, then normalized.
        normalize: `none` (the default), `imagenet`, `dataset` (measured first) or (mean, std). Part of float pixels; with `u8` noted for
            whoever reads the pack.
        jpeg_scaling: Decodes JPEGs at 1/2, 1/4 or 1/8 where that is large enough: faster, other pixels (docs/reference/pixels.md).
        check_decode: Decodes files that are stored as they are too: finds every damaged one, and measures mean and std.
        seekable: With `encoded` adds an index to each JPEG, 1 to 2 % of its bytes, with which random crops decode faster.
        layout: `hwc` or `chw`; by default that of arrays, else `hwc`.
        codec: `none` (the default) or `zstd[:LEVEL]`, after a filter for pixels.
        chunk: Samples in a chunk; by default a power of two, at most 16 MiB and 1024 samples.
        batch: The batch size that chunks are aligned with: its largest divisor that fits becomes `chunk`.
        keep_order: Keeps the source's order. By default samples are shuffled: a sorted pack must not be read chunk by chunk in training.
        seed: Of the order, and of the choice of raw samples.
        split: The split of a folder of splits; `all` writes one pack for each: dst.train.pack and so on.
        root: The folder that a manifest's paths are relative to; by default its own.
        image_key, label_key, mask_key: The fields, or the manifest's columns, of images, labels and masks; by default found by name.
        leave_out: Fields or columns that are not packed: a name or several.
        from_format: The source's format; by default known by content and name.
        on_error: What becomes of a file that cannot be read or decoded: `stop` (the default), `skip`, or `substitute`: a black image, with 0
            in the column `valid`.
        max_pixels: The most pixels that an image may have; more is an error. By default 178,956,970.
        jobs: Threads; 0 is one for each core.
        force: Replaces `dst` where it exists.
        dry_run: Writes nothing, and reports what each mode would take.
        progress: Shows how far it is.

    Returns:
        The report: `n_samples`, `skipped`, `mean`, `std`, `warnings`, `notes`, ... With `split="all"` one for each split, by name.
        With `dry_run=True` what each mode would take; nothing is written.

    Raises:
        SourceNotFoundError: The source is not there, or a file that a manifest names.
        ConvertError: The source or an image is not right, or `dst` cannot be written. Nothing is left at `dst`.
        OptionError: Options that contradict each other.
        KeyboardInterrupt: Nothing is left at `dst`.
    """
    args = _arguments(
        mode=mode,
        raw_fraction=raw_fraction,
        quality=quality,
        resize=_size("resize", resize, ""),
        crop=_size("crop", crop, "center:"),
        filter=filter,
        orientation=orientation,
        gray=gray,
        rgb=rgb,
        dtype=None if dtype is None else dtype_name(dtype),
        normalize=_normalize(normalize),
        jpeg_scaling=jpeg_scaling,
        check_decode=check_decode,
        seekable=seekable,
        layout=layout,
        codec=codec,
        chunk=chunk,
        batch=batch,
        keep_order=keep_order,
        seed=seed,
        split=split,
        root=root,
        image_key=image_key,
        label_key=label_key,
        mask_key=mask_key,
        leave_out=names("leave_out", leave_out),
        on_error=on_error,
        max_pixels=max_pixels,
        jobs=jobs,
        force=force,
        **{"from": from_format},
    )
    with Progress(truth("progress", progress), "converting") as told:
        text = _packds.convert(path("src", src), path("dst", dst), args, truth("dry_run", dry_run), told)
    return told_report(text)


@with_habits("packds.export", OF_EXPORTS)
def export(
    pack: Dataset | PathLike,
    dst: PathLike,
    *,
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
    """Writes a pack's samples in another format, that of the name `dst` or `to`.

    The options are those of `packds export`; docs/reference/formats.md says what survives in each format.

    Args:
        pack: A `Dataset` or a path.
        dst: The file or folder to write.
        to: The format; by default that of the name `dst`.
        images: `pixels` (arrays) or `files` (those of the pack, else PNG); by default the format's.
        chunk: Samples in a chunk (HDF5, Zarr), row group (Parquet) or record batch (Arrow); by default those of the pack's chunks.
        shard: Samples in a shard (Zarr) or in a file of several (WebDataset, TFRecord, Parquet); by default all are in one.
        codec: `none`, `gzip[:1-9]`, `zstd[:1-19]`, `blosc`, `lz4` or `snappy`, where the format has it.
        per_sample: One .npy for each sample, in class folders (npy).
        zarr_version: 2, or 3, which is the default.
        jobs: Threads; 0 is one for each core.
        force: Replaces `dst` where it is a file; folders are never replaced.
        progress: Shows how far it is.

    Returns:
        The report: `format`, `n_samples`, `fields`, and in `lost` what the format could not hold.

    Raises:
        ConvertError: The pack is damaged, or `dst` cannot be written. Nothing is left at `dst`.
        OptionError: Options that are unknown, or that the format has no use for.
    """
    args = _arguments(
        to=to,
        images=images,
        chunk=chunk,
        shard=shard,
        codec=codec,
        per_sample=per_sample,
        zarr_version=zarr_version,
        jobs=jobs,
        force=force,
    )
    with Progress(truth("progress", progress), "exporting") as told:
        text = _packds.export(opened(pack)._pack, path("dst", dst), args, told)
    report: dict[str, Any] = in_words(json_dict(text))
    return report


def told_report(text: str) -> dict[str, Any]:
    """The report of a conversion, whose warnings and notes are given as warnings too: pixels may not be what was expected."""
    report: dict[str, Any] = in_words(json_dict(text))
    # One for each split, by name, where there are several.
    for name, one in {"": report}.items() if "warnings" in report else report.items():
        for said in [*one["warnings"], *one["notes"]]:
            warn(f"{name}: {said}" if name else said)
    return report


def writer_report(text: str) -> dict[str, Any]:
    """The report of a writer. What is to be said of its samples' fields is no warning: the program named them."""
    report: dict[str, Any] = in_words(json_dict(text))
    report["warnings"] = [said.replace("name them with label_key", "give it the kind 'label'") for said in report["warnings"]]
    for said in report["notes"]:
        warn(said)
    return report


def formats() -> dict[str, str]:
    """The formats of this build, with what each holds in a few words; packs can be exported to most of them.

    >>> "npz" in formats()
    True
    """
    return {name: holds for name, holds, _ in _packds.formats()}


def _arguments(**options: Any) -> list[str]:
    """The command's arguments: `keep_order=True` is `--keep-order`, `seed=7` is `--seed=7`; lists are given item by item."""
    args = []
    for name, given in options.items():
        flag = "--" + name.replace("_", "-")
        for value in given if isinstance(given, list) else [given]:
            # NumPy's own true and false are neither.
            value = value.item() if isinstance(value, np.generic) else value
            if value is True:
                args.append(flag)
            elif value is not None and value is not False:
                args.append(f"{flag}={os.fspath(value) if isinstance(value, os.PathLike) else value}")
    return args


def _size(name: str, size: Size, prefix: str) -> str | None:
    if size is None or isinstance(size, str):
        return size
    if not isinstance(size, Sequence):
        side = whole(name, size, 32)
        if not prefix:
            raise OptionError(f"{name}: a number alone says too little", f"give {name}='short:{side}' or (width, height)")
        return f"{prefix}{side}"
    if len(size) != 2:
        raise OptionError(f"{name}: expected (width, height), found {size!r}")
    width, height = (whole(name, side, 32) for side in size)
    return f"{prefix}{width}x{height}"


def _normalize(normalize: Any) -> str | None:
    if normalize is None or isinstance(normalize, str):
        return normalize
    return "/".join(",".join(repr(number) for number in numbers) for numbers in mean_and_std(normalize))


#: Options of a conversion that a writer takes.
WRITER_OPTIONS = (
    "mode raw_fraction quality resize crop filter orientation gray rgb dtype normalize jpeg_scaling check_decode seekable "
    "layout codec chunk batch keep_order seed on_error max_pixels jobs force"
).split()


def writer_arguments(options: dict[str, Any]) -> list[str]:
    """The arguments of a conversion whose samples a program hands over."""
    options = dict(options)
    if "resize" in options:
        options["resize"] = _size("resize", options["resize"], "")
    if "crop" in options:
        options["crop"] = _size("crop", options["crop"], "center:")
    if options.get("dtype") is not None:
        options["dtype"] = dtype_name(options["dtype"])
    if "normalize" in options:
        options["normalize"] = _normalize(options["normalize"])
    return _arguments(**options)
