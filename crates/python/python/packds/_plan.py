"""How native batches become what a program gets: decided once for a loader."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _packds
from ._arrays import as_numpy, converter
from ._cuda import SIMULATED, Gpu, number_of, widened
from ._dataset import Dataset, pair_of
from ._errors import OptionError


class Plan:
    """How a native batch becomes what Python iterates over; decided once for a loader."""

    def __init__(
        self, datasets: Sequence[Dataset], native: _packds.Loader, output: str, layout: str | None, device: str, pair: bool
    ) -> None:
        dataset = datasets[0]
        convert = converter(output)
        if layout == "channels_last" and output != "torch":
            raise OptionError(f"layout channels_last is for output torch, found {output!r}", "take layout hwc")
        if device != "cpu" and output != "torch":
            raise OptionError(f"device {device!r} is for output torch, found {output!r}")
        self.output = output
        self.convert = convert
        self.datasets = datasets
        self.device = device
        number = number_of(device)
        self.gpu = None if number is None else Gpu(device, number, native.fields())
        self.fields: list[tuple[str, Any]] = []
        for name, _view, dtype, shape in native.fields():
            field = dataset.fields[name]
            self.fields.append((name, self._conversion(field, dtype, shape, layout)))
        names = list(dict.fromkeys(name for name, _ in self.fields))
        self.several_views = len(names) < len(self.fields)
        roles = [dataset.fields[name].role for name in names]
        self.image = names[roles.index("image")] if "image" in roles else None
        self.label = names[roles.index("label")] if "label" in roles else None
        # What a training loop takes apart.
        self.pair = pair_of([dataset.fields[name] for name in names]) if pair else None
        self._n_classes: int | None = None

    def _conversion(self, field: Any, dtype: str, shape: list[int] | None, layout: str | None) -> Any:
        convert, device = self.convert, self.device
        if shape is None:
            if field.kind == "string":
                return lambda items: [item.decode() for item in items]
            if field.kind == "json":
                return lambda items: [json.loads(item) for item in items]
            return lambda items: items
        if self.output != "torch":
            return convert
        # On a GPU they are tensors already.
        steps = [convert] if self.gpu is None else [step for step in [widened(dtype)] if step is not None]
        if layout == "channels_last" and field.role == "image" and len(shape) == 3:
            steps.append(lambda tensor: tensor.permute(0, 3, 1, 2))
        if field.role == "label" and dtype not in ("i64", "f16", "bf16", "f32", "f64"):
            # What losses take as class ids.
            steps.append(lambda tensor: tensor.long())
        if device != "cpu" and self.gpu is None:
            steps.append(lambda tensor: tensor.to(device, non_blocking=True))
        if len(steps) == 1:
            return steps[0]

        def all_steps(memory: Any) -> Any:
            for step in steps:
                memory = step(memory)
            return memory

        return all_steps

    def values(self, native: _packds.Batch) -> dict[str, Any]:
        """Every field by name; a tuple of arrays where there are several views."""
        values: dict[str, Any] = {}
        mix = native.mix()
        of_gpu = [None] * len(self.fields) if self.gpu is None else self.gpu.tensors(native)
        for (name, convert), value, tensor in zip(self.fields, native.values(), of_gpu):
            if mix is not None and name == self.label:
                values[name] = self._soft(as_numpy(value), as_numpy(mix[0]), as_numpy(mix[1]))
                continue
            value = value if tensor is None else tensor
            if self.several_views and name in values:
                before = values[name]
                values[name] = (*before, convert(value)) if isinstance(before, tuple) else (before, convert(value))
            else:
                values[name] = convert(value)
        return values

    def _soft(self, ids: np.ndarray[Any, Any], partner: np.ndarray[Any, Any], share: np.ndarray[Any, Any]) -> Any:
        """Labels of mixed images: rows `[n, classes]` float32 that sum to 1."""
        if self._n_classes is None:
            assert self.label is not None
            columns = [dataset.columns[self.label] for dataset in self.datasets]
            if any(int(column.min()) < 0 for column in columns):
                raise OptionError(f"images of a class below 0 cannot be mixed: field {self.label!r} has some")
            self._n_classes = max(*(len(one.classes) for one in self.datasets), *(int(column.max()) + 1 for column in columns))
        soft = np.zeros((len(ids), self._n_classes), np.float32)
        rows = np.arange(len(ids))
        soft[rows, ids] += share
        soft[rows, ids[partner]] += 1 - share
        if self.output == "torch":
            import torch

            return torch.from_numpy(soft).to("cpu" if self.device == SIMULATED else self.device)
        if self.output == "jax":
            import jax

            return jax.numpy.asarray(soft)
        return soft

    def given(self, values: dict[str, Any]) -> Any:
        """What the loop gets."""
        if self.pair is None:
            return values
        image, label = self.pair
        return values[image], values[label]
