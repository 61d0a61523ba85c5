"""Ray: conversion by its tasks, and sets as the input and the output of Ray Data. If Ray is missing, the tests are skipped."""

import gc
import inspect
import io
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import packds
from conftest import image_of, module_or_skip
from docstrings import check_examples, members, public

# Ray and the packages that it uses leave files open, and use what later versions of Python will not have.
pytestmark = [pytest.mark.usefixtures("ray"), pytest.mark.filterwarnings("ignore")]

OPTIONS = {"shards": 4, "chunk": 4, "resize": (32, 32), "progress": False}


@pytest.fixture(scope="module")
def ray():
    """A real Ray on this machine, with two workers."""
    ray = module_or_skip("ray", "scripts/setup installs it")
    module_or_skip("ray.data", "scripts/setup installs it")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error")
    import logging

    logging.getLogger("ray.data").setLevel("CRITICAL")
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.execution_options.preserve_order = True
    yield ray
    # Ray may not wait for its processes, and Python warns if one that is still running is forgotten.
    started = [one for one in gc.get_objects() if issubclass(type(one), subprocess.Popen) and "ray" in str(one.args)]
    ray.shutdown()
    assert started
    for process in started:
        process.wait(30)


def contents(folder) -> dict[str, bytes]:
    """The bytes of every file."""
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def names(folder) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


def png_of(number: int) -> bytes:
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(image_of(number, side=8 + number % 3)[:8]).save(file, "PNG")
    return file.getvalue()


def test_examples_in_docstrings_are_true(photos, photo_pack, tmp_path, monkeypatch):
    import packds.ray

    check_examples(packds.ray, photos, photo_pack, tmp_path, monkeypatch)


def test_every_public_name_has_a_docstring():
    import packds.ray

    for name, thing in public(packds.ray):
        assert inspect.getdoc(thing), name
    for name in packds.ray.__all__:
        thing = getattr(packds.ray, name)
        assert ">>> " in inspect.getdoc(thing), name
        arguments = inspect.getdoc(thing).partition("Args:")[2].partition("\n\n")[0]
        for argument in inspect.signature(thing).parameters:
            assert f"    {argument}: " in arguments, f"{name}: {argument}"
    assert dict(members("PackDatasink", packds.ray.PackDatasink))


def test_the_set_is_the_one_that_convert_writes(photos, tmp_path):
    import packds.ray

    packds.convert(photos, tmp_path / "c.packs", **OPTIONS)
    report = packds.ray.convert(photos, tmp_path / "r.packs", **OPTIONS)
    assert (report["n_samples"], report["n_shards"], report["is_kept"]) == (28, 4, False)
    assert contents(tmp_path / "r.packs") == contents(tmp_path / "c.packs")
    # The plan is removed.
    assert names(tmp_path) == ["c.packs", "r.packs"]
    with pytest.raises(packds.ConvertError, match="r.packs: this set already exists, with 28 samples"):
        packds.ray.convert(photos, tmp_path / "r.packs", **OPTIONS)


