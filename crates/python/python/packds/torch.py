"""Packs for PyTorch's own DataLoader.

`packds.Loader(..., output="torch")` does not need this module and is faster, because it loads with threads. `MapDataset` replaces
any other map-style dataset, with samplers, workers and transforms. `IterableDataset` makes the batches of a loader in workers.
"""

from __future__ import annotations

import inspect
import multiprocessing
import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
import torch.utils.data

from ._arrays import tensor_of, widened_bfloat16
from ._batch import NamedBatch
from ._callers import refuse_collation, refuse_preparation
from ._checks import text, whole
from ._dataset import Dataset, Field, PathLike, is_float_label, opened, pair_of
from ._display import counted
from ._errors import OptionError
from ._habits import OF_DATALOADERS, OF_LOADERS, OF_SAMPLES, with_habits
from ._loader import Loader
from ._passes import Passes
from ._ranks import RankLike, check_group, ranks
from ._sealed import Sealed
from ._types import TorchImages
from ._words import drawn_seed

__all__ = ["IterableDataset", "MapDataset"]


class MapDataset(Sealed, torch.utils.data.Dataset[Any]):
    """A pack as a map-style dataset: `(image, label)` pairs if it has one image and one label, else dicts.

    Workers may be forked or spawned, and share the pages of the file. `classes` and `targets` are as in torchvision's
    datasets. `transform` and `target_transform` can be assigned.

    >>> from packds.torch import MapDataset
    >>> from torch.utils.data import DataLoader
    >>> loader = DataLoader(MapDataset("train.pack"), batch_size=4, shuffle=True)
    >>> images, labels = next(iter(loader))
    >>> images.shape
    torch.Size([4, 3, 64, 64])

    Args:
        data: A `packds.Dataset` or a path.
        transform: A function for each image. `images` determines the type that it gets.
        target_transform: A function for each label.
        fields: The field to load, or several; samples are then dicts.
        images: The type of images: `torch` (uint8 `[C, H, W]`), `numpy` (`[H, W, C]`) or `pil`. By default `torch`, or `pil` if
            torchvision's `ToTensor` or `PILToTensor` is in `transform`, because these need PIL images. A function that calls
            them internally needs `images="pil"`, because that cannot be detected.

    Raises:
        OptionError: An option has the wrong type; or, when a sample is read, `transform` fails for the tensor that it gets by
        default.
    """

    _ASSIGNABLE = ("transform", "target_transform")

    @with_habits("packds.torch.MapDataset", OF_SAMPLES)
    def __init__(
        self,
        data: Dataset | PathLike,
        transform: Callable[[Any], Any] | None = None,
        target_transform: Callable[[Any], Any] | None = None,
        *,
        fields: str | Sequence[str] | None = None,
        images: TorchImages | None = None,
    ) -> None:
        if images is not None and text("images", images) not in ("torch", "numpy", "pil"):
            raise OptionError(f"images: expected torch, numpy or pil, found {images!r}")
        self._asked = images
        self.transform = transform
        self.target_transform = target_transform
        self.dataset = opened(data)
        chosen = self.dataset._chosen(fields)
        self._names = [field.name for field in chosen]
        self._image = next((field for field in chosen if field.role == "image"), None)
        label = next((field for field in chosen if field.role == "label"), None)
        self._label = None if label is None else label.name
        self._float_labels = [field for field in chosen if is_float_label(field)]
        self._pair = pair_of(chosen) if fields is None else None
        self._seal()

    @property
    def transform(self) -> Callable[[Any], Any] | None:
        """The function for each image."""
        return self._transform

    @transform.setter
    def transform(self, function: Callable[[Any], Any] | None) -> None:
        self._transform = _function("transform", function)
        self._images: TorchImages = self._asked or ("pil" if _wants_pictures(function) else "torch")

    @property
    def target_transform(self) -> Callable[[Any], Any] | None:
        """The function for each label."""
        return self._target_transform

    @target_transform.setter
    def target_transform(self, function: Callable[[Any], Any] | None) -> None:
        self._target_transform = _function("target_transform", function)

    @property
    def images(self) -> TorchImages:
        """The type of images, before `transform`."""
        return self._images

    @property
    def classes(self) -> list[str]:
        """The name of each class id."""
        return self.dataset.classes

    @property
    def class_to_idx(self) -> dict[str, int]:
        """The class id of each name."""
        return self.dataset.class_to_idx

    @property
    def targets(self) -> list[int]:
        """The class id of each sample. Empty if samples have no class id, or several.

        >>> dataset = packds.torch.MapDataset("train.pack")
        >>> dataset.targets[0] == dataset[0][1]
        True
        """
        field = self.dataset._by_role("label")
        return [] if field is None else self.dataset.columns[field.name].tolist()

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: int) -> Any:
        return self.__getitems__([int(index)])[0]

    def __getitems__(self, indices: Sequence[int]) -> list[Any]:
        """Several samples together, as DataLoader requests them. Their checksums and pixels are processed in one pass."""
        columns = self.dataset.samples(list(indices), self._names)
        return [self._made({name: values[row] for name, values in columns.items()}) for row in range(len(indices))]

    def _made(self, sample: dict[str, Any]) -> Any:
        if self._image is not None:
            sample[self._image.name] = self._transformed(self._converted(sample[self._image.name], self._image))
        if self._label is not None:
            label = int(sample[self._label])
            sample[self._label] = label if self._target_transform is None else self._target_transform(label)
        for field in self._float_labels:
            sample[field.name] = _float32(sample[field.name], field)
        if self._pair is None:
            return sample
        first, second = self._pair
        return sample[first], sample[second]

    def _transformed(self, image: Any) -> Any:
        if self._transform is None:
            return image
        try:
            return self._transform(image)
        except (AttributeError, TypeError) as error:
            if self._asked is not None or self._images != "torch":
                raise
            text = f"transform got a {image.dtype} tensor {list(image.shape)} and raised {type(error).__name__}: {error}"
            hint = "pass images='pil' if it takes PIL images, as ToTensor does, or images='numpy' for arrays [H, W, C]"
            raise OptionError(text, hint) from error

    def _converted(self, image: np.ndarray[Any, Any], field: Field) -> Any:
        is_planar = field.layout == "chw"
        if self._images == "numpy":
            return image
        if self._images == "pil":
            from PIL import Image

            pixels = np.moveaxis(image, 0, -1) if is_planar else image
            return Image.fromarray(pixels[..., 0] if pixels.shape[-1] == 1 else pixels)
        if not is_planar and image.ndim == 3:
            image = np.moveaxis(image, -1, 0)
        return tensor_of(np.ascontiguousarray(image), field.dtype)


