"""Fields with any number of entries per sample."""

import numpy as np
import pytest

import packds
from conftest import image_of


def boxes_of(number: int) -> np.ndarray:
    """The boxes of a sample: between none and four."""
    n = number * 3 % 5
    return (np.arange(4 * n, dtype=np.float32) + number * 100).reshape(n, 4)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("ragged") / "boxes.pack"
    schema = {"image": "image", "id": "i64", "boxes": ("f32", (None, 4)), "ids": ("i64", (None,))}
    with packds.write(path, schema) as writer:
        for number in range(23):
            boxes = boxes_of(number)
            # An empty list has no shape.
            writer.add(image=image_of(number), id=number, boxes=boxes if len(boxes) else [], ids=list(range(len(boxes))))
    return path


def test_samples_have_their_entries(path):
    ds = packds.open(path)
    assert str(ds.fields["boxes"]) == "float32 [n, 4]"
    for sample in ds:
        np.testing.assert_array_equal(sample["boxes"], boxes_of(sample["id"]))
        assert sample["boxes"].shape[1:] == (4,) and sample["ids"].tolist() == list(range(len(sample["boxes"])))
    assert [boxes.shape[1] for boxes in ds[:3]["boxes"]] == [4, 4, 4]


@pytest.mark.parametrize(("order", "drop_last"), [("random", True), ("random", False), ("sequential", False)])
def test_each_form_has_the_same_entries(path, order, drop_last):
    forms = [packds.Loader(path, 4, order=order, seed=3, ragged=form, drop_last=drop_last) for form in ("list", "padded", "flat")]
    seen = 0
    for listed, padded, flat in zip(*forms, strict=True):
        expected = [boxes_of(number) for number in listed["id"].tolist()]
        assert len(listed["boxes"]) == len(expected)
        for found, wanted in zip(listed["boxes"], expected):
            np.testing.assert_array_equal(found, wanted)
        values, lengths = padded["boxes"]
        assert lengths.tolist() == [len(boxes) for boxes in expected]
        assert values.shape == (len(expected), max(lengths.tolist()), 4)
        for row, length, wanted in zip(values, lengths, expected):
            np.testing.assert_array_equal(row[:length], wanted)
            assert not row[length:].any()
        np.testing.assert_array_equal(flat["boxes"].values, np.concatenate(expected))
        assert flat["boxes"].offsets.tolist() == [0, *np.cumsum([len(boxes) for boxes in expected])]
        assert flat["ids"].values.dtype == np.int64
        seen += len(expected)
    assert seen == (20 if drop_last else 23)


def test_batches_that_a_program_holds_keep_their_entries(path):
    held = list(packds.Loader(path, 4, ragged="flat", slots=2))
    for batch in held:
        np.testing.assert_array_equal(batch["boxes"].values, np.concatenate([boxes_of(n) for n in batch["id"].tolist()]))


def test_pytorch_gets_tensors(torch, path):
    for form in ("list", "padded", "flat"):
        batch = next(iter(packds.Loader(path, 4, output="torch", ragged=form)))
        boxes = batch["boxes"]
        tensors = boxes if form == "list" else tuple(boxes)
        assert all(isinstance(tensor, torch.Tensor) for tensor in tensors)
        assert tensors[0].dtype == torch.float32


def test_a_value_of_another_shape_is_refused(tmp_path):
    with packds.write(tmp_path / "a.pack", {"image": "image", "boxes": ("f32", (None, 4))}) as writer:
        writer.add(image=image_of(0), boxes=np.zeros((0, 4), np.float32))
        with pytest.raises(packds.ConvertError, match=r"expected an array of f32 with shape \[n, 4\], found an array of f32 with shape \[2, 3\]"):
            writer.add(image=image_of(1), boxes=np.zeros((2, 3), np.float32))
    assert packds.open(tmp_path / "a.pack")[0]["boxes"].shape == (0, 4)


def test_an_unknown_form_is_refused(path):
    with pytest.raises(packds.OptionError, match="expected list, padded, flat, targets or tv_tensors, found 'rows'"):
        packds.Loader(path, 4, ragged="rows")


@pytest.mark.parametrize("name", ["w", "p.parquet", "l.mdb"])
def test_entries_survive_an_export_and_its_conversion(path, tmp_path, name):
    target = tmp_path / (name if "." in name else f"{name}.tar")
    packds.export(path, target, progress=False)
    packds.convert(target, tmp_path / "again.pack", progress=False)
    found = packds.open(tmp_path / "again.pack")
    assert found.fields["boxes"].kind == "ragged"
    for sample in found:
        np.testing.assert_array_equal(sample["boxes"], boxes_of(sample["id"]))


def test_offsets_and_lengths_are_whole_numbers(path):
    batch = next(iter(packds.Loader(path, 4, ragged="padded")))
    assert batch["ids"].lengths.dtype == np.int64
