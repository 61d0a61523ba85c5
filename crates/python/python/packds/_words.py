"""Converts options of a loader to words for the native module."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Union

import numpy as np

from . import _checks
from ._arrays import dtype_name
from ._checks import whole
from ._dataset import Dataset, Field
from ._errors import OptionError, warn
from ._packds import PIXEL_TYPES

_Channels = Union[float, Sequence[float]]
Normalize = Union[str, None, "tuple[_Channels, _Channels]"]

_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b?\s*", re.IGNORECASE)
# An operation that crops: its name, its size, and the rest.
_CROP = re.compile(r"\s*(rrc|crop|center|ioucrop|letterbox|scalejitter|cover)(\d+)(?:x(\d+))?(.*)", re.DOTALL)
_RESIZE = re.compile(r"resize(\d+)(?:x(\d+))?")
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


def memory_bytes(memory: int | str) -> int | None:
    """Bytes from a number or a string such as `"2GiB"` or `"500MB"`; None for `"auto"`.

    >>> memory_bytes("2GiB"), memory_bytes("1.5 kB"), memory_bytes(7), memory_bytes("auto")
    (2147483648, 1500, 7, None)
    """
    if isinstance(memory, str):
        if memory == "auto":
            return None
        found = _SIZE.fullmatch(memory)
        if not found:
            raise OptionError(f"memory: expected auto, bytes or a string such as '2GiB', found {memory!r}")
        number, unit, binary = found.groups()
        return int(float(number) * (1024 if binary else 1000) ** _POWERS[unit.lower()])
    bytes_ = _checks.number("memory", memory)
    if bytes_ != bytes_ // 1:
        raise OptionError(f"memory: expected auto, bytes or a string such as '2GiB', found {memory!r}")
    return whole("memory", int(bytes_), 64)


def number_or_auto(name: str, value: int | str | None) -> int | None:
    """A number, or None for `"auto"`."""
    if value is None:
        return None
    if isinstance(value, str):
        if value == "auto":
            return None
        raise OptionError(f"{name}: expected auto or a number, found {value!r}")
    return whole(name, value, 32)


def drawn_seed(world: int) -> int:
    """A seed from PyTorch's random number generator if it is imported, else from NumPy's."""
    if world > 1:
        hint = "pass the same number on all ranks; one of them may draw it"
        raise OptionError("seed: None would draw a different seed on each rank", hint)
    torch = sys.modules.get("torch")
    if torch is not None:
        return int(torch.empty((), dtype=torch.int64).random_().item())
    return int(np.random.randint(0, 1 << 63, dtype=np.int64))


def seed_of(state: str) -> int | None:
    """The seed in a state of the native module, or None."""
    try:
        seed = json.loads(state).get("seed")
        return None if seed is None else int(seed, 16)
    except (AttributeError, TypeError, ValueError):
        # An invalid state is reported later, when the whole state is read.
        return None


def selected(dataset: Dataset, samples: Any) -> list[int]:
    """The samples selected by a mask, a slice or indices. At least one must be selected."""
    try:
        chosen = dataset._samples(samples)
    except (TypeError, IndexError) as error:
        raise OptionError(f"samples: {error}") from None
    if not chosen:
        raise OptionError("samples: no sample is selected")
    return chosen


def subset(dataset: Dataset, samples: Any, order: str) -> list[int]:
    """The samples selected for a loader. The loader uses them as a set, so duplicates are an error, and so are unsorted samples
    with the order `sequential`."""
    chosen = selected(dataset, samples)
    seen: set[int] = set()
    for place, sample in enumerate(chosen):
        if sample in seen:
            hint = "pass each sample once; weights= makes samples more frequent"
            raise OptionError(f"samples: sample {sample} appears again at index {place}", hint)
        seen.add(sample)
    if order == "sequential":
        for before, sample in zip(chosen, chosen[1:]):
            if sample < before:
                text = f"samples: expected increasing numbers for order 'sequential', found {sample} after {before}"
                raise OptionError(text, "sort them; samples= only selects samples, and order= sets the order")
    return chosen


def weights_of(weights: Any, n_samples: int, least: int) -> list[float]:
    """A weight per sample, from an array, a tensor or a list. An epoch must have at least `least` samples."""
    # There may be millions of weights, so they are checked item by item only if something is invalid.
    if hasattr(weights, "__array__") and (array := np.asarray(weights)).ndim == 1 and array.dtype.kind in "fiub":
        floats: list[float] = array.astype(np.float64).tolist()
    else:
        floats = _checks.numbers("weights", weights)
    if len(floats) == n_samples:
        _check_sum(math.fsum(floats), n_samples, least)
    return floats


def _check_sum(total: float, n_samples: int, least: int) -> None:
    """Warns if the sum of weights is far from the pack's number of samples, because the weights may be meant as fractions. If the
    sum is also below `least`, raises an error instead."""
    # The native module rejects invalid weights.
    if not 0 < total < math.inf or n_samples / 2 <= total <= n_samples * 2:
        return
    cause = " (as if they were divided by their sum)" if math.isclose(total, 1, rel_tol=1e-3) else ""
    text = f"weights: their sum {total:g}{cause} is the number of samples in an epoch; the pack has {n_samples}"
    hint = f"weights * {n_samples} / weights.sum() gives epochs of {n_samples}"
    if total < least:
        raise OptionError(text, hint)
    warn(f"{text}: {hint}")


def balanced_weights(dataset: Dataset, balance: str, samples: Sequence[int]) -> list[float]:
    """A weight per sample that makes each value of a column equally frequent among the selected samples. The sum of weights is
    the number of selected samples."""
    column = dataset.columns[balance]
    if column.ndim != 1 or column.dtype.kind not in "iu":
        raise OptionError(f"balance: expected a column of class ids, found {dataset.fields[balance]} in {balance!r}")
    _, which, counts = np.unique(column[samples], return_inverse=True, return_counts=True)
    weights = np.zeros(len(dataset))
    weights[samples] = (len(samples) / (len(counts) * counts))[which]
    as_list: list[float] = weights.tolist()
    return as_list


def balance_of(dataset: Dataset, balance: Any) -> str:
    """The name of the column to balance."""
    column = _checks.text("balance", balance)
    if column not in dataset.columns:
        raise OptionError(f"balance: expected one of the columns {', '.join(dataset.columns)}, found {column!r}")
    return column


def image_field(dataset: Dataset, fields: Sequence[str] | None) -> Field | None:
    """The first loaded field with the role `image`. Augmentations apply to it."""
    loaded = dataset.fields.values() if fields is None else (dataset.fields[name] for name in fields if name in dataset.fields)
    return next((field for field in loaded if field.role == "image"), None)


def augmentation(
    dataset: Dataset,
    fields: Sequence[str] | None,
    augment: str | Sequence[str] | None,
    dtype: Any,
    layout: str | None,
    normalize: Normalize,
) -> str | None:
    """All operations on images, as one string of words. None if there are none."""
    words = [] if augment is None else [word for word in _checks.names("augment", augment) if word]
    image = image_field(dataset, fields)
    wanted = None if dtype is None else _image_dtype(dtype, image)
    if layout is not None and _checks.text("layout", layout) not in ("hwc", "chw", "channels_last"):
        raise OptionError(f"layout: expected hwc, chw or channels_last, found {layout!r}")
    order = "hwc" if layout == "channels_last" else layout
    if image is not None and not words and normalize is None:
        # If the pack already has this type and layout, nothing needs to be done.
        is_there = image.kind == "tensor"
        if is_there and wanted in (None, image.dtype) and order in (None, image.layout):
            return None
    _check_once(words, normalize, wanted, order)
    if normalize is not None:
        words.append(_normalization(dataset, image, normalize))
    words += [word for word in (wanted, order) if word is not None]
    return ",".join(words) or None


def buckets_of(buckets: Any) -> str | None:
    """The sizes of buckets, as one string of words. None if there are none.

    >>> buckets_of([512, (640, 384), "384x640"]), buckets_of("area:262144/64")
    ('512,640x384,384x640', 'area:262144/64')
    """
    if buckets is None or isinstance(buckets, str):
        return buckets
    if not isinstance(buckets, Sequence):
        raise OptionError(f"buckets: expected a string or a list of sizes, found {buckets!r}")
    return ",".join(map(_bucket, buckets))


def _bucket(size: Any) -> str:
    if isinstance(size, str):
        return size
    side = size if isinstance(size, Sequence) else (size, size)
    width, height = (whole("buckets", one, 32) for one in _checks.two("buckets", "numbers, (width, height) or strings", side))
    return f"{width}x{height}" if isinstance(size, Sequence) else str(width)


def puts_channels_first(augment: str | Sequence[str] | None) -> bool:
    """Whether the words give images the shape `[C, H, W]`."""
    return "chw" in _split(augment)


def mixes(augment: str | Sequence[str] | None) -> bool:
    """Whether the words mix the images of a batch."""
    return any(word.partition(":")[0] in ("mixup", "cutmix") for word in _split(augment))


def crop_of(augment: str | Sequence[str] | None) -> tuple[int, int] | None:
    """The (width, height) of the words' crop. None without a crop.

    >>> crop_of("rrc224,flip"), crop_of(["resize256", "center224x160"]), crop_of("flip")
    ((224, 224), (224, 160), None)
    """
    for word in _split(augment):
        if found := _CROP.fullmatch(word):
            width, height = found[2], found[3] or found[2]
            return int(width), int(height)
    return None


def cropped_to(augment: str | Sequence[str] | None, size: Any) -> str:
    """The words with another crop size. A `resize` before the crop is scaled, so that the crop shows the same part.

    >>> cropped_to("rrc224:0.35-1,flip", 160), cropped_to(["crop32+4"], (24, 16)), cropped_to("resize72,center64", 96)
    ('rrc160:0.35-1,flip', 'crop24x16+4', 'resize108,center96')
    """
    side = size if isinstance(size, Sequence) and not isinstance(size, str) else (size, size)
    width, height = (whole("resolution", one, 32) for one in _checks.two("resolution", "a number or (width, height)", side))
    before = crop_of(augment)
    if before is None:
        raise OptionError(f"resolution: augment={augment!r} has no crop to resize", "assign augment='rrc160' or 'center160' instead")
    text = str(width) if width == height else f"{width}x{height}"

    def sized(word: str) -> str:
        if found := _RESIZE.fullmatch(word):
            return _resized(found[1], found[2], before, (width, height))
        return _CROP.sub(lambda found: f"{found[1]}{text}{found[4]}", word)

    return ",".join(map(sized, _split(augment)))


def _resized(width: str, height: str | None, before: tuple[int, int], after: tuple[int, int]) -> str:
    """The word `resize` for another crop size, rounded to pixels. The short side is scaled by the larger factor of the two sides,
    so an image that covered its crop still covers it."""
    factors = [Fraction(new, max(old, 1)) for new, old in zip(after, before)]
    if height is None:
        return f"resize{_nearest(int(width) * max(factors))}"
    return f"resize{_nearest(int(width) * factors[0])}x{_nearest(int(height) * factors[1])}"


def _nearest(number: Fraction) -> int:
    return math.floor(number + Fraction(1, 2))


def _split(augment: str | Sequence[str] | None) -> list[str]:
    """The single words, without the spaces around them."""
    several = [] if augment is None else _checks.names("augment", augment)
    return [word.strip() for one in several for word in one.split(",")]


def _image_dtype(dtype: Any, image: Field | None) -> str:
    """The name of an element type for images in batches. Images must already have this type, or it must be one to which they
    can be cast."""
    try:
        wanted = dtype_name(dtype)
    except OptionError:
        wanted = ""
    if wanted not in PIXEL_TYPES and (image is None or wanted != image.dtype):
        raise OptionError(f"dtype: expected {', '.join(PIXEL_TYPES[:-1])} or {PIXEL_TYPES[-1]}, found {dtype!r}")
    return wanted


def _check_once(augment: Sequence[str], normalize: Normalize, dtype: str | None, layout: str | None) -> None:
    """Rejects options that repeat a word of `augment`."""
    for word in _split(augment):
        repeats = {"normalize": normalize is not None and word.partition(":")[0] == "norm"}
        repeats.update(dtype=dtype is not None and word in PIXEL_TYPES, layout=layout is not None and word in ("hwc", "chw"))
        for name, is_repeated in repeats.items():
            if is_repeated:
                raise OptionError(f"{name}: {word!r} in augment already sets this", "leave one of them out")


def _normalization(dataset: Dataset, image: Field | None, normalize: str | tuple[Any, Any]) -> str:
    if isinstance(normalize, str):
        if normalize == "imagenet":
            return "norm:imagenet"
        if normalize != "dataset":
            hint = "the pack's own mean and std are normalize='dataset'" if normalize == "stats" else None
            raise OptionError(f"normalize: expected dataset, imagenet or (mean, std), found {normalize!r}", hint)
        stats = dataset.stats.get("fields", {}).get(image.name if image else "", None)
        if stats is None:
            raise OptionError(
                f"{dataset.path}: the pack has no statistics of its images",
                "pass normalize=(mean, std), or convert with check_decode=True",
            )
        means, stds = stats["mean"], stats["std"]
        # A constant channel would otherwise be divided by 0.
        stds = [std if std > 0 else 1.0 for std in stds]
    else:
        means, stds = mean_and_std(normalize)
    numbers = "/".join(repr(number) for number in [*means, *stds])
    return f"norm:{numbers}"


def mean_and_std(normalize: Any) -> tuple[list[float], list[float]]:
    """Means and standard deviations of channels. A single number is valid for a single channel."""
    what = "dataset, imagenet or (mean, std)"
    pair = _checks.two("normalize", what, normalize)
    means, stds = (_checks.numbers("normalize", [one] if np.ndim(one) == 0 else one) for one in pair)
    for mean in means:
        if mean > 1:
            text = f"normalize: mean and std apply to values in 0..1, found a mean of {mean:g}"
            raise OptionError(text, "divide both by 255 if they are for values in 0..255")
    return means, stds
