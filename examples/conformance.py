"""Checks what training relies on: a loader delivers every sample once, gives all ranks the same number of steps, and resumes
where it stopped.

    python conformance.py                             # packds's three data loaders, and PyTorch's over an ImageFolder
    python conformance.py loader map-dataset          # some of them
    python conformance.py my_adapters:MyLoader        # another loader: the class MyLoader in my_adapters.py is its adapter (see `Run`)

An endless loader fails: each check has a time limit, and each epoch a maximum number of batches. Needs Pillow, and packds for
packds's own loaders and for adapters that read the pack. docs/how-to/conformance.md lists the checks, and explains how to write
an adapter.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import importlib.util
import itertools
import os
import pathlib
import pickle
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from typing import Any, Protocol

#: Not a multiple of the batch, so samples remain at the end of an epoch.
SAMPLES, BATCH, SEED = 101, 8, 7
#: Limits for endless loaders: batches per epoch, far more than needed, and seconds per check.
MOST_BATCHES, SECONDS = 10 * SAMPLES, 300.0
Batch = list[int]


@dataclasses.dataclass(frozen=True)
class Data:
    """A dataset for the checks: sample `i` is the only one in its class, so its label is `i`."""

    folder: pathlib.Path
    #: The file is missing if packds is not installed.
    pack: pathlib.Path

    @classmethod
    def make(cls, folder: pathlib.Path) -> Data:
        """Creates an image folder, and a pack of it."""
        from PIL import Image

        images = folder / "images"
        for number in range(SAMPLES):
            (images / f"{number:03}").mkdir(parents=True)
            Image.new("RGB", (8, 8), (number, number, number)).save(images / f"{number:03}" / "a.png")
        if is_installed("packds"):
            import packds

            packds.convert(images, folder / "images.pack", chunk=4, progress=False)
        return cls(images, folder / "images.pack")


class Run(Protocol):
    """An adapter: one rank of a training run. Its batch is the global batch `batch` divided by `world`."""

    #: How many global batches the loader makes at a time, for example in workers: up to this many may be dropped at the
    #: end of an epoch.
    at_once: int

    def __init__(self, data: Data, rank: int, world: int, batch: int) -> None: ...

    def epoch(self) -> Iterator[Batch]:
        """The labels of each batch of the next epoch; after `go_on`, of the rest of the saved epoch."""

    def state(self) -> Any:
        """The state of the run after the last batch from `epoch`. It is pickled."""

    def go_on(self, state: Any) -> None:
        """Resumes a state, which may be from another rank, and from a run with more or fewer ranks."""


# The built-in adapters.


class Loader:
    """`packds.Loader`."""

    at_once = 1
    needs = ("packds",)

    def __init__(self, data: Data, rank: int, world: int, batch: int) -> None:
        import packds

        self.loader = packds.Loader(data.pack, batch // world, seed=SEED, rank=(rank, world))

    def epoch(self) -> Iterator[Batch]:
        return (labels.tolist() for _, labels in self.loader)

    def state(self) -> Any:
        return self.loader.state_dict()

    def go_on(self, state: Any) -> None:
        self.loader.load_state_dict(state)


class IterableDataset:
    """`packds.torch.IterableDataset` in PyTorch's DataLoader, which has no state, so the dataset's state is saved."""

    at_once = 1
    needs = ("packds", "torch")

    def __init__(self, data: Data, rank: int, world: int, batch: int) -> None:
        import torch.utils.data

        from packds.torch import IterableDataset

        self.dataset = IterableDataset(data.pack, batch // world, seed=SEED, rank=(rank, world))
        self.loader = torch.utils.data.DataLoader(self.dataset, batch_size=None)

    def epoch(self) -> Iterator[Batch]:
        return (labels.tolist() for _, labels in self.loader)

    def state(self) -> Any:
        return self.dataset.state_dict()

    def go_on(self, state: Any) -> None:
        self.dataset.load_state_dict(state)


class StatefulWorkers:
    """`packds.torch.IterableDataset` in the workers of torchdata's StatefulDataLoader."""

    at_once = 2
    needs = ("packds", "torch", "torchdata")

    def __init__(self, data: Data, rank: int, world: int, batch: int) -> None:
        from torchdata.stateful_dataloader import StatefulDataLoader

        from packds.torch import IterableDataset

        dataset = IterableDataset(data.pack, batch // world, seed=SEED, rank=(rank, world))
        self.loader = StatefulDataLoader(dataset, batch_size=None, num_workers=2)

    def epoch(self) -> Iterator[Batch]:
        return (labels.tolist() for _, labels in self.loader)

    def state(self) -> Any:
        return self.loader.state_dict()

    def go_on(self, state: Any) -> None:
        self.loader.load_state_dict(state)


class Sampled:
    """A map-style dataset in PyTorch's DataLoader. It resumes by skipping the number of steps already done."""

    at_once = 1
    needs: tuple[str, ...] = ("torch",)
    dataset: Any

    def __init__(self, data: Data, rank: int, world: int, batch: int) -> None:
        import torch.utils.data

        self.dataset = self.opened(data)
        sampler_of = torch.utils.data.DistributedSampler
        self.sampler = sampler_of(self.dataset, world, rank, shuffle=True, seed=SEED, drop_last=True)
        self.size, self.next_epoch, self.step = batch // world, 0, 0
        self.saved = (0, 0)

    def opened(self, data: Data) -> Any:
        raise NotImplementedError

    def epoch(self) -> Iterator[Batch]:
        import torch.utils.data

        epoch, step = self.next_epoch, self.step
        self.next_epoch, self.step = epoch + 1, 0
        self.sampler.set_epoch(epoch)
        batches = torch.utils.data.BatchSampler(self.sampler, self.size, drop_last=True)
        left = list(itertools.islice(batches, step, None))
        for _, labels in torch.utils.data.DataLoader(self.dataset, batch_sampler=left):
            step += 1
            self.saved = (epoch, step)
            yield labels.tolist()

    def state(self) -> Any:
        return self.saved

    def go_on(self, state: Any) -> None:
        self.next_epoch, self.step = state


class MapDataset(Sampled):
    """`packds.torch.MapDataset`."""

    needs = ("packds", "torch")

    def opened(self, data: Data) -> Any:
        from packds.torch import MapDataset

        return MapDataset(data.pack)


class ImageFolder(Sampled):
    """torchvision's ImageFolder."""

    needs = ("torch", "torchvision")

    def opened(self, data: Data) -> Any:
        from torchvision import datasets, transforms

        return datasets.ImageFolder(str(data.folder), transforms.ToTensor())


ADAPTERS: dict[str, type[Run]] = {
    "loader": Loader,
    "iterable-dataset": IterableDataset,
    "stateful-workers": StatefulWorkers,
    "map-dataset": MapDataset,
    "image-folder": ImageFolder,
}


# The checks. Each raises a `Failed` with what was expected and found.


class Failed(Exception):
    """A check failed."""


def expect(holds: bool, found: str) -> None:
    # Not `assert`, which python -O removes.
    if not holds:
        raise Failed(found)


def exact_cover(adapter: type[Run], data: Data) -> None:
    """Every epoch has each sample once, except samples that do not fill the last global batches. Different epochs have
    different batches. Runs with the same seed have the same batches."""
    for world in (1, 2, 4):
        runs = ranks(adapter, data, world)
        epochs = [[list(epoch(run)) for run in runs] for _ in range(2)]
        for number, of_ranks in enumerate(epochs):
            covered(adapter, [batch for batches in of_ranks for batch in batches], f"epoch {number}, {world} ranks")
        expect(epochs[0] != epochs[1], f"{world} ranks: epochs 0 and 1 have the same batches in the same order")
        again = [list(epoch(run)) for run in ranks(adapter, data, world)]
        expect(again == epochs[0], f"{world} ranks: a second run with the same seed has different batches")


def equal_steps(adapter: type[Run], data: Data) -> None:
    """All ranks have the same number of batches in every epoch, and each batch is its share of the global batch."""
    for world in (1, 2, 4):
        runs = ranks(adapter, data, world)
        for number in range(2):
            of_ranks = [list(epoch(run)) for run in runs]
            steps = [len(batches) for batches in of_ranks]
            expect(len(set(steps)) == 1, f"epoch {number}: ranks have {steps} batches")
            sizes = {len(batch) for batches in of_ranks for batch in batches}
            expect(sizes == {BATCH // world}, f"epoch {number}, {world} ranks: batches have {sizes} samples")


def resume_twice(adapter: type[Run], data: Data) -> None:
    """A run that stops in the middle of an epoch, resumes, stops and resumes again has the same batches as an uninterrupted
    one."""
    (whole,) = ranks(adapter, data, 1)
    expected = [batch for _ in range(3) for batch in epoch(whole)]
    steps = len(expected) // 3
    for first, second in ((3, 2), (steps - 1, 1), (steps + 1, 1), (steps + 3, 4), (steps + 4, steps)):
        taken: list[Batch] = []
        state = None
        for more in (first, second, len(expected) - first - second):
            (run,) = ranks(adapter, data, 1)
            if state is not None:
                run.go_on(state)
            taken += itertools.islice(stream(run), more)
            state = pickle.loads(pickle.dumps(run.state()))
        expect(taken == expected, f"stopped after {first} batches and {second} more: {differs(taken, expected)}")


def elastic_ranks(adapter: type[Run], data: Data) -> None:
    """An epoch that begins on four ranks, continues on two and ends on one has each sample once, with the same global batch."""
    for steps in ((3, 2), (4, 4), (1, 0)):
        taken: list[Batch] = []
        state = None
        for world, more in zip((4, 2, 1), (*steps, None)):
            runs = ranks(adapter, data, world)
            for run in runs:
                # All ranks are in their second epoch.
                if state is None:
                    list(epoch(run))
                else:
                    run.go_on(state)
                taken += itertools.islice(epoch(run), more) if more != 0 else ()
            # Any rank can save the state.
            state = state if more == 0 else pickle.loads(pickle.dumps(runs[-1].state()))
        covered(adapter, taken, f"{steps[0]} steps on 4 ranks, {steps[1]} on 2, the rest on 1")


CHECKS: list[Callable[[type[Run], Data], None]] = [exact_cover, equal_steps, resume_twice, elastic_ranks]


def ranks(adapter: type[Run], data: Data, world: int) -> list[Run]:
    """All ranks of a new run."""
    return [adapter(data, rank, world, BATCH) for rank in range(world)]


def epoch(run: Run) -> Iterator[Batch]:
    """A run's batches of one epoch. Fails if the epoch does not end."""
    for number, batch in enumerate(run.epoch()):
        expect(number < MOST_BATCHES, f"an epoch of {SAMPLES} samples has more than {MOST_BATCHES} batches")
        yield batch


def stream(run: Run) -> Iterator[Batch]:
    """A run's batches, epoch by epoch. A resumed epoch may be empty."""
    for _ in range(4):
        yield from epoch(run)


def covered(adapter: type[Run], batches: list[Batch], where: str) -> None:
    """Checks that each sample occurs once. The number of missing samples must be less than the size of the last global batches."""
    seen = [sample for batch in batches for sample in batch]
    twice = sorted({sample for sample in seen if seen.count(sample) > 1})
    unknown = sorted(set(seen) - set(range(SAMPLES)))
    expect(not unknown, f"{where}: samples {unknown} are not in the dataset")
    expect(not twice, f"{where}: samples {twice} occurred more than once")
    left_out, allowed = SAMPLES - len(seen), BATCH * adapter.at_once
    expect(left_out < allowed, f"{where}: {left_out} of {SAMPLES} samples never occurred; fewer than {allowed} may be left out")


def differs(found: list[Batch], expected: list[Batch]) -> str:
    """The first difference between two runs."""
    for number, (one, other) in enumerate(zip(found, expected)):
        if one != other:
            return f"batch {number} is {one}, but was {other} without a stop"
    return f"{len(found)} batches, but {len(expected)} without a stop"


def failures(adapter: type[Run], data: Data, seconds: float = SECONDS) -> dict[str, str]:
    """The checks that a loader fails, with the findings. A check that hangs is abandoned after this many seconds."""
    failed: dict[str, str] = {}
    for number, check in enumerate(CHECKS):
        # A loader that hangs in native code cannot be stopped, so its thread is abandoned.
        running = threading.Thread(target=run_check, args=(check, adapter, data, failed), daemon=True)
        running.start()
        running.join(seconds)
        if running.is_alive():
            later = {other.__name__: f"not run, because {check.__name__} did not end" for other in CHECKS[number + 1 :]}
            return failed | {check.__name__: f"did not end within {seconds:g} s"} | later
    return failed


def run_check(check: Callable[[type[Run], Data], None], adapter: type[Run], data: Data, failed: dict[str, str]) -> None:
    """Runs a check, and adds a failure to `failed`."""
    try:
        check(adapter, data)
    except Failed as error:
        failed[check.__name__] = str(error)
    except BaseException as error:  # For example `SystemExit`, which would only end the thread.
        failed[check.__name__] = f"{type(error).__name__}: {error}"


def is_installed(module: str) -> bool:
    spec = importlib.util.find_spec(module)
    # Any folder with the module's name is a namespace package, which has no origin.
    return spec is not None and spec.origin is not None


def named(name: str) -> type[Run]:
    """The adapter with this name: a built-in one, or `module:class`."""
    if name in ADAPTERS:
        return ADAPTERS[name]
    module, found, attribute = name.partition(":")
    if not found:
        raise SystemExit(f"conformance: expected one of {', '.join(ADAPTERS)}, or module:class, found {name!r}")
    try:
        adapter: type[Run] = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise SystemExit(f"conformance: {name}: {error}; modules are searched in {os.getcwd()} first") from error
    return adapter


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("adapters", nargs="*", help=f"{', '.join(ADAPTERS)}, or module:class; default: all of these")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="time limit per check; default: %(default)g")
    asked = parser.parse_args()
    # Otherwise, Python would search the script's own folder and not the current one.
    sys.path.insert(0, os.getcwd())
    adapters = {name: named(name) for name in asked.adapters or ADAPTERS}
    is_checked, has_failed = False, False
    with tempfile.TemporaryDirectory() as folder:
        data = Data.make(pathlib.Path(folder))
        for name, adapter in adapters.items():
            missing = [module for module in getattr(adapter, "needs", ()) if not is_installed(module)]
            if missing:
                print(f"{name:<20} not checked: {missing[0]} is not installed", flush=True)
                # A loader named by the user must be checked.
                has_failed |= name in asked.adapters
                continue
            failed = failures(adapter, data, asked.seconds)
            for check in (check.__name__ for check in CHECKS):
                print(f"{name:<20} {check:<15} {'FAILED: ' + failed[check] if check in failed else 'ok'}", flush=True)
            is_checked, has_failed = True, has_failed or bool(failed)
    return 1 if has_failed or not is_checked else 0


if __name__ == "__main__":
    status = main()
    # Exits without waiting for checks that hang.
    os._exit(status)
