"""Packs for PyTorch's own DataLoader.

`packds.Loader(..., output="torch")` needs none of this and is faster: it loads with threads. `MapDataset` takes the place of
any other map-style data set, with samplers, workers and transforms; `IterableDataset` brings the loader's orders to workers.
"""

from __future__ import annotations

import multiprocessing
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch.utils.data

from ._arrays import tensor_of
from ._checks import text, whole
from ._dataset import Dataset, Field, PathLike, opened, pair_of
from ._errors import OptionError
from ._loader import Loader
from ._passes import Passes
from ._ranks import RankLike, check_group, ranks

__all__ = ["IterableDataset", "MapDataset"]


class MapDataset(torch.utils.data.Dataset[Any]):
    """A pack as a map-style data set: `(image, label)` pairs where it has one image and one label, else dicts.

    It can be pickled, forked and spawned: workers share the pages of the file. `classes` and `targets` are as torchvision's
    data sets have them.

    Args:
        data: A `packds.Dataset` or a path.
        transform: What is done to each image.
        target_transform: What is done to each label.
        fields: The field to load, or several; samples are then dicts.
        images: What images are: `torch` (uint8 `[C, H, W]`), `numpy` (`[H, W, C]`) or `pil`.
    """

    def __init__(
        self,
        data: Dataset | PathLike,
        transform: Callable[[Any], Any] | None = None,
        target_transform: Callable[[Any], Any] | None = None,
        *,
        fields: str | Sequence[str] | None = None,
        images: str = "torch",
    ) -> None:
        if text("images", images) not in ("torch", "numpy", "pil"):
            raise OptionError(f"images: expected torch, numpy or pil, found {images!r}")
        for name, function in (("transform", transform), ("target_transform", target_transform)):
            if function is not None and not callable(function):
                raise OptionError(f"{name}: expected a function, found {function!r}")
        self.dataset = opened(data)
        self.transform = transform
        self.target_transform = target_transform
        self.images = images
        chosen = self.dataset._chosen(fields)
        self._names = [field.name for field in chosen]
        self._image = next((field for field in chosen if field.role == "image"), None)
        label = next((field for field in chosen if field.role == "label"), None)
        self._label = None if label is None else label.name
        self._pair = pair_of(chosen) if fields is None else None

    @property
    def classes(self) -> list[str]:
        """The name of each class id."""
        return self.dataset.classes

    @property
    def targets(self) -> list[int]:
        """The class id of each sample."""
        labels = self.dataset.labels
        return [] if labels is None or labels.ndim != 1 else labels.tolist()

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: int) -> Any:
        return self._made(self.dataset.sample(int(index), self._names))

    def __getitems__(self, indices: Sequence[int]) -> list[Any]:
        """Several samples at a time, as DataLoader asks for them: one pass over their checksums and pixels."""
        columns = self.dataset.samples(list(indices), self._names)
        return [self._made({name: values[row] for name, values in columns.items()}) for row in range(len(indices))]

    def _made(self, sample: dict[str, Any]) -> Any:
        if self._image is not None:
            image = self._converted(sample[self._image.name], self._image)
            sample[self._image.name] = image if self.transform is None else self.transform(image)
        if self._label is not None:
            label = int(sample[self._label])
            sample[self._label] = label if self.target_transform is None else self.target_transform(label)
        if self._pair is None:
            return sample
        first, second = self._pair
        return sample[first], sample[second]

    def _converted(self, image: np.ndarray[Any, Any], field: Field) -> Any:
        is_planar = field.layout == "chw"
        if self.images == "numpy":
            return image
        if self.images == "pil":
            from PIL import Image

            pixels = np.moveaxis(image, 0, -1) if is_planar else image
            return Image.fromarray(pixels[..., 0] if pixels.shape[-1] == 1 else pixels)
        if not is_planar and image.ndim == 3:
            image = np.moveaxis(image, -1, 0)
        return tensor_of(np.ascontiguousarray(image), field.dtype)


class IterableDataset(torch.utils.data.IterableDataset[Any]):
    """Whole batches of a `packds.Loader`, divided among a DataLoader's workers so that each sample comes once.

    Use it as `DataLoader(IterableDataset(path, batch_size=256), batch_size=None, num_workers=4)`. Each worker is a rank of
    its own to the loader; with several processes (`rank="env"`) each has its share of these. So `drop_last=True` leaves out
    what does not fill a batch of every worker, up to `num_workers * batch_size - 1` samples of each process. It has no `len()`,
    because the number of batches is another for each number of workers, which only they are told (docs/python.md).

    Each pass is the next epoch, unless `set_epoch` says otherwise, whether workers are made anew for it or live on
    (`persistent_workers=True`). Passes that PyTorch seeds alike, because `torch.manual_seed` comes before each, are the same
    epoch, as the orders of its own samplers are then.

    Args:
        data, batch_size, options: As of `packds.Loader`. `threads` is by default 1 in workers; `memory` is each worker's.

    Raises:
        OptionError: As `packds.Loader`.
    """

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
        # Asked here: in workers there is no process group.
        self.rank, self.world = ranks(rank)
        self._asked = rank
        self.options = {"output": "torch", **options}
        self._passes = Passes(whole("epoch", epoch, 32))
        # Refused here, not in a worker. GPUs are for the process that trains: forked ones could not use theirs any more.
        here = {name: value for name, value in self.options.items() if name not in ("device", "tier", "register", "jpeg")}
        Loader(self.dataset, batch_size, rank=(self.rank, self.world), epoch=epoch, **here)

    @property
    def epoch(self) -> int:
        """The epoch of the next pass."""
        return self._passes.next(_holder())

    def set_epoch(self, epoch: int) -> None:
        """Makes the next pass epoch `epoch`. Workers that live on hear of it too."""
        self._passes.set(_holder(), whole("epoch", epoch, 32))

    def __iter__(self) -> Iterator[Any]:
        check_group(self._asked, (self.rank, self.world))
        worker = torch.utils.data.get_worker_info()
        number, workers = (0, 1) if worker is None else (worker.id, worker.num_workers)
        options = dict(self.options)
        if worker is not None:
            options.setdefault("threads", 1)
            if not self._passes.is_shared:
                said = "workers cannot tell each other which epoch this is: call set_epoch before each pass"
                warnings.warn(said, RuntimeWarning, stacklevel=2)
        loader = Loader(
            self.dataset,
            self.batch_size,
            rank=(self.rank * workers + number, self.world * workers),
            epoch=self._passes.begin(_holder(), None if worker is None else worker.seed - worker.id),
            **options,
        )
        # What only fills up the last batches of workers would be seen twice.
        loader._trims = not options.get("drop_last", True)
        with loader:
            yield from loader


def _holder() -> int:
    """The process that holds the DataLoader: this one, or the one whose worker this is."""
    parent = None if torch.utils.data.get_worker_info() is None else multiprocessing.parent_process()
    return os.getpid() if parent is None or parent.pid is None else parent.pid
