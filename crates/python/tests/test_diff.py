"""How two packs differ."""

import pytest

import packds


def test_labels_samples_and_fields_that_differ_are_listed(photo_pack, tmp_path):
    ds = packds.open(photo_pack)
    path = ds.source_path(2)
    (tmp_path / "t.csv").write_text(f"path,label\n{path},zebra\n")
    with pytest.warns(UserWarning, match="zebra"):
        packds.relabel(ds, tmp_path / "b.pack", tmp_path / "t.csv", progress=False)
    packds.subset(tmp_path / "b.pack", tmp_path / "c.pack", samples=slice(1, None), progress=False)
    packds.drop_field(tmp_path / "c.pack", tmp_path / "d.pack", "source_width", progress=False)
    report = packds.diff(photo_pack, tmp_path / "d.pack", progress=False)
    assert not report["is_equal"] and report["matched_by"] == "path"
    assert (report["n_added"], report["n_removed"], report["n_changed"]) == (0, 1, 1)
    assert report["n_equal"] == len(ds) - 2
    assert report["fields"]["removed"] == ["source_width"]
    assert report["changed"][0]["path"] == path
    old = ds.classes[ds.labels[2]]
    assert report["changed"][0]["fields"][0] == {"field": "label", "old": old, "new": "zebra", "old_bytes": 4, "new_bytes": 4}
    few = packds.diff(ds, packds.open(tmp_path / "d.pack"), number=0, progress=False)
    assert few["n_changed"] == 1 and few["changed"] == []


def test_a_set_equals_its_merged_pack(photo_pack, tmp_path):
    packds.append(tmp_path / "s.packs", photo_pack, progress=False)
    packds.merge([tmp_path / "s.packs"], tmp_path / "m.pack", progress=False)
    assert packds.diff(tmp_path / "s.packs", tmp_path / "m.pack", progress=False)["is_equal"]


def test_what_cannot_be_compared_is_an_error(photo_pack, tmp_path):
    with pytest.raises(packds.NotFoundError):
        packds.diff(photo_pack, tmp_path / "no.pack", progress=False)
    with pytest.raises(packds.OptionError, match="number"):
        packds.diff(photo_pack, photo_pack, number=-1, progress=False)
    with pytest.raises(TypeError, match="no option"):
        packds.diff(photo_pack, photo_pack, samples=[1], progress=False)
