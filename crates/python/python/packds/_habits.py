"""Options of other loaders: an error that says what they are called here."""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable
from typing import ParamSpec, TypeVar

_P = ParamSpec("_P")
_R = TypeVar("_R")

_NAMES = {
    "shuffle": "order='random' or 'window' shuffles, and so does the default; order='sequential' does not",
    "num_workers": "give threads=, or leave it out: threads load as fast as training needs",
    "transform": "give augment=, normalize= and dtype=; packds.torch.MapDataset takes functions",
    "target_transform": "change labels in the loop; packds.torch.MapDataset takes functions",
    "collate_fn": "batches are made already; packds.torch.MapDataset with PyTorch's DataLoader takes functions",
    "pin_memory": "leave it out; device='cuda' copies batches to the GPU ahead of training",
    "pin_memory_device": "leave it out; device='cuda' copies batches to the GPU ahead of training",
    "prefetch_factor": "give prefetch=, or leave it out",
    "batches_ahead": "give prefetch=, or leave it out",
    "persistent_workers": "leave it out: there are no worker processes",
    "worker_init_fn": "leave it out: there are no worker processes",
    "multiprocessing_context": "leave it out: there are no worker processes",
    "timeout": "leave it out: there are no worker processes",
    "sampler": "give order=, samples=, weights= or balance=; rank= divides among processes",
    "batch_sampler": "give batch_size=, with order=, samples=, weights= or balance=",
    "generator": "give seed=",
    "indices": "give samples=",
    "pipelines": "give augment=, normalize= and dtype=",
    "distributed": "leave it out: rank='env' is the default",
    "num_replicas": "give rank=(rank, world)",
    "world_size": "give rank=(rank, world)",
    "os_cache": "leave it out, or give access='mapped' or 'direct'",
    "num_threads": "give threads=",
    "path": "give data=",
    "dataset": "give data=",
}


def with_habits(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """A function whose unknown options are errors that name the known ones."""
    known = list(inspect.signature(function).parameters)

    @functools.wraps(function)
    def called(*args: _P.args, **options: _P.kwargs) -> _R:
        for name in options:
            if name not in known:
                raise TypeError(f"packds.Loader has no option {name!r}{_instead(name, known)}")
        return function(*args, **options)

    return called


def _instead(name: str, known: list[str]) -> str:
    if name in _NAMES:
        return f": {_NAMES[name]}"
    alike = difflib.get_close_matches(name, known, 1)
    return f": is it {alike[0]}?" if alike else f"; there are {', '.join(known[2:])}"
