"""Mixes the labels of mixed images (mixup, cutmix). The native module mixes the images."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import _packds
from ._arrays import as_numpy, multi_hot, widened_bfloat16
from ._dataset import FLOATS, Dataset, Field, is_label
from ._errors import OptionError

_Array = np.ndarray[Any, Any]
#: Computes the mixed labels (float32) from a batch's labels, each sample's partner, and its own share.
Mixer = Callable[[_packds.Memory, _Array, _Array], _Array]


def mixers(datasets: Sequence[Dataset], fields: Sequence[Field]) -> dict[str, Mixer]:
    """The function that mixes the labels, for each label field by name.

    Raises:
        OptionError: A label cannot be mixed.
    """
    return {field.name: _mixer(datasets, field) for field in fields if is_label(field)}


def _mixer(datasets: Sequence[Dataset], field: Field) -> Mixer:
    if field.role == "labels":
        return lambda bits, partner, share: _mixed(multi_hot(as_numpy(bits), max(one.n_label_classes for one in datasets)), partner, share)
    if field.kind != "tensor":
        text = f"images are mixed, but their label `{field.name}` is {field}, which cannot be mixed"
        raise OptionError(text, "leave mixup and cutmix out, or leave the field out with fields=")
    if field.dtype in FLOATS:
        return lambda numbers, partner, share: _mixed(_floats(numbers), partner, share)
    if field.shape:
        return lambda rows, partner, share: _mixed(_bits(field.name, as_numpy(rows)), partner, share)
    return _ClassIds(datasets, field.name)


def _mixed(rows: _Array, partner: _Array, share: _Array) -> _Array:
    """Each row becomes `share` times itself plus `1 - share` times its partner."""
    share = share.reshape(-1, *[1] * (rows.ndim - 1))
    mixed: _Array = (share * rows + (1 - share) * rows[partner]).astype(np.float32, copy=False)
    return mixed


def _floats(memory: _packds.Memory) -> _Array:
    """Converts to floats that NumPy can compute with."""
    return widened_bfloat16(np.asarray(memory)) if memory.dtype == "bf16" else as_numpy(memory)


def _bits(name: str, rows: _Array) -> _Array:
    """Rows that mark each class as present or absent."""
    if ((rows != 0) & (rows != 1)).any():
        text = f"images are mixed, but their label `{name}` has rows of whole numbers other than 0 and 1, which cannot be mixed"
        raise OptionError(text, "pack lists of class ids as 'labels', and numbers to predict as floats; or leave mixup and cutmix out")
    return rows


class _ClassIds:
    """Class ids as soft labels: one row per sample with a weight for each class."""

    def __init__(self, datasets: Sequence[Dataset], name: str) -> None:
        self._datasets = datasets
        self._name = name
        self._n_classes: int | None = None

    def __call__(self, ids: _packds.Memory, partner: _Array, share: _Array) -> _Array:
        if self._n_classes is None:
            self._n_classes = self._counted()
        own = as_numpy(ids).astype(np.int64, copy=False)
        shares = np.zeros((len(own), self._n_classes), np.float32)
        rows = np.arange(len(own))
        shares[rows, own] += share
        shares[rows, own[partner]] += 1 - share
        return shares

    def _counted(self) -> int:
        """Number of classes in all packs: the number of names, or one more than the highest id if that is larger."""
        columns = [dataset.columns[self._name] for dataset in self._datasets]
        if any(int(column.min()) < 0 for column in columns):
            text = f"images with a negative class id cannot be mixed: field {self._name!r} has such ids"
            raise OptionError(text, "select the other images with samples=, or leave mixup and cutmix out")
        named = [len(dataset.classes) if dataset.fields[self._name].role == "label" else 0 for dataset in self._datasets]
        return max(*named, *(int(column.max()) + 1 for column in columns))
