"""Packs from samples of packs."""

import numpy as np
import pytest

import packds


def test_a_subset_has_the_chosen_samples(photo_pack, tmp_path):
    ds = packds.open(photo_pack)
    report = packds.subset(ds, tmp_path / "a.pack", samples=[2, 5], progress=False)
    assert (report["n_samples"], report["dry_run"]) == (2, False)
    new = packds.open(tmp_path / "a.pack")
    for place, sample in enumerate([2, 5]):
        assert np.array_equal(new[place]["image"], ds[sample]["image"])
        assert new[place]["label"] == ds[sample]["label"]
    with pytest.raises(packds.ConvertError, match="a.pack"):
        packds.subset(ds, tmp_path / "a.pack", progress=False)


def test_a_split_and_its_merge_have_all_samples(photo_pack, tmp_path):
    ds = packds.open(photo_pack)
    reports = packds.split(ds, tmp_path / "s.pack", ratio=(0.6, 0.4), names=["a", "b"], progress=False)
    assert list(reports) == ["a", "b"]
    parts = [packds.open(tmp_path / f"s.{name}.pack") for name in reports]
    assert sum(map(len, parts)) == len(ds)
    packds.merge(parts, tmp_path / "all.pack", progress=False)
    images = lambda pack: sorted(sample["image"].tobytes() for sample in pack)
    assert images(packds.open(tmp_path / "all.pack")) == images(ds)


def test_a_split_is_that_of_the_command(photo_pack, tmp_path):
    from packds import _packds

    packds.split(photo_pack, tmp_path / "a.pack", folds=2, seed=3, progress=False)
    args = ["packds", "split", str(photo_pack), str(tmp_path / "b.pack"), "--folds", "2", "--seed", "3", "-q"]
    assert _packds.run(args) == 0
    for fold in ("fold0", "fold1"):
        one, two = (tmp_path / f"{name}.{fold}.pack" for name in "ab")
        # The pack does not depend on its name.
        assert one.read_bytes() == two.read_bytes()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "expected one of ratio, folds and by"),
        ({"ratio": (0.5, 0.6)}, "ratio: expected two or more shares that add up to 1"),
        ({"ratio": (0.5, 0.5), "names": ["a"]}, "names: expected 2 names"),
        ({"folds": 2, "group_by": "nothing"}, "no field `nothing`"),
    ],
)
def test_wrong_splits_are_refused(photo_pack, tmp_path, options, message):
    with pytest.raises(packds.Error, match=message):
        packds.split(photo_pack, tmp_path / "s.pack", **options, progress=False)
    assert list(tmp_path.iterdir()) == []


def test_a_reordered_pack_has_all_samples_in_the_order_of_the_command(photo_pack, tmp_path):
    from packds import _packds

    ds = packds.open(photo_pack)
    packds.reorder(ds, tmp_path / "a.pack", seed=3, progress=False)
    args = ["packds", "reorder", str(photo_pack), str(tmp_path / "b.pack"), "--seed", "3", "-q"]
    assert _packds.run(args) == 0
    assert (tmp_path / "a.pack").read_bytes() == (tmp_path / "b.pack").read_bytes()
    packds.reorder(tmp_path / "a.pack", tmp_path / "c.pack", by="source_id", progress=False)
    packds.reorder(ds, tmp_path / "d.pack", by="source_id", progress=False)
    images = lambda name: [sample["image"].tobytes() for sample in packds.open(tmp_path / name)]
    assert images("c.pack") == images("d.pack") != images("a.pack")
    with pytest.raises(packds.ConvertError, match="seed cannot be combined with by"):
        packds.reorder(ds, tmp_path / "e.pack", by="label", seed=1, progress=False)


def test_fields_are_left_out(photo_pack, tmp_path):
    ds = packds.open(photo_pack)
    packds.drop_field(ds, tmp_path / "a.pack", "source_id", progress=False)
    new = packds.open(tmp_path / "a.pack")
    assert list(new.fields) == [name for name in ds.fields if name != "source_id"]
    assert np.array_equal(new[3]["image"], ds[3]["image"])
    for fields, message in [("owl", "no field `owl`"), ([], "no field is named"), ([3], "fields: expected names of fields")]:
        with pytest.raises(packds.Error, match=message):
            packds.drop_field(ds, tmp_path / "b.pack", fields, progress=False)
    assert not (tmp_path / "b.pack").exists()


