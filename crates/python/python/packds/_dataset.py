"""Read access to a pack: samples, columns, classes, statistics."""

from __future__ import annotations

import dataclasses
import functools
import html
import operator
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Union

import numpy as np

from . import _checks, _packds
from ._arrays import NUMPY_NAMES, OF_KIND, as_numpy, json_dict, multi_hot, widened_bfloat16
from ._display import bars, counted, picture, table
from ._errors import OptionError, ReadError
from ._progress import Progress
from ._sealed import Sealed
from ._types import DatasetChecksums

PathLike = Union[str, "os.PathLike[str]"]

#: Number of images shown in a notebook.
_SHOWN_PICTURES = 8
_PICTURE_SIDE = 96
_SHOWN_CLASSES = 4


@dataclasses.dataclass(frozen=True)
class Field:
    """A field of every sample.

    >>> ds = packds.open("train.pack")
    >>> field = ds.fields["image"]
    >>> field.kind, field.dtype, field.shape
    ('tensor', 'u8', (64, 64, 3))

    Attributes:
        name: Its name.
        kind: `tensor` (fixed shape), `image` (variable size), `bytes`, `string` or `json`.
        dtype: Element type: `u8`, `f32`, ...
        shape: Dimensions of a tensor; () for single numbers, and for other kinds.
        role: The role: `image`, `mask`, `label`, `labels`, `boxes`, `valid` or another; None for other fields.
        layout: `hwc` or `chw`, if known.
        is_column: Whether it is stored as a column, which `Dataset.columns` returns without a copy.
        is_data: Whether it is training data. All other fields describe training data, or say where samples came from.
        keypoints: For keypoints with names: `names`, `swaps` (the index of the point that each becomes in a flipped image) and
            `skeleton` (pairs of points). None for other fields.
    """

    name: str
    kind: str
    dtype: str
    shape: tuple[int, ...]
    role: str | None
    layout: str | None
    is_column: bool
    is_data: bool
    keypoints: dict[str, Any] | None = None

    def __str__(self) -> str:
        if self.kind == "ragged":
            return f"{NUMPY_NAMES[self.dtype]} [{', '.join(['n', *map(str, self.shape)])}]"
        if self.kind != "tensor":
            return {"image": "variable-size images", "string": "text"}.get(self.kind, self.kind)
        return f"{NUMPY_NAMES[self.dtype]} {list(self.shape)}" if self.shape else NUMPY_NAMES[self.dtype]


#: Element types that are floats.
FLOATS = ("f16", "bf16", "f32", "f64")

#: Names of label fields, also in conversions. Earlier names take precedence.
LABEL_NAMES: list[str] = _packds.LABEL_NAMES


def is_label(field: Field) -> bool:
    """Whether a field is a label, according to its role, or to its name if it has no role."""
    return field.role in ("label", "labels") or (field.role is None and field.name.lower() in LABEL_NAMES)


def is_float_label(field: Field) -> bool:
    """Whether a field is a label with float values. PyTorch and JAX get such labels as float32, because their models and losses
    reject other types."""
    return field.dtype in FLOATS and is_label(field)


def pair_of(fields: Sequence[Field]) -> tuple[str, str] | None:
    """The image and its label or labels, if there are no other fields. A field with a label's name is treated as a label even if
    its values are not class ids, but for example regression targets."""
    images = [field.name for field in fields if field.role == "image"]
    others = [field for field in fields if field.role != "image"]
    if len(images) != 1 or len(others) != 1:
        return None
    (other,) = others
    return (images[0], other.name) if is_label(other) else None


class Columns(Mapping[str, np.ndarray[Any, Any]]):
    """The columns of a pack by name: read-only arrays `[samples, ...]` that map the file. Each access checks that the file is
    still the one that was opened. Arrays from earlier accesses show the file's current contents."""

    def __init__(self, pack: _packds.Pack, names: Sequence[str]) -> None:
        self._pack = pack
        self._names = names
        self._arrays: dict[str, np.ndarray[Any, Any]] = {}

    def __getitem__(self, name: str) -> np.ndarray[Any, Any]:
        if name not in self._names:
            raise KeyError(f"{name!r} is not a column; the columns are {', '.join(self._names)}")
        if name in self._arrays:
            self._pack.still_good()
        else:
            # Checksums are verified once, in one pass.
            self._arrays[name] = as_numpy(self._pack.column(name))
        return self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __repr__(self) -> str:
        return f"<columns: {', '.join(self._names)}>"


