"""Loaders whose batches change between epochs."""

import numpy as np
import pytest

import packds


def labels_of(loader):
    return [labels.tolist() for _, labels in loader]


def test_another_batch_size_holds_from_the_next_epoch_on(numbered):
    loader = packds.Loader(numbered, 50, seed=3, samples=range(500))
    assert {len(batch) for batch in labels_of(loader)} == {50}
    loader.batch_size = 125
    assert (loader.batch_size, len(loader), loader.epoch) == (125, 4, 1)
    fresh = packds.Loader(numbered, 125, seed=3, samples=range(500), epoch=1)
    assert labels_of(loader) == labels_of(fresh)
    assert loader.state_dict() == fresh.state_dict()


def test_another_augmentation_holds_from_the_next_epoch_on(file_pack):
    loader = packds.Loader(file_pack, 4, augment="rrc64,flip", normalize="imagenet", dtype="f16", layout="chw")
    assert [images.shape for images, _ in loader][0] == (4, 3, 64, 64)
    loader.augment = ["rrc96:0.35-1", "flip"]
    fresh = packds.Loader(file_pack, 4, augment="rrc96:0.35-1,flip", normalize="imagenet", dtype="f16", layout="chw", epoch=1)
    for (images, labels), (expected, _) in zip(loader, fresh):
        assert images.dtype == np.float16
        np.testing.assert_array_equal(images, expected)
    assert loader.augment == ["rrc96:0.35-1", "flip"] and loader.resolution == (96, 96)


def test_images_grow_while_training_goes_on(file_pack):
    loader = packds.Loader(file_pack, 4, augment="rrc64,flip")
    sides = []
    for side in (64, 80, (96, 64)):
        loader.resolution = side
        images, _ = next(iter(loader))
        sides.append(images.shape[1:3])
    assert sides == [(64, 64), (80, 80), (64, 96)]
    assert loader.augment == "rrc96x64,flip" and loader.resolution == (96, 64)


@pytest.mark.parametrize(
    ("augment", "size", "expected"),
    [
        ("resize72,center64", 96, "resize108,center96"),
        ("resize256,center224", 160, "resize183,center160"),
        ("resize40x72,crop32x64", 48, "resize60x54,crop48"),
        ("resize40,center32", (48, 64), "resize80,center48x64"),
        ("resize32,crop32+4,flip", 64, "resize64,crop64+4,flip"),
    ],
)
def test_what_is_cropped_from_grows_along_with_the_crop(file_pack, augment, size, expected):
    loader = packds.Loader(file_pack, 4, augment=augment)
    loader.resolution = size
    assert loader.augment == expected


def test_a_picture_that_is_resized_for_its_crop_gets_no_border(photos, tmp_path):
    packds.convert(photos, tmp_path / "a.pack", mode="encoded", progress=False)
    loader, fresh = (packds.Loader(tmp_path / "a.pack", 4, augment=augment, order="sequential") for augment in ("resize72,center64", "resize108,center96"))
    loader.resolution = 96
    (images, _), (expected, _) = next(iter(loader)), next(iter(fresh))
    np.testing.assert_array_equal(images, expected)


def test_the_words_do_not_depend_on_the_resolutions_before(file_pack):
    loader = packds.Loader(file_pack, 4, augment="resize256,center224")
    for size in (160, 97, 224):
        loader.resolution = size
    assert loader.augment == "resize256,center224"
    loader.augment = "resize100,center50"
    loader.resolution = 75
    assert loader.augment == "resize150,center75"


def test_images_can_be_as_they_are_stored_again(photo_pack):
    loader = packds.Loader(photo_pack, 4, augment="rrc32", order="sequential")
    loader.augment = None
    images, _ = next(iter(loader))
    np.testing.assert_array_equal(images[0], packds.open(photo_pack)[0]["image"])
    assert loader.resolution is None


def test_what_a_state_left_comes_in_other_pictures(file_pack):
    loader = packds.Loader(file_pack, 4, augment="rrc64", seed=3)
    whole = labels_of(loader)
    saved = packds.Loader(file_pack, 4, augment="rrc64", seed=3)
    batches = iter(saved)
    next(batches)
    loader.load_state_dict(saved.state_dict())
    loader.resolution = 32
    images, labels = next(iter(loader))
    assert images.shape == (4, 32, 32, 3) and labels.tolist() == whole[1]


def test_packs_stay_open_when_batches_change(numbered, tmp_path):
    path = tmp_path / "a.pack"
    path.write_bytes(numbered.read_bytes())
    loader = packds.Loader(path, 50)
    path.unlink()
    loader.batch_size = 100
    assert len(labels_of(loader)) == 10


@pytest.mark.parametrize("tier", ["resident", "host"])
def test_batches_on_a_gpu_change_too(photo_pack, torch, tier):
    loader = packds.Loader(photo_pack, 4, augment="rrc32", output="torch", device="simulated", tier=tier)
    list(loader)
    loader.batch_size, loader.resolution = 8, 24
    images, _ = next(iter(loader))
    assert tuple(images.shape) == (8, 24, 24, 3) and loader.tier == tier


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("batch_size", 0, "batch"),
        ("batch_size", "many", "batch_size: expected a whole number"),
        ("batch_size", 2000, "drop_last=False, or a smaller batch_size"),
        ("augment", "rcc224", "rcc224"),
        ("augment", 3, "augment: expected names"),
        ("resolution", 16, "has no crop to resize"),
    ],
)
def test_what_does_not_fit_leaves_a_loader_as_it_was(numbered, name, value, text):
    loader = packds.Loader(numbered, 50, seed=3)
    with pytest.raises(packds.OptionError, match=text):
        setattr(loader, name, value)
    assert labels_of(loader) == labels_of(packds.Loader(numbered, 50, seed=3))


def test_batches_do_not_change_within_an_epoch(numbered):
    loader = packds.Loader(numbered, 50)
    batches = iter(loader)
    next(batches)
    with pytest.raises(packds.OptionError, match="batch_size: expected an assignment between epochs, found epoch 0 under way"):
        loader.batch_size = 25
    batches.close()
    loader.batch_size = 25
    assert len(loader) == 40


@pytest.mark.parametrize("name", ["order", "seed", "normalize", "threads", "rank", "drop_last"])
def test_assigning_to_any_other_option_is_an_error(numbered, name):
    loader = packds.Loader(numbered, 50)
    with pytest.raises(AttributeError, match=f"{name} cannot be changed: make another loader"):
        setattr(loader, name, 1)
