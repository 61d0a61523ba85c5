"""Writes packs from a program's samples: arrays, images, or any dataset."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, Union

import numpy as np

from . import _checks, _packds
from ._arrays import NUMPY_NAMES, dtype_name
from ._convert import WRITER_OPTIONS, writer_options, writer_report
from ._dataset import LABEL_NAMES, PathLike
from ._display import counted
from ._errors import ConvertError, Error, OptionError, warn
from ._habits import OF_CONVERSIONS, with_habits
from ._loader import Loader
from ._progress import Progress

#: A field's type: the name of a kind, an array's type and shape, or None if the first value determines it.
Kind = Union[str, None, "tuple[Any, Any]", "tuple[Any, Sequence[int | None], Literal['box_attribute']]", "tuple[Any, Sequence[str], Any]"]
Schema = Union[Mapping[str, Kind], Sequence[str], None]

_KINDS = ("image", "mask", "label", "labels", "boxes", "box_labels", "polygons", "bytes", "text", "json")
#: The type and the shape of these kinds. They have any number of entries.
_OF_BOXES: dict[str, tuple[str, tuple[int, ...]]] = {"boxes": ("f32", (4,)), "box_labels": ("i64", ()), "polygons": ("f32", (4,))}
_IMAGE_NAMES = ("image", "images", "img", "pixels", "x", "input", "data")
_MASK_NAMES = ("mask", "segmentation")
#: The name that the field of each of these kinds has in a pack, whatever the source calls it.
_OWN_NAMES = {"image": "image", "mask": "mask", "label": "label", "labels": "labels"}


class _Field:
    """A field of a writer: its kind, and the conversion of its values for the native module."""

    def __init__(self, name: str, kind: Kind) -> None:
        self.name = name
        self.dtype: str | None = None
        self.shape: tuple[int, ...] | None = None
        #: The names of keypoints, and the pairs of points that lines connect.
        self.keypoints: tuple[list[str], list[tuple[int, int]]] | None = None
        if isinstance(kind, str) and kind in _KINDS:
            self.kind = kind
            self.dtype, self.shape = _OF_BOXES.get(kind, (None, None))
        elif kind == "keypoints":
            raise OptionError(f"field {name!r}: the number of keypoints is unknown", 'pass ("keypoints", 17), or ("keypoints", NAMES)')
        elif isinstance(kind, tuple) and len(kind) in (2, 3) and isinstance(kind[0], str) and kind[0] == "keypoints":
            self.kind, self.dtype, self.shape = "keypoints", "f32", (self._points(*kind[1:]), 3)
        elif isinstance(kind, str):
            # The field is a single number of this type.
            self.kind, self.dtype, self.shape = "array", dtype_name(kind), ()
        elif kind is None:
            raise OptionError(f"field {name!r}: its kind is unknown")
        else:
            is_of_boxes = isinstance(kind, tuple) and len(kind) == 3 and kind[2] == "box_attribute"
            dtype, shape = kind[:2] if is_of_boxes else _checks.two(f"field {name!r}", f"a kind ({', '.join(_KINDS)}), a type, or (type, shape)", kind)
            sides = _checks.several(f"field {name!r}", "a shape", shape)
            self.kind, self.dtype = "array", dtype_name(dtype)
            if len(sides) and sides[0] is None:
                # Any number of entries of this shape.
                self.kind, sides = "box_attribute" if is_of_boxes else "ragged", sides[1:]
            elif is_of_boxes:
                raise OptionError(f"field {name!r}: expected a shape that begins with None, found {shape!r}")
            self.shape = tuple(_checks.whole(f"field {name!r}", side, 32) for side in sides)

    def _points(self, points: Any, skeleton: Any = ()) -> int:
        """The number of keypoints. `points` is that number, or their names."""
        where = f"field {self.name!r}"
        if isinstance(points, int):
            if len(skeleton):
                raise OptionError(f"{where}: a skeleton needs the names of the keypoints")
            return _checks.whole(where, points, 32)
        lines = [_checks.two(where, "pairs of points", line) for line in _checks.several(where, "pairs of points", skeleton)]
        names = _checks.names(where, points)
        self.keypoints = names, [(_checks.whole(where, a, 32), _checks.whole(where, b, 32)) for a, b in lines]
        return len(names)

    def declared(self) -> tuple[str, str, str | None, list[int] | None]:
        name = _OWN_NAMES.get(self.kind, self.name)
        return name, self.kind, self.dtype, None if self.shape is None else list(self.shape)

    def value(self, value: Any, sample: int) -> Any:
        """Converts a sample's value to bytes, a string, a number, or (dtype, shape, bytes)."""
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
        if self.kind == "boxes" and (form := getattr(value, "format", None)) is not None and getattr(form, "value", form) != "XYXY":
            # torchvision's tensors know what their numbers are.
            raise ValueError(f"expected boxes in the format XYXY, found {form}: convert them with convert_bounding_box_format")
        if self.kind == "keypoints":
            value = _keypoints(value)
        if self.kind == "polygons":
            value = _polygons(value)
        if self.kind in ("ragged", "box_attribute", "keypoints", *_OF_BOXES):
            array = _array(value)
            # An empty list has no shape of its own.
            empty = np.zeros((0, *(self.shape or ())), NUMPY_NAMES[self.dtype or ""])
            return _elements(empty if array.shape == (0,) else array, self.dtype)
        if self.kind == "array":
            return _elements(_array(value), self.dtype)
        if self.kind == "bytes":
            if isinstance(value, (int, str)) or value is None:
                raise TypeError(f"expected bytes, found {value!r}")
            return bytes(value)
        if self.kind == "json":
            return json.dumps(value, separators=(",", ":"), default=_no_json)
        if not isinstance(value, str):
            raise TypeError(f"expected a string, found {value!r}")
        return value