def _function(name: str, function: Any) -> Any:
    if function is not None and not callable(function):
        raise OptionError(f"{name}: expected a function, found {function!r}")
    return function


def _float32(label: Any, field: Field) -> torch.Tensor:
    """Converts a label with float values to a float32 tensor. `label` is a Python number, a NumPy array, or the bits of
    bfloat16."""
    array = np.asarray(label)
    if field.dtype == "bf16" and array.dtype.itemsize == 2:
        array = widened_bfloat16(array)
    return torch.tensor(array, dtype=torch.float32)


def _wants_pictures(transform: Any) -> bool:
    """Whether a torchvision pipeline needs PIL images instead of tensors. The first step that supports only one of them
    decides."""
    first = next((step for step in _steps(transform) if step in _TAKE_PICTURES), None)
    return first is not None and _TAKE_PICTURES[first]


#: The transforms of torchvision that need PIL images, and the one that does not support them.
_TAKE_PICTURES = {"ToTensor": True, "PILToTensor": True, "ToPILImage": False}


def _steps(transform: Any) -> Iterator[str]:
    """The names of a pipeline's torchvision steps, in order."""
    if type(transform).__module__.startswith("torchvision."):
        yield type(transform).__name__
    steps = getattr(transform, "transforms", ())
    if isinstance(steps, Sequence):
        for step in steps:
            yield from _steps(step)


