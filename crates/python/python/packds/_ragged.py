"""Ragged fields and images of different sizes in batches: all samples in one array, with what is needed to take them apart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ._arrays import as_numpy
from ._checks import text
from ._errors import OptionError
from ._types import Ragged


class Flat(NamedTuple):
    """The entries of a ragged field, one sample after another. Sample `i` has `values[offsets[i]:offsets[i + 1]]`.

    >>> flat = packds.Flat(np.arange(6.0).reshape(3, 2), np.array([0, 2, 2, 3]))
    >>> [len(flat.values[start:end]) for start, end in zip(flat.offsets, flat.offsets[1:])]
    [2, 0, 1]

    Attributes:
        values: All entries, `[entries, ...]`.
        offsets: Where the entries of each sample begin, and where those of the last one end, `[samples + 1]` int64.
    """

    values: Any
    offsets: Any

    def cut(self, n: int) -> Flat:
        """The first `n` samples.

        >>> packds.Flat(np.arange(3), np.array([0, 2, 3])).cut(1)
        Flat(values=array([0, 1]), offsets=array([0, 2]))
        """
        return Flat(self.values[: int(self.offsets[n])], self.offsets[: n + 1])


class Padded(NamedTuple):
    """The entries of a ragged field, with zeros after the entries of shorter samples.

    >>> padded = packds.Padded(np.array([[5, 7], [6, 0]]), np.array([2, 1]))
    >>> [row[:n].tolist() for row, n in zip(padded.values, padded.lengths)]
    [[5, 7], [6]]

    Attributes:
        values: The entries of each sample, `[samples, most, ...]`, where `most` is the largest number in the batch.
        lengths: The number of entries of each sample, `[samples]` int64. For images of different sizes, their heights and widths,
            `[samples, 2]`.
    """

    values: Any
    lengths: Any

    def cut(self, n: int) -> Padded:
        """The first `n` samples.

        >>> packds.Padded(np.array([[5, 0], [6, 7]]), np.array([1, 2])).cut(1)
        Padded(values=array([[5]]), lengths=array([1]))
        """
        lengths = self.lengths[:n]
        if lengths.ndim == 2:
            return Padded(self.values[:n], lengths)
        return Padded(self.values[:n, : max(lengths.tolist(), default=0)], lengths)


def ragged_conversion(form: Ragged, out: Callable[[Any, str], Any]) -> Callable[[Any], Any]:
    """The function that makes the value of a ragged field from its entries and offsets. `out` makes the program's array from a
    NumPy array and its type in the pack.

    Raises:
        OptionError: The form does not exist.
    """
    text("ragged", form)
    if form in ("list", "targets", "tv_tensors"):
        return lambda value: _each(value, out) if isinstance(value, list) else _listed(*_arrays(value), value[0].dtype, out)
    if form == "flat":
        return lambda value: Flat(*(out(array, memory.dtype) for array, memory in zip(_arrays(value), value)))
    if form == "padded":
        return lambda value: _padded(*_arrays(value), value[0].dtype, out)
    raise OptionError(f"ragged: expected list, padded, flat, targets or tv_tensors, found {form!r}")


def padded_images(images: Sequence[np.ndarray[Any, Any]], dtype: str, channels_first: bool, pad_to: int, out: Callable[[Any, str], Any]) -> Padded:
    """Images of different sizes in the upper left corners of one array, whose sides are multiples of `pad_to`. The rest is 0."""
    first = 1 if channels_first and images[0].ndim == 3 else 0
    sizes = np.array([image.shape[first : first + 2] for image in images], np.int64)
    height, width = (-(-sizes.max(0) // pad_to) * pad_to).tolist()
    shape = images[0].shape
    padded = np.zeros((len(images), *shape[:first], height, width, *shape[first + 2 :]), images[0].dtype)
    for to, image, (rows, columns) in zip(padded, images, sizes.tolist()):
        to[(slice(None),) * first + (slice(rows), slice(columns))] = image
    return Padded(out(padded, dtype), out(sizes, "i64"))


def _each(items: list[Any], out: Any) -> list[Any]:
    """Masks of images that vary in size."""
    return [out(as_numpy(item), item.dtype) for item in items]


def varied_masks() -> OptionError:
    """The error for masks that no array can hold."""
    hint = "use ragged='list', or an augment that gives the images one size"
    return OptionError("masks of images that vary in size can be neither padded nor flat", hint)


def _arrays(value: Any) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    if isinstance(value, list):
        raise varied_masks()
    entries, offsets = value
    return as_numpy(entries), as_numpy(offsets)


def _listed(entries: np.ndarray[Any, Any], offsets: np.ndarray[Any, Any], dtype: str, out: Any) -> list[Any]:
    ends = offsets.tolist()
    return [out(entries[start:end], dtype) for start, end in zip(ends, ends[1:])]


def _padded(entries: np.ndarray[Any, Any], offsets: np.ndarray[Any, Any], dtype: str, out: Any) -> Padded:
    lengths = np.diff(offsets)
    has_entry = np.arange(lengths.max(initial=0)) < lengths[:, None]
    padded = np.zeros((*has_entry.shape, *entries.shape[1:]), entries.dtype)
    padded[has_entry] = entries
    return Padded(out(padded, dtype), out(lengths, "i64"))
