"""Finds the bottleneck of training, the possible speed, and what to change."""

from __future__ import annotations

import contextlib
import html
import os
import random
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from . import _packds
from ._arrays import json_dict
from ._checks import number, truth
from ._cuda import SIMULATED, device_name, number_of
from ._dataset import PathLike
from ._errors import Error, OptionError
from ._loader import Loader

#: The typical, the fastest and the slowest batch in milliseconds, and whether there were too few batches.
_Times = tuple[float, float, float, bool]
_Step = Callable[[Any], Any]

#: Shares of the duration: for steps alone, for unchanged training, and for everything else.
_STEP, _TRAINED, _REST = 0.15, 0.25, 0.6
#: Minimum number of batches in a run, and the multiple of its time that a run may take to reach this number.
_LEAST_BATCHES, _PATIENCE = 10, 2
#: Maximum numbers of samples: those that are timed one by one, and those of them that are kept for packing.
_MOST_SAMPLES, _KEPT_SAMPLES = 256, 64
_NONE: _Times = (0.0, 0.0, 0.0, False)


class DoctorReport:
    """The bottleneck of training, the possible speed, and what to change. Returned by `packds.doctor`.

    >>> report = packds.doctor(packds.Loader("train.pack", batch_size=4), lambda batch: None, seconds=0.1)
    >>> report.binds in report.stages
    True
    >>> changes = [advice["change"] for advice in report.advice]  # the most effective first

    Attributes:
        binds: The bottleneck: `step`, `copy`, `transform`, `decode` or `read`.
        stages: Milliseconds per batch for each of these stages, measured alone.
        ladder: Images per second with the pipeline cached up to each stage, from `device_batch` (the step alone) to `source`
            (nothing cached).
        advice: Worthwhile changes, the most effective first: dicts with `change`, `text`, `images_per_s`.
        images_per_s: The current rate.
        possible_images_per_s: The rate if only the step took time.
        modelled_images_per_s: The rate that the stages predict.
        unexplained_ms: Milliseconds per batch that no stage explains, beyond the spread. Advice does not include them.
        spread: The variation of times within runs, as a share of their median.
        is_rough: Whether the spread is above 25 %, so that rates are only approximate.
        is_certain: Whether the times agree well enough to trust `binds`.
        checked: With `check=True`, the advice that was followed, and the predicted and the measured rate; otherwise None.
        notes: Remarks on the measurement.
    """

    def __init__(self, native: _packds.Diagnosis, name: str, notes: list[str]) -> None:
        self._native, self._name = native, name
        self._document: dict[str, Any] = json_dict(native.document())
        self.binds: str = self._document["binds"]
        self.stages: dict[str, float] = self._document["stages"]
        self.ladder: dict[str, float | None] = self._document["ladder"]
        self.advice: list[dict[str, Any]] = self._document["advice"]
        self.images_per_s: float = self._document["images_per_s"]
        self.possible_images_per_s: float | None = self._document["possible_images_per_s"]
        self.modelled_images_per_s: float | None = self._document["modelled_images_per_s"]
        self.unexplained_ms: float = self._document["unexplained_ms"]
        self.spread: float = self._document["spread"]
        self.is_rough: bool = self._document["is_rough"]
        self.is_certain: bool = self._document["is_certain"]
        self.checked: dict[str, Any] | None = self._document["checked"]
        self.notes = notes

    def to_dict(self) -> dict[str, Any]:
        """All results, as in `packds doctor --json`.

        >>> report = packds.doctor(packds.Loader("train.pack", batch_size=4), lambda batch: None, seconds=0.1)
        >>> report.to_dict()["binds"] == report.binds
        True
        """
        return {**self._document, "notes": self.notes}

    def plot(self, path: PathLike) -> None:
        """Draws the report as an .svg or .png file. An existing file is overwritten.

        >>> report = packds.doctor(packds.Loader("train.pack", batch_size=4), lambda batch: None, seconds=0.1)
        >>> report.plot("report.svg")
        """
        self._native.plot(self._name, path)

    def __repr__(self) -> str:
        notes = "".join(f"note     {note}\n" for note in self.notes)
        return (self._native.text() + notes).rstrip("\n")

    def _repr_html_(self) -> str:
        notes = "".join(f"<p>{html.escape(note)}</p>" for note in self.notes)
        return self._native.picture(self._name) + notes


