"""Conversions, exports and the command."""

import errno
import inspect
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
import warnings

import numpy as np
import pytest
from PIL import Image

import packds
from packds import _packds


def everything_in(folder: pathlib.Path) -> list:
    return sorted(os.listdir(folder))


def test_a_conversion_reports_what_it_did(photos, tmp_path):
    report = packds.convert(photos, tmp_path / "a.pack", progress=False)
    ds = packds.open(tmp_path / "a.pack")
    assert report["n_samples"] == len(ds)
    assert report["skipped"] == []


def test_options_are_those_of_the_command(photos, tmp_path):
    packds.convert(photos, tmp_path / "a.pack", resize=(32, 24), keep_order=True, codec="zstd", seed=3, progress=False)
    command = "import sys; from packds.__main__ import main; sys.exit(main())"
    args = ["convert", photos, tmp_path / "b.pack", "--resize", "32x24", "--keep-order", "--codec", "zstd", "--seed", "3"]
    subprocess.run([sys.executable, "-c", command, *args], check=True, capture_output=True)
    assert (tmp_path / "a.pack").read_bytes() == (tmp_path / "b.pack").read_bytes()


@pytest.mark.parametrize("name", ["convert", "export"])
def test_keywords_are_the_declared_options_with_their_defaults(name):
    """In Python, the default of an option is None or the declared default."""
    others = {"src", "dst", "pack", "samples", "dry_run", "progress"}
    python = {key: one.default for key, one in inspect.signature(getattr(packds, name)).parameters.items() if key not in others}
    declared = {key: (default, is_switch) for key, _, default, is_switch in _packds.options(name)}
    assert set(python) == set(declared)
    for key, (default, is_switch) in declared.items():
        if is_switch:
            assert python[key] is False, key
        else:
            assert python[key] in (None, ()) or str(python[key]) == default, key


EDITS = [
    ("subset", ["edit"]),
    ("merge", ["edit"]),
    ("split", ["split", "edit"]),
    ("reorder", ["reorder", "edit"]),
    ("relabel", ["relabel", "edit"]),
    ("drop_field", ["edit"]),
    ("add_field", ["add_field", "edit"]),
    ("compact", ["compact"]),
    ("diff", ["diff"]),
]


@pytest.mark.parametrize(("name", "of"), EDITS)
def test_keywords_of_edits_are_the_declared_options(name, of):
    others = {"pack", "packs", "dst", "samples", "fields", "table", "old", "new", "progress"}
    python = set(inspect.signature(getattr(packds, name)).parameters) - others
    assert python == {key for options in of for key, *_ in _packds.options(options)}


@pytest.mark.parametrize("left_out", ["note", ["note"], ["note", "weight"]])
def test_columns_are_left_out_by_their_names(photos, tmp_path, left_out):
    files = sorted(file for file in photos.glob("*/*") if file.is_file())
    rows = [f"{file},{number},a note,{number / 2}" for number, file in enumerate(files)]
    (tmp_path / "in.csv").write_text("\n".join(["path,label,note,weight", *rows]))
    packds.convert(tmp_path / "in.csv", tmp_path / "a.pack", root=photos, leave_out=left_out, progress=False)
    expected = {"image", "label", "note", "weight"} - ({left_out} if isinstance(left_out, str) else set(left_out))
    assert set(packds.open(tmp_path / "a.pack")[0]) == expected


def test_gray_arrays_become_rgb_where_that_is_asked_for(tmp_path):
    np.save(tmp_path / "in.npy", np.arange(3 * 64, dtype=np.uint8).reshape(3, 8, 8, 1))
    packds.convert(tmp_path / "in.npy", tmp_path / "a.pack", rgb=True, keep_order=True, progress=False)
    image = packds.open(tmp_path / "a.pack")[0]["image"]
    assert image.shape == (8, 8, 3) and (image == image[..., :1]).all()


def test_numbers_and_pairs_are_written_as_the_command_wants_them(photos, tmp_path):
    packds.convert(
        photos, tmp_path / "a.pack", crop=32, dtype=np.float32, normalize=((0.5,) * 3, (0.25,) * 3), progress=False
    )
    image = packds.open(tmp_path / "a.pack")[0]["image"]
    assert image.shape == (32, 32, 3) and image.dtype == np.float32
    assert image.min() >= -2 and image.max() <= 2
    numbers = {"resize": (np.int64(40), np.uint8(30)), "crop": np.int16(16), "max_pixels": np.int64(10**9), "gray": np.True_}
    packds.convert(photos, tmp_path / "b.pack", progress=False, **numbers)
    assert packds.open(tmp_path / "b.pack")[0]["image"].shape == (16, 16, 1)


