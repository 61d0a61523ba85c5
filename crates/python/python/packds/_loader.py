"""Batches for training. Threads of the native module load them ahead."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Union

from . import _checks, _packds
from ._arrays import json_dict
from ._batch import Batch, make_known
from ._checks import whole
from ._cuda import SIMULATED, device_name, find_nvjpeg, number_of
from ._dataset import Dataset, PathLike, opened
from ._display import counted, table
from ._errors import OptionError, warn
from ._habits import OF_LOADERS, with_habits
from ._plan import Plan
from ._ragged import Flat, Padded
from ._ranks import RankLike, check_group, ranks
from ._sealed import Sealed
from ._subset import Subset
from ._targets import makes_masks
from ._types import Access, BadSamples, Checksums, Jpeg, Layout, Order, Output, Ragged, Register, Tier
from ._words import (
    Normalize,
    augmentation,
    balance_of,
    balanced_weights,
    crop_of,
    cropped_to,
    drawn_seed,
    memory_bytes,
    number_or_auto,
    seed_of,
    subset,
    weights_of,
)

_STATE_VERSION = 1
_LAST_EPOCH = (1 << 32) - 1


class _Iteration:
    """One pass over an epoch. It begins with the first batch, so calling only `iter` does not consume an epoch."""

    def __init__(self, loader: Loader, whole: bool) -> None:
        self._loader = loader
        self._whole = whole
        self._epoch: _packds.Epoch | None = None
        self._is_closed = False
        # Several threads may request the first batch at the same time.
        self._beginning = threading.Lock()

    def __iter__(self) -> _Iteration:
        return self

    def __next__(self) -> Any:
        loader = self._loader
        native = self._take()
        if native is None:
            raise StopIteration
        values = loader._plan.values(native)
        n_samples = len(native)
        if loader._trims and native.padding:
            n_samples -= native.padding
            if n_samples == 0:
                return self.__next__()
            values = {name: _cut(value, n_samples) for name, value in values.items()}
        if self._whole:
            return Batch(native, values, n_samples, loader._plan.gpu is not None)
        return loader._plan.given(values, native)

    def _take(self) -> _packds.Batch | None:
        epoch = self._epoch or self._begun()
        if epoch is None:
            return None
        try:
            native = epoch.take()
        except BaseException:
            # Closing stores the state after the batches delivered so far, so the epoch can be resumed.
            self.close()
            raise
        if native is None:
            self._loader._ended(epoch)
        return native

    def _begun(self) -> _packds.Epoch | None:
        with self._beginning:
            if self._epoch is None and not self._is_closed:
                self._epoch = self._loader._begin()
            return self._epoch

    def close(self) -> None:
        """Stops the epoch's threads. The loader's state does not change."""
        self._is_closed = True
        if self._epoch is not None:
            self._loader._stopped(self._epoch)
            self._epoch.close()

    def __del__(self) -> None:
        # The loop ended early.
        self.close()


# Options for GPUs, and the values that they must have without a GPU.
_HOST_VALUES = {"tier": "auto", "register": "staging", "jpeg": "host"}


def _cut(value: Any, n: int) -> Any:
    if isinstance(value, (Flat, Padded)):
        return value.cut(n)
    return tuple(_cut(view, n) for view in value) if isinstance(value, tuple) else value[:n]


def _gpu_of(device: str, output: str, lend: bool, **asked: str) -> str | None:
    """The native module's number for the GPU that receives the batches. None if they stay on the host."""
    if output != "torch" or (number := number_of(device)) is None:
        for name, value in asked.items():
            if value != _HOST_VALUES[name]:
                hint = f"pass device='cuda' and output='torch', or leave {name} out"
                raise OptionError(f"{name}: {value!r} needs batches on a GPU, found device {device!r} with output {output!r}", hint)
        return None
    if lend:
        raise OptionError(f"lend: only batches on the host can be lent, found device {device!r}", "leave out lend or device")
    if asked["jpeg"] == "gpu" and number != SIMULATED:
        find_nvjpeg()
    return number


