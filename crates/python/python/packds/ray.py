"""Conversion by the tasks of Ray, and sets of packs as the input and the output of Ray Data.

`convert` builds each shard of a set in a task. `PackDatasink` writes a `ray.data.Dataset` to a set. `read` makes one from a pack
or a set. All machines of the cluster need packds, and must see the files under the same paths. docs/how-to/distributed.md is the
guide.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import shutil
import uuid
import warnings
from collections.abc import Generator, Iterable, Iterator, Sequence
from typing import Any

try:
    import ray
    import ray.data
    from ray.data.block import BlockAccessor, BlockMetadata
    from ray.data.datasource import Datasink, Datasource, ReadTask
except ImportError as error:
    raise ImportError(f"packds.ray needs Ray with its datasets ({error}): pip install 'ray[data]'") from error

from ._arrays import widened_bfloat16
from ._checks import path, whole
from ._convert import CONVERT_OPTIONS, WRITER_OPTIONS
from ._dataset import Dataset, Field, PathLike, open, opened
from ._distributed import build, commit, plan
from ._edit import append
from ._errors import ConvertError, Error, OptionError, warn
from ._habits import OF_CONVERSIONS, with_habits
from ._progress import Progress
from ._write import Schema, Writer

__all__ = ["PackDatasink", "convert", "read"]

#: Maximum number of shards that wait for a worker or are being built. A cluster that grows by demand sees only these.
_IN_FLIGHT = 1000
#: Seconds to wait for cancelled tasks, which remove what they were writing.
_LEAVE_SECONDS = 30
#: Samples in the first block that is read. Their size determines the number of samples in later blocks.
_FIRST_ROWS = 16
#: Number of parts into which a pack is divided, if it has enough chunks. Ray divides other files in the same way.
_PARTS = 200
#: Approximate size of a block. Ray joins blocks up to its own limit.
_BLOCK_BYTES = 8 << 20

_CPUS = "pass cpus_per_shard=, the number of CPUs and of threads for each shard"
_NEW = "remove the folder, or choose another name"
_OF_SETS = {
    **{name: _CPUS if "jobs=" in hint else hint for name, hint in OF_CONVERSIONS.items()},
    **{name: _NEW for name, hint in OF_CONVERSIONS.items() if "force=" in hint},
    "jobs": _CPUS,
    "force": _NEW,
}
_OPTIONS = [name for name in CONVERT_OPTIONS if name not in ("jobs", "force", "shard_size")]


@with_habits("packds.ray.convert", _OF_SETS, _OPTIONS)
def convert(
    src: PathLike,
    dst: PathLike,
    *,
    shards: int,
    cpus_per_shard: int = 1,
    retries: int = 3,
    progress: bool = True,
    **options: Any,
) -> dict[str, Any]:
    """Converts a source to a set of packs, with one Ray task for each shard. The set has the bytes that `packds.convert` with
    the same options would write. Pixels are not sent to other processes.

    >>> report = packds.ray.convert("photos", "photos.packs", shards=2, chunk=8, resize=(64, 64), progress=False)
    >>> report["n_samples"], report["n_shards"]
    (28, 2)

    The source is planned where this function is called. If it fails or is stopped, shards that are complete stay in the folder
    `dst`, which is no set yet. Calling it again with the same arguments keeps them and builds the others.

    Args:
        src: A source as for `packds.plan`. All machines of the cluster must see it under the same path.
        dst: The folder of the set, whose name ends with `.packs`. All machines must see its parent folder.
        shards: The number of shards. There are fewer if there are not enough chunks.
        cpus_per_shard: The number of CPUs that Ray reserves for each shard, and of threads that build it.
        retries: How often Ray starts a task again if its worker or its machine fails. Errors of packds are not repeated.
        progress: Shows progress.
        options: The options of `packds.convert`, such as `mode`, `resize` or `on_error`.

    Returns:
        The report of `packds.commit`: `n_samples`, `n_shards`, `n_skipped`, `skipped` and others.

    Raises:
        ConvertError: The source or an image is invalid, workers failed too often, or `dst` is a set or cannot be written.
        OptionError: An option is invalid, or options contradict each other.
    """
    target = _set_at(dst)
    cpus, retries = max(whole("cpus_per_shard", cpus_per_shard, 16), 1), whole("retries", retries, 16)
    _check_new(target)
    # Each call has its own plan, which all machines can read, because they can read the set.
    planned = _beside(target, ".plan")
    try:
        described = plan(src, planned, shards=shards, progress=progress, **options)
        told = {*described["warnings"], *described["notes"]}
        done = 0
        with Progress(progress, "building", " samples") as show, contextlib.closing(
            _built(planned, target, described["n_shards"], cpus, retries)
        ) as reports:
            for report in reports:
                _tell([*report["warnings"], *report["notes"]], told)
                done += report["n_samples"] + len(report["skipped"])
                if show is not None:
                    show(done, described["n_samples"], "")
        return commit(planned, target, progress=progress)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.remove(planned)


def _set_at(dst: PathLike) -> str:
    """The path of a set for all machines. A wrong name is an error now, and not after hours of work."""
    target = os.path.abspath(path("dst", dst))
    if not target.endswith(".packs"):
        hint = "give the set a name such as photos.packs"
        raise OptionError(f"{target}: expected the name of a set, which ends with .packs", hint)
    return target


def _check_new(target: str) -> None:
    """Rejects a folder that is a set."""
    try:
        found = len(open(target))
    except Error:
        return
    raise ConvertError(f"{target}: this set already exists, with {found} samples", _NEW)


def _beside(target: str, end: str) -> str:
    """A hidden name next to a set that no other process uses."""
    folder, name = os.path.split(target)
    return os.path.join(folder, f".{name}.{uuid.uuid4().hex}{end}")


def _tell(texts: Iterable[str], told: set[str]) -> None:
    """Issues warnings that were not issued before. Every shard may have the same ones."""
    for text in texts:
        if text not in told:
            told.add(text)
            warn(text)


def _build(planned: str, target: str, shard: int, jobs: int) -> dict[str, Any]:
    """Builds a shard in a worker. Its warnings are in the report."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return build(planned, target, shard=shard, jobs=jobs, progress=False)