def _keypoints(value: Any) -> Any:
    """Keypoints with visibility. Points of two numbers are visible. A point that is not labelled is at 0, 0."""
    array = _array(value)
    if array.ndim == 3 and array.shape[2] == 2:
        return np.concatenate([array, np.full((*array.shape[:2], 1), 2, array.dtype)], 2)
    if array.ndim == 3 and array.shape[2] == 3:
        return np.where(array[:, :, 2:] == 0, np.zeros_like(array), array)
    return array


def _polygons(value: Any) -> Any:
    """The entries of polygons: the box, the ring, x and y of each vertex. `value` has them already, or has the rings of each box."""
    if hasattr(value, "ndim"):
        return value
    entries = [np.zeros((0, 4), np.float32)]
    for of, rings in enumerate(value):
        for number, ring in enumerate(rings):
            points = np.asarray(_array(ring), np.float32)
            if points.ndim != 2 or points.shape[1] != 2 or len(points) < 3:
                raise ValueError(f"expected at least 3 points of x and y in ring {number} of box {of}, found shape {points.shape}")
            x, y = points.astype(np.float64).T
            with np.errstate(invalid="ignore"):
                area = (x * np.roll(y, -1) - np.roll(x, -1) * y).sum()
            if area < 0:
                # All rings have the same direction, so that rings that overlap count once.
                points = points[::-1]
            entries.append(np.column_stack([np.full(len(points), of), np.full(len(points), number), points]).astype(np.float32))
    return np.concatenate(entries)


def _no_json(value: Any) -> Any:
    raise TypeError(f"expected a JSON value, found {value!r}: convert it to strings, numbers, lists or dicts")


def _class_id(value: Any) -> int:
    """A class id. Tables may store it as a float."""
    try:
        number = int(value)
        is_id = bool(number == value) and -(1 << 63) <= number < 1 << 63
    except (TypeError, ValueError, OverflowError):
        # For example, a missing value in a table.
        is_id = False
    if not is_id:
        raise ValueError(f"expected a class id, found {value!r}")
    return number


#: The type for the bits of bfloat16 if NumPy does not support bfloat16. No other array has this type.
_BITS = np.dtype([("bf16", "<u2")])