def test_labels_are_corrected_as_with_the_command(photo_pack, tmp_path):
    from packds import _packds

    ds = packds.open(photo_pack)
    first, second = ds.classes[:2]
    (tmp_path / "t.csv").write_text(f"sample,class\n0,{first}\n1,new\n")
    with pytest.warns(UserWarning, match="1 class added to `label`: 'new'"):
        packds.relabel(ds, tmp_path / "a.pack", tmp_path / "t.csv", progress=False)
    new = packds.open(tmp_path / "a.pack")
    assert [new.classes[new[sample]["label"]] for sample in (0, 1)] == [first, "new"]
    assert np.array_equal(new[1]["image"], ds[1]["image"])
    with pytest.warns(UserWarning, match="joined"):
        packds.relabel(ds, tmp_path / "b.pack", rename={first: second}, progress=False)
    args = ["packds", "relabel", str(photo_pack), str(tmp_path / "c.pack"), "--rename", f"{first}={second}", "-q"]
    assert _packds.run(args) == 0
    assert (tmp_path / "b.pack").read_bytes() == (tmp_path / "c.pack").read_bytes()
    for options, message in [({}, "neither is given"), ({"rename": ["a=b"]}, "rename: expected a dict")]:
        with pytest.raises(packds.Error, match=message):
            packds.relabel(ds, tmp_path / "d.pack", **options, progress=False)


def test_listed_samples_keep_the_order_of_the_pack(photo_pack, tmp_path):
    ds = packds.open(photo_pack)
    with pytest.warns(UserWarning, match="not in ascending order"):
        report = packds.subset(ds, tmp_path / "a.pack", samples=[5, 3], progress=False)
    assert report["n_samples"] == 2 and len(report["warnings"]) == 1
    assert np.array_equal(packds.open(tmp_path / "a.pack")[0]["image"], ds[3]["image"])
    with pytest.raises(packds.ConvertError, match="sample 3 is listed twice"):
        packds.subset(ds, tmp_path / "b.pack", samples=[5, 3, 3], progress=False)


def test_a_split_by_a_field_needs_no_seed(photo_pack, tmp_path):
    reports = packds.split(photo_pack, tmp_path / "by.pack", by="label", progress=False)
    assert sum(report["n_samples"] for report in reports.values()) == len(packds.open(photo_pack))
    with pytest.raises(packds.ConvertError, match="seed cannot be combined with by"):
        packds.split(photo_pack, tmp_path / "no.pack", by="label", seed=0, progress=False)


def test_files_do_not_get_the_names_of_sets(photo_pack, tmp_path):
    for name, message in [("a.packs", "name of a set"), ("a.packs@3", "name of a version of the set")]:
        with pytest.raises(packds.ConvertError, match=message):
            packds.subset(photo_pack, tmp_path / name, samples=[1], progress=False)
    with pytest.raises(packds.ConvertError, match="a.train.packs: this is the name of a set"):
        packds.split(photo_pack, tmp_path / "a.packs", ratio=(0.5, 0.5), dry_run=True, progress=False)
    assert list(tmp_path.iterdir()) == []