def _built(planned: str, target: str, n_shards: int, cpus: int, retries: int) -> Generator[dict[str, Any], None, None]:
    """Builds all shards, and yields their reports as they are completed."""
    task = ray.remote(num_cpus=cpus, max_retries=retries)(_build).options(name="packds.build")
    waiting = iter(range(n_shards))
    running: dict[Any, int] = {}
    try:
        while True:
            for shard in itertools.islice(waiting, _IN_FLIGHT - len(running)):
                running[task.remote(planned, target, shard, cpus)] = shard
            if not running:
                return
            (done,), _ = ray.wait(list(running))
            yield _report_of(done, target, running.pop(done))
    finally:
        for task_ref in running:
            ray.cancel(task_ref)
        if running:
            ray.wait(list(running), num_returns=len(running), timeout=_LEAVE_SECONDS)


def _report_of(done: Any, target: str, shard: int) -> dict[str, Any]:
    """The report of a task, or its error without Ray's traceback of the worker."""
    try:
        report: dict[str, Any] = ray.get(done)
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, Error):
            raise error.cause from None
        raise
    except ray.exceptions.RayError as error:
        hint = "shards that are complete are kept: call it again to build the others"
        raise ConvertError(f"{target}: the workers that built shard {shard} failed: {error}", hint) from error
    return report


