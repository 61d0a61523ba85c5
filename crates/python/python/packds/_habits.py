"""Errors for unknown options, which suggest the intended one."""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import ParamSpec, TypeVar

_P = ParamSpec("_P")
_R = TypeVar("_R")

#: Minimum similarity between an unknown name and the name that is suggested instead.
_ALIKE = 0.8

_NO_WORKERS = "leave it out: there are no worker processes"
_THREADS = "pass threads=, or leave it out: the default adapts to the training"
_COPIES = "leave it out; device='cuda' copies batches to the GPU ahead of training"
_PREFETCH = "pass prefetch=, or leave it out"
_AUGMENT = "pass augment=, normalize= and dtype=; packds.torch.MapDataset takes functions"
_SIZE = "pass augment='rrc224' or 'resize256,center224'"
_SOME = "pass samples=, which takes indices, a slice or a mask"
_RANK = "pass rank=(rank, world)"
_SEED = "pass seed="
_DATA = "pass data="
_OUTPUT = "pass output='numpy', 'torch' or 'jax'"
_LAYOUT = "pass layout='hwc', 'chw' or 'channels_last'"
_WINDOW = "pass order='window', and window= as a number of chunks"

#: Names of options in other loaders. packds has these options under other names, or does not need them.
OF_LOADERS = {
    "shuffle": "order='random' or 'window' shuffles, and so does the default; order='sequential' does not",
    "shuffle_buffer": _WINDOW,
    "buffer_size": _WINDOW,
    "num_workers": _THREADS,
    "workers": _THREADS,
    "num_threads": _THREADS,
    "jobs": _THREADS,
    "transform": _AUGMENT,
    "pipelines": _AUGMENT,
    "augmentation": "pass augment=",
    "target_transform": "change labels in the loop; packds.torch.MapDataset takes functions",
    "collate_fn": "the loader already makes batches; packds.torch.MapDataset with PyTorch's DataLoader takes functions",
    "resize": _SIZE,
    "crop": _SIZE,
    "image_size": _SIZE,
    "resolution": _SIZE,
    "mean": "pass normalize=(mean, std)",
    "std": "pass normalize=(mean, std)",
    "batch": "pass batch_size=",
    "bs": "pass batch_size=",
    "drop_remainder": "pass drop_last=",
    "epochs": "leave it out: iterating again starts the next epoch; epoch= sets the first one",
    "pin_memory": _COPIES,
    "pin_memory_device": _COPIES,
    "non_blocking": _COPIES,
    "prefetch_factor": _PREFETCH,
    "batches_ahead": _PREFETCH,
    "persistent_workers": _NO_WORKERS,
    "worker_init_fn": _NO_WORKERS,
    "multiprocessing_context": _NO_WORKERS,
    "timeout": _NO_WORKERS,
    "sampler": "pass order=, samples=, weights= or balance=; rank= divides the samples among processes",
    "batch_sampler": "pass batch_size=, with order=, samples=, weights= or balance=",
    "replacement": "pass weights= to draw some samples more often",
    "generator": _SEED,
    "random_state": _SEED,
    "indices": _SOME,
    "subset": _SOME,
    "n_samples": _SOME,
    "num_samples": _SOME,
    "max_samples": _SOME,
    "limit": _SOME,
    "columns": "pass fields=",
    "split": "pass the pack of that split: packds.convert(src, dst, split='all') writes one pack per split",
    "distributed": "leave it out: rank='env' is the default",
    "num_replicas": _RANK,
    "world_size": _RANK,
    "world": _RANK,
    "local_rank": _RANK,
    "memory_format": _LAYOUT,
    "channels_last": _LAYOUT,
    "return_type": _OUTPUT,
    "framework": _OUTPUT,
    "format": _OUTPUT,
    "os_cache": "leave it out, or pass access='mapped' or 'direct'",
    "path": _DATA,
    "dataset": _DATA,
}

_TO_LOADER = "pass it to the DataLoader"