class Dataset(Sealed):
    """An open pack, returned by `packds.open`.

    `ds[i]` is a dict of a sample's fields: arrays for images (image files are decoded to `[height, width, channels]` uint8;
    masks are `[height, width]`) and tensors, numbers for single numbers, `str` for strings, `bytes`, and parsed values for JSON.
    If a sample has several class ids, they are a row of 0 and 1 `[classes]` float32. `ds[[3, 5, 8]]`, slices and boolean masks
    return a dict of arrays `[samples, ...]`, or lists if items differ in shape. All of them are copies. Data is returned only
    after its checksum was verified.

    >>> ds = packds.open("train.pack")
    >>> ds[0]["image"].shape
    (64, 64, 3)
    >>> ds[[3, 5, 8]]["image"].shape
    (3, 64, 64, 3)
    >>> [ds.classes[id] for id in ds[:3]["label"]]
    ['galaxy', 'dandelion', 'dandelion']
    """

    def __init__(self, path: PathLike, *, checksums: DatasetChecksums = "always") -> None:
        if _checks.text("checksums", checksums) not in ("always", "off"):
            raise OptionError(f"checksums: expected always or off, found {checksums!r}")
        self._pack = _packds.Pack.open(_checks.path("path", path), checksums == "always")
        self._absolute = os.path.abspath(path)
        self._checksums: DatasetChecksums = checksums
        self._info: dict[str, Any] | None = None
        data = set(self._pack.data_fields())
        self._fields = {
            field["name"]: Field(
                name=field["name"],
                kind=field["kind"],
                dtype=field["dtype"],
                shape=tuple(field["shape"]),
                role=field.get("role"),
                layout=field.get("layout"),
                is_column=field["store"] == "column",
                is_data=field["name"] in data,
                keypoints=field.get("keypoints"),
            )
            for field in self.info()["fields"]
        }
        self._data = [field for field in self._fields.values() if field.is_data]
        self._columns = Columns(self._pack, [f.name for f in self._fields.values() if f.is_column])
        self._seal()

    # Metadata.

    @property
    def path(self) -> str:
        """The path that was opened."""
        return os.fspath(self._pack.path)

    @property
    def fields(self) -> dict[str, Field]:
        """Every field by name, in the order of the schema."""
        return dict(self._fields)

    @property
    def columns(self) -> Columns:
        """The columns by name, as read-only arrays that map the file.

        >>> ds = packds.open("train.pack")
        >>> ds.columns["label"][:4]
        array([3, 2, 2, 0], dtype=int32)

        Raises:
            KeyError: The column does not exist.
            FormatError: It does not match its checksums.
            ReadError: The file was changed or truncated after it was opened.
        """
        return self._columns

    @property
    def labels(self) -> np.ndarray[Any, Any]:
        """The class ids `[samples]`. If samples have several class ids, rows of 0 and 1 `[samples, classes]` float32. Labels that
        are not class ids, such as regression targets, are in `columns` or in samples.

        >>> ds = packds.open("train.pack")
        >>> np.bincount(ds.labels)
        array([4, 4, 5, 5, 6, 4])

        Raises:
            OptionError: The pack has no class ids.
            ReadError: The file was changed or truncated after it was opened.
        """
        if (field := self._by_role("label")) is not None:
            return self._columns[field.name]
        if (field := self._by_role("labels")) is not None:
            rows = multi_hot(self._columns[field.name], self.n_label_classes)
            self._pack.still_good()
            return rows
        raise OptionError(f"{self.path}: the pack has no labels that are class ids; its fields are {', '.join(self._fields)}")

    @functools.cached_property
    def n_label_classes(self) -> int:
        """Number of classes in label lists: the number of names, or one more than the highest id if that is larger. 0 without
        label lists."""
        field = self._by_role("labels")
        if field is None:
            return 0
        some = np.unpackbits(np.bitwise_or.reduce(self._columns[field.name], axis=0), bitorder="little")
        return max(len(self.classes), int(some.nonzero()[0].max(initial=-1)) + 1)

    @property
    def classes(self) -> list[str]:
        """The name of each class id. Empty if the pack has no class names."""
        classes = self.info()["classes"]
        return list(classes[0]["names"]) if classes else []

    @property
    def class_to_idx(self) -> dict[str, int]:
        """The class id of each name, as in torchvision's datasets. Empty if the pack has no class names.

        >>> ds = packds.open("train.pack")
        >>> ds.class_to_idx["coffee"]
        1
        """
        return {name: number for number, name in enumerate(self.classes)}

    @property
    def stats(self) -> dict[str, Any]:
        """Statistics: `stats["fields"]["image"]` has mean, std, min and max of each channel, scaled to 0..1. See also
        `histogram()`.

        >>> ds = packds.open("train.pack")
        >>> [round(mean, 2) for mean in ds.stats["fields"]["image"]["mean"]]
        [0.41, 0.34, 0.28]
        """
        stats: dict[str, Any] = self.info()["stats"]
        fields = {
            name: {key: value for key, value in field.items() if key != "histogram"} for name, field in stats.get("fields", {}).items()
        }
        return stats | {"fields": fields}

    def histogram(self, field: str | None = None) -> np.ndarray[Any, Any]:
        """How often each value from 0 to 255 occurs in each channel of the image, or of another field: `[channels, 256]` int64.

        >>> ds = packds.open("train.pack")
        >>> red, green, blue = ds.histogram()
        >>> int(red.sum()) == len(ds) * 64 * 64
        True

        Raises:
            OptionError: The pack has no such statistics, because its images are files that were not decoded, or are not u8.
        """
        image = self._by_role("image")
        name = _checks.text("field", field) if field is not None else "image" if image is None else image.name
        counts = self.info()["stats"].get("fields", {}).get(name, {}).get("histogram")
        if counts is None:
            hint = "convert with check_decode=True" if name in self._fields else None
            raise OptionError(f"{self.path}: there is no histogram of field {name!r}", hint)
        return np.asarray(counts, np.int64)

    def info(self) -> dict[str, Any]:
        """The contents of the header and the footer, as in `packds info --json`.

        >>> ds = packds.open("train.pack")
        >>> info = ds.info()
        >>> info["n_samples"], info["n_chunks"]
        (28, 1)
        """
        if self._info is None:
            self._info = json_dict(self._pack.info())
        return self._info

    def source_path(self, index: int) -> str | None:
        """The path of a sample relative to the source. None if the pack does not store it.

        >>> ds = packds.open("train.pack")
        >>> ds.source_path(0)
        'galaxy/deep_field.jpg'
        """
        return self._pack.sample_path(self._sample(index))

    def select(self, condition: str) -> np.ndarray[Any, Any]:
        """The samples that meet a condition on their columns, in file order, int64. Pass them to `Loader(samples=..)`.

        >>> ds = packds.open("train.pack")
        >>> ds.select("label in ('galaxy', 'cat') and source_width >= 400")
        array([ 0,  9, 21])

        The language is that of `packds head --where`; docs/reference/where.md describes it.

        Raises:
            OptionError: The condition cannot be parsed, or names a column, a class or a value that does not exist.
            FormatError: The pack is damaged.
        """
        return as_numpy(self._pack.select(_checks.text("condition", condition)))

    def verify(self, *, jobs: int = 0, progress: bool = False) -> dict[str, Any]:
        """Reads every byte on all cores and reports damage.

        >>> ds = packds.open("train.pack")
        >>> report = ds.verify()
        >>> report["ok"], report["bad_samples"]
        (True, [])

        Returns:
            A dict with `ok`, `bad_chunks`, `bad_samples` (with class and path) and `errors`, as in `packds verify --json`.
        """
        with Progress(progress, "verifying", unit="B") as show:
            return json_dict(self._pack.verify(_checks.whole("jobs", jobs, 32), show))

    # Samples.

    def __len__(self) -> int:
        return self._pack.n_samples

    def __getitem__(self, index: Any) -> dict[str, Any]:
        # An integer from Python, NumPy or PyTorch, but not a bool.
        is_number = hasattr(index, "__index__") and getattr(index, "ndim", 0) == 0
        if is_number and not isinstance(index, (bool, np.bool_)):
            return self.sample(operator.index(index))
        return self.samples(index)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (self.sample(index) for index in range(len(self)))

    # Samples are dicts of arrays, which `==` cannot compare. With `__contains__` set to None, `in` fails immediately instead
    # of searching all samples.
    __contains__ = None

    def sample(self, index: int, fields: str | Sequence[str] | None = None) -> dict[str, Any]:
        """A sample, or some of its fields.

        >>> ds = packds.open("train.pack")
        >>> ds.sample(0, "label")
        {'label': 3}
        >>> sorted(ds.sample(-1))
        ['image', 'label']

        Raises:
            IndexError: The sample does not exist.
            FormatError: It does not match its checksum, or cannot be decoded.
        """
        sample = self._sample(index)
        self._check([sample])
        return {field.name: self._item(field, sample) for field in self._chosen(fields)}

    def samples(self, index: Any, fields: str | Sequence[str] | None = None) -> dict[str, Any]:
        """Several samples, by a slice, a list of indices or a boolean mask, as in NumPy.

        >>> ds = packds.open("train.pack")
        >>> ds.samples([2, 3], "label")
        {'label': array([2, 0], dtype=int32)}
        >>> cats = ds.samples(ds.labels == ds.class_to_idx["cat"])
        >>> cats["image"].shape
        (4, 64, 64, 3)
        """
        samples = self._samples(index)
        self._check(samples)
        return {field.name: self._items(field, samples) for field in self._chosen(fields)}

    def raw(self, index: int, field: str | None = None) -> bytes:
        """The stored bytes of a sample's image, or of another field: for example an image file.

        >>> ds = packds.open("train.pack")
        >>> len(ds.raw(0)) == 64 * 64 * 3
        True

        Raises:
            OptionError: The field does not exist.
        """
        sample = self._sample(index)
        self._check([sample])
        if field is None:
            image = self._by_role("image")
            if image is None:
                raise OptionError("the pack has no image field: pass the name of another field")
            field = image.name
        _checks.text("field", field)
        return self._pack.raw(field, sample)

    def picture(self, index: int, side: int = 256) -> bytes:
        """A sample's image as a PNG file with sides of at most `side` pixels. Masks are coloured.

        >>> ds = packds.open("train.pack")
        >>> png = ds.picture(0, side=32)
        >>> png[1:4]
        b'PNG'
        """
        return self._pack.picture(self._sample(index), _checks.whole("side", side, 31))

    def _by_role(self, role: str) -> Field | None:
        return next((f for f in self._fields.values() if f.role == role), None)

    def _chosen(self, fields: str | Sequence[str] | None) -> list[Field]:
        if fields is None:
            return self._data
        names = _checks.names("fields", fields)
        missing = [name for name in names if name not in self._fields]
        if missing:
            raise OptionError(f"there is no field {missing[0]!r}; the fields are {', '.join(self._fields)}")
        return [self._fields[name] for name in names]

    def _sample(self, index: int) -> int:
        n = len(self)
        index = operator.index(index)
        if not -n <= index < n:
            raise IndexError(f"{self.path}: no sample {index}: the pack has {n}")
        return index % n

    def _samples(self, index: Any) -> list[int]:
        n = len(self)
        if isinstance(index, slice):
            return list(range(*index.indices(n)))
        array = np.asarray(index)
        if array.dtype == bool:
            if array.shape != (n,):
                raise IndexError(f"expected a mask with one value for each of {counted(n, 'sample')}, found shape {array.shape}")
            return [int(one) for one in np.flatnonzero(array)]
        if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
            raise TypeError(f"samples are chosen by integers, slices or masks, found {index!r}")
        return [self._sample(int(one)) for one in array]

    def _check(self, samples: list[int]) -> None:
        if self._checksums == "always":
            self._pack.check(samples)

    def _item(self, field: Field, sample: int) -> Any:
        item = self._pack.item(field.name, sample)
        if isinstance(item, _packds.Memory):
            array = as_numpy(item)
            if field.role == "labels":
                return multi_hot(array, self.n_label_classes)
            if array.ndim > 0:
                return array
            return array.item() if field.dtype != "bf16" else widened_bfloat16(array).item()
        value = OF_KIND.get(field.kind)
        return item if value is None else value(item)

    def _items(self, field: Field, samples: list[int]) -> Any:
        if field.kind == "tensor":
            rows = as_numpy(self._pack.rows(field.name, samples))
            return multi_hot(rows, self.n_label_classes) if field.role == "labels" else rows
        items = [self._item(field, sample) for sample in samples]
        shapes = {item.shape for item in items if isinstance(item, np.ndarray)}
        return np.stack(items) if field.kind == "image" and len(shapes) == 1 else items

    # A pickled dataset contains the path, and the pack's uuid and size. Unpickling fails if another pack is at this path.

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopened, (self._absolute, self._pack.uuid, self._pack.file_len, self._checksums)

    # Display.

    def __repr__(self) -> str:
        fields = ", ".join(f"{field.name}: {field}" for field in self._data)
        classes = f", {counted(len(self.classes), 'class')}" if self.classes else ""
        return f"<packds.Dataset {self.path!r}: {counted(len(self), 'sample')}, {fields}{classes}>"

    def _repr_html_(self) -> str:
        info = self.info()
        rows = [("pack", self.path), ("samples", f"{len(self)} in {counted(info['n_chunks'], 'chunk')}")]
        rows += [(field.name, str(field)) for field in self._data]
        if self.classes:
            shown = ", ".join(self.classes[:10]) + (", ..." if len(self.classes) > 10 else "")
            rows.append((counted(len(self.classes), "class"), shown))
        return table(rows) + self._pictures_and_charts(range(len(self)))

    def _pictures_and_charts(self, samples: Sequence[int]) -> str:
        """Some of these samples as pictures, and the classes and values of the whole pack as charts."""
        info = self.info()
        charts = [bars(c["counts"], f"samples of each {c['field']}", c["names"]) for c in info["classes"]]
        for name, stats in info["stats"].get("fields", {}).items():
            of_all_channels = [sum(counts) for counts in zip(*stats["histogram"])]
            charts.append(bars(of_all_channels, f"values of {name}, 0 to 255"))
        return f"<div>{''.join(self._pictures(samples))}</div><div>{''.join(charts)}</div>"

    def _pictures(self, samples: Sequence[int]) -> Iterator[str]:
        names = [field.name for field in self._data if field.role in ("image", "mask")]
        if not names:
            return
        n = min(len(samples), _SHOWN_PICTURES)
        for index in (int(samples[len(samples) * place // n]) for place in range(n)):
            try:
                pngs = [self._pack.picture(index, _PICTURE_SIDE, name) for name in names]
                yield picture(pngs, index, self._caption(index))
            except Exception as error:  # A notebook still shows the other images.
                yield f"<span>#{index}: {html.escape(str(error))}</span> "

    def _caption(self, sample: int) -> str:
        """The class names of a sample, and whether the sample is substituted."""
        label, labels, valid = (self._by_role(role) for role in ("label", "labels", "valid"))
        ids: Any = []
        if label is not None and label.is_column:
            ids = np.ravel(self._columns[label.name][sample])
        elif labels is not None:
            ids = np.flatnonzero(self._items(labels, [sample])[0])
        names = dict(enumerate(self.classes))
        caption = ", ".join(str(names.get(one, one)) for one in ids[:_SHOWN_CLASSES].tolist()) if len(ids) else ""
        is_substituted = valid is not None and not self._columns[valid.name][sample]
        return f"substituted: {caption}" if is_substituted else caption


def open(path: PathLike, *, checksums: DatasetChecksums = "always") -> Dataset:
    """Opens a pack in milliseconds, whatever its size, and checks the header, the schema and the tables.

    >>> ds = packds.open("train.pack")
    >>> len(ds)
    28
    >>> ds.classes
    ['cat', 'coffee', 'dandelion', 'galaxy', 'ground', 'rocket']

    Args:
        path: The `.pack` file.
        checksums: `always` verifies a sample's checksum at each access. If samples have no checksums, it verifies the
            chunk's checksum at the first access. `off` does neither. Columns (labels, sizes) and paths are always verified at
            the first access.

    Raises:
        ReadError: The file cannot be opened.
        FormatError: It is not a pack, or it is damaged.
    """
    return Dataset(path, checksums=checksums)


def opened(pack: Any) -> Dataset:
    """The given dataset, or the dataset at the given path."""
    return pack if isinstance(pack, Dataset) else Dataset(pack)


def _reopened(path: str, uuid: str, file_len: int, checksums: DatasetChecksums) -> Dataset:
    dataset = Dataset(path, checksums=checksums)
    if (dataset._pack.uuid, dataset._pack.file_len) != (uuid, file_len):
        raise ReadError(
            f"{path}: expected the pack {uuid} of {counted(file_len, 'byte')}, "
            f"found {dataset._pack.uuid} of {dataset._pack.file_len}",
            "the file was replaced after the dataset was pickled: open it again",
        )
    return dataset