def _array(value: Any) -> np.ndarray[Any, Any]:
    """The value as an array. A bfloat16 tensor, which NumPy does not support, becomes `_BITS`."""
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
    """An array's type, shape and bytes (little-endian, in C order). With `dtype`, the array is converted first."""
    if dtype == "bf16":
        array = _as_bfloat16(array)
    elif dtype is not None:
        if array.dtype == _BITS:
            array = (array["bf16"].astype(np.uint32) << 16).view(np.float32)
        wanted = np.dtype(NUMPY_NAMES[dtype])
        # A single number is converted to the field's type if this does not change its value. An array is never
        # truncated or rounded implicitly.
        array = _number(array, wanted) if array.ndim == 0 else _cast(array, wanted)
    if array.dtype.byteorder == ">":
        array = array.astype(array.dtype.newbyteorder("<"))
    return dtype or _type_of(array), list(array.shape), np.ascontiguousarray(array).tobytes()


def _number(array: np.ndarray[Any, Any], wanted: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Converts a single number to `wanted`. A float may be rounded; an integer or a bool must be exact."""
    number = array.item()
    if array.dtype.kind not in "fiubc":
        raise ValueError(f"expected a number, found {number!r}")
    if wanted.kind in "fc":
        return _cast(array, wanted, "unsafe")
    if wanted.kind == "b":
        fits = number in (0, 1)
    else:
        least, most = np.iinfo(wanted).min, np.iinfo(wanted).max
        # NaN and infinities are not integers.
        fits = number == number and abs(number) != float("inf") and int(number) == number and least <= number <= most
    if not fits:
        raise ValueError(f"expected a number that fits in {wanted.name}, found {number!r}")
    return np.asarray(int(number)).astype(wanted)


def _cast(
    array: np.ndarray[Any, Any], wanted: np.dtype[Any], casting: Literal["same_kind", "unsafe"] = "same_kind"
) -> np.ndarray[Any, Any]:
    """Converts numbers to `wanted`. Floats may be rounded, but not to infinity."""
    # By default, NumPy would only warn.
    with np.errstate(over="ignore"):
        cast = array.astype(wanted, casting=casting)
    if wanted.kind == "f" and not np.can_cast(array.dtype, wanted):
        _check_finite(array, np.isinf(cast), wanted.name)
    return cast


def _check_finite(array: np.ndarray[Any, Any], is_inf: np.ndarray[Any, Any], name: str) -> None:
    """Rejects numbers that became infinite."""
    lost = is_inf & np.isfinite(array)
    if lost.any():
        raise ValueError(f"expected a number that fits in {name}, found {array[lost].flat[0].item()!r}")


def _as_bfloat16(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Converts numbers to bfloat16, rounded to nearest, ties to even. `uint16` is treated as the bits of bfloat16, because
    loaders return these bits if NumPy lacks the type."""
    if array.dtype == _BITS or array.dtype == np.uint16:
        return array
    if array.dtype.kind not in "fiub":
        raise TypeError(f"expected numbers, found {array.dtype}")
    with np.errstate(over="ignore"):
        bits = np.asarray(array, np.float32).view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> 16) & np.uint32(1))) >> 16
    # Handle NaN separately, because rounding could turn it into infinity.
    quiet = (bits >> 16) | np.uint32(0x40)
    nearest = np.where(np.isnan(bits.view(np.float32)), quiet, rounded).astype(np.uint16)
    _check_finite(array, (nearest & 0x7FFF) == 0x7F80, "bfloat16")
    return nearest


def _picture(value: Any, kind: str) -> Any:
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    if isinstance(value, Mapping) and isinstance(value.get("bytes"), bytes):
        # Hugging Face represents image files in this way.
        return value["bytes"]
    if isinstance(value, (str, os.PathLike)):
        try:
            with open(value, "rb") as file:
                return file.read()
        except OSError as error:
            hint = "a string is the path of an image file: is this a path?"
            raise ConvertError(f"{os.fspath(value)}: {error.strerror}", hint) from error
    if hasattr(value, "convert") and hasattr(value, "mode"):
        # A Pillow image.
        if kind == "image" and value.mode not in ("L", "RGB"):
            value = value.convert("RGB")
        value = np.asarray(value)
    return _elements(_array(value))


