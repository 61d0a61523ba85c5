"""The contents of batches: tuples, fields by name, variable-size images, lists of labels."""

import collections.abc
import copy
import pickle

import numpy as np
import pytest

import packds
from conftest import image_of


def packed(path, schema, n=8, **fields):
    """A pack of images with other fields. Each of `fields` is a function from a sample's number to its value."""
    with packds.write(path, {"image": "image", **schema}, keep_order=True) as writer:
        for number in range(n):
            writer.add(image=image_of(number), **{name: value(number) for name, value in fields.items()})
    return path


def first(pack, **options):
    return next(iter(packds.Loader(pack, 4, order="sequential", **options)))


@pytest.mark.parametrize("name", ["label", "target", "Class", "y", "fine_label", "category"])
def test_one_field_that_is_called_as_labels_are_makes_a_pair(tmp_path, name):
    pack = packed(tmp_path / "a.pack", {name: "f32"}, **{name: lambda number: number / 2})
    images, targets = first(pack)
    assert images.shape == (4, 8, 8, 3)
    np.testing.assert_array_equal(targets, [0, 0.5, 1, 1.5])


@pytest.mark.parametrize("name", ["caption", "id", "weight"])
def test_one_field_of_another_name_makes_no_pair(tmp_path, name):
    batch = first(packed(tmp_path / "a.pack", {name: "f32"}, **{name: float}))
    assert isinstance(batch, packds.NamedBatch) and list(batch.keys()) == ["image", name]


def test_the_names_of_labels_are_those_of_conversions(tmp_path):
    from packds._dataset import LABEL_NAMES

    for name in LABEL_NAMES:
        np.savez(tmp_path / "in.npz", x=np.zeros((4, 8, 8, 3), np.uint8), **{name: np.arange(4)})
        packds.convert(tmp_path / "in.npz", tmp_path / "a.pack", force=True, progress=False)
        assert packds.open(tmp_path / "a.pack").fields["label"].role == "label", name


def test_of_several_fields_called_as_labels_the_most_customary_is_packed_as_the_label(tmp_path):
    samples = [{"image": image_of(number), "category": "cat", "target": number} for number in range(4)]
    packds.from_dataset(samples, tmp_path / "a.pack", progress=False)
    fields = packds.open(tmp_path / "a.pack").fields
    assert fields["label"].role == "label" and fields["category"].kind == "string"


def test_a_batch_with_names_is_not_unpacked(numbered):
    batch = first(numbered, fields=["image", "label"])
    with pytest.raises(TypeError, match=r"cannot be unpacked: use batch\['image'\], batch\['label'\], pass as_tuple=True"):
        images, labels = batch
    for images, labels in packds.Loader(numbered, 4, fields=["image", "label"], as_tuple=True):
        assert (images.shape, labels.shape) == ((4, 8, 8, 3), (4,))


def test_a_batch_with_names_is_used_as_a_dict(numbered):
    batch = first(numbered, fields=["image", "label"])
    assert isinstance(batch, collections.abc.Mapping) and len(batch) == 2 and "image" in batch and "mask" not in batch
    assert list(batch.keys()) == [name for name, _ in batch.items()] == ["image", "label"]
    assert dict(batch)["label"] is {**batch}["label"] is batch.get("label") is list(batch.values())[1]
    # Some libraries create a new batch from a batch in this way.
    doubled = type(batch)({name: value * 2 for name, value in batch.items()})
    np.testing.assert_array_equal(doubled["label"], batch["label"] * 2)
    clone = copy.copy(batch)
    clone.update({"more": 1}, other=2)
    clone["image"] = None
    del clone["label"]
    assert list(clone.keys()) == ["image", "more", "other"] and "more" not in batch and clone.popitem() == ("other", 2)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(batch))["label"], batch["label"])
    with pytest.raises(KeyError, match="no field 'mask'; they have image, label"):
        batch["mask"]


def test_as_tuple_decides_what_a_batch_is(numbered):
    images, labels = first(numbered)
    labels_first = first(numbered, fields=["label", "image"], as_tuple=True)
    np.testing.assert_array_equal(labels_first[0], labels)
    by_name = first(numbered, as_tuple=False)
    np.testing.assert_array_equal(by_name["image"], images)
    [alone] = first(numbered, fields="label", as_tuple=True)
    np.testing.assert_array_equal(alone, labels)


def test_a_field_is_loaded_once(numbered):
    with pytest.raises(packds.OptionError, match="`image` is listed twice"):
        packds.Loader(numbered, 4, fields=["image", "label", "image"])


def test_a_batch_object_says_how_it_is_taken_apart(numbered):
    batch = next(packds.Loader(numbered, 4).batches())
    with pytest.raises(TypeError, match=r"use batch\['image'\], batch\['label'\], or unpack batch.as_tuple\(\)"):
        images, labels = batch
    images, labels = batch.as_tuple()
    assert images is batch["image"] and labels is batch["label"]


# Variable-size images.