class PackDatasink(Datasink[Any]):
    """Writes a `ray.data.Dataset` to a set of packs. Each write task writes one pack. In the end, all packs are added to the set
    as one new version, in the order of the tasks.

    >>> import ray
    >>> rows = [{"image": np.full((8, 8, 3), number, np.uint8), "label": number} for number in range(20)]
    >>> ray.data.from_items(rows).write_datasink(packds.ray.PackDatasink("new.packs", progress=False))
    >>> len(packds.open("new.packs"))
    20

    Each row is a sample, and its columns are the fields, as for `packds.Writer`. Until all tasks have succeeded, packs are in a
    hidden folder next to the set, which is removed in the end, also after an error.

    Args:
        dst: The set, whose name ends with `.packs`. It is created if it does not exist.
        schema: The kind of each field, as for `packds.write`. By default, each task infers the kinds from its first row.
        classes: The name of each class id. With text labels and without names, each task finds the classes of its own rows, and
            packs whose class ids differ from the set's are written again when they are added.
        min_rows_per_pack: Ray joins its blocks until a task has at least this many rows. By default, each block becomes a pack.
        progress: Shows progress while packs are added.
        options: As in `packds.write`: `mode`, `resize`, `keep_order`, `chunk`, ... Samples are shuffled within their pack unless
            `keep_order=True`.

    Raises:
        ConvertError: A row does not match its fields' kinds, packs do not fit the set, or `dst` cannot be written. The set stays
            as it was.
        OptionError: The schema or an option is invalid.
    """

    @with_habits("packds.ray.PackDatasink", OF_CONVERSIONS, WRITER_OPTIONS)
    def __init__(
        self,
        dst: PathLike,
        schema: Schema = None,
        *,
        classes: Sequence[str] | None = None,
        min_rows_per_pack: int | None = None,
        progress: bool = True,
        **options: Any,
    ) -> None:
        self._target = _set_at(dst)
        self._staging = _beside(self._target, ".writing")
        self._schema = schema
        self._classes = classes
        self._min_rows = None if min_rows_per_pack is None else whole("min_rows_per_pack", min_rows_per_pack, 63)
        self._progress = progress
        self._options = options

    def get_name(self) -> str:
        """The name of the write tasks."""
        return "Packs"

    @property
    def min_rows_per_write(self) -> int | None:
        """The minimum number of rows of a write task."""
        return self._min_rows

    def on_write_start(self, schema: Any = None) -> None:
        """Creates the folder for the packs of the tasks."""
        try:
            os.mkdir(self._staging)
        except OSError as error:
            raise ConvertError(f"{self._staging}: {error.strerror}", "create the folder of the set first") from error

    def write(self, blocks: Iterable[Any], ctx: Any) -> Any:
        """Writes the rows of a task to a pack. An attempt that was repeated leaves a pack that nobody names."""
        rows = _rows(blocks)
        first = next(rows, None)
        if first is None:
            return None
        target = os.path.join(self._staging, f"{uuid.uuid4().hex}.pack")
        jobs = max(1, int(ray.get_runtime_context().get_assigned_resources().get("CPU", 1)))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Writer(target, self._schema, classes=self._classes, **{"jobs": jobs, **self._options}) as writer:
                for row in itertools.chain([first], rows):
                    writer.add(**row)
        assert writer.report is not None
        return ctx.task_idx, target, writer.report["notes"]

    def on_write_complete(self, write_result: Any) -> None:
        """Adds the packs of all tasks to the set."""
        written = sorted(one for one in write_result.write_returns if one is not None)
        if not written:
            raise ConvertError(f"{self._target}: the dataset has no rows", "give at least one row; nothing was written")
        _tell((note for _, _, notes in written for note in notes), set())
        append(self._target, [pack for _, pack, _ in written], progress=self._progress)
        self._remove()

    def on_write_failed(self, error: Exception) -> None:
        """Removes the packs of all tasks."""
        self._remove()

    def _remove(self) -> None:
        # A task that still runs may create a file meanwhile. Without the folder, it cannot create others.
        for _ in range(3):
            shutil.rmtree(self._staging, ignore_errors=True)


def _rows(blocks: Iterable[Any]) -> Iterator[dict[str, Any]]:
    for block in blocks:
        yield from BlockAccessor.for_block(block).iter_rows(public_row_format=True)


