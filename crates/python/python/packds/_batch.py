"""The batches that programs get: fields by name, and metadata."""

from __future__ import annotations

import sys
from collections.abc import ItemsView, Iterator, KeysView, Mapping, MutableMapping, Sequence, ValuesView
from typing import Any, NoReturn

import numpy as np

from . import _packds
from ._arrays import as_numpy
from ._checks import whole
from ._display import counted


_GEOMETRY = np.dtype(
    [(name, np.float64) for name in ("x", "y", "width", "height")]
    + [(name, np.int32) for name in ("out_width", "out_height")]
    + [(name, np.bool_) for name in ("flip_horizontal", "flip_vertical")]
    + [("matrix", np.float64, (2, 3))]
)


def _not_taken_apart(names: Sequence[str]) -> NoReturn:
    """Raises an error that explains how to get the values. Otherwise `images, labels = batch` would assign the names."""
    taken = ", ".join(f"batch[{name!r}]" for name in names)
    raise TypeError(
        f"a batch with named fields cannot be unpacked: use {taken}, pass as_tuple=True to get tuples, "
        "or iterate over batch.keys() or batch.items()"
    )


class NamedBatch(MutableMapping[str, Any]):
    """The fields of a batch by name: `batch["image"]`.

    It works like a dict, except that iterating over it is an error, because `images, labels = batch` would assign the
    names. `dict(batch)`, `**batch`, `keys()`, `values()` and `items()` work as usual, and PyTorch, JAX, Accelerate and
    Lightning treat it as a mapping.

    >>> loader = packds.Loader("train.pack", batch_size=4, fields=["image", "label"])
    >>> for batch in loader:
    ...     images, labels = batch["image"], batch["label"]
    >>> images.shape, labels.shape
    ((4, 64, 64, 3), (4,))
    """

    __slots__ = ("_values",)

    def __init__(self, values: Any = (), /, **more: Any) -> None:
        self._values: dict[str, Any] = dict(values, **more)

    def __getitem__(self, name: str) -> Any:
        try:
            return self._values[name]
        except KeyError:
            raise KeyError(f"batches have no field {name!r}; they have {', '.join(self._values)}") from None

    def __setitem__(self, name: str, value: Any) -> None:
        self._values[name] = value

    def __delitem__(self, name: str) -> None:
        del self._values[name]

    def __iter__(self) -> Iterator[str]:
        _not_taken_apart(list(self._values))

    def __len__(self) -> int:
        return len(self._values)

    def __contains__(self, name: object) -> bool:
        return name in self._values

    # These methods replace inherited ones that use `__iter__`.

    def keys(self) -> KeysView[str]:
        """The names of the fields.

        >>> batch = packds.NamedBatch(image=np.zeros((2, 8, 8, 3)), label=np.array([3, 5]))
        >>> list(batch.keys())
        ['image', 'label']
        """
        return self._values.keys()

    def values(self) -> ValuesView[Any]:
        """The values of the fields.

        >>> batch = packds.NamedBatch(image=np.zeros((2, 8, 8, 3)), label=np.array([3, 5]))
        >>> [values.shape for values in batch.values()]
        [(2, 8, 8, 3), (2,)]
        """
        return self._values.values()

    def items(self) -> ItemsView[str, Any]:
        """Names and values.

        >>> batch = packds.NamedBatch(image=np.zeros((2, 8, 8, 3)), label=np.array([3, 5]))
        >>> {name: values.shape for name, values in batch.items()}
        {'image': (2, 8, 8, 3), 'label': (2,)}
        """
        return self._values.items()

    def update(self, *others: Any, **more: Any) -> None:
        """Adds or replaces fields.

        >>> batch = packds.NamedBatch(label=np.array([3, 5]))
        >>> batch.update(weight=np.array([0.5, 2.0]))
        >>> batch["weight"]
        array([0.5, 2. ])
        """
        self._values.update(*others, **more)

    def popitem(self) -> tuple[str, Any]:
        """Removes the last field.

        >>> batch = packds.NamedBatch(label=np.array([3, 5]))
        >>> batch.popitem()
        ('label', array([3, 5]))
        >>> len(batch)
        0
        """
        return self._values.popitem()

    def clear(self) -> None:
        """Removes all fields.

        >>> batch = packds.NamedBatch(label=np.array([3, 5]))
        >>> batch.clear()
        >>> len(batch)
        0
        """
        self._values.clear()

    def copy(self) -> NamedBatch:
        """A shallow copy.

        >>> batch = packds.NamedBatch(label=np.array([3, 5]))
        >>> other = batch.copy()
        >>> del other["label"]
        >>> batch["label"]
        array([3, 5])
        """
        return NamedBatch(self._values)

    __copy__ = copy

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._values!r})"


