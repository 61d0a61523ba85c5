"""Packs written by a program."""

import datetime
import gc
import io
import os
import re
import signal
import subprocess
import sys
import textwrap
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import packds
from conftest import image_of


def test_samples_come_back_shuffled_or_in_order(tmp_path):
    for keep_order in (True, False):
        path = tmp_path / f"{keep_order}.pack"
        with packds.write(path, {"image": "image", "label": "label"}, keep_order=keep_order) as writer:
            for number in range(50):
                writer.add(image=image_of(number), label=number)
        assert writer.report["n_samples"] == 50
        labels = packds.open(path).labels.tolist()
        assert sorted(labels) == list(range(50))
        assert (labels == list(range(50))) is keep_order


def test_every_kind_of_field_comes_back(tmp_path):
    path = tmp_path / "a.pack"
    schema = {
        "image": "image",
        "mask": "mask",
        "label": "label",
        "caption": "text",
        "boxes": "json",
        "blob": "bytes",
        "score": "f32",
        "points": ("i16", (2, 2)),
        "large": ("f64", (40, 10)),
        "flag": "bool",
    }
    sample = {
        "image": image_of(1),
        "mask": np.arange(64, dtype=np.uint8).reshape(8, 8),
        "label": "dog",
        "caption": "a dog \u00fc",
        "boxes": [{"x": 1.5}, None],
        "blob": b"\x00\xff",
        "score": 0.25,
        "points": np.array([[1, -2], [3, 4]]),
        "large": np.arange(400.0).reshape(40, 10),
        "flag": True,
    }
    with packds.write(path, schema) as writer:
        writer.add(**sample)
    ds = packds.open(path)
    found = ds[0]
    assert set(found) == set(sample)
    assert ds.classes == ["dog"] and found["label"] == 0
    for name in ("image", "mask", "points", "large"):
        np.testing.assert_array_equal(found[name], sample[name])
    for name in ("caption", "boxes", "blob", "score", "flag"):
        assert found[name] == sample[name]
    assert found["points"].dtype == np.int16


def test_kinds_are_found_by_the_first_sample(tmp_path):
    path = tmp_path / "a.pack"
    with packds.write(path) as writer:
        writer.add(img=image_of(1), y=3, name="x", score=0.5)
    ds = packds.open(path)
    assert [(field.name, field.role) for field in ds.fields.values() if field.is_data and field.role] == [
        ("image", "image"),
        ("label", "label"),
    ]
    assert ds[0]["name"] == "x" and ds[0]["score"] == 0.5


def test_pictures_files_and_arrays_are_images(tmp_path, photos):
    from PIL import Image

    file = next(photos.rglob("*.jpg"))
    picture = Image.open(file)
    buffer = io.BytesIO()
    picture.convert("RGB").save(buffer, "PNG")
    pixels = np.asarray(picture.convert("RGB"))
    path = tmp_path / "a.pack"
    with packds.write(path, {"image": "image"}, keep_order=True) as writer:
        for image in (picture, buffer.getvalue(), pixels, file, str(file), {"bytes": buffer.getvalue(), "path": None}):
            writer.add(image=image)
    for sample in packds.open(path):
        np.testing.assert_array_equal(sample["image"], pixels)


def test_arrays_that_are_no_pictures_are_kept(tmp_path):
    path = tmp_path / "a.pack"
    spectra = np.random.default_rng(1).normal(size=(30, 4, 17)).astype(np.float32)
    packds.from_dataset({"image": spectra}, path, keep_order=True, progress=False)
    np.testing.assert_array_equal(packds.open(path)[:]["image"], spectra)


@pytest.mark.parametrize(
    ("sample", "said"),
    [
        ({"image": image_of(1), "label": "x"}, "field `label`"),
        ({"image": image_of(1), "label": 7}, "class id 7"),
        ({"image": image_of(1), "label": 0.5}, "a class id"),
        ({"image": image_of(1), "label": float("nan")}, "field 'label'"),
        ({"image": image_of(1), "label": float("inf")}, "field 'label'"),
        ({"image": image_of(1), "label": 1 << 70}, "a class id"),
        ({"image": image_of(1)}, "expected image, label"),
        ({"image": image_of(1), "label": 1, "more": 2}, "found image, label, more"),
        ({"image": image_of(1), "label": "cat", "x": 1}, "expected"),
        ({"image": np.zeros((0, 3, 3), np.uint8), "label": 1}, "with elements"),
        ({"image": object(), "label": 1}, "do not support the element type"),
    ],
)
def test_a_wrong_sample_is_refused_and_others_may_come(tmp_path, sample, said):
    with packds.write(tmp_path / "a.pack", {"image": "image", "label": "label"}, classes=["a", "b"]) as writer:
        with pytest.raises(packds.Error, match=said):
            writer.add(**sample)
        assert len(writer) == 0
        writer.add(image=image_of(2), label="b")
    assert packds.open(tmp_path / "a.pack").labels.tolist() == [1]


