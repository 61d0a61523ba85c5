"""The geometry of augmented images, for transforming other fields the same way."""

import warnings

import numpy as np
import pytest

import packds

SIDE = 64


@pytest.fixture(scope="module")
def pointed(tmp_path_factory):
    """16 smooth images whose pixels encode their positions: red is the column, green the row."""
    path = tmp_path_factory.mktemp("packs") / "pointed.pack"
    row, column = np.mgrid[:SIDE, :SIDE]
    image = np.stack([column * 4, row * 4, np.full_like(row, 255)], -1).astype(np.uint8)
    with packds.write(path, {"image": "image", "boxes": ("f32", (1, 4)), "depth": ("f32", (SIDE, SIDE)), "id": "i32"}) as writer:
        for number in range(16):
            writer.add(image=image, boxes=[[0, 0, 8, 8]], depth=np.zeros((SIDE, SIDE)), id=number)
    return path


def batches(pack, augment, **options):
    """Batches with only images, without warnings."""
    return packds.Loader(pack, 16, augment=augment, seed=3, fields=["image"], **options).batches()


def disagreement(image, matrix) -> float:
    """The maximum distance between the position that a pixel encodes and the one that the matrix gives, in stored pixels, away
    from edges."""
    height, width, _ = image.shape
    row, column = np.mgrid[:height, :width]
    inside = image[..., 2] > 250
    # Away from the padding.
    edge = ~inside
    for _ in range(2):
        edge = edge | np.roll(edge, 1, 0) | np.roll(edge, -1, 0) | np.roll(edge, 1, 1) | np.roll(edge, -1, 1)
    inside &= ~edge
    inside[:2] = inside[-2:] = inside[:, :2] = inside[:, -2:] = False
    assert inside.sum() > 50
    shown = np.stack([image[..., 0], image[..., 1]], -1)[inside] / 4 + 0.5
    back = np.linalg.inv(np.vstack([matrix, [0, 0, 1]]))
    points = np.stack([column, row], -1)[inside] + 0.5
    said = points @ back[:2, :2].T + back[:2, 2]
    return float(np.abs(shown - said).max())


@pytest.mark.parametrize(
    "augment",
    ["rrc48,flip", "crop48+8,flip,vflip", "resize96,crop64", "resize96,center64", "center40,vflip:1", "rrc48,flip,rotate:30", "flip:1,affine:20/0.1/0.1/0.8-1.2/10/5"],
)
def test_the_matrix_says_where_each_pixel_comes_from(pointed, augment):
    for batch in batches(pointed, augment):
        geometry = batch.geometry()
        assert geometry.shape == (16,)
        for image, drawn in zip(batch["image"], geometry):
            assert disagreement(image, drawn["matrix"]) < 1.5
            assert (drawn["out_height"], drawn["out_width"]) == image.shape[:2]


def test_the_window_is_the_part_that_is_shown(pointed):
    (batch,) = batches(pointed, "rrc48,flip")
    geometry = batch.geometry()
    for image, drawn in zip(batch["image"], geometry):
        part = image[:, ::-1] if drawn["flip_horizontal"] else image
        assert part[24, 2, 0] / 4 == pytest.approx(drawn["x"] + 2.5 * drawn["width"] / 48, abs=1.5)
        assert part[2, 24, 1] / 4 == pytest.approx(drawn["y"] + 2.5 * drawn["height"] / 48, abs=1.5)
    assert 0 < geometry["flip_horizontal"].sum() < 16 and not geometry["flip_vertical"].any()
    assert (geometry["x"] >= 0).all() and (geometry["x"] + geometry["width"] <= SIDE).all()


def test_padded_windows_begin_outside(pointed):
    (batch,) = batches(pointed, "crop64+16")
    geometry = batch.geometry()
    assert geometry["x"].min() < 0 and (geometry["width"] == 64).all()


def test_each_view_was_drawn_for_itself(pointed):
    (batch,) = batches(pointed, "rrc48,views:2")
    one, other = batch.geometry(0), batch.geometry(view=1)
    assert (one["x"] != other["x"]).any()
    for images, geometry in zip(batch["image"], (one, other)):
        assert disagreement(images[0], geometry[0]["matrix"]) < 1.5
    with pytest.raises(packds.OptionError, match="no view 2"):
        batch.geometry(2)