#: Options that belong to the DataLoader, not to its dataset.
OF_DATALOADERS = dict.fromkeys(
    (
        "num_workers workers collate_fn pin_memory pin_memory_device prefetch_factor persistent_workers worker_init_fn "
        "multiprocessing_context timeout"
    ).split(),
    _TO_LOADER,
)

#: Options that belong to the DataLoader of a map-style dataset, and other names for the dataset's own options.
OF_SAMPLES = {
    **OF_DATALOADERS,
    **dict.fromkeys("batch_size shuffle sampler batch_sampler drop_last generator".split(), _TO_LOADER),
    "transforms": "pass transform= for images, and target_transform= for labels",
    "augment": "pass transform=, a function; packds.Loader takes augment=",
    "root": _DATA,
    "path": _DATA,
    "dataset": _DATA,
    "samples": "wrap the dataset in torch.utils.data.Subset",
    "indices": "wrap the dataset in torch.utils.data.Subset",
}

_JOBS = "pass jobs=, a number of threads"
_FORCE = "pass force=True"
_SIZES = "pass resize= or crop="
_SKIP = "pass on_error='skip'"
_SHOWN = "pass progress=True or False"

#: Names of conversion and export options in other programs.
_OF_FILES = {
    **dict.fromkeys(("num_workers", "workers", "threads", "num_threads", "n_jobs"), _JOBS),
    **dict.fromkeys(("overwrite", "replace", "exist_ok"), _FORCE),
    **dict.fromkeys(("verbose", "quiet"), _SHOWN),
    "compression": "pass codec=",
    "chunk_size": "pass chunk=, the number of samples in a chunk",
}
OF_CONVERSIONS = {
    **_OF_FILES,
    **dict.fromkeys(("size", "image_size", "resolution"), _SIZES),
    **dict.fromkeys(("skip_errors", "skip_bad", "ignore_errors", "errors"), _SKIP),
    "shuffle": "samples are shuffled unless keep_order=True",
    "batch_size": "pass batch=",
    "format": "pass from_format=",
    "from": "pass from_format=",
    "transform": "leave it out: the loader transforms images (augment=); resize=, crop= and dtype= change the stored pixels",
    "exclude": "pass leave_out=",
    "image_column": "pass image_key=",
    "label_column": "pass label_key=",
    "mask_column": "pass mask_key=",
}
OF_EDITS = {
    **_OF_FILES,
    **dict.fromkeys(("where", "condition", "class", "class_name"), "pass samples=Dataset.select(CONDITION)"),
    **dict.fromkeys(("indices", "ids"), _SOME),
}
OF_EXPORTS = {
    **OF_EDITS,
    "subset": _SOME,
    "format": "pass to=",
    "shards": "pass shard=, the number of samples in a shard",
}


def with_habits(
    owner: str, habits: Mapping[str, str], more: Iterable[str] = ()
) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """A decorator that rejects unknown options. The error lists the known options: the function's own, and those that
    it passes on."""

    def decorated(function: Callable[_P, _R]) -> Callable[_P, _R]:
        own = inspect.signature(function).parameters.values()
        named = [one.name for one in own if one.kind is not one.VAR_KEYWORD]
        options = [one.name for one in own if one.kind is one.KEYWORD_ONLY or one.default is not one.empty]
        known = [*options, *(name for name in more if name not in named)]

        @functools.wraps(function)
        def called(*args: _P.args, **given: _P.kwargs) -> _R:
            for name in given:
                if name not in named and name not in known:
                    raise TypeError(f"{owner} has no option {name!r}{_instead(name, known, habits)}")
            return function(*args, **given)

        return called

    return decorated


def _instead(name: str, known: list[str], habits: Mapping[str, str]) -> str:
    if name in habits:
        return f": {habits[name]}"
    # `batchSize` is treated like `batch_size`. Options of packds take precedence.
    meant = {_plain(one): one for one in [*habits, *known]}
    alike = difflib.get_close_matches(_plain(name), meant, 1, _ALIKE)
    if not alike:
        return f"; the options are {', '.join(known)}"
    one = meant[alike[0]]
    return f": did you mean {one}?" if one in known else f": for {one}, {habits[one]}"


def _plain(name: str) -> str:
    return name.replace("_", "").lower()