def _label_name(kinds: Mapping[str, Kind], sample: Mapping[str, Any]) -> str | None:
    """The label field, if no field in the schema has the kind `label`: among the fields with strings or whole numbers, the one
    whose name comes first in `LABEL_NAMES`."""
    if "label" in kinds.values():
        return None
    called = {name.lower(): name for name in reversed(list(kinds)) if kinds[name] is None and name in sample}
    found = (called[known] for known in LABEL_NAMES if known in called)
    return next((name for name in found if isinstance(sample[name], str) or _is_whole(sample[name])), None)


def _inferred(name: str, value: Any, is_first: bool) -> Kind:
    """The kind of a field that is not the label, inferred from its name and first value."""
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
    """The kind of each field in the schema, or None if the first sample determines the fields."""
    if schema is None:
        return None
    names = _checks.names("schema", list(schema) if isinstance(schema, Mapping) else schema)
    return dict(schema) if isinstance(schema, Mapping) else dict.fromkeys(names)


class Writer:
    """Writes samples to a pack. `packds.write` opens it.

    >>> with packds.write("new.pack") as writer:
    ...     writer.add(image=np.zeros((8, 8, 3), np.uint8), label=5)
    >>> writer.report["n_samples"]
    1

    Attributes:
        report: The report, after closing; None before.
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
        # Without samples, closing would write nothing, so the writer is considered closed.
        self._is_over = True
        self._dst = _checks.path("dst", dst)
        self._classes = [] if classes is None else _checks.names("classes", classes)
        self._progress = _checks.truth("progress", progress)
        self._given = writer_options(options)
        self._kinds = _kinds(schema)
        self._fields: list[_Field] = []
        self._native: _packds.Writer | None = None
        if self._kinds is not None and not any(kind is None for kind in self._kinds.values()):
            self._start(self._kinds)
        elif not os.path.isdir(folder := os.path.dirname(self._dst) or "."):
            raise ConvertError(f"{self._dst}: the folder {folder} does not exist", "create the folder first")

    def _start(self, kinds: Mapping[str, Kind]) -> None:
        self._fields = [_Field(name, kind) for name, kind in kinds.items()]
        declared = [field.declared() for field in self._fields]
        keypoints = next((field.keypoints for field in self._fields if field.keypoints is not None), None)
        self._native = _packds.Writer(self._dst, declared, self._classes, keypoints, self._given)
        self._is_over = False

    def _begin(self, sample: Mapping[str, Any]) -> _packds.Writer:
        """Creates the native writer. The first sample determines kinds that the schema does not specify."""
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
        """Adds a sample: a value for each field, by name.

        Images and masks are uint8 arrays `[H, W, 3]`, `[H, W, 1]`, `[H, W]` or `[3, H, W]`, arrays of any other type (stored
        unchanged), Pillow images, the bytes of an image file, or its path. Labels are ids or names. Keypoints are `[n, K, 3]` (x, y,
        visibility) or `[n, K, 2]` (all visible). Polygons are a list for each box, of rings `[points, 2]`, which are united as in
        COCO; or an array `[vertices, 4]` as packs store them (docs/reference/format.md), which may have holes.

        >>> with packds.write("new.pack", {"image": "image", "label": "label", "caption": "text"}) as writer:
        ...     writer.add(image="photos/cat/face.jpg", label="cat", caption="a face")
        >>> packds.open("new.pack")[0]["caption"]
        'a face'

        Raises:
            ConvertError: A value does not match its field's kind. The sample is not added, but others can still be added.
        """
        native = self._begin(sample)
        names = [field.name for field in self._fields]
        if len(sample) != len(names) or any(name not in sample for name in names):
            raise ConvertError(f"sample {len(native)}: expected {', '.join(names)}, found {', '.join(sample)}")
        native.add([field.value(sample[field.name], len(native)) for field in self._fields])

    def extend(self, **columns: Any) -> None:
        """Adds many samples: for each field an array `[samples, ...]` or a list.

        >>> with packds.write("new.pack", {"image": "image", "label": "label"}) as writer:
        ...     writer.extend(image=np.zeros((20, 8, 8, 3), np.uint8), label=np.arange(20))
        >>> writer.report["n_samples"]
        20
        """
        if not columns:
            return
        lengths = _lengths(columns)
        if len(set(lengths.values())) > 1:
            raise ConvertError(f"expected the same number of values for each field, found {lengths}")
        for row in range(next(iter(lengths.values()))):
            self.add(**{name: values[row] for name, values in columns.items()})

    def __len__(self) -> int:
        return 0 if self._native is None else len(self._native)

    def close(self) -> dict[str, Any]:
        """Finishes the pack. Returns a report like that of `packds.convert`.

        >>> writer = packds.write("new.pack")
        >>> writer.add(image=np.zeros((8, 8, 3), np.uint8), label=5)
        >>> report = writer.close()
        >>> report["n_samples"]
        1

        Raises:
            ConvertError: The pack cannot be written. Nothing is left at its path.
        """
        if self.report is None:
            self._is_over = True
            if self._native is None:
                raise ConvertError(f"{self._dst}: no sample was added", "give at least one sample; nothing was written")
            with Progress(self._progress, "writing") as show:
                text = self._native.finish(show)
            self.report = writer_report(text)
        return self.report

    def abandon(self) -> None:
        """Discards all samples. Nothing is written.

        >>> writer = packds.write("new.pack")
        >>> writer.add(image=np.zeros((8, 8, 3), np.uint8), label=5)
        >>> writer.abandon()
        """
        self._is_over = True
        if self._native is not None:
            self._native.abandon()

    def __del__(self) -> None:
        if not getattr(self, "_is_over", True):
            text = f"a writer of {self._dst} was not closed: {counted(len(self), 'sample')} lost; use `with`, or call close()"
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

    >>> with packds.write("new.pack", {"image": "image", "label": "label"}) as w:
    ...     for label in range(10):
    ...         w.add(image=np.full((8, 8, 3), label, np.uint8), label=label)
    >>> sorted(packds.open("new.pack").labels.tolist()) == list(range(10))
    True

    Samples are kept in an unnamed temporary file until the block ends. Then they are shuffled, encoded on all cores and written,
    as by `packds.convert`. No files remain after an exception, or if the process is killed while it adds samples. If the process
    is killed while it writes the pack, the file `.NAME.packing` remains in the same folder; the next pack of that name reuses it.

    Args:
        dst: The pack to write.
        schema: Each field's kind: `image` (exactly one), `mask`, `label` (ids or names), `labels` (several ids), `text`,
            `json`, `bytes`, an element type (`"f32"`: a number), or an element type and a shape (`("f32", (4,))`; a shape that
            begins with None has any number of entries). For boxes: `boxes` (left, top, right, bottom in pixels), `box_labels`
            (their class ids), `polygons` (their outlines), `("keypoints", 17)`, `("keypoints", NAMES)` or `("keypoints", NAMES,
            SKELETON)` (their points, with names such as `left_eye`, so that flips swap sides, and pairs of points that lines
            connect), and `("f32", (None,), "box_attribute")` for something else about each box. With None, or a list of names,
            kinds are inferred from the first sample.
        classes: The name of each class id. Without labels of images, of the classes of boxes.
        progress: Shows progress while the pack is written.
        options: As in `packds.convert`: `mode`, `resize`, `codec`, `keep_order`, `seed`, `force`, ...

    If a writer is neither closed nor abandoned, nothing is written and a `ResourceWarning` is issued.

    Raises:
        ConvertError: `dst` cannot be written.
        OptionError: The schema is invalid.
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
    """Packs any dataset: an indexable or iterable object (PyTorch datasets, lists, generators) of tuples, dicts or single
    values; a dict of arrays; a pandas or PyArrow table.

    >>> images = np.zeros((20, 8, 8, 3), np.uint8)
    >>> report = packds.from_dataset({"image": images, "label": np.arange(20)}, "new.pack", progress=False)
    >>> report["n_samples"]
    20

    Args:
        dataset: The samples.
        dst: The pack to write.
        fields: Names and kinds as in `packds.write`, in the order of the tuples' values. By default, the values of a pair are
            `image` and `label`, and kinds are inferred from the first sample.
        classes: The name of each class id; by default the dataset's own `classes`, or for a part (PyTorch's `Subset`) those of
            the whole dataset.
        progress: Shows progress.
        options: As in `packds.convert`.

    Returns:
        A report like that of `packds.convert`.

    Raises:
        ConvertError: A sample does not match its fields' kinds, or `dst` cannot be written. Nothing is left at `dst`.
        OptionError: The dataset is a DataLoader, which yields batches; or the schema or the options are invalid.
    """
    _check_samples(dataset)
    classes = _classes_of(dataset) if classes is None else classes
    kinds = _kinds(fields)
    names = None if kinds is None else list(kinds)
    total = len(dataset) if hasattr(dataset, "__len__") and not isinstance(dataset, Mapping) else 0
    with Writer(dst, fields, classes=classes, progress=progress, **options) as writer:
        with Progress(progress, "reading", unit=" samples") as show:
            for number, sample in enumerate(_samples(dataset), 1):
                writer.add(**_named(sample, names))
                if show is not None and number % 64 == 0:
                    show(number, total, "")
    assert writer.report is not None
    return writer.report


def _check_samples(dataset: Any) -> None:
    """Rejects loaders, because their batches would become samples."""
    if hasattr(dataset, "collate_fn") and hasattr(dataset, "num_workers"):
        raise OptionError("a DataLoader yields batches, not samples", "pass its dataset: from_dataset(loader.dataset, ...)")
    if isinstance(dataset, Loader):
        raise OptionError("a packds.Loader yields batches, not samples", "pass its pack: from_dataset(loader.dataset, ...)")


def _classes_of(dataset: Any) -> list[str] | None:
    """The class names of a dataset, or of the dataset that it is a part of. None if there are no names."""
    own: Any = getattr(dataset, "classes", None)
    # A part, such as PyTorch's Subset. Other wrappers of datasets may have their own labels.
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
        raise ConvertError(f"expected {', '.join(names)} in each sample, found {counted(len(values), 'value')}")
    return dict(zip(names, values))


def _samples(dataset: Any) -> Iterator[Any]:
    if isinstance(dataset, Mapping):
        return _rows(dataset)
    if hasattr(dataset, "to_batches") and hasattr(dataset, "column_names"):
        # A PyArrow table.
        return (row for batch in dataset.to_batches() for row in batch.to_pylist())
    if hasattr(dataset, "read_next_batch"):
        # A PyArrow table that is read in batches.
        return (row for batch in dataset for row in batch.to_pylist())
    if hasattr(dataset, "to_pylist") and hasattr(dataset, "schema"):
        # A PyArrow record batch.
        return iter(dataset.to_pylist())
    if hasattr(dataset, "itertuples") and hasattr(dataset, "columns"):
        # A pandas table.
        columns = [str(name) for name in dataset.columns]
        return (dict(zip(columns, row)) for row in dataset.itertuples(index=False, name=None))
    if hasattr(dataset, "__getitem__") and hasattr(dataset, "__len__"):
        return (dataset[index] for index in range(len(dataset)))
    if isinstance(dataset, Iterable):
        return iter(dataset)
    raise OptionError(f"{type(dataset).__name__} is neither iterable nor indexable")


def _lengths(columns: Mapping[str, Any]) -> dict[str, int]:
    """The number of values of each field."""
    for name, values in columns.items():
        if not hasattr(values, "__len__") or not hasattr(values, "__getitem__") or isinstance(values, Mapping):
            raise ConvertError(f"field {name!r}: expected an array or a list of values, found {type(values).__name__}")
    return {name: len(values) for name, values in columns.items()}


def _rows(columns: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    lengths = _lengths(columns)
    if len(set(lengths.values())) != 1:
        raise ConvertError(f"expected the same number of values for each field, found {lengths}")
    return ({name: values[row] for name, values in columns.items()} for row in range(next(iter(lengths.values()))))