def test_shards_that_are_there_are_kept_and_relative_paths_are_resolved(photos, tmp_path, monkeypatch):
    import packds.ray

    packds.plan(photos, tmp_path / "p.plan", **OPTIONS)
    packds.build(tmp_path / "p.plan", tmp_path / "r.packs", shard=2, progress=False)
    (kept,) = (tmp_path / "r.packs").iterdir()
    before = kept.stat()
    (tmp_path / "photos").symlink_to(photos)
    monkeypatch.chdir(tmp_path)
    packds.ray.convert(photos, "r.packs", **OPTIONS, cpus_per_shard=2)
    assert (kept.stat().st_ino, kept.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    packds.ray.convert("photos", "s.packs", **OPTIONS)
    assert len(contents(tmp_path / "r.packs")) == len(contents(tmp_path / "s.packs")) == 5


def kill_a_worker(killed: list[int], folder: pathlib.Path) -> None:
    """Kills the first process that builds a shard. Ray gives a process the name of its task."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        for pid in (int(name) for name in os.listdir("/proc") if name.isdigit()):
            try:
                is_building = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"ray::packds.build")
                opened = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")] if is_building else []
            except OSError:
                continue
            # It has begun to write.
            if any(name.startswith(str(folder)) for name in opened):
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)
                return


@pytest.mark.parametrize("retries", [3, 0])
def test_a_killed_worker_is_replaced_unless_there_are_no_retries(photos, tmp_path, retries):
    import packds.ray

    # Building such a shard takes a while.
    options = {"shards": 2, "chunk": 4, "resize": (384, 384), "codec": "zstd:15", "progress": False}
    killed: list[int] = []
    killer = threading.Thread(target=kill_a_worker, args=(killed, tmp_path / "r.packs"))
    killer.start()
    try:
        if retries:
            packds.ray.convert(photos, tmp_path / "r.packs", **options, retries=retries)
        else:
            with pytest.raises(packds.ConvertError, match="r.packs: the workers that built shard . failed") as caught:
                packds.ray.convert(photos, tmp_path / "r.packs", **options, retries=0)
            assert "call it again" in caught.value.hint
            assert names(tmp_path) == ["r.packs"]
    finally:
        killer.join()
    assert len(killed) == 1
    if retries:
        packds.convert(photos, tmp_path / "c.packs", **options)
        assert contents(tmp_path / "r.packs") == contents(tmp_path / "c.packs")


def test_a_bad_image_stops_the_conversion_or_is_skipped(photos, tmp_path):
    import packds.ray

    source = shutil.copytree(photos, tmp_path / "photos")
    (source / "cat" / "bad.jpg").write_bytes(b"no image")
    with pytest.raises(packds.ConvertError, match="cat/bad.jpg") as caught:
        packds.ray.convert(source, tmp_path / "r.packs", **OPTIONS)
    # The error is that of packds, without the traceback of a worker.
    assert type(caught.value) is packds.ConvertError and "ray" not in str(caught.value)
    with pytest.raises(packds.Error):
        packds.open(tmp_path / "r.packs")
    assert names(tmp_path) == ["photos", "r.packs"]
    report = packds.ray.convert(source, tmp_path / "s.packs", **OPTIONS, on_error="skip")
    assert (report["n_samples"], report["n_skipped"], report["skipped"][0]["path"]) == (28, 1, "cat/bad.jpg")


def test_warnings_of_workers_are_issued_once(photos, tmp_path):
    import packds.ray

    with pytest.warns(UserWarning) as warned:
        packds.ray.convert(photos, tmp_path / "r.packs", shards=4, chunk=4, progress=False)
    told = [str(one.message) for one in warned if "images have several sizes" in str(one.message)]
    assert len(told) == 1 and {one.filename for one in warned if str(one.message) in told} == {__file__}
    with pytest.warns(UserWarning) as warned:
        packds.ray._tell(["a", "b", "a"], {"b"})
    assert [str(one.message) for one in warned] == ["a"]


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"force": True}, TypeError, "no option 'force': remove the folder, or choose another name"),
        ({"jobs": 2}, TypeError, "no option 'jobs': pass cpus_per_shard="),
        ({"num_workers": 2}, TypeError, "no option 'num_workers': pass cpus_per_shard="),
        ({"cropp": 2}, TypeError, "did you mean crop?"),
        ({"retries": -1}, packds.OptionError, "retries: expected 0 to"),
        ({"dst": "r.pack"}, packds.OptionError, "r.pack: expected the name of a set, which ends with .packs"),
        ({"mode": "files"}, packds.OptionError, "mode"),
        ({"src": "missing"}, packds.SourceNotFoundError, "missing"),
    ],
)
def test_wrong_arguments_are_refused(photos, tmp_path, monkeypatch, options, error, said):
    import packds.ray

    monkeypatch.chdir(tmp_path)
    with pytest.raises(error) as caught:
        packds.ray.convert(**{"src": photos, "dst": "r.packs", **OPTIONS, **options})
    assert said in str(caught.value)
    assert names(tmp_path) == []


def rows(n: int) -> list[dict]:
    return [
        {"image": image_of(number), "label": "abc"[number % 3 if number < 9 else 0], "n": number, "caption": f"number {number}",
         "box": np.arange(4, dtype=np.float32) + number, "meta": {"twice": 2 * number}}
        for number in range(n)
    ]  # fmt: skip


def test_rows_that_are_written_are_the_rows_that_are_read(ray, tmp_path):
    import packds.ray

    written = rows(24)
    dataset = ray.data.from_items(written, override_num_blocks=3)
    dataset.write_datasink(packds.ray.PackDatasink(tmp_path / "a.packs", keep_order=True, progress=False))
    ds = packds.open(tmp_path / "a.packs")
    assert ds.info()["set"]["version"] == 1 and [one["n_samples"] for one in ds.info()["set"]["shards"]] == [8, 8, 8]
    read = packds.ray.read(tmp_path / "a.packs").take_all()
    assert len(read) == len(ds) == 24
    for row, of_pack, expected in zip(read, ds, written):
        assert np.array_equal(row["image"], expected["image"]) and np.array_equal(of_pack["image"], expected["image"])
        # The classes are named in the tasks, some of which do not see all of them.
        assert ds.classes[row["label"]] == ds.classes[of_pack["label"]] == expected["label"]
        assert (row["n"], row["caption"], row["meta"]) == (expected["n"], expected["caption"], expected["meta"])
        assert np.array_equal(row["box"], expected["box"])
    # A second dataset is added to the set, as a new version.
    more = ray.data.from_items([{**row, "n": row["n"] + 100} for row in written])
    more.write_datasink(packds.ray.PackDatasink(tmp_path / "a.packs", min_rows_per_pack=24, progress=False))
    ds = packds.open(tmp_path / "a.packs")
    assert (len(ds), ds.info()["set"]["version"], len(ds.info()["set"]["shards"])) == (48, 2, 4)
    assert names(tmp_path) == ["a.packs"]


def test_image_files_and_images_of_several_sizes_are_kept(ray, tmp_path):
    import packds.ray

    files = [png_of(number) for number in range(20)]
    dataset = ray.data.from_items([{"image": file, "n": number} for number, file in enumerate(files)], override_num_blocks=2)
    sink = packds.ray.PackDatasink(tmp_path / "a.packs", {"image": "image", "n": "i64"}, mode="encoded", progress=False)
    dataset.write_datasink(sink)
    ds = packds.open(tmp_path / "a.packs")
    assert sorted(ds.raw(index) for index in range(20)) == sorted(files)
    for row in packds.ray.read(ds, fields=["n", "image"]).take_all():
        assert np.array_equal(row["image"], image_of(row["n"], side=8 + row["n"] % 3)[:8])


def test_a_failure_leaves_nothing(ray, tmp_path):
    import packds.ray

    def dataset(items=rows(20)):
        return ray.data.from_items(items, override_num_blocks=4)

    def sink(**options):
        return packds.ray.PackDatasink(tmp_path / "a.packs", progress=False, **options)

    def bad(row):
        if row["n"] == 13:
            raise ValueError("this row is bad")
        return row

    with pytest.raises(ray.exceptions.RayTaskError, match="this row is bad"):
        dataset().map(bad).write_datasink(sink())
    assert names(tmp_path) == []
    mixed = [{"image": png_of(number) if number != 13 else b"no image", "n": number} for number in range(20)]
    with pytest.raises(packds.ConvertError, match="sample"):
        dataset(mixed).write_datasink(sink(mode="raw"))
    assert names(tmp_path) == []
    with pytest.raises(packds.ConvertError, match="the dataset has no rows"):
        dataset().filter(lambda row: False).write_datasink(sink())
    with pytest.raises(packds.ConvertError, match="create the folder of the set first"):
        dataset().write_datasink(packds.ray.PackDatasink(tmp_path / "missing" / "a.packs"))
    with pytest.raises(packds.OptionError, match="expected the name of a set"):
        packds.ray.PackDatasink(tmp_path / "a.pack")
    with pytest.raises(TypeError, match="packds.ray.PackDatasink has no option 'modes': did you mean mode"):
        packds.ray.PackDatasink(tmp_path / "a.packs", modes="raw")
    assert names(tmp_path) == []
    dataset().write_datasink(sink())
    with pytest.raises(packds.ConvertError, match="this pack is already in the set"):
        dataset().write_datasink(sink())
    assert names(tmp_path) == ["a.packs"] and len(packds.open(tmp_path / "a.packs")) == 20


def test_a_writer_that_is_killed_is_replaced(ray, tmp_path):
    import packds.ray

    flag = tmp_path / "killed"

    def kill(row):
        # In the first attempt, after the pack was begun.
        if row["n"] == 13 and not flag.exists():
            flag.touch()
            os.kill(os.getpid(), 9)
        return row

    dataset = ray.data.from_items(rows(20), override_num_blocks=2).map(kill)
    dataset.write_datasink(packds.ray.PackDatasink(tmp_path / "a.packs", progress=False))
    assert sorted(sample["n"] for sample in packds.open(tmp_path / "a.packs")) == list(range(20))
    assert flag.exists() and names(tmp_path) == ["a.packs", "killed"]


@pytest.mark.parametrize("dtype", ["u8", "bf16"])
def test_what_is_read_is_what_open_returns(photos, tmp_path, dtype):
    import packds.ray
    from packds._arrays import widened_bfloat16

    packds.convert(photos, tmp_path / "a.packs", **OPTIONS, dtype=dtype)
    packds.merge([tmp_path / "a.packs"], tmp_path / "a.pack", progress=False)
    for path in (tmp_path / "a.packs", tmp_path / "a.pack"):
        ds = packds.open(path)
        read = packds.ray.read(path).take_all()
        assert len(read) == len(ds) == 28
        for row, expected in zip(read, ds):
            assert list(row) == list(expected) and row["label"] == expected["label"]
            assert row["image"].dtype == (np.uint8 if dtype == "u8" else np.float32)
            pixels = expected["image"] if dtype == "u8" else widened_bfloat16(expected["image"])
            assert np.array_equal(row["image"], pixels)
    assert packds.ray.read(tmp_path / "a.packs", fields="label").take(2) == [{"label": label} for label in ds.labels[:2]]
    with pytest.raises(packds.OptionError, match="there is no field 'x'"):
        packds.ray.read(tmp_path / "a.packs", fields="x")


def test_a_set_is_read_in_the_version_that_was_opened(photo_pack, numbered, tmp_path):
    import packds.ray

    packds.split(photo_pack, tmp_path / "p.pack", ratio=(0.5, 0.5), chunk=4, progress=False)
    packds.append(tmp_path / "a.packs", tmp_path / "p.train.pack", progress=False)
    dataset = packds.ray.read(tmp_path / "a.packs")
    n = len(packds.open(tmp_path / "a.packs"))
    packds.append(tmp_path / "a.packs", tmp_path / "p.val.pack", progress=False)
    assert len(dataset.take_all()) == n
    assert len(packds.ray.read(tmp_path / "a.packs").take_all()) == 28
    for version in ("a.packs@1", "a.packs/manifest-00000001.json"):
        assert len(packds.ray.read(tmp_path / version).take_all()) == n


def test_blocks_have_a_few_megabytes(numbered, monkeypatch):
    import packds.ray

    monkeypatch.setattr(packds.ray, "_BLOCK_BYTES", 40 * (8 * 8 * 3 + 4))
    ds = packds.open(numbered)
    blocks = list(packds.ray._blocks(ds, ds._chosen(None), 10, 210))
    sizes = [block.num_rows for block in blocks]
    assert sum(sizes) == 200 and sizes[0] == 16 and all(35 <= size <= 45 for size in sizes[1:-1])
    assert [label.as_py() for block in blocks for label in block["label"]] == ds.labels[10:210].tolist()
    # A pack is divided at the boundaries of its chunks.
    parts = list(packds.ray._Packs(ds, None)._parts(5))
    assert parts == [(0, 224), (224, 448), (448, 672), (672, 896), (896, 1000)]


def test_without_ray_the_error_says_what_to_install():
    script = "import sys; sys.modules['ray'] = None; import packds.ray"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert "pip install 'ray[data]'" in done.stderr and done.returncode == 1