class IterableDataset(Sealed, torch.utils.data.IterableDataset[Any]):
    """Whole batches of a `packds.Loader`, divided among a DataLoader's workers so that each sample occurs once.

    Use it as `DataLoader(IterableDataset(path, batch_size=256), batch_size=None, num_workers=4)`; a DataLoader that would combine
    these batches into larger ones is rejected. With several ranks (`rank="env"`), each rank gets its share of every global batch.
    All ranks have the same number of batches, and the global batches do not depend on the number of ranks. `drop_last=True`
    drops samples that do not fill a batch of every worker, up to `num_workers * batch_size - 1` per process. With
    `drop_last=False`, a single process delivers each sample once; several processes pad their last batches with samples of the
    epoch. The dataset has no `len()`, because the number of batches depends on the number of workers, which only the workers
    know (docs/how-to/pytorch.md).

    Each pass is the next epoch, unless `set_epoch` sets another epoch. This holds with new workers and with persistent
    workers (`persistent_workers=True`). If `torch.manual_seed` is called before each pass, all passes are the same epoch, just
    as PyTorch's own samplers repeat their order. torchdata's `StatefulDataLoader` can resume in the middle of any epoch.

    >>> from packds.torch import IterableDataset
    >>> from torch.utils.data import DataLoader
    >>> loader = DataLoader(IterableDataset("train.pack", batch_size=4), batch_size=None, num_workers=2)
    >>> for images, labels in loader:
    ...     assert images.shape == (4, 64, 64, 3)

    Args:
        data, batch_size, options: As in `packds.Loader`. In workers, `threads` is 1 by default; `memory` is per worker.

    Raises:
        OptionError: As in `packds.Loader`; also when a pass begins, if the DataLoader would batch again, or if accelerate has
        prepared it.
    """

    @with_habits("packds.torch.IterableDataset", OF_LOADERS | OF_DATALOADERS, inspect.signature(Loader).parameters)
    def __init__(
        self,
        data: Dataset | PathLike,
        batch_size: int = 32,
        *,
        rank: RankLike = "env",
        epoch: int = 0,
        **options: Any,
    ) -> None:
        super().__init__()
        self.dataset = opened(data)
        self.batch_size = batch_size
        # The rank is determined here, because workers have no process group.
        self.rank, self.world = ranks(rank)
        self._asked = rank
        self.options = {"output": "torch", **options}
        if "seed" in options and options["seed"] is None:
            # Otherwise each worker would draw its own seed.
            self.options["seed"] = drawn_seed(self.world)
        self._passes = Passes(whole("epoch", epoch, 32))
        self._begun: _Begun | None = None
        # The saved state that the next pass resumes, and whether the other workers know its epoch.
        self._resume: dict[str, Any] | None = None
        self._is_known = False
        # This loader only checks the options, so that errors occur here, not in a worker. It is made without the options for
        # GPUs, because a forked worker cannot use a GPU that this process has opened.
        here = {name: value for name, value in self.options.items() if name not in ("device", "tier", "register", "jpeg")}
        Loader(self.dataset, batch_size, rank=(self.rank, self.world), epoch=epoch, **here)
        self._seal()

    @property
    def epoch(self) -> int:
        """The epoch of the next pass."""
        return self._passes.next(_holder())

    def set_epoch(self, epoch: int) -> None:
        """Makes the next pass epoch `epoch`, from its first batch. This also applies to persistent workers.

        >>> dataset = packds.torch.IterableDataset("train.pack", batch_size=4)
        >>> dataset.set_epoch(3)
        >>> dataset.epoch
        3
        """
        refuse_preparation()
        self._passes.set(_holder(), whole("epoch", epoch, 32))
        self._begun = self._resume = None

    def __iter__(self) -> Iterator[Any]:
        refuse_collation()
        refuse_preparation()
        check_group(self._asked, (self.rank, self.world))
        # From here on, the position is in the new pass, even before its first batch.
        self._begun = None
        return self._batches()

    def _batches(self) -> Iterator[Any]:
        """The batches of a pass. The pass begins with the first batch, so calling only `iter` does not consume an epoch."""
        epoch, resume = self._next_pass()
        number, workers = _worker()
        options = dict(self.options)
        if torch.utils.data.get_worker_info() is not None:
            options.setdefault("threads", 1)
        loader = _Share(
            self.dataset,
            self.batch_size,
            # A worker's part is the same for any number of ranks, so any number of ranks can resume its state.
            rank=(number * self.world + self.rank, workers * self.world),
            epoch=epoch,
            **options,
        )
        # A single process removes the padding of its workers' last batches, which would repeat samples. Several ranks keep
        # it, because they must have the same number of batches.
        loader._trims = not loader._drops_last and self.world == 1
        begun = self._begun = _Begun(epoch, loader)
        if resume is not None and resume["state"] is not None:
            self._check_fits(resume)
            loader.load_state_dict({"version": _STATE_VERSION, "state": resume["state"]})
        # After an epoch's last batch, a loader continues with the next epoch.
        if loader.epoch == epoch and not (resume is not None and resume["is_over"]):
            with loader:
                for batch in loader:
                    # A plain dict, because a DataLoader iterates over the batch.
                    yield dict(batch) if isinstance(batch, NamedBatch) else batch
        begun.loader = None

    def _next_pass(self) -> tuple[int, dict[str, Any] | None]:
        """Begins a pass. Returns its epoch, and the state to resume."""
        worker = torch.utils.data.get_worker_info()
        resume, self._resume = self._resume, None
        if resume is not None and self._is_known:
            self._is_known = False
            return resume["epoch"], resume
        if worker is not None and not self._passes.is_shared:
            message = "the workers cannot agree on the epoch of this pass: call set_epoch before each pass"
            warnings.warn(message, RuntimeWarning, stacklevel=3)
        epoch = self._passes.begin(_holder(), None if worker is None else worker.seed - worker.id)
        # Workers of a later pass may have inherited the state when they were forked.
        return epoch, resume if resume is not None and resume["epoch"] == epoch else None

    # Saving and resuming.

    def state_dict(self) -> dict[str, Any]:
        """The position of this process's pass, or of this worker's part, after the last batch that was taken. It consists of
        plain numbers and strings.

        >>> dataset = packds.torch.IterableDataset("train.pack", batch_size=4)
        >>> images, labels = next(iter(dataset))
        >>> state = dataset.state_dict()
        >>> state["epoch"]
        0

        Raises:
            OptionError: Workers make the batches, so this process does not know the position.
        """
        if torch.utils.data.get_worker_info() is None and self._passes.are_of_workers:
            text = "workers make the batches: this process does not know their position"
            raise OptionError(text, "save the state of torchdata's StatefulDataLoader; between epochs, save `epoch` for set_epoch()")
        begun = self._begun
        if begun is not None and begun.process == os.getpid():
            epoch, is_over = begun.epoch, begun.loader is None
            place = None if begun.loader is None else begun.loader.state_dict()["state"]
        elif self._resume is not None:
            return self._resume
        else:
            epoch, is_over, place = self.epoch, False, None
        made_by = {"workers": _worker()[1], "batch": self.batch_size * self.world}
        return {"version": _STATE_VERSION, "epoch": epoch, "state": place, "is_over": is_over, **made_by}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Resumes a saved state: the next pass yields the remaining batches of its epoch.

        Any number of ranks may resume it, with the same number of workers and the same global batch.

        >>> dataset = packds.torch.IterableDataset("train.pack", batch_size=4)
        >>> batches = iter(dataset)
        >>> images, labels = next(batches)
        >>> resumed = packds.torch.IterableDataset("train.pack", batch_size=4)
        >>> resumed.load_state_dict(dataset.state_dict())
        >>> sum(1 for _ in resumed) == sum(1 for _ in batches)
        True

        Raises:
            OptionError: The value is not a state; or, when the pass begins, the state belongs to another pack, seed, order,
            number of workers or, with several workers, global batch.
        """
        if not isinstance(state, Mapping) or state.get("version") != _STATE_VERSION or "is_over" not in state:
            raise OptionError(f"state: expected a value returned by an IterableDataset's state_dict(), found {state!r}")
        epoch, worker = whole("epoch", state.get("epoch"), 32), torch.utils.data.get_worker_info()
        self._begun, self._resume = None, dict(state)
        if worker is not None:
            self._check_fits(state)
            # The epoch is recorded now, not with the first batch: torchdata may never request a batch from these workers.
            self._passes.resume(_holder(), worker.seed - worker.id, epoch)
            self._is_known = True
        elif state["is_over"]:
            self.set_epoch(epoch + 1)
        else:
            self._passes.set(_holder(), epoch)

    def _check_fits(self, state: Mapping[str, Any]) -> None:
        """Checks that the workers' parts are the same as in the state, because a worker knows only the position in its own part."""
        workers, batch = _worker()[1], self.batch_size * self.world
        if state["state"] is None:
            return
        if state["workers"] != workers:
            text = f"state: saved with num_workers={state['workers']}, found {workers}"
            raise OptionError(text, "resume with the same number of workers; any number of workers can begin an epoch")
        if workers > 1 and state["batch"] != batch:
            text = f"state: saved with a global batch of {counted(state['batch'], 'sample')}, found {batch}"
            raise OptionError(text, "with several workers, resume with the same global batch; any global batch can begin an epoch")

    def __getstate__(self) -> dict[str, Any]:
        # The frames that `refuse_preparation` looks for are in the process that pickles the dataset. Spawned workers do not have them.
        refuse_preparation()
        return self.__dict__ | {"_begun": None}


class _Share(Loader):
    """The batches of one process or worker."""

    def _warn(self) -> None:
        # The dataset has already issued the loader's warnings.
        pass


class _Begun:
    """The last pass that a process began."""

    def __init__(self, epoch: int, loader: Loader) -> None:
        self.process = os.getpid()
        self.epoch = epoch
        #: None after the last batch of the pass.
        self.loader: Loader | None = loader


_STATE_VERSION = 1


def _worker() -> tuple[int, int]:
    """The index of this worker, and the number of workers. A process without workers is treated as the only worker."""
    worker = torch.utils.data.get_worker_info()
    return (0, 1) if worker is None else (worker.id, worker.num_workers)


def _holder() -> int:
    """The id of the process that iterates over the DataLoader: this process, or this worker's parent."""
    parent = None if torch.utils.data.get_worker_info() is None else multiprocessing.parent_process()
    return os.getpid() if parent is None or parent.pid is None else parent.pid
