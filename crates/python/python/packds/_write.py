"""Packs of samples that a program has: arrays, pictures, any data set."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, Union

import numpy as np

from . import _checks, _packds
from ._arrays import NUMPY_NAMES, dtype_name
from ._convert import WRITER_OPTIONS, writer_arguments, writer_report
from ._dataset import LABEL_NAMES, PathLike
from ._errors import ConvertError, Error, OptionError, warn
from ._habits import OF_CONVERSIONS, with_habits
from ._loader import Loader
from ._progress import Progress

#: What a field is: a kind by name, an array's type and shape, or None to go by the first value.
Kind = Union[str, None, "tuple[Any, Sequence[int]]"]
Schema = Union[Mapping[str, Kind], Sequence[str], None]

_KINDS = ("image", "mask", "label", "labels", "bytes", "text", "json")
_IMAGE_NAMES = ("image", "images", "img", "pixels", "x", "input", "data")
_MASK_NAMES = ("mask", "segmentation")
#: Packs call the image so, whatever the source does.
_OWN_NAMES = {"image": "image", "mask": "mask", "label": "label", "labels": "labels"}


class _Field:
    """A field being written: its kind, and how a value becomes what the native part takes."""

    def __init__(self, name: str, kind: Kind) -> None:
        self.name = name
        self.dtype: str | None = None
        self.shape: tuple[int, ...] | None = None
        if isinstance(kind, str) and kind in _KINDS:
            self.kind = kind
        elif isinstance(kind, str):
            # A number of this type.
            self.kind, self.dtype, self.shape = "array", dtype_name(kind), ()
        elif kind is None:
            raise OptionError(f"field {name!r}: its kind is not known")
        else:
            dtype, shape = _checks.two(f"field {name!r}", f"a kind ({', '.join(_KINDS)}), a type, or (type, shape)", kind)
            sides = _checks.several(f"field {name!r}", "a shape", shape)
            self.kind, self.dtype = "array", dtype_name(dtype)
            self.shape = tuple(_checks.whole(f"field {name!r}", side, 32) for side in sides)

    def declared(self) -> tuple[str, str, str | None, list[int] | None]:
        name = _OWN_NAMES.get(self.kind, self.name)
        return name, self.kind, self.dtype, None if self.shape is None else list(self.shape)

    def value(self, value: Any, sample: int) -> Any:
        """A sample's value as bytes, text, numbers, or (dtype, shape, bytes)."""
        try:
            return self._value(value)
        except (TypeError, ValueError, OverflowError) as error:
            if isinstance(error, Error):
                raise
            raise ConvertError(f"sample {sample}: field {self.name!r}: {error}") from error

    def _value(self, value: Any) -> Any:
        if self.kind in ("image", "mask"):
            return _picture(value, self.kind)
        if self.kind == "label":
            return value if isinstance(value, str) else _class_id(value)
        if self.kind == "labels":
            return [_class_id(label) for label in value]
        if self.kind == "array":
            return _elements(_array(value), self.dtype)
        if self.kind == "bytes":
            if isinstance(value, (int, str)) or value is None:
                raise TypeError(f"expected bytes, found {value!r}")
            return bytes(value)
        if self.kind == "json":
            return json.dumps(value, separators=(",", ":"), default=_no_json)
        if not isinstance(value, str):
            raise TypeError(f"expected a text, found {value!r}")
        return value


def _no_json(value: Any) -> Any:
    raise TypeError(f"expected what JSON can hold, found {value!r}: make it a text, numbers, lists or dicts of them")


def _class_id(value: Any) -> int:
    """A whole number, which tables may have as a float."""
    try:
        number = int(value)
        is_id = bool(number == value) and -(1 << 63) <= number < 1 << 63
    except (TypeError, ValueError, OverflowError):
        # What is missing in a table, for one.
        is_id = False
    if not is_id:
        raise ValueError(f"expected the id of a class, found {value!r}")
    return number


#: Bfloat16 that NumPy does not know: its bits, in a type that nothing else has.
_BITS = np.dtype([("bf16", "<u2")])


def _array(value: Any) -> np.ndarray[Any, Any]:
    """The value as an array; a tensor of bfloat16, which NumPy refuses, as `_BITS`."""
    if not hasattr(value, "detach"):
        array = np.asarray(value)
        return array.view(_BITS) if array.dtype.name == "bfloat16" else array
    tensor = value.detach().cpu()
    if str(tensor.dtype) != "torch.bfloat16":
        return np.asarray(tensor)
    torch = sys.modules["torch"]
    return tensor.contiguous().view(torch.int16).numpy().view(_BITS)