def _numbered(epoch: int) -> int:
    """Returns the number of the next epoch. Fails after the last possible epoch."""
    if epoch > _LAST_EPOCH:
        raise OptionError(f"epoch {_LAST_EPOCH} was the last one", "begin another epoch with set_epoch")
    return epoch


def _drops_last(drop_last: bool | None, order: str, n_packs: int) -> bool:
    """Whether to drop samples that do not fill the last batch."""
    if drop_last is None:
        # In a fixed order, every epoch would drop the same samples.
        return order not in _packds.FIXED_ORDERS or n_packs > 1
    drops = _checks.truth("drop_last", drop_last)
    if n_packs > 1 and not drops:
        raise OptionError("a mixture of packs has no last batch: small packs start over", "leave drop_last out")
    return drops


def _left(epoch: _packds.Epoch) -> int:
    """Closes an epoch without taking a batch. Returns the number of batches that remained."""
    left = epoch.left
    epoch.close()
    return left or 0


def _number_of(epoch: _packds.Epoch) -> int:
    """The number of an epoch that has just begun and is still open."""
    number = epoch.number
    assert number is not None
    return number


class Loader(Sealed):
    """Batches of a pack in training order. Iterate over it once per epoch.

    A batch is `(images, labels)` if the pack has one image and one label. With `fields=`, or with other fields, it is a
    `NamedBatch`: `batch["image"]`. `as_tuple` overrides this (docs/reference/python.md has a table). Arrays are the loader's
    own memory, not copies. They are writable, and do not change while anything refers to them. Iterating again starts the next
    epoch. An epoch begins only when its first batch is taken.

    >>> loader = packds.Loader("train.pack", batch_size=8, augment="rrc48,flip", seed=1)
    >>> for epoch in range(2):
    ...     for images, labels in loader:
    ...         assert images.shape == (8, 48, 48, 3) and labels.shape == (8,)
    >>> loader.epoch, len(loader)
    (2, 3)

    Args:
        data: A `Dataset`, a path, or a list of them to mix in `proportions`.
        batch_size: Samples per batch, on each rank.
        order: `auto`, `random`, `window`, `chunks` or `sequential`.
        window: Number of chunks that are shuffled together in the order `window`.
        lanes: Number of parts of the epoch that are read in parallel: docs/reference/sampling.md, "Lanes".
        seed: The same seed, epoch and options give the same batches on any number of threads. With the default of 0, every run
            has the same order and augmentation. None draws a seed from PyTorch's generator if PyTorch is imported, else from NumPy's;
            `torch.manual_seed` and `numpy.random.seed` seed these generators, and `loader.seed` is the result. All ranks need the
            same seed, so with several ranks None is an error.
        epoch: The epoch of the first iteration.
        fields: One or several names of fields to load, each once; by default all training data.
        as_tuple: True for tuples of the fields, in the order of `fields` or else of the pack; False for fields by name, even if
            there are only an image and a label.
        dtype: Element type of images: `u8`, `f16`, `bf16`, `f32`, or a type of NumPy or PyTorch.
        layout: `hwc`, `chw`, or with torch `channels_last`: the shape of `chw`, but the memory order of `hwc`.
        normalize: `dataset` (the pack's own mean and std), `imagenet`, or `(mean, std)` for values in 0..1.
        augment: Operations of docs/reference/augmentation.md, in a list or separated by commas: `"rrc224,flip,trivialaugment"`. That
            page lists the corresponding torchvision transforms.
        rank: `env` (from torch.distributed or torchrun, else a single process), None, or `(rank, world)`.
        drop_last: Whether to drop samples that do not fill the last batch. By default they are dropped, except in the order
            `sequential`, in which every epoch would drop the same samples. With False, a single process gets a shorter batch.
            Several processes get a batch padded with samples of the epoch, so that all have the same number of steps.
        samples: The samples to load: a slice, a mask, or indices without duplicates. Indices are used as a set: `order`
            determines the order, so with `sequential` they must be sorted.
        weights: How often each sample occurs per epoch on average. The sum of weights is the epoch's length. Weights cannot
            be combined with `samples`.
        balance: The name of a label column. Its classes occur equally often, among all samples or those in `samples`.
        memory: The loader's memory: `auto`, bytes, or a string such as `2GiB`.
        threads: Number of threads that decode and copy. With `auto`, as many as training needs, at most one per core.
        prefetch: Number of batches that are loaded ahead. With `auto`, as many as training needs and memory allows.
        slots: Number of batches that exist at the same time, including those that the program holds. If the program holds more,
            batches are copied.
        access: `auto`, `mapped` or `direct`.
        checksums: `first_touch`, `always` or `off`.
        bad_samples: What to do about damaged samples: `error`, `skip` or `substitute`.
        output: `numpy`, `torch` or `jax`.
        device: `cpu`, or with torch another device. Batches for a GPU, such as `cuda:0`, are copied during training, and images
            are finished on the GPU (docs/reference/cuda.md). For other kinds of devices, PyTorch copies each batch.
        tier: With a GPU, where images are: `resident` (the whole dataset on the GPU), `gpu-window` (the chunks of the current
            batches on the GPU), `host-window` (on the host, in the order `window`), `host` (on the host, in any order), or `auto`,
            which chooses by the free memory.
        register: What the GPU's driver registers. `staging` registers staging memory. With `tier="gpu-window"` or `"host"`,
            `file` also registers the mapped file, so that chunks, or batches stored in order, are copied from the page cache.
            With `tier="gpu-window"` and `checksums="off"`, `gds` registers the file with cuFile, so that chunks are read from
            disk directly into the GPU's memory (docs/reference/cuda.md). `stats()["copies"]` shows whether this worked.
        jpeg: With a GPU, where JPEG files are decoded: `host`, or `gpu` (by NVIDIA's nvJPEG, if `augment` has `rrc`). The GPU's
            pixels differ slightly from the host's (docs/reference/cuda.md). The host decodes files that the GPU cannot;
            `stats()["host_decoded"]` counts them, and `notices()` lists them.
        lend: Whether batches may be the pack's own memory if that saves a copy. Such arrays are read-only.
        ragged: How a batch has a field with any number of entries per sample, such as boxes: `list` (an array for each sample),
            `padded` (a `Padded`: one array, with zeros after shorter samples, and the lengths), or `flat` (a `Flat`: all entries in
            one array, and the offsets of the samples). With `targets`, a batch is `(images, targets)`, as torchvision's detection
            models take it. `images` is a list of float tensors `[C, H, W]`. `targets` has a dict for each image, with classes from
            1, because 0 is the background. `tv_tensors` is the same with `torchvision.tv_tensors`, for its transforms.
        instance_masks: Whether polygons become masks `[boxes, H, W]` uint8, at the size of the result. By default only with `ragged`
            `targets` and `tv_tensors`, as `masks`.
        proportions: With several packs, a positive number for each pack.

    Warns:
        UserWarning: The order costs accuracy: some samples never occur, or batches are not random enough for this pack.

    Raises:
        OptionError: The options do not fit the pack, or contradict each other.
    """

    _ASSIGNABLE = ("batch_size", "augment", "resolution")
    _NOUN = "loader"

    @with_habits("packds.Loader", OF_LOADERS)
    def __init__(
        self,
        data: Union[Dataset, PathLike, Sequence[Union[Dataset, PathLike]]],
        batch_size: int = 32,
        *,
        order: Order = "auto",
        window: int | None = None,
        lanes: int | None = None,
        seed: int | None = 0,
        epoch: int = 0,
        fields: str | Sequence[str] | None = None,
        as_tuple: bool | None = None,
        dtype: Any = None,
        layout: Layout | None = None,
        normalize: Normalize = None,
        augment: str | Sequence[str] | None = None,
        rank: RankLike = "env",
        drop_last: bool | None = None,
        samples: Any = None,
        weights: Any = None,
        balance: str | None = None,
        memory: int | str = "auto",
        threads: int | str = "auto",
        prefetch: int | str = "auto",
        slots: int | str = "auto",
        access: Access = "auto",
        checksums: Checksums = "first_touch",
        bad_samples: BadSamples = "error",
        output: Output = "numpy",
        device: Any = "cpu",
        tier: Tier = "auto",
        register: Register = "staging",
        jpeg: Jpeg = "host",
        lend: bool = False,
        ragged: Ragged = "list",
        instance_masks: bool | None = None,
        proportions: Sequence[float] | None = None,
    ) -> None:
        several = isinstance(data, Sequence) and not isinstance(data, (str, bytes))
        many: Any = data if several else [data]
        if not many:
            raise OptionError("data: expected a pack or several, found an empty list")
        self.datasets = [opened(one) for one in many]
        dataset = self.datasets[0]
        if several and proportions is None:
            proportions = [float(len(one)) for one in self.datasets]
        self._drops_last = drop_last = _drops_last(drop_last, _checks.text("order", order), len(self.datasets))
        fields = None if fields is None else _checks.names("fields", fields)
        as_tuple = None if as_tuple is None else _checks.truth("as_tuple", as_tuple)
        device = device_name(device, _checks.text("output", output))
        self._asked_rank = rank
        self.rank, self.world = ranks(rank)
        self._trims = not drop_last and self.world == 1
        asked = {
            name: _checks.text(name, value) for name, value in (("tier", tier), ("register", register), ("jpeg", jpeg))
        }
        self._samples = None if samples is None else subset(dataset, samples, order)
        self._is_drawn = seed is None
        self._augment = augment
        # `resolution` always starts from these words, so earlier sizes have no effect.
        self._unsized = augment
        # Options that are added to the words of `augment`, even after `augment` changes.
        self._finish = {"dtype": dtype, "layout": layout, "normalize": normalize}
        batch = whole("batch_size", batch_size, 32)
        self._options: dict[str, Any] = {
            "batch": batch,
            "order": order,
            "window": number_or_auto("window", window),
            "lanes": number_or_auto("lanes", lanes),
            "seed": drawn_seed(self.world) if seed is None else whole("seed", seed, 64),
            "ranks": (self.rank, self.world),
            "pad_last": not drop_last,
            "fields": fields,
            "augment": augmentation(dataset, fields, augment, **self._finish),
            "threads": number_or_auto("threads", threads),
            "memory_bytes": memory_bytes(memory),
            "slots": number_or_auto("slots", slots),
            "prefetch": number_or_auto("prefetch", prefetch),
            "access": _checks.text("access", access),
            "checksums": _checks.text("checksums", checksums),
            "bad_samples": _checks.text("bad_samples", bad_samples),
            "lend": _checks.truth("lend", lend),
            "instance_masks": makes_masks(dataset, fields, ragged, instance_masks),
            "gpu": _gpu_of(device, output, lend, **asked),
            **asked,
            **self._choice(weights, balance, batch * self.world if drop_last else 0),
            "proportions": [] if proportions is None else _checks.numbers("proportions", proportions),
        }
        self._made_in = os.getpid()
        self._native = self._make(self._options)
        self._output = (output, layout, device, fields, as_tuple)
        self._ragged: Ragged = ragged
        self._plan = self._planned(self._native, self._options)
        self._number = whole("epoch", epoch, 32)
        # An epoch without batches is reported here, not in the loop.
        self._native.steps(self._number)
        self._resume: str | None = None
        # Number of batches that remain after the saved state.
        self._resume_left = 0
        # The running epoch and its number. The iteration itself is not stored here, because it must end when its loop
        # drops it.
        self._open: tuple[_packds.Epoch, int] | None = None
        # The position and epoch of an iteration that ended early.
        self._last_state: tuple[int, str] | None = None
        self._seal()
        self._warn()

    def _choice(self, weights: Any, balance: str | None, least: int) -> dict[str, Any]:
        """The native module's options that choose the samples of an epoch. With weights, an epoch needs at least `least`
        samples."""
        weights = None if weights is None else weights_of(weights, len(self.datasets[0]), least)
        balance = None if balance is None else balance_of(self.datasets[0], balance)
        if balance is not None and self._samples is not None and weights is None:
            return {"weights": balanced_weights(self.datasets[0], balance, self._samples)}
        return {"samples": self._samples, "weights": weights, "balance": balance}

    def _make(self, options: dict[str, Any]) -> _packds.Loader:
        return _packds.Loader([dataset._pack for dataset in self.datasets], options)

    def _planned(self, native: _packds.Loader, options: dict[str, Any]) -> Plan:
        made = {name: options[name] for name in ("augment", "instance_masks")}
        return Plan(self.datasets, native, *self._output, ragged=self._ragged, **made)

    def _warn(self) -> None:
        """Warns about options that cost accuracy."""
        for doubt in [*self._native.doubts(), *self._unmixed()]:
            warn(doubt)

    def _unmixed(self) -> list[str]:
        """A note if images are mixed, but some other fields are not."""
        names = self._plan.unmixed
        if not names:
            return []
        are = "is" if len(names) == 1 else "are"
        quoted = ", ".join(f"`{name}`" for name in names)
        return [
            f"{quoted} {are} not mixed with the images: batch.mix, from loader.batches(), has partners and weights; "
            "fields= selects the fields to load"
        ]

    def _twin(self) -> Loader:
        """A loader with the same options and its own batches, for measurements."""
        twin = Loader.__new__(Loader)
        twin.__dict__.update(self.__dict__)
        twin._native, twin._made_in = self._native.twin(), os.getpid()
        twin._open = twin._resume = twin._last_state = None
        return twin

    @property
    def dataset(self) -> Dataset | Subset:
        """The pack, or the first of several packs; with `samples`, a `Subset` of it. `datasets` has all packs."""
        return self.datasets[0] if self._samples is None else Subset(self.datasets[0], self._samples)

    @property
    def n_samples(self) -> int:
        """Number of samples in the current or next epoch, over all ranks, before its last batch is dropped or padded. With
        `samples`, only these count; with `weights` and `balance`, each sample counts as often as it occurs. With several packs,
        the number of samples in all packs.

        >>> packds.Loader("train.pack", batch_size=4, samples=slice(0, 10)).n_samples
        10
        """
        return 0 if self.epoch > _LAST_EPOCH else self._native.samples(self.epoch)

    @property
    def seed(self) -> int:
        """The seed of order and augmentation: given, drawn, or from a resumed state."""
        seed: int = self._options["seed"]
        return seed

    # Iterating.

    def __iter__(self) -> Iterator[Any]:
        return _Iteration(self, whole=False)

    def batches(self) -> Iterator[Batch]:
        """Iterates like the loader itself, but yields `Batch` objects, which also have ids, step, padding and bad samples.

        >>> loader = packds.Loader("train.pack", batch_size=4)
        >>> sum(len(batch.ids) for batch in loader.batches()) == len(loader) * 4
        True
        """
        return _Iteration(self, whole=True)

    def _begin(self) -> _packds.Epoch:
        check_group(self._asked_rank, (self.rank, self.world))
        self._own()
        # A traceback may have kept the last iteration alive. All iterations share the same slots.
        self.close()
        if self._resume is None:
            epoch = self._native.epoch(_numbered(self._number))
        else:
            epoch = self._native.epoch_at(self._resume)
        number, self._resume = _number_of(epoch), None
        # An iteration that ended early is resumed only from a saved state. Otherwise the next
        # iteration yields the next epoch.
        self._number = number + 1
        self._open = (epoch, number)
        self._last_state = None
        make_known()
        return epoch

    def _own(self) -> None:
        """In a forked child, replaces the native loader with one that has the same options, because threads do not survive a fork."""
        if os.getpid() != self._made_in:
            if self._plan.gpu is not None:
                raise OptionError("CUDA does not work in a forked process", "create the loader in the process that trains")
            self._made_in, self._open = os.getpid(), None
            self._native = self._native.resumed(self._resume or self._native.state_of(_numbered(self._number)))

    def _stopped(self, epoch: _packds.Epoch) -> None:
        """Remembers the position of an iteration that ends."""
        if self._open is not None and self._open[0] is epoch:
            state = epoch.state()
            if state is not None:
                self._last_state = (self._open[1], state)
            self._open = None

    def _ended(self, epoch: _packds.Epoch) -> None:
        if self._open is not None and self._open[0] is epoch:
            self._open = None
            self._last_state = None

    def __len__(self) -> int:
        """Number of batches per rank in the current or next epoch, 0 after the last epoch. `batches_left` is the number that
        remains."""
        return 0 if self.epoch > _LAST_EPOCH else self._native.steps(self.epoch)

    @property
    def batches_left(self) -> int:
        """Number of batches that remain in the current iteration, or in the next iteration if there is none. Fewer than
        `len(loader)` after resuming in the middle of an epoch.

        >>> loader = packds.Loader("train.pack", batch_size=4)
        >>> batches = iter(loader)
        >>> images, labels = next(batches)
        >>> len(loader) - loader.batches_left
        1
        """
        if self._open is None:
            return self._resume_left if self._resume is not None else len(self)
        left = self._open[0].left
        return 0 if left is None else left

    @property
    def epoch(self) -> int:
        """The current or next epoch."""
        return self._open[1] if self._open is not None else self._number

    def set_epoch(self, epoch: int) -> None:
        """Makes the next iteration epoch `epoch`, from its first batch.

        >>> loader = packds.Loader("train.pack", batch_size=4)
        >>> loader.set_epoch(3)
        >>> next(loader.batches()).epoch
        3
        """
        self._number, self._resume, self._last_state = whole("epoch", epoch, 32), None, None

    # Changing options between epochs.

    @property
    def batch_size(self) -> int:
        """Samples per batch, on each rank. Assign another value for the following epochs. This does not open the packs again.

        >>> loader = packds.Loader("train.pack", batch_size=4)
        >>> loader.batch_size = 8
        >>> images, labels = next(iter(loader))
        >>> len(images)
        8
        """
        samples: int = self._options["batch"]
        return samples

    @batch_size.setter
    def batch_size(self, samples: int) -> None:
        self._change("batch_size", batch=whole("batch_size", samples, 32))

    @property
    def augment(self) -> str | Sequence[str] | None:
        """The augmentation, as in `augment=`. Assign another value for the following epochs.

        >>> loader = packds.Loader("train.pack", batch_size=4)
        >>> loader.augment = "rrc48,flip"
        >>> images, labels = next(iter(loader))
        >>> images.shape
        (4, 48, 48, 3)
        """
        return self._augment

    @augment.setter
    def augment(self, augment: str | Sequence[str] | None) -> None:
        self._change_augment(augment)
        self._unsized = augment

    def _change_augment(self, augment: str | Sequence[str] | None) -> None:
        words = augmentation(self.datasets[0], self._options["fields"], augment, **self._finish)
        self._change("augment", augment=words)
        self._augment = augment

    @property
    def resolution(self) -> tuple[int, int] | None:
        """The (width, height) of the crop in `augment`; None without a crop. Assign another value, or one number for both
        sides, for the following epochs. This changes the size of `rrc`, `crop` or `center`, scales a `resize` before it
        accordingly, and keeps all other words.

        >>> loader = packds.Loader("train.pack", batch_size=4, augment="rrc32,flip")
        >>> loader.resolution = 48
        >>> loader.resolution
        (48, 48)
        """
        return crop_of(self._augment)

    @resolution.setter
    def resolution(self, size: int | tuple[int, int]) -> None:
        self._change_augment(cropped_to(self._unsized, size))

    def _change(self, name: str, **changed: Any) -> None:
        """Creates the native loader again with other options. If they do not fit, this loader does not change."""
        if self._open is not None:
            raise OptionError(f"{name}: expected an assignment between epochs, found epoch {self.epoch} under way", "call close() first")
        self._own()
        options = self._options | changed
        native = self._make(options)
        if self._resume is not None:
            native = native.resumed(self._resume)
            self._resume_left = _left(native.epoch_at(self._resume))
        native.steps(_numbered(self._number))
        self._plan = self._planned(native, options)
        self._native, self._options = native, options
        self._warn()

    # Saving and resuming.

    def state_dict(self) -> dict[str, Any]:
        """The position after the last batch that was taken, as plain numbers and strings, which any checkpoint can store.

        Batches that were loaded ahead do not count. Any rank may save the state, and any number of ranks and threads may resume
        it.

        >>> loader = packds.Loader("train.pack", batch_size=4)
        >>> images, labels = next(iter(loader))
        >>> state = loader.state_dict()
        >>> state["epoch"]
        0
        """
        number, state = self._number, self._resume
        last = self._last_state
        if self._open is not None:
            number, state = self._open[1], self._open[0].state()
        elif last is not None and state is None:
            number, state = last
        if state is None:
            state = self._native.state_of(_numbered(number))
        return {"version": _STATE_VERSION, "epoch": number, "state": state}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Resumes a saved state: the next iteration yields the remaining batches of its epoch.

        >>> loader = packds.Loader("train.pack", batch_size=4)
        >>> images, labels = next(iter(loader))
        >>> resumed = packds.Loader("train.pack", batch_size=4)
        >>> resumed.load_state_dict(loader.state_dict())
        >>> len(resumed) - resumed.batches_left
        1

        Raises:
            OptionError: The state belongs to another pack, seed, order or selection of samples. The message says what differs.
        """
        if not isinstance(state, Mapping):
            raise OptionError(f"state: expected a value returned by state_dict(), found {state!r}")
        version = state.get("version")
        if not isinstance(version, int) or version != _STATE_VERSION:
            raise OptionError(f"state: expected version {_STATE_VERSION}, found {version!r}")
        saved = _checks.text("state", state.get("state"))
        self._own()
        self.close()
        options, native = self._options, self._native
        if self._is_drawn and (seed := seed_of(saved)) is not None:
            # This loader drew its seed at random. The saved seed replaces it.
            options = options | {"seed": seed}
            native = self._make(options)
        native = native.resumed(saved)
        # Fails now, rather than when iterating, if no epoch remains. A state after the last batch of an epoch belongs
        # to the next epoch.
        epoch = native.epoch_at(saved)
        self._native, self._options = native, options
        self._number, self._resume, self._last_state = _number_of(epoch), saved, None
        self._resume_left = _left(epoch)

    # Reports.

    def stats(self) -> dict[str, Any]:
        """The work done and the time spent waiting so far: docs/reference/loading.md, "The bottleneck".

        >>> loader = packds.Loader("train.pack", batch_size=4)
        >>> for images, labels in loader:
        ...     pass
        >>> loader.stats()["batches"] == len(loader)
        True
        """
        return json_dict(self._native.stats())

    def tuning(self) -> list[dict[str, Any]]:
        """The values that `auto` chose for `threads` and `prefetch`, and why. The oldest choice comes first.

        >>> loader = packds.Loader("train.pack", batch_size=4)
        >>> for images, labels in loader:
        ...     pass
        >>> sorted(loader.tuning()[0])
        ['batches', 'prefetch', 'threads', 'why']

        Returns:
            Dicts with `batches` (the number delivered before), `threads` and `prefetch` (the values from then on), and `why`.
        """
        keys = ("batches", "threads", "prefetch", "why")
        return [dict(zip(keys, entry)) for entry in self._native.tuning()]

    def shuffle_report(self) -> dict[str, Any]:
        """How random the batches are, and how often this order reads each chunk.

        >>> loader = packds.Loader("train.pack", batch_size=4)
        >>> loader.shuffle_report()["order"]
        'random'
        """
        return json_dict(self._native.shuffle_report())

    def notices(self) -> list[str]:
        """Decisions that were made by default, and warnings about options, as sentences.

        >>> loader = packds.Loader("train.pack", batch_size=4)
        >>> for notice in loader.notices():
        ...     print(notice)
        order 'auto' is 'random' here: all samples (336 KiB) fit ...
        """
        return [*self._native.notices(), *self._unmixed()]

    @property
    def access(self) -> tuple[str, str, str]:
        """How the pack is read (`mapped` or `direct`), with which engine, and why.

        >>> loader = packds.Loader("train.pack", batch_size=4)
        >>> access, engine, why = loader.access
        >>> access
        'mapped'
        """
        return self._native.access()

    @property
    def tier(self) -> str | None:
        """Where the images for a GPU's batches are: `resident` or `gpu-window` (on the GPU), `host-window` or `host`. None
        without a GPU."""
        return self._native.tier

    @property
    def fields(self) -> dict[str, tuple[str, tuple[int, ...] | None]]:
        """The fields of a batch: element type, and the shape of a sample, or None if it varies.

        >>> loader = packds.Loader("train.pack", batch_size=4)
        >>> loader.fields
        {'image': ('u8', (64, 64, 3)), 'label': ('i32', ())}
        """
        return {
            name: (dtype, None if shape is None else tuple(shape)) for name, _, dtype, shape in self._native.fields()
        }

    # Ending.

    def close(self) -> None:
        """Ends the current iteration and its threads. Arrays that were returned remain valid.

        >>> loader = packds.Loader("train.pack", batch_size=4)
        >>> for images, labels in loader:
        ...     break
        >>> loader.close()
        >>> images.shape
        (4, 64, 64, 3)
        """
        if self._open is not None:
            epoch, _ = self._open
            self._stopped(epoch)
            epoch.close()

    def __enter__(self) -> Loader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> Any:
        raise TypeError("a loader has its own threads and memory: create a loader in each process, from the pack's path")

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}: {form}" for name, form in self._forms())
        on_gpu = "" if self.tier is None else f" on {self._plan.device} ({self.tier})"
        return f"<packds.Loader {self.dataset.path!r}: {self._length()}{on_gpu}, {fields}>"

    def _repr_html_(self) -> str:
        rows = [("loader", self.dataset.path), ("epoch", self._length()), ("seed", str(self.seed)), *self._forms()]
        access, engine, _ = self.access
        rows.append(("reads", f"{access}, by {engine}"))
        if self.tier is not None:
            rows.append(("device", f"{self._plan.device} ({self.tier})"))
        rows += [("notice", notice) for notice in self.notices()]
        samples = range(len(self.datasets[0])) if self._samples is None else self._samples
        return table(rows) + self.datasets[0]._pictures_and_charts(samples)

    def _length(self) -> str:
        return f"{counted(len(self), 'batch')} of {self.batch_size}"

    def _forms(self) -> list[tuple[str, str]]:
        """The fields of a batch, as text."""
        return [
            (name, f"{dtype} {'variable size' if shape is None else list(shape)}")
            for name, (dtype, shape) in self.fields.items()
        ]
