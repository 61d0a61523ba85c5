"""Mixed images (mixup, cutmix), and their other fields."""

import warnings

import numpy as np
import pytest

import packds
from conftest import image_of

CLASSES = 3


def packed(path, schema, n=16, **fields):
    """A pack of images with other fields. Each of `fields` is a function from a sample's number to its value."""
    with packds.write(path, {"image": "image", **schema}, keep_order=True) as writer:
        for number in range(n):
            writer.add(image=image_of(number), **{name: value(number) for name, value in fields.items()})
    return path


def mixed(pack, name, stored, augment="mixup:1", **options):
    """The values of a field in the first batch, and the stored rows `stored` mixed like the images."""
    batch = next(packds.Loader(pack, 8, augment=augment, seed=3, **options).batches())
    partner, share = batch.mix
    share = share.reshape(-1, *[1] * (stored.ndim - 1))
    rows = stored[batch.ids]
    return np.asarray(batch[name]), share * rows + (1 - share) * rows[partner]


def said(make) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        make()
    assert all(one.filename == __file__ and one.category is UserWarning for one in caught)
    return [str(one.message) for one in caught]


@pytest.mark.parametrize("augment", ["mixup:1", "cutmix:1", "mixup:0.2,cutmix:1"])
def test_lists_of_labels_are_mixed_as_their_images(tmp_path, augment):
    pack = packed(tmp_path / "a.pack", {"labels": "labels"}, labels=lambda number: [number % 5, 6])
    values, expected = mixed(pack, "labels", packds.open(pack).labels, augment)
    assert values.dtype == np.float32 and values.shape == (8, 7)
    assert ((values > 0) & (values < 1)).any()
    np.testing.assert_allclose(values, expected, rtol=1e-6)


@pytest.mark.parametrize(("kind", "value"), [("f64", lambda n: n / 3), ("f32", float), ("f16", float), ("bf16", float), (("f32", (2, 2)), lambda n: [[n, 1], [2, -n]])])
def test_labels_that_are_floats_are_mixed_as_their_images(tmp_path, kind, value):
    pack = packed(tmp_path / "a.pack", {"target": kind}, target=value)
    stored = np.array([value(number) for number in range(16)], np.float64)
    values, expected = mixed(pack, "target", stored)
    assert values.dtype == np.float32
    np.testing.assert_allclose(values, expected, rtol=1e-2 if kind == "bf16" else 1e-3 if kind == "f16" else 1e-6)


@pytest.mark.parametrize("dtype", ["uint8", "bool", "int64"])
def test_rows_of_0_and_1_are_mixed_as_their_images(tmp_path, dtype):
    rows = np.eye(16, 5)
    pack = packed(tmp_path / "a.pack", {"target": (dtype, (5,))}, target=lambda number: rows[number].astype(dtype))
    values, expected = mixed(pack, "target", rows)
    assert values.dtype == np.float32
    np.testing.assert_allclose(values, expected, rtol=1e-6)


def test_every_label_of_several_is_mixed(tmp_path):
    schema = {"label": "label", "fine_label": "i32"}
    pack = packed(tmp_path / "a.pack", schema, label=lambda number: number % CLASSES, fine_label=lambda number: number % 7)
    for name, n_classes in (("label", CLASSES), ("fine_label", 7)):
        values, expected = mixed(pack, name, np.eye(n_classes)[packds.open(pack).columns[name]])
        assert values.dtype == np.float32 and values.shape == (8, n_classes)
        np.testing.assert_allclose(values, expected, rtol=1e-6)
    assert said(lambda: packds.Loader(pack, 8, augment="mixup:1")) == []


def test_mixed_labels_of_packs_are_as_wide_as_the_widest(tmp_path):
    packs = [packed(tmp_path / str(n), {"labels": "labels"}, labels=lambda number, n=n: [number % n]) for n in (3, 5)]
    images, labels = next(iter(packds.Loader(packs, 8, augment="mixup:1")))
    assert labels.shape == (8, 5)
    np.testing.assert_allclose(labels.sum(1), 1, rtol=1e-5)


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        ("text", str, "`label` is text, which cannot be mixed"),
        (("i64", (2,)), lambda number: [number, 3], "`label` has rows of whole numbers other than 0 and 1"),
        ("i32", lambda number: number - 2, "negative class id cannot be mixed: field 'label'"),
    ],
    ids=["text", "ids", "negative"],
)
def test_labels_that_cannot_be_mixed_are_an_error(tmp_path, kind, value, text):
    pack = packed(tmp_path / "a.pack", {"label": kind}, label=value)
    with pytest.raises(packds.OptionError, match=text):
        next(iter(packds.Loader(pack, 8, augment="mixup:1")))
    for options in ({"augment": "flip"}, {"augment": "mixup:1", "fields": "image"}):
        next(iter(packds.Loader(pack, 8, **options)))


def test_fields_that_stay_while_images_are_mixed_are_named_in_a_warning(tmp_path):
    schema = {"label": "label", "age": "f32", "mask": "mask"}
    mask = np.zeros((8, 8), np.uint8)
    pack = packed(tmp_path / "a.pack", schema, label=lambda number: number % CLASSES, age=float, mask=lambda _: mask)
    [text] = said(lambda: packds.Loader(pack, 8, augment="cutmix:1"))
    assert text.startswith("`mask`, `age` are not mixed with the images")
    assert "batch.mix" in text and "fields=" in text
    [text] = said(lambda: packds.Loader(pack, 8, augment="cutmix:1", fields=["image", "label", "age"]))
    assert text.startswith("`age` is not mixed")
    assert said(lambda: packds.Loader(pack, 8, augment="cutmix:1", fields=["image", "label"])) == []
    loader = packds.Loader(pack, 8)
    [text] = said(lambda: setattr(loader, "augment", "mixup:1"))
    assert "not mixed with the images" in text
