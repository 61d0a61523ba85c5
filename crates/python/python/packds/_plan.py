"""Converts native batches to a program's batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _packds
from ._arrays import OF_KIND, as_numpy, converter, multi_hot, tensor_of
from ._batch import NamedBatch
from ._cuda import SIMULATED, Gpu, number_of, widened
from ._dataset import FLOATS, Dataset, Field, is_float_label, pair_of
from ._errors import OptionError
from ._mixing import mixers
from ._ragged import padded_images, ragged_conversion, varied_masks
from ._targets import targets_conversion
from ._types import Ragged
from ._words import mixes, puts_channels_first

#: The roles of boxes and of what describes them.
_OF_BOXES = ("boxes", "box_labels", "box_attribute", "keypoints", "polygons")


class Plan:
    """Turns native batches into the objects that a loop gets. Made when a loader is created or its options change."""

    def __init__(
        self,
        datasets: Sequence[Dataset],
        native: _packds.Loader,
        output: str,
        layout: str | None,
        device: str,
        fields: Sequence[str] | None,
        as_tuple: bool | None,
        *,
        ragged: Ragged,
        pad_to: int,
        augment: str | Sequence[str] | None,
        instance_masks: bool,
    ) -> None:
        dataset = datasets[0]
        convert = converter(output)
        if layout == "channels_last" and output != "torch":
            raise OptionError(f"layout 'channels_last' needs output 'torch', found {output!r}", "pass layout='hwc'")
        if device != "cpu" and output != "torch":
            raise OptionError(f"device {device!r} needs output 'torch', found {output!r}")
        self.output = output
        self.convert = convert
        self.datasets = datasets
        self.device = device
        self._of_ragged = ragged_conversion(ragged, self._out)
        self._pads, self._pad_to = ragged == "padded", pad_to
        self._puts_channels_first = puts_channels_first(augment)
        number = number_of(device)
        self.gpu = None if number is None else Gpu(device, number, native.fields())
        self.fields: list[tuple[str, Any]] = []
        for name, _view, dtype, shape in native.fields():
            field = dataset.fields[name]
            self.fields.append((name, self._conversion(field, dtype, shape, layout)))
        if self._masks_vary(native, dataset) and ragged in ("padded", "flat"):
            raise varied_masks()
        names = list(dict.fromkeys(name for name, _ in self.fields))
        self.several_views = len(names) < len(self.fields)
        roles = [dataset.fields[name].role for name in names]
        self.image = names[roles.index("image")] if "image" in roles else None
        self.mask = names[roles.index("mask")] if "mask" in roles else None
        # The fields of a tuple. None if fields are delivered by name.
        loaded = [dataset.fields[name] for name in names]
        self.unpacked = _unpacked(loaded, fields is not None, as_tuple)
        image_layout = None if self.image is None else dataset.fields[self.image].layout
        channels_first = "channels_last" == layout or (puts_channels_first(augment) if augment else image_layout == "chw")
        self._targets = targets_conversion(ragged, output, channels_first, loaded, (self.several_views, instance_masks))
        self._mixers = mixers(datasets, loaded) if mixes(augment) else {}
        # Fields that are not mixed together with the images.
        # Boxes and what describes them are joined with those of the partner.
        joined = [field.name for field in loaded if field.role in _OF_BOXES]
        self.unmixed = [name for name in names if name not in (self.image, *self._mixers, *joined)] if mixes(augment) else []

    @staticmethod
    def _masks_vary(native: _packds.Loader, dataset: Dataset) -> bool:
        """Whether polygons are delivered as masks of images that vary in size."""
        shown = [(dataset.fields[name].role, dtype, shape) for name, _view, dtype, shape in native.fields()]
        return any(role == "polygons" and dtype == "u8" for role, dtype, _ in shown) and any(
            role == "image" and shape is None for role, _, shape in shown
        )

    def _conversion(self, field: Any, dtype: str, shape: list[int] | None, layout: str | None) -> Any:
        convert, device = self.convert, self.device
        if shape is None:
            if field.role in ("image", "mask") or field.kind == "image":
                return self._images(convert, device, layout)
            if field.kind == "ragged":
                return self._of_ragged
            value = OF_KIND.get(field.kind)
            return lambda items: items if value is None else [value(item) for item in items]
        if field.role == "labels":
            return self._multi_hot
        if self.output != "torch":
            is_made_float32 = self.output == "jax" and is_float_label(field)
            return (lambda memory: convert(memory).astype("float32")) if is_made_float32 else convert
        # On a GPU, fields are already tensors.
        steps = [convert] if self.gpu is None else [step for step in [widened(dtype)] if step is not None]
        if layout == "channels_last" and field.role == "image" and len(shape) == 3:
            steps.append(lambda tensor: tensor.permute(0, 3, 1, 2))
        if field.role == "label" and dtype not in ("i64", *FLOATS):
            # PyTorch's losses take class ids only as int64.
            steps.append(lambda tensor: tensor.long())
        if is_float_label(field):
            steps.append(lambda tensor: tensor.float())
        if device != "cpu" and self.gpu is None:
            steps.append(lambda tensor: tensor.to(device, non_blocking=True))
        return steps[0] if len(steps) == 1 else lambda memory: _after_all(steps, memory)

    def _multi_hot(self, bits: Any) -> Any:
        """Sets of class ids as rows of 0 and 1."""
        n_classes = max(dataset.n_label_classes for dataset in self.datasets)
        return self._out(multi_hot(as_numpy(bits), n_classes))

    def _images(self, convert: Any, device: str, layout: str | None) -> Any:
        """The function that converts images of different sizes, one by one or padded to one size."""
        is_last = layout == "channels_last"
        if self._pads:

            def padded(items: Any) -> Any:
                arrays = [as_numpy(item) for item in items]
                made = padded_images(arrays, items[0].dtype, self._puts_channels_first, self._pad_to, self._out)
                return made._replace(values=made.values.permute(0, 3, 1, 2)) if is_last and made.values.ndim == 4 else made

            return padded
        steps = [convert]
        if is_last:
            steps.append(lambda tensor: tensor.permute(2, 0, 1) if tensor.ndim == 3 else tensor)
        if device != "cpu" and device != SIMULATED:
            steps.append(lambda tensor: tensor.to(device, non_blocking=True))
        return lambda items: [_after_all(steps, item) for item in items]

    def values(self, native: _packds.Batch) -> dict[str, Any]:
        """Every field by name; a tuple of arrays if there are several views."""
        views: dict[str, list[Any]] = {}
        mix = native.mix()
        of_gpu = [None] * len(self.fields) if self.gpu is None else self.gpu.tensors(native)
        for (name, convert), value, tensor in zip(self.fields, native.values(), of_gpu):
            if mix is not None and name in self._mixers:
                views[name] = [self._out(self._mixers[name](value, as_numpy(mix[0]), as_numpy(mix[1])))]
                continue
            # Sets of labels are unpacked on the host.
            value = value if tensor is None or convert == self._multi_hot else tensor
            views.setdefault(name, []).append(convert(value))
        return {name: own[0] if len(own) == 1 else tuple(own) for name, own in views.items()}

    def _out(self, array: np.ndarray[Any, Any], dtype: str = "") -> Any:
        """The array in the program's library, on the device of the batches. `dtype` is its type in the pack."""
        if self.output == "torch":
            return tensor_of(array, dtype).to("cpu" if self.device == SIMULATED else self.device)
        if self.output == "jax":
            import jax

            return jax.numpy.asarray(array)
        return array

    def given(self, values: dict[str, Any], native: _packds.Batch) -> Any:
        """The object that the loop gets."""
        if self._targets is not None:
            return self._targets(values, as_numpy(native.ids()))
        if self.unpacked is None:
            return NamedBatch(values)
        return tuple(values[name] for name in self.unpacked)


def _after_all(steps: Sequence[Any], value: Any) -> Any:
    for step in steps:
        value = step(value)
    return value


def _unpacked(fields: Sequence[Field], are_named: bool, as_tuple: bool | None) -> tuple[str, ...] | None:
    """The fields of a tuple, in order. None if batches have their fields by name."""
    pair = None if are_named or as_tuple is False else pair_of(fields)
    return tuple(field.name for field in fields) if pair is None and as_tuple else pair
