"""Boxes: they move with the images, and batches for detection."""

import numpy as np
import pytest

import packds

N = 24
SCHEMA = {"image": "image", "boxes": "boxes", "box_labels": "box_labels", "box_area": ("f32", (None,), "box_attribute"), "name": "text"}


def boxes_of(number: int) -> np.ndarray:
    """Between none and three boxes in an image of 48 x 40 pixels."""
    corner = np.array([[(number * 7 + n * 13) % 30, (number * 5 + n * 11) % 24] for n in range(number % 4)], np.float32)
    return np.concatenate([corner, corner + 12], 1) if len(corner) else np.zeros((0, 4), np.float32)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("targets") / "boxes.pack"
    with packds.write(path, SCHEMA, classes=["cat", "owl", "dog"], mode="encoded", quality=90) as writer:
        for number in range(N):
            boxes = boxes_of(number)
            area = (boxes[:, 2] - boxes[:, 0]) * number
            image = np.full((40, 48, 3), number, np.uint8)
            writer.add(image=image, boxes=boxes, box_labels=np.arange(len(boxes)), box_area=area, name=str(number))
    return path


def moved(boxes, matrix, side):
    """The rectangles around the corners of boxes, clipped, and which of them remain."""
    corners = boxes[:, [0, 1, 2, 1, 2, 3, 0, 3]].reshape(-1, 4, 2) @ matrix[:, :2].T + matrix[:, 2]
    corners = corners.clip(0, side)
    sides = np.concatenate([corners.min(1), corners.max(1)], 1)
    return sides, ((sides[:, 2:] - sides[:, :2]) >= 1).all(1)


@pytest.mark.parametrize("augment", ["crop24,flip", "rrc32,vflip", "letterbox64", "scalejitter32:0.5-3,flip"])
def test_boxes_move_with_their_images(path, augment, recwarn):
    loader = packds.Loader(path, 8, augment=augment, seed=5)
    assert [str(warning.message) for warning in recwarn if "as stored" in str(warning.message)] == []
    n_left_out = 0
    for batch in loader.batches():
        side = batch["image"].shape[1]
        for row, matrix in enumerate(batch.geometry()["matrix"]):
            number = int(batch["name"][row])
            sides, remains = moved(boxes_of(number).astype(np.float64), matrix, side)
            np.testing.assert_allclose(batch["boxes"][row], sides[remains], atol=1e-4)
            assert batch["box_labels"][row].tolist() == np.flatnonzero(remains).tolist()
            assert batch["box_area"][row].tolist() == [12.0 * number] * remains.sum()
            n_left_out += (~remains).sum()
    assert n_left_out > 0 or augment == "letterbox64"


def test_boxes_of_mixed_images_are_joined_without_a_doubt(path, recwarn):
    fields = ["image", "boxes", "box_labels", "box_area"]
    loader = packds.Loader(path, 8, augment="center48x40,mosaic:0,mixup:1", fields=fields, seed=5)
    assert [str(warning.message) for warning in recwarn if "not mixed" in str(warning.message)] == []
    names = [int(sample["name"]) for sample in packds.open(path)]
    for batch in loader.batches():
        numbers = [names[id] for id in batch.ids]
        for row, number in enumerate(numbers):
            both = [boxes_of(number), boxes_of(numbers[row - 1])]
            assert batch["boxes"][row].tolist() == np.concatenate(both).tolist()
            assert len(batch["box_labels"][row]) == len(batch["box_area"][row]) == sum(map(len, both))


def test_each_view_has_its_own_boxes(path):
    loader = packds.Loader(path, 8, augment="rrc24,flip,views:2", seed=5)
    differ = 0
    for batch in loader.batches():
        first, second = batch["boxes"]
        differ += any(not np.array_equal(one, other) for one, other in zip(first, second))
        assert [len(boxes) for boxes in first] == [len(labels) for labels in batch["box_labels"][0]]
        assert [len(boxes) for boxes in second] == [len(labels) for labels in batch["box_labels"][1]]
    assert differ > 1


@pytest.mark.parametrize("augment", [None, "letterbox64", "letterbox64,f32,chw"])
def test_targets_are_what_detection_models_take(torch, path, augment):
    seen = 0
    for images, targets in packds.Loader(path, 8, augment=augment, output="torch", ragged="targets"):
        assert len(images) == len(targets) == 8
        for image, target in zip(images, targets):
            assert image.dtype == torch.float32 and image.shape == ((3, 40, 48) if augment is None else (3, 64, 64))
            assert float(image.max()) <= 1
            number = int(target["name"])
            n = len(boxes_of(number))
            assert target["boxes"].dtype == torch.float32 and target["boxes"].shape == (n, 4)
            assert target["labels"].dtype == torch.int64 and target["labels"].tolist() == [1, 2, 3][:n]
            assert target["area"].tolist() == [12.0 * number] * n
            assert packds.open(path)[int(target["image_id"])]["name"] == target["name"]
            if augment is None:
                np.testing.assert_array_equal(target["boxes"], boxes_of(number))
            seen += n
    assert seen == sum(len(boxes_of(number)) for number in range(N))