def test_images_of_sizes_of_their_own_have_geometry_too(file_pack):
    ds = packds.open(file_pack)
    for batch in packds.Loader(file_pack, 8, augment="rrc32,flip").batches():
        for sample, drawn in zip(batch.ids, batch.geometry()):
            height, width, _ = ds[int(sample)]["image"].shape
            assert 0 <= drawn["x"] and drawn["x"] + drawn["width"] <= width
            assert 0 <= drawn["y"] and drawn["y"] + drawn["height"] <= height


def test_it_is_drawn_alike_in_every_epoch_by_any_rank_and_of_mixtures(pointed):
    def drawn(pack, **options):
        loader = packds.Loader(pack, augment="rrc48,flip", seed=3, epoch=2, fields=["image"], **options)
        return {int(i): one for batch in loader.batches() for i, one in zip(batch.ids, batch.geometry().tolist())}

    whole = drawn(pointed, batch_size=16)
    parts = [drawn(pointed, batch_size=4, rank=(rank, 2)) for rank in range(2)]
    for number, one in {**parts[0], **parts[1]}.items():
        assert str(one) == str(whole[number])
    mixed = packds.Loader([pointed, pointed], 16, augment="rrc48,flip", fields=["image"])
    for batch in mixed.batches():
        for image, one in zip(batch["image"], batch.geometry()):
            assert disagreement(image, one["matrix"]) < 1.5


def test_a_shorter_last_batch_has_as_many(pointed):
    *_, last = batches(pointed, "rrc48", drop_last=False, samples=range(7))
    assert len(last) == len(last.geometry()) == 7


def test_without_an_augmentation_nothing_was_drawn(pointed):
    assert next(packds.Loader(pointed, 16).batches()).geometry() is None


def test_fields_that_do_not_move_with_the_image_are_named_in_a_warning(pointed):
    with pytest.warns(UserWarning, match=r"`boxes`, `depth` stay as stored although images are cropped.*geometry\(\)") as caught:
        packds.Loader(pointed, 16, augment="rrc48")
    assert len(caught) == 1 and caught[0].filename == __file__
    with pytest.warns(UserWarning, match="`boxes` stays as stored"):
        packds.Loader(pointed, 16, augment="flip", fields=["image", "boxes"])


def warned_of(tmp_path, **kinds):
    """The fields in the warning of a cropping loader, for a pack with these fields."""
    path = tmp_path / "named.pack"
    values = {name: np.zeros(kind[1]) if isinstance(kind, tuple) else {"json": [], "text": ""}.get(kind, 0) for name, kind in kinds.items()}
    with packds.write(path, {"image": "image", **kinds}, force=True) as writer:
        for _ in range(4):
            writer.add(image=np.zeros((16, 16, 3), np.uint8), **values)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        packds.Loader(path, 4, augment="rrc8")
    return set().union(*(str(one.message).split(" stay")[0].replace("`", "").split(", ") for one in caught))


@pytest.mark.parametrize(
    "name",
    "joints rect xywh xyxy pose gaze bbox bboxes gt_boxes boxes2d faceBox BoundingBox coords coordinates flow optical_flow keypoints kpts keypts landmarks points polygon "
    "segmentation corners".split(),
)
def test_fields_that_are_called_as_places_are_named(tmp_path, name):
    assert warned_of(tmp_path, **{name: ("f32", (4,))}) == {name}


@pytest.mark.parametrize("name", "viewpoint checkpoint inbox appointments bbox_label point_ids n_points box_scores workflow reposed".split())
def test_fields_that_only_sound_like_places_are_not_named(tmp_path, name):
    assert warned_of(tmp_path, **{name: ("f32", (4,))}) == set()


def test_a_single_number_is_no_place(tmp_path):
    assert warned_of(tmp_path, pose="i32", gaze="f32", boxes="json") == {"boxes"}


def test_a_second_image_is_known_by_its_size_with_channels_first_or_last(tmp_path):
    kinds = {"first": ("f32", (3, 16, 16)), "last": ("f32", (16, 16, 3)), "plane": ("f32", (16, 16)), "other": ("f32", (3, 16, 8)), "stack": ("f32", (16, 3, 16))}
    assert warned_of(tmp_path, **kinds) == {"first", "last", "plane"}


def test_what_moves_no_pixel_is_no_warning(pointed):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        packds.Loader(pointed, 16)
        packds.Loader(pointed, 16, augment="jitter:0.4/0.4/0.4/0.1,norm:imagenet,f32")
        packds.Loader(pointed, 16, augment="rrc48", fields=["image", "id"])