@pytest.mark.parametrize("mode", ["raw", "encoded", "mixed"])
def test_images_of_sizes_of_their_own_come_as_pixels(photos, tmp_path, mode):
    packds.convert(photos, tmp_path / "a.pack", mode=mode, resize="none" if mode == "raw" else None, progress=False)
    ds = packds.open(tmp_path / "a.pack")
    seen = 0
    for batch in packds.Loader(ds, 5, threads=2).batches():
        assert isinstance(batch["image"], list)
        for sample, image in zip(batch.ids, batch["image"]):
            np.testing.assert_array_equal(image, ds[sample]["image"])
            assert image.ndim == 3 and image.dtype == np.uint8 and image.flags.writeable
            seen += 1
    assert seen == 5 * (len(ds) // 5)


def with_masks(folder, mode):
    """A pack of variable-size images, with masks of one channel."""
    from PIL import Image

    lines = ["path,mask"]
    for number in range(6):
        Image.fromarray(image_of(number, 8 + number)).save(folder / f"{number}.png")
        Image.fromarray(image_of(number, 8 + number)[..., 0]).save(folder / f"{number}-mask.png")
        lines.append(f"{number}.png,{number}-mask.png")
    (folder / "in.csv").write_text("\n".join(lines))
    resize = "none" if mode == "raw" else None
    packds.convert(folder / "in.csv", folder / "a.pack", mode=mode, resize=resize, keep_order=True, progress=False)
    return folder / "a.pack"


def test_masks_of_sizes_of_their_own_have_rows_and_columns(tmp_path):
    with_masks(tmp_path, "encoded")
    batch = first(tmp_path / "a.pack")
    for number, (image, mask) in enumerate(zip(batch["image"], batch["mask"])):
        assert image.shape == (8 + number, 8 + number, 3)
        np.testing.assert_array_equal(mask, image_of(number, 8 + number)[..., 0])


@pytest.mark.parametrize("mode", ["raw", "encoded"])
@pytest.mark.parametrize("layout", ["hwc", "chw"])
def test_masks_that_moved_with_images_of_sizes_of_their_own_have_rows_and_columns(tmp_path, mode, layout):
    pack = with_masks(tmp_path, mode)
    batch = first(pack, augment="rrc8,flip", layout=layout, fields=["image", "mask"])
    assert batch["mask"].shape == (4, 8, 8) and batch["mask"].dtype == np.uint8
    assert packds.Loader(pack, 4, augment="rrc8").fields["mask"] == ("u8", (8, 8))


def test_pixels_outlive_their_batch_and_copies_are_given_where_many_are_held(file_pack):
    ds = packds.open(file_pack)
    loader = packds.Loader(file_pack, 2, slots=2)
    batches = list(loader.batches())
    assert batches[-1].is_copied
    images = [(sample, image) for batch in batches for sample, image in zip(batch.ids, batch["image"])]
    del batches, loader
    for sample, image in images:
        np.testing.assert_array_equal(image, ds[sample]["image"])


def test_an_image_that_does_not_decode_is_left_out_or_replaced(photos, tmp_path):
    packds.convert(photos, tmp_path / "a.pack", mode="encoded", progress=False)
    ds = packds.open(tmp_path / "a.pack")
    # The end of an image file becomes zeros, so its checksum is wrong.
    data = (tmp_path / "a.pack").read_bytes()
    place = data.index(ds.raw(3)) + len(ds.raw(3)) - 40
    (tmp_path / "b.pack").write_bytes(data[:place] + bytes(8) + data[place + 8 :])
    for policy, expected in (("skip", [0, 1, 2]), ("substitute", [0, 1, 2, 2])):
        batch = next(packds.Loader(tmp_path / "b.pack", 4, order="sequential", bad_samples=policy).batches())
        assert batch.ids.tolist() == expected and [bad[1] for bad in batch.bad_samples] == [3]
        for sample, image in zip(batch.ids, batch["image"]):
            np.testing.assert_array_equal(image, ds[sample]["image"])


# Labels.


@pytest.fixture
def tagged(tmp_path):
    """Each sample has several of 11 tags."""
    return packed(tmp_path / "a.pack", {"labels": "labels"}, labels=lambda number: [number, 10] if number % 2 else [])


def test_lists_of_labels_are_rows_of_0_and_1(tagged):
    ds = packds.open(tagged)
    images, labels = first(tagged)
    assert labels.dtype == np.float32 and labels.shape == (4, 11)
    assert [np.flatnonzero(row).tolist() for row in labels] == [[], [1, 10], [], [3, 10]]
    np.testing.assert_array_equal(ds.labels[:4], labels)
    np.testing.assert_array_equal(ds[[0, 1, 2, 3]]["labels"], labels)
    np.testing.assert_array_equal(ds[3]["labels"], labels[3])


def test_rows_are_as_long_as_there_are_class_names(tmp_path):
    with packds.write(tmp_path / "a.pack", {"image": "image", "labels": "labels"}, classes=list("abcdefghij")) as writer:
        writer.add(image=image_of(0), labels=[2])
    assert packds.open(tmp_path / "a.pack")[0]["labels"].tolist() == [0, 0, 1, 0, 0, 0, 0, 0, 0, 0]


def test_labels_that_are_floats_stay_as_they_are_in_numpy(tmp_path):
    pack = packed(tmp_path / "a.pack", {"target": "f64"}, target=lambda number: number / 3)
    _, targets = first(pack)
    assert targets.dtype == np.float64 and targets[1] == 1 / 3