class Batch:
    """The samples of one rank in one step. `batch["image"]` is a field; `as_tuple()` and `as_dict()` return all fields.

    >>> for batch in packds.Loader("train.pack", batch_size=4).batches():
    ...     images, positions = batch["image"], batch.ids
    >>> batch.step, batch.epoch, images.shape, positions.shape
    (6, 0, (4, 64, 64, 3), (4,))

    Attributes:
        ids: The position of each sample in the file, `[n]` int64.
        step: The step, starting at 0 in each epoch.
        epoch: The epoch.
        padding: Number of samples at the end that were added only to fill the epoch's last batch.
        bad_samples: `(pack, sample, error)` for each sample that was skipped or replaced.
        packs: The index of each sample's pack in the list of packs, `[n]` int64; 0 if there is only one pack.
        mix: `(partner, share)` if images were mixed: each image consists of `share` of itself and `1 - share` of its partner. In
            a shortened batch, a partner may be a row that was cut off.
        is_lent: Whether arrays are the pack's own memory, which is read-only.
        is_copied: Whether arrays are copies, because the program holds too many batches.
    """

    __slots__ = ("_geometry", "_values", "bad_samples", "epoch", "ids", "is_copied", "is_lent", "mix", "packs", "padding", "step")

    def __init__(self, native: _packds.Batch, values: dict[str, Any], n_samples: int, on_gpu: bool) -> None:
        """Takes the first `n_samples` of the native batch. `values` has their fields, on the GPU or the host."""
        self._values = values
        self.ids = as_numpy(native.ids())[:n_samples]
        self.step = native.step
        self.epoch = native.epoch
        self.padding = native.padding - (len(native) - n_samples)
        self.bad_samples = native.bad_samples()
        self.packs = np.asarray(native.packs()[:n_samples], np.int64)
        mix = native.mix()
        self.mix = None if mix is None else (as_numpy(mix[0])[:n_samples], as_numpy(mix[1])[:n_samples])
        # On a GPU, the arrays are copies of the lent memory.
        self.is_lent = native.is_lent and not on_gpu
        self.is_copied = native.is_copied
        self._geometry = native.geometry()

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, name: str) -> Any:
        try:
            return self._values[name]
        except KeyError:
            raise KeyError(f"batches have no field {name!r}; they have {', '.join(self._values)}") from None

    def __iter__(self) -> Iterator[Any]:
        taken = ", ".join(f"batch[{name!r}]" for name in self._values)
        raise TypeError(f"a packds.Batch cannot be unpacked: use {taken}, or unpack batch.as_tuple()")

    def __contains__(self, name: object) -> bool:
        return name in self._values

    def keys(self) -> Sequence[str]:
        """The names of the fields.

        >>> batch = next(packds.Loader("train.pack", batch_size=4).batches())
        >>> batch.keys()
        ['image', 'label']
        """
        return list(self._values)

    def as_dict(self) -> dict[str, Any]:
        """All fields by name.

        >>> batch = next(packds.Loader("train.pack", batch_size=4).batches())
        >>> {name: values.shape for name, values in batch.as_dict().items()}
        {'image': (4, 64, 64, 3), 'label': (4,)}
        """
        return dict(self._values)

    def as_tuple(self) -> tuple[Any, ...]:
        """All fields, in the order of `keys()`.

        >>> batch = next(packds.Loader("train.pack", batch_size=4).batches())
        >>> images, labels = batch.as_tuple()
        >>> labels.shape
        (4,)
        """
        return tuple(self._values.values())

    def geometry(self, view: int = 0) -> np.ndarray[Any, Any] | None:
        """The geometry of each image: which part of the stored image it shows, and how. Use it to transform boxes, points and
        other images in the same way. It is computed again from seed, epoch and sample. None without augmentation.

        >>> batch = next(packds.Loader("train.pack", batch_size=4, augment="rrc48,flip").batches())
        >>> geometry = batch.geometry()
        >>> centres = geometry["matrix"] @ (32, 32, 1)  # where the centre of each stored image is in the batch
        >>> centres.shape
        (4, 2)

        Args:
            view: The index of the view, if an image has several.

        Returns:
            A structured array `[n]`: `x`, `y`, `width` and `height` of the part, in pixels of the stored image (with padding, the
            part extends beyond the image); `out_width` and `out_height` of the result; `flip_horizontal` and `flip_vertical`; and
            `matrix` `[2, 3]`, which maps the point (x, y) of the stored image to `matrix @ (x, y, 1)` in the result, including
            rotations and shears. The centre of the first pixel is (0.5, 0.5). The geometry does not include erased parts or parts
            of a partner (`mix`).

        Raises:
            OptionError: The view does not exist.
        """
        if self._geometry is None:
            return None
        drawn = as_numpy(self._geometry.view(whole("view", view, 32)))[: len(self)]
        geometry = np.zeros(len(drawn), _GEOMETRY)
        for number, name in enumerate(("x", "y", "width", "height", "flip_horizontal", "flip_vertical", "out_width", "out_height")):
            geometry[name] = drawn[:, number]
        geometry["matrix"] = drawn[:, 8:].reshape(-1, 2, 3)
        return geometry

    def __repr__(self) -> str:
        return f"<packds.Batch: epoch {self.epoch}, step {self.step}, {counted(len(self), 'sample')}: {', '.join(self._values)}>"


#: The libraries in which `NamedBatch` is registered as a pytree.
_known_to: set[str] = set()


def make_known() -> None:
    """Registers `NamedBatch` as a pytree, like a dict, in JAX and PyTorch if the program uses them. Both libraries
    check the exact type, so being a mapping is not enough."""
    for name in ("jax.tree_util", "torch.utils._pytree"):
        if (module := sys.modules.get(name)) is None or name in _known_to:
            continue
        # In older versions of PyTorch, this function has a private name.
        register = getattr(module, "register_pytree_node", None) or getattr(module, "_register_pytree_node", None)
        if register is not None:
            register(NamedBatch, _flat, _whole if name.startswith("torch") else _whole_from_names)
        _known_to.add(name)


def _flat(batch: NamedBatch) -> tuple[list[Any], tuple[str, ...]]:
    return list(batch.values()), tuple(batch.keys())


def _whole(values: Any, names: tuple[str, ...]) -> NamedBatch:
    return NamedBatch(zip(names, values))


def _whole_from_names(names: tuple[str, ...], values: Any) -> NamedBatch:
    return NamedBatch(zip(names, values))