def test_columns_and_arrays_become_fields(photo_pack, tmp_path):
    ds = packds.open(photo_pack)
    n = len(ds)
    np.save(tmp_path / "clip.npy", np.arange(n * 4, dtype=np.float32).reshape(n, 4))
    packds.add_field(ds, tmp_path / "a.pack", tmp_path / "clip.npy", progress=False)
    new = packds.open(tmp_path / "a.pack")
    assert np.array_equal(np.stack([new[i]["clip"] for i in range(n)]), np.load(tmp_path / "clip.npy"))
    rows = [f"{ds.source_path(i)},{i * 2},note {i},{i}" for i in reversed(range(n))]
    (tmp_path / "t.csv").write_text("\n".join(["path,age,note,more", *rows]))
    options = {"column": ["age", "note"], "progress": False}
    packds.add_field(ds, tmp_path / "b.pack", tmp_path / "t.csv", **options)
    new = packds.open(tmp_path / "b.pack")
    assert new.columns["age"].tolist() == [2 * i for i in range(n)] and new[3]["note"] == "note 3"
    assert "more" not in new.fields and len(new.select("age >= 10")) == n - 5
    report = packds.diff(ds, new, progress=False)
    assert report["fields"]["added"] == ["age", "note"] and report["n_equal"] == n
    packds.add_field(ds, tmp_path / "c.pack", tmp_path / "t.csv", column="age", name="years", dtype="u8", progress=False)
    assert packds.open(tmp_path / "c.pack").columns["years"].dtype == np.uint8
    with pytest.raises(packds.ConvertError, match="has a field `age` already"):
        packds.add_field(new, tmp_path / "d.pack", tmp_path / "t.csv", column="age", progress=False)
    with pytest.raises(packds.OptionError, match="column"):
        packds.add_field(ds, tmp_path / "d.pack", tmp_path / "t.csv", column=[3], progress=False)
    with pytest.raises(packds.OptionError, match="element type 'complex'"):
        packds.add_field(ds, tmp_path / "d.pack", tmp_path / "t.csv", dtype="complex", progress=False)
    packds.add_field(ds, tmp_path / "e.pack", tmp_path / "t.csv", column="age", dtype="string", progress=False)
    assert packds.open(tmp_path / "e.pack")[2]["age"] == "4"
    packds.add_field(ds, tmp_path / "f.pack", tmp_path / "t.csv", column="age", dtype=np.float16, progress=False)
    assert packds.open(tmp_path / "f.pack").columns["age"].dtype == np.float16
    assert not (tmp_path / "d.pack").exists()


def test_parquet_tables_of_pyarrow_give_fields_and_labels(photo_pack, tmp_path):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    ds = packds.open(photo_pack)
    n = len(ds)
    columns = {
        "path": [ds.source_path(i) for i in range(n)],
        "small": pa.array(range(n), pa.int8()),
        "half": pa.array(np.arange(n, dtype=np.float16)),
        "flag": [i % 2 == 0 for i in range(n)],
        "text": [f"t{i}" for i in range(n)],
        "word": pa.array([f"w{i % 3}" for i in range(n)]).dictionary_encode(),
        "vector": pa.FixedSizeListArray.from_arrays(pa.array(np.arange(n * 3, dtype=np.float32)), 3),
        "list": [list(range(i % 4)) for i in range(n)],
        "label": [ds.classes[0]] * n,
        "holes": [None if i == 2 else i for i in range(n)],
    }
    table = pa.table(columns)
    parquet.write_table(table.take(list(reversed(range(n)))), tmp_path / "t.parquet", row_group_size=5)
    names = ["small", "half", "flag", "text", "word", "vector", "list"]
    packds.add_field(ds, tmp_path / "a.pack", tmp_path / "t.parquet", column=names, progress=False)
    new = packds.open(tmp_path / "a.pack")
    assert new.columns["small"].dtype == np.int8 and new.columns["small"].tolist() == list(range(n))
    assert new.columns["half"].dtype == np.float16 and new.columns["half"].tolist() == list(range(n))
    assert new.columns["flag"].dtype == bool and new.columns["flag"].tolist() == columns["flag"]
    assert [new[i]["text"] for i in range(n)] == columns["text"]
    assert [new[i]["word"] for i in range(n)] == [f"w{i % 3}" for i in range(n)]
    assert new.columns["vector"].shape == (n, 3) and new.columns["vector"][4].tolist() == [12, 13, 14]
    assert [new[i]["list"] for i in range(n)] == columns["list"]
    with pytest.raises(packds.ConvertError, match="row 17: `holes`: there is no value|`holes`: there is no value"):
        packds.add_field(ds, tmp_path / "b.pack", tmp_path / "t.parquet", column="holes", progress=False)
    with pytest.warns(UserWarning, match="have no samples any more"):
        packds.relabel(ds, tmp_path / "l.pack", tmp_path / "t.parquet", progress=False)
    assert set(packds.open(tmp_path / "l.pack").labels.tolist()) == {0}