def doctor(
    loader: Any,
    train_step: _Step,
    *,
    seconds: float = 30.0,
    device: Any = None,
    check: bool = False,
    plot: PathLike | None = None,
) -> DoctorReport:
    """Measures training with batches cached at each stage in turn, and reports the bottleneck.

    `train_step` really trains, so pass a model that may change. The loader's position in its epoch does not change.

    >>> def train_step(batch):
    ...     images, labels = batch
    ...     return images.mean()
    >>> report = packds.doctor(packds.Loader("train.pack", batch_size=4), train_step, seconds=0.1)
    >>> report.images_per_s > 0
    True

    Args:
        loader: A `packds.Loader`, or a PyTorch `DataLoader`. For a DataLoader, the report also estimates the speed with a pack.
        train_step: A function that is called with each batch of the loader.
        seconds: Approximate duration. Slow sources take up to twice as long.
        device: The device to which `train_step` moves batches by itself. By default, the loader's device. If that is the CPU
            and PyTorch finds a GPU, the current GPU.
        check: Applies the first recommended change that is an option of a `packds.Loader`, and measures again. With other
            loaders, this option is an error before anything is measured.
        plot: An .svg or .png file for the chart.
    """
    if not number("seconds", seconds) > 0:
        raise OptionError(f"seconds: expected a number above 0, found {seconds!r}")
    if not callable(train_step):
        raise OptionError(f"train_step: expected a function of a batch, found {train_step!r}")
    truth("check", check)
    _check_plot(plot)
    _check_device(device)
    if isinstance(loader, Loader):
        report = _of_packds(loader, train_step, seconds, device, check)
    elif hasattr(loader, "collate_fn") and hasattr(loader, "num_workers"):
        if check:
            # Checked before anything is measured.
            raise OptionError("check: only the options of a packds.Loader can be changed and measured again")
        report = _of_torch(loader, train_step, seconds, device)
    else:
        raise OptionError(f"expected a packds.Loader or a torch DataLoader, found {type(loader).__name__}")
    if plot is not None:
        report.plot(plot)
    return report


def _check_plot(plot: PathLike | None) -> None:
    """Checks the path before anything is measured."""
    if plot is None:
        return
    path = os.path.abspath(os.fspath(plot))
    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        raise OptionError(f"plot: there is no folder {folder!r}")
    if os.path.splitext(path)[1].lower() not in (".svg", ".png"):
        raise OptionError(f"plot: expected a name that ends in .svg or .png, found {os.path.basename(path)!r}")


def _check_device(device: Any) -> None:
    """Checks that batches can be moved to a device."""
    if device is None or str(device) == "cpu":
        return
    torch = sys.modules.get("torch")
    if torch is None:
        raise OptionError(f"device: {device!r} needs PyTorch, which is not imported; expected 'cpu'")
    name = device_name(device, "torch")
    if name == SIMULATED:
        raise OptionError(f"device: expected a device of PyTorch, found {name!r}")
    gpu = number_of(name)
    if gpu is not None and int(gpu) >= torch.cuda.device_count():
        raise OptionError(f"device: PyTorch finds no GPU for {name!r}")


# Timing.


def _repeated(work: Callable[[], Any], within: float) -> _Times:
    """Milliseconds that `work` takes after one warm-up run, including its pending work on a GPU."""
    _wait()
    started = time.perf_counter()
    work()
    _wait()
    times: list[float] = []
    while len(times) < 3 or (time.perf_counter() - started < within and len(times) < 200):
        begun = time.perf_counter()
        work()
        _wait()
        times.append((time.perf_counter() - begun) * 1e3)
        if time.perf_counter() - started > within * _PATIENCE:
            break
    times.sort()
    middle = len(times) // 2
    return (times[middle] + times[~middle]) / 2, times[0], times[-1], False