@pytest.mark.parametrize(
    ("options", "said"),
    [({"mode": "small"}, "small"), ({"resize": 7}, "short:7"), ({"resize": 7.5}, "whole number"), ({"crop": (1, 2, 3)}, "width, height"), ({"raw_fraction": 0.5}, "mode='mixed'"), ({"chunk": -1}, "chunk"), ({"mode": "foo"}, "mode: expected raw, encoded or mixed, found .foo."), ({"crop": "224x"}, "crop: expected none, center:SIZE")],
)
def test_wrong_options_are_said_in_pythons_words(photos, tmp_path, options, said):
    with pytest.raises(packds.OptionError, match=said) as raised:
        packds.convert(photos, tmp_path / "a.pack", progress=False, **options)
    assert "--" not in str(raised.value)
    assert everything_in(tmp_path) == []


def test_a_missing_source_and_an_existing_target_are_errors(photos, tmp_path):
    with pytest.raises(packds.ConvertError, match="missing"):
        packds.convert(tmp_path / "missing", tmp_path / "a.pack", progress=False)
    (tmp_path / "a.pack").write_text("x")
    with pytest.raises(packds.ConvertError, match="exists") as raised:
        packds.convert(photos, tmp_path / "a.pack", progress=False)
    assert raised.value.hint == "force=True replaces it"
    packds.convert(photos, tmp_path / "a.pack", force=True, progress=False)


def test_a_bad_image_is_named_or_skipped(photos, tmp_path):
    source = tmp_path / "in" / "cat"
    source.mkdir(parents=True)
    good = next(photos.rglob("*.jpg"))
    (source / "good.jpg").write_bytes(good.read_bytes())
    (source / "bad.jpg").write_bytes(good.read_bytes()[:500])
    with pytest.raises(packds.ConvertError, match="bad.jpg") as raised:
        packds.convert(tmp_path / "in", tmp_path / "a.pack", progress=False)
    assert "on_error='skip'" in raised.value.hint
    report = packds.convert(tmp_path / "in", tmp_path / "a.pack", on_error="skip", progress=False)
    assert [skipped["path"] for skipped in report["skipped"]] == ["cat/bad.jpg"]


@pytest.mark.parametrize("name", ["list.csv", "list.jsonl"])
@pytest.mark.parametrize("column", ["path", "mask"])
def test_a_file_that_a_manifest_names_and_that_is_not_there_is_a_file_not_found(photos, tmp_path, name, column):
    (tmp_path / "in").mkdir()
    for place in ("a.png", "b.png"):
        Image.new("L", (8, 8)).save(tmp_path / "in" / place)
    rows = [{"path": "a.png", "mask": "a.png"}, {"path": "b.png", "mask": "b.png"} | {column: "gone/c.png"}]
    lines = ["path,mask", *(f"{row['path']},{row['mask']}" for row in rows)] if name.endswith("csv") else map(json.dumps, rows)
    source = tmp_path / "in" / name
    source.write_text("\n".join(lines))
    with pytest.raises(FileNotFoundError) as raised:
        packds.convert(source, tmp_path / "a.pack", progress=False)
    error = raised.value
    assert isinstance(error, packds.SourceNotFoundError)
    assert (error.errno, error.filename) == (errno.ENOENT, str(tmp_path / "in" / "gone" / "c.png"))
    assert f"no such file, named in line {3 if name.endswith('csv') else 2} of {source}" in str(error) and "c.png" in str(error)
    for said in ("relative paths are resolved against the manifest's folder", "root='FOLDER'", "on_error='skip'"):
        assert said in error.hint
    assert "--" not in str(error)
    with pytest.raises(FileNotFoundError):
        packds.convert(source, tmp_path / "a.pack", dry_run=True, progress=False)
    report = packds.convert(source, tmp_path / "a.pack", on_error="skip", progress=False)
    [skipped] = report["skipped"]
    assert report["n_samples"] == 1 and "no such file, named in line" in skipped["reason"]
    assert skipped["path"] == ("gone/c.png" if column == "path" else "b.png")
    # The path exists, but is a folder without images.
    (tmp_path / "empty").mkdir()
    source.write_text("path\nempty\n" if name.endswith("csv") else '{"path": "empty"}')
    with pytest.raises(packds.ConvertError, match="not a regular file, named in line") as raised:
        packds.convert(source, tmp_path / "b.pack", root=tmp_path, progress=False)
    assert not isinstance(raised.value, FileNotFoundError)