def test_numbers_become_the_nearest_bfloat16(tmp_path):
    numbers = np.array([1.0, -2.5, 3.14159265, 1e-40, 65535.0, np.inf, np.nan, 0.0], np.float32)
    # Ties round to even.
    ties = np.array([0x3F808000, 0x3F818000, 0x7F7F7FFF, 0xFFFFFFFF], np.uint32).view(np.float32)
    with packds.write(tmp_path / "a.pack", {"image": "image", "x": ("bf16", (8,)), "y": ("bf16", (4,))}) as writer:
        writer.add(image=image_of(1), x=numbers, y=ties)
        with pytest.raises(packds.ConvertError, match="expected numbers"):
            writer.add(image=image_of(1), x=np.array(["1"] * 8), y=ties)
    sample = packds.open(tmp_path / "a.pack")[0]
    bits = sample["x"].view(np.uint16)
    assert bits.tolist() == [0x3F80, 0xC020, 0x4049, 0x0001, 0x4780, 0x7F80, bits[6], 0]
    assert np.isnan((bits[6].astype(np.uint32) << 16).view(np.float32))
    assert sample["y"].view(np.uint16).tolist() == [0x3F80, 0x3F82, 0x7F7F, 0xFFFF]


def test_an_array_is_not_rounded_unasked(tmp_path):
    with packds.write(tmp_path / "a.pack", {"image": "image", "n": ("i32", (2,))}) as writer:
        with pytest.raises(packds.ConvertError, match="field 'n'"):
            writer.add(image=image_of(1), n=np.array([1.5, 2.5]))
        writer.add(image=image_of(1), n=np.array([1, 2]))


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        ("u8", 300),
        ("u8", -1),
        ("i64", 3.7),
        ("i32", float("nan")),
        ("i64", 2**63),
        ("u64", -1),
        ("bool", 5),
        ("text", None),
        ("text", b"abc"),
        ("bytes", 5),
    ],
)
def test_a_value_that_its_field_cannot_hold_is_refused(tmp_path, kind, wrong):
    path = tmp_path / "a.pack"
    with packds.write(path, {"image": "image", "n": kind}, progress=False) as writer:
        with pytest.raises(packds.ConvertError, match="field 'n': expected"):
            writer.add(image=image_of(1), n=wrong)
        writer.add(image=image_of(1), n={"text": "a", "bytes": b"a", "bool": True}.get(kind, np.float32(7.0)))
    assert len(packds.open(path)) == 1