def _run(batches: Callable[[], Any], work: _Step, within: float, lead: int) -> _packds.Clock:
    """Runs epochs, and records when the work on each batch was finished. When an epoch begins, `lead` batches arrive together."""
    started = time.perf_counter()
    clock = _packds.Clock(lead)
    first = None
    while True:
        before = clock.batches()
        clock.begin_epoch((time.perf_counter() - started) * 1e3)
        for batch in batches():
            work(batch)
            _wait()
            now = time.perf_counter()
            clock.tick((now - started) * 1e3)
            # The time to start workers does not count towards the duration.
            first = now if first is None else first
            if now - first > within * _PATIENCE or (now - first > within and clock.batches() >= _LEAST_BATCHES):
                return clock
        clock.end_epoch()
        if clock.batches() == before:
            break
    if not before:
        raise OptionError("the loader does not yield any batches")
    return clock


def _known(time: _Times | None) -> _Times:
    """The time of a run with at least one batch."""
    assert time is not None
    return time


def _wait() -> None:
    """Waits for GPUs to finish their work. Does nothing without a GPU."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available() and torch.cuda.is_initialized():
        torch.cuda.synchronize()


def _to(batch: Any, device: Any) -> Any:
    """Moves all tensors of a batch to a device."""
    if hasattr(batch, "to"):
        return batch.to(device, non_blocking=True)
    if isinstance(batch, dict):
        return {key: _to(value, device) for key, value in batch.items()}
    if isinstance(batch, (tuple, list)):
        values = [_to(value, device) for value in batch]
        return tuple(values) if isinstance(batch, tuple) else values
    return batch


def _pinned(batch: Any) -> Any:
    if hasattr(batch, "pin_memory"):
        return batch.pin_memory()
    if isinstance(batch, dict):
        return {key: _pinned(value) for key, value in batch.items()}
    if isinstance(batch, (tuple, list)):
        return [_pinned(value) for value in batch]
    return batch


def _device(device: Any, default: str) -> str:
    if device is not None:
        return str(device)
    torch = sys.modules.get("torch")
    if default == "cpu" and torch is not None and torch.cuda.is_available():
        return "cuda"
    return default


def _steps(batch: Any, train_step: _Step, device: str, within: float) -> dict[str, Any]:
    """Times the step with a batch on the device, and the copy of a batch to the device."""
    if device == "cpu":
        return {"step": _repeated(lambda: train_step(batch), within), "copy": _NONE, "pinned_copy": None}
    there, here = _to(batch, device), _to(batch, "cpu")
    pinned = _pinned(here)
    return {
        "step": _repeated(lambda: train_step(there), within),
        "copy": _repeated(lambda: _to(here, device), within / 4),
        "pinned_copy": _repeated(lambda: _to(pinned, device), within / 4)[0],
    }


# packds.Loader.


def _of_packds(loader: Loader, train_step: _Step, seconds: float, device: Any, check: bool) -> DoctorReport:
    twin = loader._twin()
    where = _device(device, loader._plan.device)
    batches = iter(twin)
    batch = next(batches, None)
    twin.close()
    if batch is None:
        raise OptionError("the loader does not yield any batches")
    # If the loader itself copies batches to the GPU, `examine` below measures the copies.
    step = _steps(batch, train_step, "cpu" if loader._plan.device != "cpu" else where, seconds * _STEP)
    del batch, batches
    step["trained"] = _known(_run(lambda: twin, train_step, seconds * _TRAINED, twin.stats()["threads"]).time())
    twin.close()
    native = twin._native.examine(step, seconds * _REST, check)
    notes = []
    if where == "cpu":
        notes.append("the step runs on the CPU and shares the cores with the loader's threads")
    report = DoctorReport(native, os.path.basename(loader.dataset.path), notes)
    if check and report.checked is None:
        notes.append("check: no recommended change is a loader option, so nothing was measured again")
    return report


# PyTorch's DataLoader.


def _of_torch(loader: Any, train_step: _Step, seconds: float, device: Any) -> DoctorReport:
    where = _device(device, "cpu")
    cores = len(os.sched_getaffinity(0))
    notes: list[str] = []
    # Runs without cached data come first, because every run leaves more of the data in memory.
    samples = _Samples(loader, seconds * 0.15)
    # The workers' first batches arrive together.
    lead = max(loader.num_workers, 1)
    loaded = _run(lambda: loader, lambda _: None, seconds * 0.2, lead)
    source = _known(loaded.steady_time())
    batch = next(iter(loader))
    step = _steps(batch, train_step, where, seconds * _STEP)
    if loader.pin_memory:
        step["pinned_copy"] = None
    n, counted = _samples_of(loader, batch)
    notes += counted
    del batch
    training = _run(lambda: loader, train_step, seconds * _TRAINED, lead)
    # Persistent workers are started once for all epochs.
    trained = _known(training.steady_time() if loader.persistent_workers else training.time())
    notes += _starts(loader, loaded)
    if not samples.has_transform:
        notes.append("the dataset has no attribute `transform`: its transforms count as `decode`")
    if not samples.comes_again:
        notes.append("the dataset is iterable: all waiting counts as `read`, and it is unknown what would shorten it")
    stages = samples.stages(n, loader.num_workers, cores)
    # If a batch took less time than its stages together, the stages are scaled down. If it took longer, the rest is the time to
    # transfer the batch, and is added to collating.
    alone = sum(stages)
    collate, transform, decode, warm, cold = (ms * min(1.0, source[0] / max(alone, 1e-9)) for ms in stages)
    collate += max(source[0] - alone, 0.0)
    converted = _converted(samples.kept, n, seconds * 0.1)
    if converted is not None and not samples.comes_again and not samples.left_out:
        notes.append("the dataset is iterable: its random transforms are unknown, and not included in the estimate")
    if converted is None:
        notes.append("the speed with a pack could not be measured: the samples cannot be packed unchanged")
    case = {
        **step,
        "batch": n,
        "overlap": "workers" if loader.num_workers else "nothing",
        "processed": _exactly(collate),
        "decoded": _exactly(collate + transform),
        "raw": _exactly(collate + transform + decode),
        "page_cache": _exactly(collate + transform + decode + warm),
        "source": source,
        "read": _exactly(warm + cold),
        "trained": trained,
        "threads": loader.num_workers,
        "cores": cores,
        "converted": converted,
        "left_out": samples.left_out,
    }
    return DoctorReport(_packds.diagnose(case), type(loader.dataset).__name__, notes)


def _starts(loader: Any, loaded: _packds.Clock) -> list[str]:
    """A note about the start of epochs, if starting workers takes much of their time."""
    whole, steady = _known(loaded.time())[0], _known(loaded.steady_time())[0]
    if loader.persistent_workers or not loader.num_workers or whole < steady * 1.1:
        return []
    return [
        f"a batch takes {whole:.0f} ms on average, but {steady:.0f} ms in the middle of an epoch: each epoch begins by starting workers; "
        "persistent_workers=True avoids this"
    ]


def _exactly(ms: float) -> _Times:
    return ms, ms, ms, False


def _samples_of(loader: Any, batch: Any) -> tuple[int, list[str]]:
    """Number of samples per batch, and notes about it."""
    if loader.batch_sampler is not None:
        return _length(batch) or loader.batch_size or 1, []
    dataset, torch = loader.dataset, sys.modules.get("packds.torch")
    if torch is not None and isinstance(dataset, torch.IterableDataset):
        return _length(batch) or 1, ["the DataLoader has batch_size=None: rates count the samples of the dataset's own batches"]
    return 1, ["the DataLoader has batch_size=None: each item of the dataset counts as one image, however many images it has"]


def _length(batch: Any) -> int | None:
    """Number of samples in a batch: the length of its first tensor."""
    if isinstance(batch, dict):
        batch = list(batch.values())
    if isinstance(batch, (tuple, list)):
        return _length(batch[0]) if batch else None
    try:
        return len(batch)
    except TypeError:
        return None


class _Samples:
    """Samples of a dataset, made one by one in this process, with the seconds that each takes to read, decode and transform."""

    def __init__(self, loader: Any, within: float) -> None:
        dataset = loader.dataset
        self.comes_again = hasattr(dataset, "__getitem__") and hasattr(dataset, "__len__")
        random_steps = _random_steps(dataset)
        self._differ = False
        self.kept: list[Any] = []
        self._indices: list[int] = []
        self._collate_fn = loader.collate_fn if loader.batch_sampler is not None else None
        with _one_thread(), _timed_transform(dataset) as transform:
            self.has_transform = transform is not None
            if self.comes_again:
                n = min(len(dataset), _MOST_SAMPLES)
                self._indices = random.Random(0).sample(range(len(dataset)), n)
                first = self._pass(lambda index: dataset[index], within)
                self._indices = self._indices[: len(first)]
                if transform is not None:
                    transform.clear()
                second = self._pass(lambda index: dataset[index], within * _PATIENCE, again=True)
            else:
                self._indices = list(range(_MOST_SAMPLES))
                samples = iter(dataset)
                first = second = self._pass(lambda _: next(samples), within)
            n = max(len(second), 1)
            wall, processor = (sum(one[which] for one in second) / n for which in (0, 1))
            self._transform = min(sum(transform) / n, processor) if transform else 0.0
        cold = sum(one[0] for one in first) / max(len(first), 1)
        self._decode = processor - self._transform
        waits = max(wall - processor, 0.0)
        # For an iterable dataset, the cause of waiting is unknown, so no time is attributed to the
        # page cache.
        self._warm = waits
        self._cold = max(cold - wall, 0.0) if self.comes_again else 0.0
        self._collate = self._collated()
        #: Names of the random steps, which cached samples leave out.
        self.left_out = ", ".join(random_steps) or ("what makes samples differ each time" if self._differ else None)

    def _pass(self, get: Callable[[int], Any], within: float, again: bool = False) -> list[tuple[float, float]]:
        """Wall and CPU seconds of samples, in order, until time is up. The second pass also determines whether samples change."""
        started = time.perf_counter()
        times: list[tuple[float, float]] = []
        for index in self._indices:
            begun, processor = time.perf_counter(), _worked()
            try:
                sample = get(index)
            except StopIteration:
                break
            times.append((time.perf_counter() - begun, _worked() - processor))
            if again:
                kept = self.kept[len(times) - 1 : len(times)]
                self._differ = self._differ or not all(_is_same(sample, before) for before in kept)
            elif len(self.kept) < _KEPT_SAMPLES:
                self.kept.append(sample)
            if time.perf_counter() - started > within:
                break
        return times

    def _collated(self) -> float:
        """Seconds to put a sample into its batch."""
        if self._collate_fn is None or not self.kept:
            return 0.0
        collate = self._collate_fn
        return _repeated(lambda: collate(self.kept), 0.2)[0] / 1e3 / len(self.kept)

    def stages(self, n: int, workers: int, cores: int) -> list[float]:
        """Milliseconds per batch of `n` samples for all workers together: collating, transforming, decoding, and waiting for
        cached and uncached data. Workers wait in parallel, but share the cores."""
        computing, waiting = n * 1e3 / max(1, min(workers, cores)), n * 1e3 / max(1, workers)
        computed = [ms * computing for ms in (self._collate, self._transform, self._decode)]
        return [*computed, self._warm * waiting, self._cold * waiting]


def _worked() -> float:
    """Seconds in which this thread was running, or ready to run but not scheduled. In both cases, it is not waiting for data."""
    try:
        with open("/proc/thread-self/schedstat", encoding="ascii") as file:
            queued = int(file.read().split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        # The kernel does not report how long threads wait for a core.
        queued = 0.0
    return time.thread_time() + queued


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    """Runs PyTorch with one thread, like a worker. The thread's time then includes the whole computation."""
    torch = sys.modules["torch"]
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextlib.contextmanager
def _timed_transform(dataset: Any) -> Iterator[list[float] | None]:
    """Measures the seconds of each call of the dataset's transform. Yields their list, or None without a transform."""
    dataset = _transforming(dataset)
    found = _transforms(dataset)
    times: list[float] = []

    def timed(transform: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            begun = _worked()
            try:
                return transform(*args, **kwargs)
            finally:
                times.append(_worked() - begun)

        return call

    for name, transform in found.items():
        setattr(dataset, name, timed(transform))
    try:
        yield times if found else None
    finally:
        for name, transform in found.items():
            setattr(dataset, name, transform)


def _transforming(dataset: Any) -> Any:
    """The dataset that applies the transform: the dataset itself, or the dataset that it wraps (as a subset, for example)."""
    while not _transforms(dataset) and hasattr(dataset, "dataset"):
        dataset = dataset.dataset
    return dataset


def _transforms(dataset: Any) -> dict[str, Callable[..., Any]]:
    """The two attributes for transforms in torchvision's datasets. A dataset calls one of them with images."""
    own = getattr(dataset, "__dict__", {})
    return {name: own[name] for name in ("transform", "transforms") if callable(own.get(name))}


#: Random transforms whose names do not start with Random.
_DRAWING = ("AutoAugment", "RandAugment", "TrivialAugmentWide", "AugMix", "ColorJitter", "ElasticTransform", "GaussianBlur", "GaussianNoise")


def _random_steps(dataset: Any) -> list[str]:
    """The names of a dataset's random transforms that can be found in its `transform`."""
    waiting = list(_transforms(_transforming(dataset)).values())
    names: list[str] = []
    while waiting:
        step = waiting.pop(0)
        # The attributes of Compose, of the wrappers in Subset and VisionDataset, and of Sequential.
        inner = getattr(step, "transforms", None) or getattr(step, "transform", None) or getattr(step, "_modules", None)
        inner = list(inner.values()) if isinstance(inner, dict) else inner
        steps = list(inner) if isinstance(inner, (list, tuple)) else [inner] if callable(inner) else []
        name, chance = type(step).__name__, getattr(step, "p", None)
        draws = isinstance(chance, float) and 0 < chance < 1
        if name.startswith("Random") or name in _DRAWING or draws:
            names.append(name)
        else:
            waiting = steps + waiting
    return list(dict.fromkeys(names))


def _is_same(one: Any, other: Any) -> bool:
    """Whether two samples are the same. Objects that do not compare by their contents are considered the same."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_is_same(one[key], other[key]) for key in one)
    if isinstance(one, (tuple, list)) and isinstance(other, (tuple, list)):
        return len(one) == len(other) and all(map(_is_same, one, other))
    if hasattr(one, "shape") and hasattr(other, "shape") and one.shape != other.shape:
        return False
    compares: Any = type(one).__eq__
    if compares is object.__eq__:
        return True
    same = one == other
    return bool(same.all() if hasattr(same, "all") else same)


def _converted(samples: list[Any], n: int, within: float) -> float | None:
    """Milliseconds to load a batch of `n` samples from a pack of these samples. None if they cannot be packed."""
    from ._write import from_dataset

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "samples.pack")
        try:
            with warnings.catch_warnings():
                # Warnings about a temporary pack do not help the user.
                warnings.simplefilter("ignore")
                from_dataset(samples, path, keep_order=True, progress=False)
            with Loader(path, batch_size=max(1, len(samples)), rank=None) as loader:
                ms = _known(_run(lambda: loader, lambda _: None, within, loader.stats()["threads"]).steady_time())[0]
        except (Error, TypeError, ValueError):
            return None
        return ms * n / max(1, len(samples))
