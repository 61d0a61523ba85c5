"""Sets of packs: a folder of packs that reads as one."""

import pickle

import numpy as np
import pytest

import packds


@pytest.fixture
def set_and_pack(photo_pack, tmp_path):
    """A set of three shards, and its merged pack."""
    reports = packds.split(photo_pack, tmp_path / "part.pack", ratio=(0.5, 0.3, 0.2), chunk=4, progress=False)
    parts = [report["output"] for report in reports.values()]
    report = packds.append(tmp_path / "s.packs", parts[:2], progress=False)
    assert (report["version"], report["n_shards"]) == (1, 2)
    report = packds.append(tmp_path / "s.packs", packds.open(parts[2]), progress=False)
    assert (report["version"], report["n_shards"], report["added"][0]["is_copy"]) == (2, 3, True)
    packds.merge(tmp_path / "s.packs", tmp_path / "m.pack", progress=False)
    return packds.open(tmp_path / "s.packs"), packds.open(tmp_path / "m.pack")


def test_a_set_has_the_samples_of_its_merged_pack(set_and_pack):
    of_set, merged = set_and_pack
    assert len(of_set) == len(merged)
    for one, other in zip(of_set, merged):
        assert np.array_equal(one["image"], other["image"])
        assert one["label"] == other["label"]
    assert np.array_equal(of_set.labels, merged.labels)
    assert np.array_equal(of_set.columns["source_id"], merged.columns["source_id"])
    assert [of_set.source_path(i) for i in range(len(of_set))] == [merged.source_path(i) for i in range(len(merged))]
    assert of_set.classes == merged.classes
    assert np.array_equal(of_set.select("label = 0"), merged.select("label = 0"))
    assert of_set.verify()["ok"] and of_set.stats["fields"] == merged.stats["fields"]
    assert len(pickle.loads(pickle.dumps(of_set))) == len(of_set)
    assert of_set.info()["set"]["version"] == 2 and merged.info()["set"] is None
    assert "version 2" in of_set._repr_html_() or len(of_set._repr_html_()) > 100


@pytest.mark.parametrize("order", ["sequential", "random", "chunks", "window"])
def test_a_set_is_loaded_in_the_order_of_its_merged_pack(set_and_pack, order):
    batches = []
    for pack in set_and_pack:
        loader = packds.Loader(pack, batch_size=5, order=order, seed=1)
        batches.append([(np.array(labels), np.array(images)) for _ in range(2) for images, labels in loader])
    assert len(batches[0]) == len(batches[1]) > 2
    for one, other in zip(*batches):
        assert all(np.array_equal(a, b) for a, b in zip(one, other))


def test_a_dry_run_and_a_wrong_name_write_nothing(photo_pack, tmp_path):
    report = packds.append(tmp_path / "s.packs", photo_pack, dry_run=True, progress=False)
    assert report["dry_run"] and report["n_samples"] > 0
    with pytest.raises(packds.Error, match="name of a set"):
        packds.append(tmp_path / "s.pack", photo_pack, progress=False)
    assert not (tmp_path / "s.packs").exists() and not (tmp_path / "s.pack").exists()


def test_a_pack_is_added_once_and_older_versions_stay(photo_pack, tmp_path):
    packds.append(tmp_path / "s.packs", photo_pack, progress=False)
    with pytest.raises(packds.ConvertError, match="already in the set"):
        packds.append(tmp_path / "s.packs", photo_pack, progress=False)
    assert len(packds.open(tmp_path / "s.packs@1")) == len(packds.open(photo_pack))
    with pytest.raises(packds.Error, match="there is no version 2: the latest is 1"):
        packds.open(tmp_path / "s.packs@2")


def test_an_open_set_cannot_be_added_to(set_and_pack, photo_pack, tmp_path):
    of_set, merged = set_and_pack
    with pytest.raises(packds.OptionError, match="dst: expected the path of a set, found an open one"):
        packds.append(of_set, photo_pack, progress=False)
    with pytest.raises(packds.ConvertError, match="already in the set"):
        packds.append(tmp_path / "s.packs", merged, progress=False)
    with pytest.warns(UserWarning, match="equal paths in several packs: "):
        packds.append(tmp_path / "s.packs", photo_pack, dry_run=True, progress=False)
    for packs in (3, b"a.pack"):
        with pytest.raises(packds.OptionError, match="packs: expected datasets or paths"):
            packds.append(tmp_path / "s.packs", packs, progress=False)
        with pytest.raises(packds.OptionError, match="packs: expected datasets or paths"):
            packds.merge(packs, tmp_path / "o.pack", progress=False)


def test_every_shard_is_verified(set_and_pack, tmp_path):
    shards = set_and_pack[0].info()["set"]["shards"]
    (tmp_path / "s.packs" / shards[1]["path"]).unlink()
    report = packds.open(tmp_path / "s.packs").verify()
    assert not report["ok"] and shards[1]["path"] in report["errors"][0]
    loader = packds.Loader(tmp_path / "s.packs", batch_size=2, samples=range(0, 4))
    assert sum(len(labels) for _, labels in loader) == 4


def test_a_run_continues_on_the_compacted_set(photo_pack, tmp_path):
    reports = packds.split(photo_pack, tmp_path / "part.pack", folds=3, chunk=2, progress=False)
    for report in reports.values():
        packds.append(tmp_path / "s.packs", report["output"], progress=False)
    loader = packds.Loader(tmp_path / "s.packs", batch_size=4, seed=3)
    batches = iter(loader)
    next(batches)
    state = loader.state_dict()
    rest = [(np.array(images), np.array(labels)) for images, labels in batches]
    dry = packds.compact(tmp_path / "s.packs", dry_run=True, delete_old=True, progress=False)
    assert dry["version"] == 4 and len(dry["deleted"]) == 6 and (tmp_path / "s.packs" / "manifest-00000001.json").exists()
    report = packds.compact(tmp_path / "s.packs", progress=False)
    assert (report["version"], report["n_shards_before"], report["n_shards"]) == (4, 3, 1)
    again = packds.Loader(tmp_path / "s.packs", batch_size=4, seed=3)
    again.load_state_dict(state)
    for (images, labels), (other_images, other_labels) in zip(rest, again, strict=True):
        assert np.array_equal(images, other_images) and np.array_equal(labels, other_labels)
    packds.compact(tmp_path / "s.packs", shard_size="1GB", delete_old=True, progress=False)
    assert len(list((tmp_path / "s.packs").iterdir())) == 2
    assert packds.open(tmp_path / "s.packs").verify()["ok"]
    with pytest.raises(packds.OptionError, match="shard_size"):
        packds.compact(tmp_path / "s.packs", shard_size="many", progress=False)
    with pytest.raises(packds.Error, match="name of a set"):
        packds.compact(photo_pack, progress=False)