@pytest.mark.parametrize(
    ("dtype", "wrong"),
    [
        ("f32", np.float64(1e300)),
        ("f32", -1e300),
        ("f16", 1e6),
        ("f16", np.float32(65520)),
        ("f16", 70000),
        ("bf16", 1e300),
        ("bf16", np.array(0x7F7FFFFF, np.uint32).view(np.float32)),
    ],
)
def test_numbers_that_would_become_infinite_are_refused(tmp_path, dtype, wrong):
    schema = {"image": "image", "one": dtype, "several": (dtype, (3,))}
    special = [float("inf"), float("-inf"), float("nan")]
    text = f"expected a number that fits in b?float{dtype.strip('bf')}, found {re.escape(repr(np.asarray(wrong).item()))}"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with packds.write(tmp_path / "a.pack", schema) as writer:
            with pytest.raises(packds.ConvertError, match=f"sample 0: field 'one': {text}"):
                writer.add(image=image_of(1), one=wrong, several=np.zeros(3))
            with pytest.raises(packds.ConvertError, match=f"sample 0: field 'several': {text}"):
                writer.add(image=image_of(1), one=0, several=np.array([float("inf"), wrong, 0]))
            writer.add(image=image_of(1), one=special[0], several=np.array(special))
    sample = packds.open(tmp_path / "a.pack")[0]
    several = sample["several"]
    if dtype == "bf16":
        several = (several.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    np.testing.assert_array_equal(several, special)


def test_schemas_that_cannot_be_are_refused(tmp_path):
    for schema in ({"label": "label"}, {"a": "image", "b": "image"}, {"image": "image", "x": "spam"}):
        with pytest.raises(packds.Error):
            packds.write(tmp_path / "a.pack", schema)
    with pytest.raises(TypeError, match="speed"):
        packds.write(tmp_path / "a.pack", {"image": "image"}, speed=3)


def test_an_exception_leaves_nothing(tmp_path):
    with pytest.raises(ZeroDivisionError):
        with packds.write(tmp_path / "a.pack", {"image": "image"}) as writer:
            writer.add(image=image_of(1))
            1 / 0
    assert os.listdir(tmp_path) == []


def test_no_sample_is_an_error_and_leaves_nothing(tmp_path):
    for schema in ({"image": "image"}, None):
        with pytest.raises(packds.ConvertError, match="no sample was added\nhint: give at least one sample; nothing was written"):
            with packds.write(tmp_path / "a.pack", schema):
                pass
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("schema", [{"image": "image"}, None])
def test_a_target_that_cannot_be_says_what_to_name(tmp_path, monkeypatch, schema):
    monkeypatch.chdir(tmp_path)
    for target, text in [
        (".", "^\\.: this is a folder, but the output must be a file\nhint: choose a file name"),
        ("..", "this is a folder"),
        ("no/dir/y.pack", "the folder no/dir does not exist\nhint: create the folder first"),
    ]:
        with pytest.raises(packds.ConvertError, match=text):
            packds.from_dataset({"image": [image_of(1)]}, target, schema, progress=False)
    assert os.listdir(tmp_path) == []


def test_an_existing_file_is_refused_before_the_first_sample(tmp_path):
    (tmp_path / "a.pack").write_text("x")
    with pytest.raises(packds.ConvertError, match="exists"):
        packds.write(tmp_path / "a.pack", {"image": "image"})


def test_a_killed_program_leaves_nothing(tmp_path):
    script = textwrap.dedent(
        """
        import sys, time, numpy as np, packds
        with packds.write(sys.argv[1], {"image": "image"}) as writer:
            for number in range(100):
                writer.add(image=np.zeros((64, 64, 3), np.uint8))
            print("ready", flush=True)
            time.sleep(60)
        """
    )
    with subprocess.Popen([sys.executable, "-c", script, tmp_path / "a.pack"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGKILL)
    assert os.listdir(tmp_path) == []


def test_a_program_killed_while_the_pack_is_written_leaves_a_file_that_the_next_uses(tmp_path):
    script = textwrap.dedent(
        """
        import sys, numpy as np, packds
        with packds.write(sys.argv[1], {"image": "image"}, codec="zstd:19") as writer:
            for number in range(4000):
                writer.add(image=np.random.default_rng(number).integers(0, 9, (64, 64, 3), np.uint8))
        """
    )
    path, working = tmp_path / "a.pack", tmp_path / ".a.pack.packing"
    with subprocess.Popen([sys.executable, "-c", script, path]) as process:
        while process.poll() is None and not working.exists():
            pass
        process.kill()
    assert os.listdir(tmp_path) == [working.name]
    with packds.write(path, {"image": "image"}) as writer:
        writer.add(image=image_of(1))
    assert os.listdir(tmp_path) == [path.name]
    assert packds.open(path).verify()["ok"]


class Indexable:
    classes = ["even", "odd"]

    def __len__(self):
        return 6

    def __getitem__(self, index):
        if not 0 <= index < 6:
            raise IndexError
        return image_of(index), index % 2


def _generated():
    yield from Indexable()


def _pandas():
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame({"image": [png_of(i) for i in range(6)], "label": [i % 2 for i in range(6)]})


def _arrow():
    pyarrow = pytest.importorskip("pyarrow")
    return pyarrow.table({"image": [png_of(i) for i in range(6)], "label": [i % 2 for i in range(6)]})


def png_of(number: int) -> bytes:
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(image_of(number)).save(buffer, "PNG")
    return buffer.getvalue()


@pytest.mark.parametrize(
    "source",
    [
        Indexable,
        _generated,
        lambda: [Indexable()[i] for i in range(6)],
        lambda: [{"image": image_of(i), "label": i % 2} for i in range(6)],
        lambda: {"image": np.stack([image_of(i) for i in range(6)]), "label": np.arange(6) % 2},
        _pandas,
        _arrow,
    ],
    ids=["indexable", "generator", "list", "dicts", "arrays", "pandas", "pyarrow"],
)
def test_any_data_set_can_be_packed(tmp_path, source):
    path = tmp_path / "a.pack"
    report = packds.from_dataset(source(), path, keep_order=True, progress=False)
    ds = packds.open(path)
    assert report["n_samples"] == len(ds) == 6
    assert ds.classes == (["even", "odd"] if source is Indexable else [])
    assert ds.labels.tolist() == [0, 1, 0, 1, 0, 1]
    for number in range(6):
        np.testing.assert_array_equal(ds[number]["image"], image_of(number))


def test_ids_may_be_floats_as_tables_have_them(tmp_path):
    arrays = {"image": np.zeros((3, 8, 8, 3), np.uint8), "label": np.array([2.0, 0.0, 1.0])}
    packds.from_dataset(arrays, tmp_path / "a.pack", {"image": "image", "label": "label"}, keep_order=True, progress=False)
    assert packds.open(tmp_path / "a.pack").labels.tolist() == [2, 0, 1]


@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError])
def test_a_data_set_that_fails_leaves_nothing(tmp_path, error):
    def samples():
        yield from Indexable()
        raise error

    with pytest.raises(error):
        packds.from_dataset(samples(), tmp_path / "a.pack", progress=False)
    assert os.listdir(tmp_path) == []