def test_every_split_becomes_a_pack(photos, tmp_path):
    for split in ("train", "val"):
        for folder in sorted(photos.iterdir())[:2]:
            if folder.is_dir():
                target = tmp_path / "in" / split / folder.name
                target.mkdir(parents=True)
                file = sorted(folder.iterdir())[0]
                (target / file.name).write_bytes(file.read_bytes())
    forecast = packds.convert(tmp_path / "in", tmp_path / "o.pack", split="all", dry_run=True, progress=False)
    assert sorted(forecast) == ["train", "val"] and not (tmp_path / "o.train.pack").exists()
    reports = packds.convert(tmp_path / "in", tmp_path / "o.pack", split="all", progress=False)
    assert sorted(reports) == ["train", "val"]
    assert packds.open(tmp_path / "o.train.pack").classes == packds.open(tmp_path / "o.val.pack").classes


def test_a_dry_run_writes_nothing(photos, tmp_path):
    forecast = packds.convert(photos, tmp_path / "a.pack", dry_run=True, progress=False)
    assert forecast["n_samples"] > 0
    assert everything_in(tmp_path) == []


def test_an_export_comes_back(photo_pack, tmp_path):
    report = packds.export(photo_pack, tmp_path / "a.npz", progress=False)
    assert report["format"] == "npz"
    ds = packds.open(photo_pack)
    with np.load(tmp_path / "a.npz") as arrays:
        np.testing.assert_array_equal(arrays["label"], ds.labels)
        np.testing.assert_array_equal(arrays["image"], ds[:]["image"])
    with pytest.raises(packds.Error):
        packds.export(photo_pack, tmp_path / "a.unknown", progress=False)


def test_some_samples_are_exported_in_the_order_of_the_pack(photo_pack, tmp_path):
    ds = packds.open(photo_pack)
    cats = ds.labels == ds.class_to_idx["cat"]
    chosen = [("mask", cats, np.flatnonzero(cats)), ("slice", slice(3, 6), [3, 4, 5]), ("indices", [5, 1, 5, -1], [1, 5, len(ds) - 1])]
    chosen.append(("select", ds.select("label = 'cat'"), np.flatnonzero(cats)))
    for name, samples, expected in chosen:
        report = packds.export(ds, tmp_path / f"{name}.npz", samples=samples, progress=False)
        assert report["n_samples"] == len(expected)
        with np.load(tmp_path / f"{name}.npz") as arrays:
            np.testing.assert_array_equal(arrays["image"], ds.samples(expected)["image"])
    for samples, said in [([], "no sample is selected"), ([len(ds)], "no sample"), ("cat", "integers, slices or masks")]:
        with pytest.raises(packds.OptionError, match=f"samples: .*{said}"):
            packds.export(ds, tmp_path / "none.npz", samples=samples, progress=False)
    with pytest.raises(TypeError, match=r"samples=Dataset.select"):
        packds.export(ds, tmp_path / "none.npz", where="label = 'cat'", progress=False)
    assert not (tmp_path / "none.npz").exists()


def test_progress_is_told_and_may_raise(photos, tmp_path):
    from packds import _packds

    told = []
    _packds.convert(photos, tmp_path / "a.pack", [], False, lambda *args: told.append(args))
    done, total, _ = told[-1]
    assert done == total == len(packds.open(tmp_path / "a.pack"))

    def fails(*_):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        _packds.convert(photos, tmp_path / "b.pack", [], False, fails)


def test_ctrl_c_ends_a_conversion_and_leaves_nothing(photos, tmp_path):
    (tmp_path / "in").mkdir()
    for copy in range(40):
        (tmp_path / "in" / f"class{copy}").symlink_to(photos)
    (tmp_path / "out").mkdir()
    script = textwrap.dedent(
        """
        import sys, packds
        print("ready", flush=True)
        try:
            packds.convert(sys.argv[1], sys.argv[2], resize="1500x1500", jobs=1, progress=False)
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        """
    )
    args = [sys.executable, "-c", script, tmp_path / "in", tmp_path / "out" / "a.pack"]
    with subprocess.Popen(args, stdout=subprocess.PIPE, text=True) as process:
        process.stdout.readline()
        while not everything_in(tmp_path / "out"):
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "interrupted\n"
        assert process.wait(10) == 0
    assert everything_in(tmp_path / "out") == []


def test_ctrl_c_ends_the_command_with_its_exit_code_and_leaves_nothing(photos, tmp_path):
    (tmp_path / "in").mkdir()
    for copy in range(40):
        (tmp_path / "in" / f"class{copy}").symlink_to(photos)
    (tmp_path / "out").mkdir()
    args = [tmp_path / "in", tmp_path / "out" / "a.pack", "--resize", "1500x1500", "--jobs", "1"]
    command = [sys.executable, "-m", "packds", "convert", *args]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        while not everything_in(tmp_path / "out"):
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=10) == ("", "packds: interrupted; nothing was written\n")
    assert process.returncode == 130
    assert everything_in(tmp_path / "out") == []