def read(pack: Dataset | PathLike, *, fields: str | Sequence[str] | None = None, **options: Any) -> ray.data.Dataset:
    """Reads a pack or a set as a `ray.data.Dataset`. Each shard of a set is read by one task, and so are parts of a pack.

    >>> dataset = packds.ray.read("train.pack", fields=["image", "label"])
    >>> dataset.count()
    28
    >>> dataset.take_batch(4)["image"].shape
    (4, 64, 64, 3)

    Columns have the values that `packds.Dataset` returns: images and tensors are arrays, text is `str`, JSON is parsed. bfloat16
    becomes float32. A set is read in the version that is the latest when this function is called.

    Args:
        pack: A `Dataset` or a path, which all machines of the cluster must see.
        fields: The field to read, or several; by default the training data.
        options: The options of `ray.data.read_datasource`, such as `concurrency` or `num_cpus`.

    Raises:
        ReadError: The pack cannot be opened.
        OptionError: The pack has no such field.
    """
    source = _Packs(opened(pack), fields)
    return ray.data.read_datasource(source, **{"override_num_blocks": source.n_tasks, **options})


class _Packs(Datasource):
    """A pack or a set as a source of Ray Data."""

    def __init__(self, dataset: Dataset, fields: str | Sequence[str] | None) -> None:
        super().__init__()
        self._fields = dataset._chosen(fields)
        self._set = dataset.info()["set"]
        if self._set is not None and dataset._absolute.endswith(".packs"):
            # Packs may be added to the set before the tasks open it. Other paths of a set name a version.
            dataset = open(f"{dataset._absolute}@{self._set['version']}", checksums=dataset._checksums)
        self._dataset = dataset

    @property
    def n_tasks(self) -> int:
        """The number of read tasks. If Ray is asked for more, it splits their blocks."""
        return len(self._set["shards"]) if self._set is not None else min(self._dataset.info()["n_chunks"], _PARTS)

    def get_name(self) -> str:
        return "Packs"

    def estimate_inmemory_data_size(self) -> int | None:
        return None

    def get_read_tasks(self, parallelism: int, per_task_row_limit: int | None = None, data_context: Any = None) -> list[Any]:
        tasks = []
        files = (self._dataset._absolute,)
        for start, stop in self._parts(parallelism):
            reads = functools.partial(_blocks, self._dataset, self._fields, start, stop)
            metadata = BlockMetadata(num_rows=stop - start, size_bytes=None, input_files=files, exec_stats=None)
            tasks.append(ReadTask(reads, metadata, per_task_row_limit=per_task_row_limit))
        return tasks

    def _parts(self, parallelism: int) -> Iterator[tuple[int, int]]:
        """The first sample and the end of each task: the shards of a set, or whole chunks of a pack."""
        n = len(self._dataset)
        if self._set is not None:
            ends = list(itertools.accumulate(shard["n_samples"] for shard in self._set["shards"]))
            return zip([0, *ends], ends)
        info = self._dataset.info()
        step = -(-info["n_chunks"] // max(parallelism, 1)) * info["chunk_samples"]
        return ((start, min(start + step, n)) for start in range(0, n, step))


def _blocks(dataset: Dataset, fields: Sequence[Field], start: int, stop: int) -> Iterator[Any]:
    """The blocks of some samples, in a worker."""
    names = [field.name for field in fields]
    rows = _FIRST_ROWS
    while start < stop:
        end = min(start + rows, stop)
        columns = dataset.samples(slice(start, end), names)
        for field in fields:
            if field.dtype == "bf16" and field.kind == "tensor":
                columns[field.name] = widened_bfloat16(columns[field.name])
        block = BlockAccessor.batch_to_block(columns)
        yield block
        fit = (end - start) * _BLOCK_BYTES // max(BlockAccessor.for_block(block).size_bytes(), 1)
        rows = max(1, min(fit, 4 * rows))
        start = end