def _type_of(array: np.ndarray[Any, Any]) -> str:
    return "bf16" if array.dtype == _BITS else dtype_name(array.dtype)


def _elements(array: np.ndarray[Any, Any], dtype: str | None = None) -> tuple[str, list[int], bytes]:
    """An array's little-endian elements in C order."""
    if dtype == "bf16":
        array = _as_bfloat16(array)
    elif dtype is not None:
        if array.dtype == _BITS:
            array = (array["bf16"].astype(np.uint32) << 16).view(np.float32)
        wanted = np.dtype(NUMPY_NAMES[dtype])
        # A number is of no type yet, as long as it is the same in that of the field; an array is not cut or rounded unasked.
        array = _number(array, wanted) if array.ndim == 0 else _cast(array, wanted)
    if array.dtype.byteorder == ">":
        array = array.astype(array.dtype.newbyteorder("<"))
    return dtype or _type_of(array), list(array.shape), np.ascontiguousarray(array).tobytes()


def _number(array: np.ndarray[Any, Any], wanted: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """A single number as `wanted`, which has to hold it: floats may round it, whole numbers and truth values may not."""
    number = array.item()
    if array.dtype.kind not in "fiubc":
        raise ValueError(f"expected a number, found {number!r}")
    if wanted.kind in "fc":
        return _cast(array, wanted, "unsafe")
    if wanted.kind == "b":
        fits = number in (0, 1)
    else:
        least, most = np.iinfo(wanted).min, np.iinfo(wanted).max
        # NaN and infinities are no whole numbers.
        fits = number == number and abs(number) != float("inf") and int(number) == number and least <= number <= most
    if not fits:
        raise ValueError(f"expected a number that {wanted.name} holds, found {number!r}")
    return np.asarray(int(number)).astype(wanted)


def _cast(
    array: np.ndarray[Any, Any], wanted: np.dtype[Any], casting: Literal["same_kind", "unsafe"] = "same_kind"
) -> np.ndarray[Any, Any]:
    """The numbers as `wanted`, where floats may be rounded, but not to infinity."""
    # NumPy would only warn.
    with np.errstate(over="ignore"):
        cast = array.astype(wanted, casting=casting)
    if wanted.kind == "f" and not np.can_cast(array.dtype, wanted):
        _check_finite(array, np.isinf(cast), wanted.name)
    return cast


def _check_finite(array: np.ndarray[Any, Any], is_inf: np.ndarray[Any, Any], name: str) -> None:
    """Refuses numbers that became infinite; what was infinite may be."""
    lost = is_inf & np.isfinite(array)
    if lost.any():
        raise ValueError(f"expected a number that {name} holds, found {array[lost].flat[0].item()!r}")


def _as_bfloat16(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Numbers as bfloat16, rounded to the nearest, of two as near to the even one. `uint16` is taken for its bits, as loaders
    give them where NumPy has no such type."""
    if array.dtype == _BITS or array.dtype == np.uint16:
        return array
    if array.dtype.kind not in "fiub":
        raise TypeError(f"expected numbers, found {array.dtype}")
    with np.errstate(over="ignore"):
        bits = np.asarray(array, np.float32).view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> 16) & np.uint32(1))) >> 16
    # Rounding could carry what is no number over to infinity.
    quiet = (bits >> 16) | np.uint32(0x40)
    nearest = np.where(np.isnan(bits.view(np.float32)), quiet, rounded).astype(np.uint16)
    _check_finite(array, (nearest & 0x7FFF) == 0x7F80, "bfloat16")
    return nearest


def _picture(value: Any, kind: str) -> Any:
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    if isinstance(value, Mapping) and isinstance(value.get("bytes"), bytes):
        # As Hugging Face's data sets hold image files.
        return value["bytes"]
    if isinstance(value, (str, os.PathLike)):
        try:
            with open(value, "rb") as file:
                return file.read()
        except OSError as error:
            raise ConvertError(f"{os.fspath(value)}: {error.strerror}", "images may be given as paths: is this one?") from error
    if hasattr(value, "convert") and hasattr(value, "mode"):
        # A picture of Pillow's.
        if kind == "image" and value.mode not in ("L", "RGB"):
            value = value.convert("RGB")
        value = np.asarray(value)
    return _elements(_array(value))


def _label_name(kinds: Mapping[str, Kind], sample: Mapping[str, Any]) -> str | None:
    """The field that is the label, unless the schema names one: of those called so the one with the most customary name."""
    if "label" in kinds.values():
        return None
    called = {name.lower(): name for name in reversed(list(kinds)) if kinds[name] is None and name in sample}
    found = (called[known] for known in LABEL_NAMES if known in called)
    return next((name for name in found if isinstance(sample[name], str) or _is_whole(sample[name])), None)


def _inferred(name: str, value: Any, is_first: bool) -> Kind:
    """The kind of a field that is not the label, by its name and its first value."""
    lower = name.lower()
    is_file = isinstance(value, (bytes, bytearray)) or (isinstance(value, Mapping) and "bytes" in value)
    is_picture = hasattr(value, "convert") and hasattr(value, "mode")
    if lower in _MASK_NAMES and (is_file or is_picture or _array(value).ndim >= 2):
        return "mask"
    if is_picture or (is_file and (is_first or lower in _IMAGE_NAMES)):
        return "image"
    if isinstance(value, (bytes, bytearray)):
        return "bytes"
    if isinstance(value, str):
        return "text"
    if isinstance(value, Mapping) or value is None:
        return "json"
    if lower == "labels" and isinstance(value, (list, tuple)):
        return "labels"
    array = _array(value)
    if array.dtype == object or array.dtype.kind in "US":
        return "json"
    if array.ndim >= 2 and (lower in _IMAGE_NAMES or is_first):
        return "image"
    return _type_of(array), array.shape


def _is_whole(value: Any) -> bool:
    array = _array(value)
    return array.ndim == 0 and array.dtype.kind in "iub"


def _kinds(schema: Schema) -> dict[str, Kind] | None:
    """The kind of each field, as far as it is said."""
    if schema is None:
        return None
    names = _checks.names("schema", list(schema) if isinstance(schema, Mapping) else schema)
    return dict(schema) if isinstance(schema, Mapping) else dict.fromkeys(names)


class Writer:
    """Takes samples and makes a pack of them; `packds.write` opens it.

    Attributes:
        report: What was written, once it is closed; None before.
    """

    @with_habits("packds.Writer", OF_CONVERSIONS, WRITER_OPTIONS)
    def __init__(
        self,
        dst: PathLike,
        schema: Schema = None,
        *,
        classes: Sequence[str] | None = None,
        progress: bool = False,
        **options: Any,
    ) -> None:
        self.report: dict[str, Any] | None = None
        # Until there is something that could be lost.
        self._is_over = True
        self._dst = _checks.path("dst", dst)
        self._classes = [] if classes is None else _checks.names("classes", classes)
        self._progress = _checks.truth("progress", progress)
        self._args = writer_arguments(options)
        self._kinds = _kinds(schema)
        self._fields: list[_Field] = []
        self._native: _packds.Writer | None = None
        if self._kinds is not None and not any(kind is None for kind in self._kinds.values()):
            self._start(self._kinds)
        elif not os.path.isdir(folder := os.path.dirname(self._dst) or "."):
            raise ConvertError(f"{self._dst}: there is no folder {folder} to write it to", "make the folder first")

    def _start(self, kinds: Mapping[str, Kind]) -> None:
        self._fields = [_Field(name, kind) for name, kind in kinds.items()]
        declared = [field.declared() for field in self._fields]
        self._native = _packds.Writer(self._dst, declared, self._classes, self._args)
        self._is_over = False

    def _begin(self, sample: Mapping[str, Any]) -> _packds.Writer:
        """The native writer; what the schema leaves open is decided by the first sample."""
        if self._native is None:
            kinds = self._kinds if self._kinds is not None else dict.fromkeys(sample)
            has_image = any(isinstance(kind, str) and kind == "image" for kind in kinds.values())
            decided: dict[str, Kind] = {}
            label = _label_name(kinds, sample)
            for name, kind in kinds.items():
                if name == label:
                    kind = "label"
                elif kind is None and name in sample:
                    kind = _inferred(name, sample[name], not has_image and not decided)
                decided[name] = kind
            self._start(decided)
        assert self._native is not None
        return self._native

    def add(self, **sample: Any) -> None:
        """Takes a sample: a value for each field, by name.

        Images and masks are arrays `[H, W, 3]`, `[H, W, 1]`, `[H, W]` or `[3, H, W]` uint8, arrays of any other type (kept as
        they are), pictures of Pillow's, bytes of an image file, or a path of one. Labels are ids or names.

        Raises:
            ConvertError: A value is not of its field's kind; the sample is not in, and others can come.
        """
        native = self._begin(sample)
        names = [field.name for field in self._fields]
        if len(sample) != len(names) or any(name not in sample for name in names):
            raise ConvertError(f"sample {len(native)}: expected {', '.join(names)}, found {', '.join(sample)}")
        native.add([field.value(sample[field.name], len(native)) for field in self._fields])

    def extend(self, **columns: Any) -> None:
        """Takes many samples: for each field an array `[samples, ...]`, or a list."""
        if not columns:
            return
        lengths = _lengths(columns)
        if len(set(lengths.values())) > 1:
            raise ConvertError(f"expected equally many values of each field, found {lengths}")
        for row in range(next(iter(lengths.values()))):
            self.add(**{name: values[row] for name, values in columns.items()})

    def __len__(self) -> int:
        return 0 if self._native is None else len(self._native)

    def close(self) -> dict[str, Any]:
        """Makes the pack; returns the report, as `packds.convert` does.

        Raises:
            ConvertError: It cannot be made; nothing is left at its name.
        """
        if self.report is None:
            self._is_over = True
            if self._native is None:
                raise ConvertError(f"{self._dst}: no sample was added", "give at least one sample; nothing was written")
            with Progress(self._progress, "writing") as told:
                text = self._native.finish(told)
            self.report = writer_report(text)
        return self.report

    def abandon(self) -> None:
        """Forgets all samples; nothing is written."""
        self._is_over = True
        if self._native is not None:
            self._native.abandon()

    def __del__(self) -> None:
        if not getattr(self, "_is_over", True):
            text = f"a writer of {self._dst} was not closed: its {len(self)} samples are lost; use `with`, or close()"
            warn(text, ResourceWarning, self)

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, kind: Any, *_: object) -> None:
        if kind is None:
            self.close()
        else:
            self.abandon()


@with_habits("packds.write", OF_CONVERSIONS, WRITER_OPTIONS)
def write(
    dst: PathLike,
    schema: Schema = None,
    *,
    classes: Sequence[str] | None = None,
    progress: bool = False,
    **options: Any,
) -> Writer:
    """Writes a pack sample by sample.

    >>> with packds.write(folder / "written.pack", {"image": "image", "label": "label"}) as w:
    ...     for label in range(10):
    ...         w.add(image=np.full((8, 8, 3), label, np.uint8), label=label)
    >>> sorted(packds.open(folder / "written.pack").labels.tolist()) == list(range(10))
    True

    Samples are kept in a temporary file without a name until the block ends; then they are shuffled, encoded on all cores and
    written as `packds.convert` writes. An exception leaves nothing, nor does a process that is killed while samples come; one that
    is killed while the pack is written leaves `.NAME.packing` beside it, which the next pack of that name uses again.

    Args:
        dst: The pack to write.
        schema: Each field's kind: `image` (there is one), `mask`, `label` (ids or names), `labels` (several ids), `text`,
            `json`, `bytes`, an element type (`"f32"`: a number), or element type and shape (`("f32", (4,))`). None, or names
            alone, goes by the first sample.
        classes: The name of each class id.
        progress: Shows how far the writing of the pack is.
        options: As of `packds.convert`: `mode`, `resize`, `codec`, `keep_order`, `seed`, `force`, ...

    A writer that is neither closed nor abandoned writes nothing, and a `ResourceWarning` says so.

    Raises:
        ConvertError: `dst` cannot be written.
        OptionError: The schema is not possible.
    """
    return Writer(dst, schema, classes=classes, progress=progress, **options)


@with_habits("packds.from_dataset", OF_CONVERSIONS, WRITER_OPTIONS)
def from_dataset(
    dataset: Any,
    dst: PathLike,
    fields: Schema = None,
    *,
    classes: Sequence[str] | None = None,
    progress: bool = True,
    **options: Any,
) -> dict[str, Any]:
    """Packs any data set: what can be indexed or iterated over (PyTorch's data sets, lists, generators) and gives tuples,
    dicts or single values; a dict of arrays; a table of pandas or PyArrow.

    >>> images = np.zeros((20, 8, 8, 3), np.uint8)
    >>> report = packds.from_dataset({"image": images, "label": np.arange(20)}, folder / "arrays.pack", progress=False)
    >>> report["n_samples"]
    20

    Args:
        dataset: The samples.
        dst: The pack to write.
        fields: Names and kinds as in `packds.write`, in the order of the tuples' values. Without them the values of a pair are
            `image` and `label`, and kinds go by the first sample.
        classes: The name of each class id; by default the data set's own `classes`, of a part (PyTorch's `Subset`) those of
            the whole.
        progress: Shows how far it is.
        options: As of `packds.convert`.

    Returns:
        The report, as `packds.convert` does.

    Raises:
        ConvertError: A sample is not of its fields' kinds, or `dst` cannot be written. Nothing is left at `dst`.
        OptionError: It is a DataLoader, which gives batches; the schema or the options are not possible.
    """
    _check_samples(dataset)
    classes = _classes_of(dataset) if classes is None else classes
    kinds = _kinds(fields)
    names = None if kinds is None else list(kinds)
    total = len(dataset) if hasattr(dataset, "__len__") and not isinstance(dataset, Mapping) else 0
    with Writer(dst, fields, classes=classes, progress=progress, **options) as writer:
        with Progress(progress, "reading", unit=" samples") as told:
            for number, sample in enumerate(_samples(dataset), 1):
                writer.add(**_named(sample, names))
                if told is not None and number % 64 == 0:
                    told(number, total, "")
    assert writer.report is not None
    return writer.report


def _check_samples(dataset: Any) -> None:
    """Refuses what gives batches, which would become samples."""
    if hasattr(dataset, "collate_fn") and hasattr(dataset, "num_workers"):
        raise OptionError("a DataLoader gives batches, not samples", "give its data set: from_dataset(loader.dataset, ...)")
    if isinstance(dataset, Loader):
        raise OptionError("a packds.Loader gives batches, not samples", "give its pack: from_dataset(loader.dataset, ...)")


def _classes_of(dataset: Any) -> list[str] | None:
    """The class names of a data set, or of the one that it is a part of; None where there are none."""
    own: Any = getattr(dataset, "classes", None)
    # A part, as PyTorch's Subset is one. Others that have a data set inside may give labels of their own.
    while own is None and hasattr(dataset, "dataset") and hasattr(dataset, "indices"):
        dataset = dataset.dataset
        own = getattr(dataset, "classes", None)
    is_names = isinstance(own, (list, tuple)) and all(isinstance(name, str) for name in own)
    return list(own) if is_names else None


def _named(sample: Any, names: list[str] | None) -> dict[str, Any]:
    if isinstance(sample, Mapping):
        missing = [name for name in names or () if name not in sample]
        if missing:
            raise ConvertError(f"expected {', '.join(names or ())} in each sample, found {', '.join(map(str, sample))}")
        return {name: sample[name] for name in (names or sample)}
    values = list(sample) if isinstance(sample, (tuple, list)) else [sample]
    if names is None:
        names = ["image", "label", *(f"field_{place}" for place in range(2, len(values)))][: len(values)]
    if len(names) != len(values):
        raise ConvertError(f"expected {', '.join(names)} in each sample, found {len(values)} values")
    return dict(zip(names, values))


def _samples(dataset: Any) -> Iterator[Any]:
    if isinstance(dataset, Mapping):
        return _rows(dataset)
    if hasattr(dataset, "to_batches") and hasattr(dataset, "column_names"):
        # A table of PyArrow,
        return (row for batch in dataset.to_batches() for row in batch.to_pylist())
    if hasattr(dataset, "read_next_batch"):
        # one that is read bit by bit,
        return (row for batch in dataset for row in batch.to_pylist())
    if hasattr(dataset, "to_pylist") and hasattr(dataset, "schema"):
        # or a part of one.
        return iter(dataset.to_pylist())
    if hasattr(dataset, "itertuples") and hasattr(dataset, "columns"):
        # A table of pandas.
        columns = [str(name) for name in dataset.columns]
        return (dict(zip(columns, row)) for row in dataset.itertuples(index=False, name=None))
    if hasattr(dataset, "__getitem__") and hasattr(dataset, "__len__"):
        return (dataset[index] for index in range(len(dataset)))
    if isinstance(dataset, Iterable):
        return iter(dataset)
    raise OptionError(f"{type(dataset).__name__} is neither iterable nor indexable")


def _lengths(columns: Mapping[str, Any]) -> dict[str, int]:
    """How many values each field has."""
    for name, values in columns.items():
        if not hasattr(values, "__len__") or not hasattr(values, "__getitem__") or isinstance(values, Mapping):
            raise ConvertError(f"field {name!r}: expected an array or a list of values, found {type(values).__name__}")
    return {name: len(values) for name, values in columns.items()}


def _rows(columns: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    lengths = _lengths(columns)
    if len(set(lengths.values())) != 1:
        raise ConvertError(f"expected equally many values of each field, found {lengths}")
    return ({name: values[row] for name, values in columns.items()} for row in range(next(iter(lengths.values()))))
