"""Conversion on many machines: a plan, its shards one by one, and the manifest that makes them a set."""

from __future__ import annotations

from typing import Any

from . import _packds
from ._arrays import json_dict
from ._checks import path, truth, whole
from ._convert import CONVERT_OPTIONS, given_options, report_with_warnings
from ._dataset import PathLike
from ._habits import OF_CONVERSIONS, with_habits
from ._progress import Progress


@with_habits("packds.plan", OF_CONVERSIONS, CONVERT_OPTIONS)
def plan(src: PathLike, dst: PathLike, *, shards: int, progress: bool = True, **options: Any) -> dict[str, Any]:
    """Plans the conversion of a source to a set of packs, whose shards any machine can build.

    >>> packds.plan("photos", "photos.plan", shards=2, chunk=8, progress=False)["n_shards"]
    2
    >>> for shard in range(2):
    ...     report = packds.build("photos.plan", "photos.packs", shard=shard, progress=False)
    >>> packds.commit("photos.plan", "photos.packs", progress=False)["n_samples"]
    28

    Args:
        src: A source as for `convert`. All machines must see it under the same path.
        dst: The plan to write.
        shards: The number of shards. There are fewer if there are not enough chunks.
        progress: Shows progress.
        options: The options of `convert`, such as `mode`, `resize` or `force`.

    Returns:
        The report: `n_samples`, `n_shards`, `shard_samples`, `bytes_out` and others.

    Raises:
        ConvertError: The source is invalid, or other machines could not read it, or `dst` cannot be written.
        OptionError: An option is invalid, or options contradict each other.
    """
    given = given_options("convert", {**options, "shards": shards})
    with Progress(truth("progress", progress), "planning") as show:
        text = _packds.plan(path("src", src), path("dst", dst), given, show)
    return report_with_warnings(text)


def build(plan: PathLike, dst: PathLike, *, shard: int, jobs: int = 0, progress: bool = True) -> dict[str, Any]:
    """Builds one shard of a plan. Repeating it does no harm: a shard that is there and intact is kept.

    >>> report = packds.plan("photos", "photos.plan", shards=2, chunk=8, progress=False)
    >>> packds.build("photos.plan", "photos.packs", shard=1, progress=False)["n_samples"]
    12

    Args:
        plan: The plan that `plan` wrote.
        dst: The folder of the set, whose name ends with `.packs`. It is created if it does not exist.
        shard: The number of the shard, from 0.
        jobs: Number of threads; 0 means one for each core.
        progress: Shows progress.

    Returns:
        The report: `output`, `n_samples`, `bytes_out`, `is_kept`, `skipped` and others.

    Raises:
        ConvertError: A file of the source changed after the plan was made, an image is invalid, or `dst` cannot be written.
        OptionError: An option has a wrong value.
    """
    given = given_options("build", {"jobs": jobs})
    with Progress(truth("progress", progress), "building") as show:
        text = _packds.build(path("plan", plan), path("dst", dst), whole("shard", shard, 64), given, show)
    return report_with_warnings(text)


def commit(plan: PathLike, dst: PathLike, *, progress: bool = True) -> dict[str, Any]:
    """Makes a set of the shards of a plan, once all of them are built. Repeating it does no harm.

    >>> report = packds.plan("photos", "photos.plan", shards=1, progress=False)
    >>> report = packds.build("photos.plan", "photos.packs", shard=0, progress=False)
    >>> packds.commit("photos.plan", "photos.packs", progress=False)["n_samples"]
    28

    Args:
        plan: The plan that `plan` wrote.
        dst: The folder with the shards.
        progress: Shows progress.

    Returns:
        The report: `n_samples`, `n_shards`, `n_skipped`, `skipped` and others.

    Raises:
        ConvertError: Shards are missing or damaged, or the folder has another set.
    """
    with Progress(truth("progress", progress), "reading shards", " shards") as show:
        text = _packds.commit(path("plan", plan), path("dst", dst), show)
    report: dict[str, Any] = json_dict(text)
    return report