def test_a_sample_that_lacks_a_field_is_told(tmp_path):
    samples = [{"image": image_of(1), "label": 1}, {"image": image_of(2), "name": "x"}]
    with pytest.raises(packds.ConvertError, match="expected image, label in each sample, found image, name"):
        packds.from_dataset(samples, tmp_path / "a.pack", ["image", "label"], progress=False)
    assert os.listdir(tmp_path) == []


def test_fields_name_the_values_of_tuples(tmp_path):
    samples = [(image_of(i), f"text {i}", i / 2) for i in range(4)]
    fields = {"image": "image", "caption": "text", "score": "f64"}
    packds.from_dataset(samples, tmp_path / "a.pack", fields, keep_order=True, progress=False)
    assert packds.open(tmp_path / "a.pack")[3]["caption"] == "text 3"
    with pytest.raises(packds.ConvertError, match="found 3 values"):
        packds.from_dataset(samples, tmp_path / "b.pack", ["image", "label"], progress=False)


_DTYPES = ["u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64", "f16", "f32", "f64", "bool"]


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    dtype=st.sampled_from(_DTYPES),
    shape=st.lists(st.integers(1, 5), max_size=3),
    n=st.integers(1, 20),
    side=st.integers(1, 6),
    codec=st.sampled_from(["none", "zstd"]),
    chunk=st.integers(1, 8),
    seed=st.integers(0, 2**32),
)
def test_what_is_written_is_what_numpy_had(tmp_path, dtype, shape, n, side, codec, chunk, seed):
    path = tmp_path / "property.pack"
    rng = np.random.default_rng(seed)
    name = dict(packds._packds.DTYPES)[dtype]
    values = rng.integers(0, 2, (n, *shape)) if dtype == "bool" else rng.integers(0, 100, (n, *shape))
    values = values.astype(name)
    images = rng.integers(0, 256, (n, side, side, 3), np.uint8)
    with packds.write(
        path, {"image": "image", "x": (dtype, shape)}, keep_order=True, codec=codec, chunk=chunk, force=True
    ) as writer:
        writer.extend(image=images, x=values)
    found = packds.open(path)[:]
    np.testing.assert_array_equal(found["image"], images)
    np.testing.assert_array_equal(found["x"], values)
    assert found["x"].dtype == values.dtype
    for batch in packds.Loader(path, batch_size=n, order="sequential"):
        np.testing.assert_array_equal(batch["x"], values)


