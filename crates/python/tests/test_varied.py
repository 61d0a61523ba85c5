"""Images of different sizes: lists, padded arrays, and targets."""

import numpy as np
import pytest

import packds

WORDS = "shortside:20-40/60,flip"


def size_of(number: int) -> tuple[int, int]:
    return 30 + number, 60 - number


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """24 images of different sizes, each of one colour, with a mask and the box of the whole image."""
    path = tmp_path_factory.mktemp("varied") / "sizes.pack"
    schema = {"image": "image", "mask": "mask", "number": "i64", "boxes": "boxes", "box_labels": "box_labels"}
    with packds.write(path, schema, classes=["cat", "owl"]) as writer:
        for number in range(24):
            width, height = size_of(number)
            image = np.full((height, width, 3), number + 1, np.uint8)
            boxes = np.float32([[0, 0, width, height]])
            writer.add(image=image, mask=image[..., 0] - 1, number=number, boxes=boxes, box_labels=[1])
    return path


def loader_of(path, **options):
    return packds.Loader(path, **{"batch_size": 6, "augment": WORDS, "seed": 3, **options})


def test_a_batch_has_a_list_of_images_and_of_masks(path):
    loader = loader_of(path)
    assert loader.fields["image"] == ("u8", None)
    for batch in loader.batches():
        shapes = [image.shape for image in batch["image"]]
        assert len(set(shapes)) > 1
        geometry = batch.geometry()
        assert [shape[:2] for shape in shapes] == [tuple(size) for size in geometry[["out_height", "out_width"]].tolist()]
        for image, mask, number, boxes in zip(*(batch[name] for name in ("image", "mask", "number", "boxes"))):
            width, height = size_of(int(number))
            assert min(image.shape[:2]) <= 40 and max(image.shape[:2]) <= 60
            assert image.shape[0] / image.shape[1] == pytest.approx(height / width, rel=0.1)
            assert mask.shape == image.shape[:2] and (image == number + 1).all() and (mask == number).all()
            assert boxes.tolist() == [[0, 0, image.shape[1], image.shape[0]]]


@pytest.mark.parametrize("pad_to", [1, 32])
@pytest.mark.parametrize("words", [WORDS, f"{WORDS},f32,chw", f"{WORDS},f16"])
def test_padded_images_have_zeros_after_their_sizes(path, pad_to, words):
    lists, padded = loader_of(path, augment=words), loader_of(path, augment=words, ragged="padded", pad_to=pad_to)
    for one, other in zip(lists, padded, strict=True):
        for name in "image", "mask":
            values, sizes = other[name]
            first = 1 if "chw" in words and name == "image" else 0
            assert sizes.dtype == np.int64 and sizes.tolist() == [list(image.shape[first : first + 2]) for image in one[name]]
            most = -(-sizes.max(0) // pad_to) * pad_to
            assert list(values.shape[1 + first : 3 + first]) == most.tolist()
            for row, image, (height, width) in zip(np.moveaxis(values, 1, -1) if first else values, one[name], sizes):
                np.testing.assert_array_equal(row[:height, :width], np.moveaxis(image, 0, -1) if first else image)
                assert not row[height:].any() and not row[:, width:].any()
        assert other["boxes"].lengths.tolist() == [1] * 6


def test_images_without_an_augmentation_are_padded_too(path):
    for one, other in zip(loader_of(path, augment=None), loader_of(path, augment=None, ragged="padded", pad_to=16), strict=True):
        values, sizes = other["image"]
        assert values.shape[1] % 16 == 0 and sizes.tolist() == [list(image.shape[:2]) for image in one["image"]]


def test_the_last_batch_may_be_shorter(path):
    for ragged in "list", "padded":
        sizes = [len(batch["number"]) for batch in loader_of(path, batch_size=7, ragged=ragged, drop_last=False)]
        assert sizes == [7, 7, 7, 3]
    *_, last = loader_of(path, batch_size=7, ragged="padded", drop_last=False)
    assert len(last["image"].values) == len(last["image"].lengths) == 3


def test_torch_gets_tensors_in_each_layout(path, torch):
    for layout, channels in ("hwc", 2), ("chw", 0), ("channels_last", 0):
        batch = next(iter(loader_of(path, output="torch", layout=layout, dtype="f32")))
        assert all(isinstance(image, torch.Tensor) and image.shape[channels] == 3 for image in batch["image"])
        padded = next(iter(loader_of(path, output="torch", layout=layout, dtype="f32", ragged="padded")))
        values, sizes = padded["image"]
        assert values.shape[channels + 1] == 3 and sizes.dtype == torch.int64
        for image, row, (height, width) in zip(batch["image"], values, sizes.tolist()):
            cut = row[:height, :width] if layout == "hwc" else row[:, :height, :width]
            assert torch.equal(cut, image)


def test_targets_have_a_list_of_images(path, torch):
    for images, targets in loader_of(path, output="torch", ragged="targets"):
        assert len({image.shape for image in images}) > 1
        for image, target in zip(images, targets):
            assert image.shape[0] == 3 and image.dtype == torch.float32
            assert target["boxes"].tolist() == [[0, 0, image.shape[2], image.shape[1]]]
            assert target["labels"].tolist() == [2]


def test_raw_images_of_one_size_vary_too(tmp_path):
    path = tmp_path / "one.pack"
    with packds.write(path, {"image": "image", "label": "label"}) as writer:
        for number in range(12):
            writer.add(image=np.full((16, 16, 3), number, np.uint8), label=number)
    images, labels = next(iter(packds.Loader(path, 6, augment="shortside:8-24")))
    assert len({image.shape for image in images}) > 1
    assert [image[0, 0, 0] for image in images] == labels.tolist()


def test_options_that_do_not_fit_are_refused(path):
    for options, message in [
        ({"pad_to": 32}, "only padded images"),
        ({"pad_to": 0, "ragged": "padded"}, "at least 1"),
        ({"augment": f"{WORDS},mixup:1"}, "mixup"),
        ({"augment": "shortside:40-20"}, "the shorter one first"),
        ({"augment": "shortside"}, "shortside:SIDE"),
    ]:
        with pytest.raises(packds.OptionError, match=message):
            loader_of(path, **options)
