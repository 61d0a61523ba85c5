"""Batches for training, loaded ahead by threads of the native part."""

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
from ._errors import OptionError, warn, words
from ._habits import OF_LOADERS, with_habits
from ._plan import Plan
from ._ranks import RankLike, check_group, ranks
from ._sealed import Sealed
from ._subset import Subset
from ._types import Access, BadSamples, Checksums, Jpeg, Layout, Order, Output, Register, Tier
from ._words import (
    Normalize,
    augmentation,
    balance_of,
    balanced_weights,
    crop_of,
    cropped_to,
    drawn_seed,
    memory_bytes,
    mixes,
    number_or_auto,
    seed_of,
    subset,
    weights_of,
)

_STATE_VERSION = 1
_LAST_EPOCH = (1 << 32) - 1


class _Iteration:
    """One pass over an epoch, which begins with its first batch: who calls `iter` and goes no further uses nothing up."""

    def __init__(self, loader: Loader, whole: bool) -> None:
        self._loader = loader
        self._whole = whole
        self._epoch: _packds.Epoch | None = None
        self._is_closed = False
        # Several threads may ask for the first batch at one time.
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
        return loader._plan.given(values)

    def _take(self) -> _packds.Batch | None:
        epoch = self._epoch or self._begun()
        if epoch is None:
            return None
        try:
            native = epoch.take()
        except BaseException:
            # What has come of the epoch so far can be gone on from.
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
        """Ends the epoch's threads. The loader's state stays where it is."""
        self._is_closed = True
        if self._epoch is not None:
            self._loader._stopped(self._epoch)
            self._epoch.close()

    def __del__(self) -> None:
        # A loop was left early.
        self.close()


# Options of GPUs, and the values that ask for nothing.
_HOST_VALUES = {"tier": "auto", "register": "staging", "jpeg": "host"}


def _cut(value: Any, n: int) -> Any:
    return tuple(view[:n] for view in value) if isinstance(value, tuple) else value[:n]


def _gpu_of(device: str, output: str, lend: bool, **asked: str) -> str | None:
    """The GPU that batches go to, as the native part calls it; None where they stay on the host."""
    if output != "torch" or (number := number_of(device)) is None:
        for name, value in asked.items():
            if value != _HOST_VALUES[name]:
                hint = f"give device='cuda' and output='torch', or leave {name} out"
                raise OptionError(f"{name} is for batches on a GPU, found device {device!r} with output {output!r}", hint)
        return None
    if lend:
        raise OptionError(f"lend is for batches on the host, found device {device!r}", "leave one of them out")
    if asked["jpeg"] == "gpu" and number != SIMULATED:
        find_nvjpeg()
    return number


def _numbered(epoch: int) -> int:
    """An epoch that is to begin; behind the last number there is none."""
    if epoch > _LAST_EPOCH:
        raise OptionError(f"epoch {_LAST_EPOCH} was the last that has a number", "begin another one with set_epoch")
    return epoch


def _drops_last(drop_last: bool | None, order: str, n_packs: int) -> bool:
    """Whether samples that do not fill a last batch are left out."""
    if drop_last is None:
        # In a fixed order no epoch would have them.
        return order != "sequential" or n_packs > 1
    drops = _checks.truth("drop_last", drop_last)
    if n_packs > 1 and not drops:
        raise OptionError("a mixture of packs has no last batch: the small ones start over", "leave drop_last out")
    return drops


def _in_python(notice: str) -> str:
    """A sentence of the native part with Python's options."""
    return words(notice).replace("pad the last batch", "give drop_last=False")


def _left(epoch: _packds.Epoch) -> int:
    """Batches of an epoch that is not wanted yet."""
    left = epoch.left
    epoch.close()
    return left or 0


def _number_of(epoch: _packds.Epoch) -> int:
    """Of an epoch that has just begun: it is closed later than that."""
    number = epoch.number
    assert number is not None
    return number