def test_parts_and_readers_of_arrow_tables_are_tables(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    table = _arrow()
    for source in (table.to_batches()[0], table.to_reader(), pyarrow.concat_tables([table.slice(0, 2), table.slice(2)])):
        packds.from_dataset(source, tmp_path / "a.pack", keep_order=True, progress=False, force=True)
        assert packds.open(tmp_path / "a.pack").labels.tolist() == [0, 1] * 3


@pytest.mark.parametrize(
    ("name", "values", "text"),
    [
        ("label", ["a", float("nan")], "sample 1: field 'label': expected a class id, found nan"),
        ("caption", ["a", float("nan")], "sample 1: field 'caption': expected a string, found nan"),
        ("number", [1.5, "a"], "sample 1: field 'number': expected a number, found 'a'"),
        ("day", [datetime.date(2020, 1, 2)], "sample 0: field 'day': expected a JSON value, found datetime.date"),
    ],
)
def test_values_that_a_column_cannot_hold_are_named_with_their_sample(tmp_path, name, values, text):
    samples = [{"image": image_of(1), name: value} for value in values]
    with pytest.raises(packds.ConvertError, match=re.escape(text)):
        packds.from_dataset(samples, tmp_path / "a.pack", progress=False)
    assert list(tmp_path.iterdir()) == []


def test_missing_numbers_of_pandas_are_named(tmp_path):
    pandas = pytest.importorskip("pandas")
    table = _pandas().assign(n=pandas.array([1, None, 3, 4, 5, 6], dtype="Int64"))
    with pytest.raises(packds.ConvertError, match="sample 1: field 'n': expected a number, found <NA>"):
        packds.from_dataset(table, tmp_path / "a.pack", progress=False)


@pytest.mark.parametrize("shape", [(2, 2, 1), (1, 2, 2), (1, 1, 1), (2, 2), (2, 2, 3)])
def test_arrays_of_bytes_that_look_like_pixels_keep_their_shape(tmp_path, shape):
    values = np.arange(3 * np.prod(shape), dtype=np.uint8).reshape(3, *shape)
    with packds.write(tmp_path / "a.pack", {"image": "image", "x": ("u8", shape)}, keep_order=True) as writer:
        writer.extend(image=[image_of(1)] * 3, x=values)
    np.testing.assert_array_equal(packds.open(tmp_path / "a.pack")[:]["x"], values)


def test_a_writers_report_has_no_option_that_writers_lack(tmp_path):
    report = packds.from_dataset([{"image": image_of(1), "n": 3}], tmp_path / "a.pack", progress=False)
    assert report["warnings"] == ["no labels found: no field has a name commonly used for labels (fields: 'n'); give the label field the kind 'label'"]


def test_a_writer_that_was_not_closed_says_what_is_lost(tmp_path):
    writer = packds.write(tmp_path / "a.pack", {"image": "image"})
    writer.add(image=image_of(1))
    with pytest.warns(ResourceWarning, match="a.pack was not closed: 1 sample lost; use `with`"):
        del writer
        gc.collect()
    assert not (tmp_path / "a.pack").exists()


def test_writers_that_are_over_warn_of_nothing(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        closed, abandoned = (packds.write(tmp_path / name, {"image": "image"}) for name in ("a.pack", "b.pack"))
        for writer in (closed, abandoned):
            writer.add(image=image_of(1))
        closed.close()
        abandoned.abandon()
        with pytest.raises(packds.OptionError):
            packds.write(tmp_path / "c.pack", {"image": "image"}, mode="nothing")
        del writer, closed, abandoned
        gc.collect()


def test_labels_that_are_no_class_ids_are_a_pair_with_the_image(tmp_path):
    images = [image_of(k) for k in range(8)]
    rows = {"bool": np.arange(8) % 2 == 0, "hot": np.eye(4, dtype=np.float32)[np.arange(8) % 4], "number": np.arange(8) / 2}
    for name, labels in rows.items():
        path = tmp_path / f"{name}.pack"
        packds.from_dataset({"image": images, "label": labels}, path, keep_order=True, progress=False)
        ds = packds.open(path)
        assert any(field.role == "label" for field in ds.fields.values()) == (name == "bool")
        for found, numbers in packds.Loader(ds, batch_size=4, order="sequential"):
            assert np.array_equal(found[0], images[0]) or np.array_equal(found[0], images[4])
            first = 0 if np.array_equal(found[0], images[0]) else 4
            assert np.array_equal(numbers, labels[first : first + 4])
    # Fields with unusual names keep their names.
    packds.from_dataset({"image": images, "angle": np.arange(8) / 2}, tmp_path / "angle.pack", progress=False)
    assert set(next(iter(packds.Loader(tmp_path / "angle.pack", batch_size=4))).keys()) == {"image", "angle"}


def test_weights_say_how_often_samples_come(tmp_path):
    packds.from_dataset({"image": [image_of(k) for k in range(40)], "label": np.arange(40) % 4}, tmp_path / "a.pack", progress=False)
    ds = packds.open(tmp_path / "a.pack")
    weights = (10 / np.bincount(ds.labels))[ds.labels]
    assert len(packds.Loader(ds, batch_size=2, weights=weights)) == 20
    assert len(packds.Loader(ds, batch_size=2, weights=weights * len(ds) / weights.sum())) == 20