def test_ctrl_c_ends_an_export_and_leaves_nothing(tmp_path):
    # Incompressible data takes longest.
    images = np.random.default_rng(0).integers(0, 256, (1000, 128, 128, 3), np.uint8)
    packds.from_dataset({"image": images}, tmp_path / "a.pack", progress=False)
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        packds.export(tmp_path / "a.pack", tmp_path / "b.npz", codec="gzip:9", jobs=1, progress=False)
    timer.join()
    assert everything_in(tmp_path) == ["a.pack"]


def test_the_command_comes_with_the_package(photo_pack):
    done = subprocess.run(
        [sys.executable, "-m", "packds", "info", photo_pack, "--json"], capture_output=True, text=True, check=True
    )
    import json

    assert json.loads(done.stdout) == packds.open(photo_pack).info()
    script = pathlib.Path(sys.executable).with_name("packds")
    if script.exists():
        assert subprocess.run([script, "--version"], capture_output=True, check=True).stdout.startswith(b"packds")
    assert subprocess.run([sys.executable, "-m", "packds", "nonsense"], capture_output=True).returncode == 2


def test_formats_are_listed():
    formats = packds.formats()
    assert {"image-folder", "npz", "parquet", "webdataset"} <= set(formats)


def test_sizes_that_were_decided_here_are_warned_of_in_pythons_words(photos, tmp_path):
    with pytest.warns(UserWarning, match="images have several sizes, so they are resized to short side 256") as warned:
        report = packds.convert(photos, tmp_path / "a.pack", progress=False)
    assert [str(one.message) for one in warned] == report["notes"]
    assert warned[0].filename == __file__
    assert "mode='encoded' keeps" in report["notes"][0] and "--" not in report["notes"][0]
    samples = [(np.zeros((side, 8, 3), np.uint8), 0) for side in (8, 9)]
    for dry_run in (True, False):
        with pytest.warns(UserWarning, match="several sizes"):
            packds.convert(photos, tmp_path / "b.pack", dry_run=dry_run, progress=False)
    with pytest.warns(UserWarning, match="several sizes") as warned:
        packds.from_dataset(samples, tmp_path / "c.pack", progress=False)
    assert warned[0].filename == __file__
    # Explicit options cause no notes.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        packds.convert(photos, tmp_path / "d.pack", resize="short:64", crop=64, progress=False)


def test_a_name_of_no_format_says_how_to_name_one(photo_pack, tmp_path):
    with pytest.raises(packds.ConvertError) as raised:
        packds.export(photo_pack, tmp_path / "x.foo", progress=False)
    assert raised.value.hint == "choose one with to='FORMAT'; packds.formats() lists them"


def test_warnings_of_a_source_are_warnings(photos, tmp_path):
    file = next(iter(sorted(photos.glob("*/*.*"))))
    for place in ("cat", "dog"):
        (tmp_path / "set" / place).mkdir(parents=True)
        (tmp_path / "set" / place / file.name).write_bytes(file.read_bytes())
    (tmp_path / "set" / "beside.jpg").write_bytes(file.read_bytes())
    with pytest.warns(UserWarning) as warned:
        report = packds.convert(tmp_path / "set", tmp_path / "a.pack", resize="short:64", crop=64, progress=False)
    assert report["warnings"] and [str(one.message) for one in warned] == report["warnings"]
    assert not any("--" in said for said in report["warnings"])


def test_folders_of_images_and_masks_are_pairs_which_may_be_named(photos, tmp_path):
    file = next(iter(sorted(photos.glob("*/*.jpg"))))
    for place, name in (("images", "a.jpg"), ("masks", "a.jpg"), ("other", "a_mask.jpg")):
        (tmp_path / "set" / place).mkdir(parents=True)
        with Image.open(file) as image:
            image.convert("RGB" if place == "images" else "L").save(tmp_path / "set" / place / name)
    options = {"resize": "short:64", "crop": 64, "progress": False}
    with pytest.warns(UserWarning, match="ignored 1 folder .*'other'|in JPEG format"):
        plan = packds.convert(tmp_path / "set", tmp_path / "a.pack", dry_run=True, **options)
    assert [decision["what"] for decision in plan["source"].pop("decisions")] == ["format", "image", "label", "mask"]
    assert plan["source"] == {
        "kind": "paired_folders", "sample": "file", "image": "images/a.jpg", "mask": "masks/a.jpg", "labels": "none", "classes": [], "fields": [], "ignored": 0,
    }
    with pytest.warns(UserWarning, match="ignored 1 folder .*'masks'|in JPEG format"):
        plan = packds.convert(tmp_path / "set", tmp_path / "a.pack", dry_run=True, masks="other", **options)
    assert plan["source"]["mask"] == "other/a_mask.jpg"
    with pytest.raises(packds.OptionError, match="images: expected a folder in the source, found ''"):
        packds.convert(tmp_path / "set", tmp_path / "a.pack", images="", **options)