class Loader(Sealed):
    """Batches of a pack in training order: iterate over it once for each epoch.

    A batch is `(images, labels)` where there is one image and one label; with `fields=`, or where there are other fields, it is
    a `NamedBatch`: `batch["image"]`. `as_tuple` says it otherwise (docs/reference/python.md has a table). Arrays are the loader's own memory,
    not copies: they stay as they are while anything refers to them, and may be written. Iterating again is the next epoch; an
    iteration begins with its first batch.

    Args:
        data: A `Dataset`, a path, or a list of them that are mixed in `proportions`.
        batch_size: Samples of a batch, on each rank.
        order: `auto`, `random`, `window`, `chunks` or `sequential`.
        window: Chunks mixed at one time, with the order `window`.
        lanes: Parts of the epoch that are read side by side: docs/reference/sampling.md, "Lanes".
        seed: The same seed, epoch and options give the same batches on any number of threads. 0 is the default: every run has the same
            order and augmentation. None draws one from PyTorch's generator where it is imported, else from NumPy's, as
            `torch.manual_seed` and `numpy.random.seed` set them; `loader.seed` tells it. Several ranks need the same, so they must be given one.
        epoch: The epoch that the first iteration gives.
        fields: Name of the field to load, or of several, each once; default all that one trains with.
        as_tuple: True for tuples of the fields, in the order of `fields` or else of the pack, False for fields by name, also where
            there are only an image and a label.
        dtype: Element type of images: `u8`, `f16`, `bf16`, `f32`, or NumPy's or PyTorch's.
        layout: `hwc`, `chw`, or with torch `channels_last`: the shape of `chw` with the memory of `hwc`.
        normalize: `dataset` (the pack's own mean and std), `imagenet`, or `(mean, std)` of values in 0..1.
        augment: Words of docs/reference/augmentation.md, as a list or with commas: `"rrc224,flip,trivialaugment"`. That page says which words
            stand for which of torchvision's transforms.
        rank: `env` (what torch.distributed or torchrun say, else the only process), None, or `(rank, world)`.
        drop_last: Whether samples that do not fill a last batch are left out. By default they are, except with the order
            `sequential`, where these would be the same in every epoch. Where they are not, one process gets a shorter batch;
            several get one filled with samples of its epoch, so that all have equally many steps.
        samples: Only these: indices, each once, a slice or a mask. Indices are a set: `order` sets the order, so unsorted ones are
            refused with `sequential`.
        weights: How often each sample comes in an epoch on average, so that their sum is the epoch's length. Not with `samples`.
        balance: The name of a label column whose classes come equally often, of all samples or those that `samples` chooses.
        memory: What the loader may take: `auto`, bytes, or a text such as `2GiB`.
        threads: Threads that decode and copy: `auto` is as many as training needs, at most one for each core.
        prefetch: Batches made ahead: `auto` is as many as training needs, at most as many as fit.
        slots: Batches that exist at one time, those that the program holds included; holding more makes copies.
        access: `auto`, `mapped` or `direct`.
        checksums: `first_touch`, `always` or `off`.
        bad_samples: `error`, `skip` or `substitute`, for samples that are damaged.
        output: `numpy`, `torch` or `jax`.
        device: `cpu`; with torch another. Batches for `cuda:0` and the like are copied while training goes on, and images are
            finished there (docs/reference/cuda.md). To devices of other kinds PyTorch copies each batch.
        tier: Where images are, with a GPU: `resident` (the whole set there), `gpu-window` (the chunks that batches are made of),
            `host-window` and `host` (as without a GPU, in the order `window` or any), or `auto`, which asks for memory.
        register: What the GPU's driver registers: `staging` memory, or with `tier="gpu-window"` or `"host"` the mapped `file` too, so
            that chunks, or batches that lie there as they are, are copied from the page cache; `gds`, with `tier="gpu-window"` and
            `checksums="off"`, registers the file with cuFile, so that chunks are read from the disk into the GPU's memory
            (docs/reference/cuda.md). `stats()["copies"]` tells whether that could be done.
        jpeg: Who decodes JPEG files, with a GPU: `host`, or `gpu`, by NVIDIA's nvJPEG, whose pixels differ a little from the host's
            (docs/reference/cuda.md); for `augment` with `rrc`. The host makes the images of others, which
            `stats()["host_decoded"]` counts, and `notices()` tells which these are.
        lend: Whether batches may be the pack's own memory where that saves a copy. Such arrays cannot be written.
        proportions: Of the packs, where there are several: a positive number for each.

    Warns:
        UserWarning: The order costs accuracy: no epoch has some of the samples, or batches are mixed too little for this pack.

    Raises:
        OptionError: What was asked for does not fit the pack, or each other.
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
        # What `resolution` goes by, so that the sizes before the last one leave no trace.
        self._unsized = augment
        # What is done to images behind `augment`, whatever that becomes.
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
            "gpu": _gpu_of(device, output, lend, **asked),
            **asked,
            **self._choice(weights, balance, batch * self.world if drop_last else 0),
            "proportions": [] if proportions is None else _checks.numbers("proportions", proportions),
        }
        self._made_in = os.getpid()
        self._native = self._make(self._options)
        self._output = (output, layout, device, fields, as_tuple)
        self._plan = self._planned(self._native, self._options)
        self._number = whole("epoch", epoch, 32)
        # An epoch without a batch is refused here, not in the loop.
        self._native.steps(self._number)
        self._resume: str | None = None
        # Batches that are left behind that state.
        self._resume_left = 0
        # The epoch under way with its number. Not the iteration, which ends when its loop lets go of it.
        self._open: tuple[_packds.Epoch, int] | None = None
        # Where an iteration was that was left early, with its epoch.
        self._last_state: tuple[int, str] | None = None
        self._seal()
        self._warn()

    def _choice(self, weights: Any, balance: str | None, least: int) -> dict[str, Any]:
        """Which samples an epoch has, as the native part is told; there must be `least` of them."""
        weights = None if weights is None else weights_of(weights, len(self.datasets[0]), least)
        balance = None if balance is None else balance_of(self.datasets[0], balance)
        if balance is not None and self._samples is not None and weights is None:
            return {"weights": balanced_weights(self.datasets[0], balance, self._samples)}
        return {"samples": self._samples, "weights": weights, "balance": balance}

    def _make(self, options: dict[str, Any]) -> _packds.Loader:
        return _packds.Loader([dataset._pack for dataset in self.datasets], options)

    def _planned(self, native: _packds.Loader, options: dict[str, Any]) -> Plan:
        return Plan(self.datasets, native, *self._output, mixes=mixes(options["augment"]))

    def _warn(self) -> None:
        """Warns of what costs accuracy."""
        for doubt in [*map(_in_python, self._native.doubts()), *self._unmixed()]:
            warn(doubt)

    def _unmixed(self) -> list[str]:
        """That fields stay as they are stored while images are mixed, where it is so."""
        names = self._plan.unmixed
        if not names:
            return []
        stay = "stays" if len(names) == 1 else "stay"
        quoted = ", ".join(f"`{name}`" for name in names)
        return [
            f"{quoted} {stay} as stored while images are mixed: batch.mix, of loader.batches(), says with which and how much; "
            "fields= leaves out what is not wanted"
        ]

    def _twin(self) -> Loader:
        """A loader with the same options and a ring of its own, whose batches nobody misses."""
        twin = Loader.__new__(Loader)
        twin.__dict__.update(self.__dict__)
        twin._native, twin._made_in = self._native.twin(), os.getpid()
        twin._open = twin._resume = twin._last_state = None
        return twin

    @property
    def dataset(self) -> Dataset | Subset:
        """The pack; of several the first; with `samples` a `Subset` of it. `datasets` has the packs themselves."""
        return self.datasets[0] if self._samples is None else Subset(self.datasets[0], self._samples)

    @property
    def n_samples(self) -> int:
        """Samples of the epoch that is under way or comes next, of all ranks together, before its last batch is left out or
        filled up: those of the pack, or that `samples` selects; with `weights` and `balance` each as often as it comes."""
        return 0 if self.epoch > _LAST_EPOCH else self._native.samples(self.epoch)

    @property
    def seed(self) -> int:
        """The seed of order and augmentation: the one that was given, drawn, or went on with."""
        seed: int = self._options["seed"]
        return seed

    # Iterating.

    def __iter__(self) -> Iterator[Any]:
        return _Iteration(self, whole=False)

    def batches(self) -> Iterator[Batch]:
        """As iterating, with `Batch` objects: they know samples, step, padding and what was bad."""
        return _Iteration(self, whole=True)

    def _begin(self) -> _packds.Epoch:
        check_group(self._asked_rank, (self.rank, self.world))
        self._own()
        # Left behind in a traceback, say; there is one ring for all iterations.
        self.close()
        if self._resume is None:
            epoch = self._native.epoch(_numbered(self._number))
        else:
            epoch = self._native.epoch_at(self._resume)
        number, self._resume = _number_of(epoch), None
        # What is left early is gone on from by its state alone: the next iteration is the next epoch.
        self._number = number + 1
        self._open = (epoch, number)
        self._last_state = None
        make_known()
        return epoch

    def _own(self) -> None:
        """Threads do not survive a fork: the child makes its own, with what was decided so far."""
        if os.getpid() != self._made_in:
            if self._plan.gpu is not None:
                raise OptionError("CUDA does not work in a forked process", "make the loader in the process that trains")
            self._made_in, self._open = os.getpid(), None
            self._native = self._native.resumed(self._resume or self._native.state_of(_numbered(self._number)))

    def _stopped(self, epoch: _packds.Epoch) -> None:
        """An iteration is left: remembers where it was."""
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
        """Batches that each rank gets in the whole epoch that is under way or comes next; `batches_left` is what is left of it. 0 behind
        the last epoch that has a number."""
        return 0 if self.epoch > _LAST_EPOCH else self._native.steps(self.epoch)

    @property
    def batches_left(self) -> int:
        """Batches that the iteration under way has still to give, or else the next one will: fewer than `len(loader)` where it
        goes on from a state in the middle of an epoch."""
        if self._open is None:
            return self._resume_left if self._resume is not None else len(self)
        left = self._open[0].left
        return 0 if left is None else left

    @property
    def epoch(self) -> int:
        """The epoch that is under way, or that comes next."""
        return self._open[1] if self._open is not None else self._number

    def set_epoch(self, epoch: int) -> None:
        """Makes the next iteration epoch `epoch`, from its first batch."""
        self._number, self._resume, self._last_state = whole("epoch", epoch, 32), None, None

    # Changing what batches are, between epochs.

    @property
    def batch_size(self) -> int:
        """Samples of a batch, on each rank. Assign another for the epochs that come: the packs stay open."""
        samples: int = self._options["batch"]
        return samples

    @batch_size.setter
    def batch_size(self, samples: int) -> None:
        self._change("batch_size", batch=whole("batch_size", samples, 32))

    @property
    def augment(self) -> str | Sequence[str] | None:
        """What is done to images, as `augment=` has it. Assign another for the epochs that come."""
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
        """(width, height) that `augment` crops to; None where it does not. Assign another, or one number for both, for the epochs
        that come: `rrc`, `crop` or `center` gets that size, a `resize` before it grows or shrinks alike, and all other words stay."""
        return crop_of(self._augment)

    @resolution.setter
    def resolution(self, size: int | tuple[int, int]) -> None:
        self._change_augment(cropped_to(self._unsized, size))

    def _change(self, name: str, **changed: Any) -> None:
        """Makes the native loader anew with other options. What does not fit leaves this one as it was."""
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

    # Stopping and going on.

    def state_dict(self) -> dict[str, Any]:
        """Where it is: after the last batch that was taken. Plain numbers and text, for any checkpoint.

        Batches made ahead do not count. Any rank may save it, and any number of ranks and threads may go on from it.
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
        """Goes on from a saved state: the next iteration gives the batches that were left of its epoch.

        Raises:
            OptionError: The state is of another pack, seed, order or choice of samples; the text names what differs.
        """
        if not isinstance(state, Mapping):
            raise OptionError(f"state: expected what state_dict() gave, found {state!r}")
        version = state.get("version")
        if not isinstance(version, int) or version != _STATE_VERSION:
            raise OptionError(f"state: expected one of version {_STATE_VERSION}, found {version!r}")
        saved = _checks.text("state", state.get("state"))
        self._own()
        self.close()
        options, native = self._options, self._native
        if self._is_drawn and (seed := seed_of(saved)) is not None:
            # A seed that was drawn is that of the run that goes on.
            options = options | {"seed": seed}
            native = self._make(options)
        native = native.resumed(saved)
        # Refused here, not when it is iterated over. Behind an epoch's last batch comes the next epoch.
        epoch = native.epoch_at(saved)
        self._native, self._options = native, options
        self._number, self._resume, self._last_state = _number_of(epoch), saved, None
        self._resume_left = _left(epoch)

    # What it tells.

    def stats(self) -> dict[str, Any]:
        """What was done so far and who waited for whom, in seconds: docs/reference/loading.md, "What binds"."""
        return json_dict(self._native.stats())

    def tuning(self) -> list[dict[str, Any]]:
        """What `threads` and `prefetch` were set to while it ran where they are `auto`, and why, the oldest first.

        Returns:
            Dicts with `batches` (handed over by then), `threads` and `prefetch` (from then on) and `why`, a sentence.
        """
        keys = ("batches", "threads", "prefetch", "why")
        return [dict(zip(keys, (*entry[:3], words(entry[3])))) for entry in self._native.tuning()]

    def shuffle_report(self) -> dict[str, Any]:
        """How random the batches are, and what that costs."""
        return json_dict(self._native.shuffle_report())

    def notices(self) -> list[str]:
        """What was decided where options left it open, and what is doubtful, in sentences."""
        return [*map(_in_python, self._native.notices()), *self._unmixed()]

    @property
    def access(self) -> tuple[str, str, str]:
        """How the pack is read: `mapped` or `direct`, with which engine, and why."""
        return self._native.access()

    @property
    def tier(self) -> str | None:
        """Where the images are of which batches are made on a GPU: `resident` or `gpu-window`, there, `host-window` or `host`. None
        without a GPU."""
        return self._native.tier

    @property
    def fields(self) -> dict[str, tuple[str, tuple[int, ...] | None]]:
        """What each batch holds: element type, and the shape of one sample, None where it varies."""
        return {
            name: (dtype, None if shape is None else tuple(shape)) for name, _, dtype, shape in self._native.fields()
        }

    # Ending.

    def close(self) -> None:
        """Ends the iteration under way and its threads. Arrays that were handed out stay."""
        if self._open is not None:
            epoch, _ = self._open
            self._stopped(epoch)
            epoch.close()

    def __enter__(self) -> Loader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> Any:
        raise TypeError("a loader has threads and memory of its own: make one in each process, from its path")

    def __repr__(self) -> str:
        fields = ", ".join(
            f"{name}: {dtype} {'of sizes of their own' if shape is None else list(shape)}"
            for name, (dtype, shape) in self.fields.items()
        )
        on_gpu = "" if self.tier is None else f" on {self._plan.device} ({self.tier})"
        return f"<packds.Loader {self.dataset.path!r}: {len(self)} batches of {self.batch_size}{on_gpu}, {fields}>"