def test_other_fields_do_not_replace_the_labels_of_boxes(torch, tmp_path):
    path = tmp_path / "a.pack"
    with packds.write(path, {"image": "image", "boxes": "boxes", "classes": "box_labels", "labels": "labels"}) as writer:
        writer.add(image=np.zeros((8, 8, 3), np.uint8), boxes=[[0, 0, 4, 4]], classes=[0], labels=[1, 2])
    _, (target,) = next(iter(packds.Loader(path, 1, output="torch", ragged="targets")))
    assert target["labels"].tolist() == [1]
    (_, (alone,)) = next(iter(packds.Loader(path, 1, output="torch", ragged="targets", fields=["image", "boxes", "labels"])))
    assert alone["labels"].tolist() == [0, 1, 1]


def test_tv_tensors_know_the_size_of_their_image(torch, path):
    tv_tensors = pytest.importorskip("torchvision.tv_tensors", reason="needs torchvision 0.16")
    for images, targets in packds.Loader(path, 8, augment="letterbox64x32", output="torch", ragged="tv_tensors"):
        for image, target in zip(images, targets):
            assert isinstance(image, tv_tensors.Image) and image.dtype == torch.uint8 and image.shape == (3, 32, 64)
            assert isinstance(target["boxes"], tv_tensors.BoundingBoxes) and target["boxes"].canvas_size == (32, 64)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"ragged": "targets"}, "needs output 'torch'"),
        ({"ragged": "targets", "output": "torch", "fields": ["image", "name"]}, "none with the role boxes"),
        ({"ragged": "tv_tensors", "output": "torch", "augment": "rrc24,views:2"}, "needs one view"),
        ({"augment": "center24,minbox:3", "fields": ["image", "name"]}, "minbox needs boxes"),
    ],
)
def test_batches_for_detection_need_images_and_boxes(torch, path, options, words):
    with pytest.raises(packds.OptionError, match=words):
        packds.Loader(path, 8, **options)


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"image": "image", "labels": "box_labels"}, "`labels` is about boxes, so expected one field of boxes, found 0"),
        ({"image": "image", "a": "boxes", "b": "boxes"}, "expected one field of boxes, found 2"),
        ({"image": "image", "boxes": "boxes", "area": ("f32", (4,), "box_attribute")}, "a shape that begins with None"),
    ],
)
def test_schemas_without_boxes_for_what_describes_them_are_refused(tmp_path, schema, words):
    with pytest.raises(packds.Error, match=words):
        packds.write(tmp_path / "a.pack", schema)


def test_numbers_that_are_no_box_are_refused(tmp_path):
    class BoundingBoxes(list):
        format = "XYWH"

    with packds.write(tmp_path / "a.pack", {"image": "image", "boxes": "boxes"}) as writer:
        image = np.zeros((8, 8, 3), np.uint8)
        writer.add(image=image, boxes=[])
        for box in ([5, 5, 3, 3], [0, 0, np.nan, 3], [0, 0, np.inf, 3]):
            with pytest.raises(packds.ConvertError, match="expected left, top, right and bottom, found"):
                writer.add(image=image, boxes=[box])
        with pytest.raises(packds.ConvertError, match="expected boxes in the format XYXY, found XYWH"):
            writer.add(image=image, boxes=BoundingBoxes([[1, 1, 5, 5]]))


@pytest.mark.parametrize("form", ["padded", "flat"])
def test_each_view_is_padded_or_flat_by_itself(path, form):
    loader = packds.Loader(path, 5, augment="rrc24,views:3", ragged=form, drop_last=False)
    for batch in loader:
        first, *others = batch["boxes"]
        assert len(others) == 2 and type(first) is {"padded": packds.Padded, "flat": packds.Flat}[form]
        n = len(batch["name"])
        assert (len(first.values) if form == "padded" else len(first.offsets) - 1) == n


def test_every_box_needs_a_label_with_a_name(tmp_path):
    with packds.write(tmp_path / "a.pack", {"image": "image", "boxes": "boxes", "box_labels": "box_labels"}, classes=["cat"]) as writer:
        image = np.zeros((8, 8, 3), np.uint8)
        writer.add(image=image, boxes=[[0, 0, 4, 4]], box_labels=[0])
        with pytest.raises(packds.ConvertError, match="expected 1 entry, as in `boxes`: one for each box; found 2"):
            writer.add(image=image, boxes=[[0, 0, 4, 4]], box_labels=[0, 0])
        with pytest.raises(packds.ConvertError, match="the class id 1 has no name"):
            writer.add(image=image, boxes=[[0, 0, 4, 4]], box_labels=[1])
    assert packds.open(tmp_path / "a.pack").classes == ["cat"]
