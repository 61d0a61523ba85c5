"""Keypoints, polygons and instance masks: written, moved with the images, and in batches for detection."""

import numpy as np
import pytest

import packds

N, WIDTH, HEIGHT = 24, 48, 40
NAMES = ["nose", "left_eye", "right_eye"]
SCHEMA = {
    "image": "image",
    "boxes": "boxes",
    "box_labels": "box_labels",
    "joints": ("keypoints", NAMES, [[0, 1], [0, 2]]),
    "outlines": "polygons",
    "name": "text",
}


def boxes_of(number):
    """Between none and three boxes."""
    corner = np.array([[(number * 7 + n * 13) % 30, (number * 5 + n * 11) % 24] for n in range(number % 4)], np.float32)
    return np.concatenate([corner, corner + [14, 12]], 1).astype(np.float32) if len(corner) else np.zeros((0, 4), np.float32)


def points_of(number):
    """The middle of each box, its left corner, and a point that is not labelled."""
    boxes = boxes_of(number)
    middle = np.column_stack([(boxes[:, 0] + boxes[:, 2]) / 2, (boxes[:, 1] + boxes[:, 3]) / 2, np.full(len(boxes), 2)])
    corner = np.column_stack([boxes[:, :2], np.full(len(boxes), 1)])
    return np.stack([middle, corner, np.zeros_like(middle)], 1).astype(np.float32).reshape(-1, 3, 3)


def rings_of(number):
    """A square on the left of each box, and a triangle that overlaps it."""
    of_box = []
    for left, top, _, bottom in boxes_of(number).tolist():
        square = [[left, top], [left + 8, top], [left + 8, bottom], [left, bottom]]
        # The direction of rings does not matter.
        triangle = [[left + 4, top], [left + 4, bottom], [left + 14, bottom]]
        of_box.append([np.array(square), triangle])
    return of_box


def write(path, numbers=range(N), size=lambda number: (HEIGHT, WIDTH), **options):
    with packds.write(path, SCHEMA, classes=["cat", "owl", "dog"], **options) as writer:
        for number in numbers:
            boxes = boxes_of(number)
            image = np.full((*size(number), 3), number, np.uint8)
            labels = np.arange(len(boxes))
            writer.add(image=image, boxes=boxes, box_labels=labels, joints=points_of(number), outlines=rings_of(number), name=str(number))
    return path


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return write(tmp_path_factory.mktemp("keypoints") / "people.pack")


def united(rings, height, width):
    """The mask of rings, by the centres of the pixels."""
    x, y = np.meshgrid(np.arange(width) + 0.5, np.arange(height) + 0.5)
    mask = np.zeros((height, width), bool)
    for ring in rings:
        inside = np.zeros_like(mask)
        for (x0, y0), (x1, y1) in zip(np.asarray(ring), np.roll(np.asarray(ring), -1, 0)):
            if y0 != y1:
                inside ^= ((y0 <= y) != (y1 <= y)) & (x0 + (y - y0) / (y1 - y0) * (x1 - x0) <= x)
        mask |= inside
    return mask


def test_keypoints_and_polygons_are_stored_with_their_roles(path):
    ds = packds.open(path)
    joints, outlines = ds.fields["joints"], ds.fields["outlines"]
    assert (joints.role, joints.dtype, joints.shape) == ("keypoints", "f32", (3, 3))
    assert joints.keypoints == {"names": NAMES, "swaps": [0, 2, 1], "skeleton": [[0, 1], [0, 2]]}
    assert (outlines.role, outlines.shape, outlines.keypoints) == ("polygons", (4,), None)
    for sample in ds:
        number = int(sample["name"])
        np.testing.assert_array_equal(sample["joints"], points_of(number))
        assert sample["outlines"].shape == (7 * len(boxes_of(number)), 4)


def test_keypoints_swap_in_flipped_images(path):
    loader = packds.Loader(path, 8, augment="center48x40,flip:1")
    for batch in loader:
        for row, name in enumerate(batch["name"]):
            expected = points_of(int(name))
            expected[..., 0] = np.where(expected[..., 2] > 0, WIDTH - expected[..., 0], 0)
            np.testing.assert_allclose(batch["joints"][row], expected[:, [0, 2, 1]], atol=1e-4)


@pytest.mark.parametrize("augment", [None, "crop24,flip", "rrc32,vflip", "letterbox64,flip", "center48x40,rotate:20"])
def test_masks_are_those_of_the_moved_polygons(path, augment):
    loader = packds.Loader(path, 6, augment=augment, instance_masks=True, seed=3)
    plain = packds.Loader(path, 6, augment=augment, seed=3)
    n_masks = 0
    for batch, moved in zip(loader, plain):
        for masks, vertices, boxes in zip(batch["outlines"], moved["outlines"], moved["boxes"]):
            assert masks.dtype == np.uint8 and len(masks) == len(boxes)
            for of, mask in enumerate(masks):
                own = vertices[vertices[:, 0] == of]
                rings = [own[own[:, 1] == ring, 2:] for ring in np.unique(own[:, 1])]
                np.testing.assert_array_equal(mask, united(rings, *mask.shape))
                n_masks += 1
    assert n_masks > 15


# pycocotools uses an older interface of NumPy.
@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
def test_masks_are_nearly_those_of_coco(path):
    mask_of_coco = pytest.importorskip("pycocotools.mask")
    for batch in packds.Loader(path, 6, instance_masks=True):
        for masks, name in zip(batch["outlines"], batch["name"]):
            for mask, rings in zip(masks, rings_of(int(name))):
                flat = [np.ravel(ring).tolist() for ring in rings]
                of_coco = mask_of_coco.decode(mask_of_coco.merge(mask_of_coco.frPyObjects(flat, HEIGHT, WIDTH)))
                assert (mask & of_coco).sum() / (mask | of_coco).sum() > 0.9


def test_masks_of_images_of_different_sizes_are_a_list(tmp_path):
    path = write(tmp_path / "a.pack", range(8), lambda number: (HEIGHT + number, WIDTH), mode="encoded", quality=90)
    for batch in packds.Loader(path, 4, instance_masks=True):
        for masks, name in zip(batch["outlines"], batch["name"]):
            assert masks.shape == (int(name) % 4, HEIGHT + int(name), WIDTH)
    with pytest.raises(packds.OptionError, match="can be neither padded nor flat"):
        packds.Loader(path, 4, instance_masks=True, ragged="flat")


@pytest.mark.parametrize("form", ["padded", "flat"])
def test_masks_of_one_size_are_padded_or_flat(path, form):
    for batch in packds.Loader(path, 4, augment="rrc16", instance_masks=True, ragged=form):
        assert batch["outlines"].values.shape[-2:] == (16, 16)


@pytest.mark.parametrize("augment", [None, "letterbox64", "crop24,flip,f32"])
def test_targets_are_what_mask_and_keypoint_models_take(torch, path, augment):
    for images, targets in packds.Loader(path, 8, augment=augment, output="torch", ragged="targets"):
        for image, target in zip(images, targets):
            n = len(target["boxes"])
            assert target["masks"].dtype == torch.uint8 and target["masks"].shape == (n, *image.shape[1:])
            assert target["keypoints"].dtype == torch.float32 and target["keypoints"].shape == (n, 3, 3)
            assert "outlines" not in target


def test_targets_may_have_polygons(torch, path):
    _, targets = next(iter(packds.Loader(path, 8, output="torch", ragged="targets", instance_masks=False)))
    for target in targets:
        assert "masks" not in target and target["outlines"].shape == (7 * len(target["boxes"]), 4)


def test_tv_tensors_have_masks_and_keypoints(torch, path):
    tv_tensors = pytest.importorskip("torchvision.tv_tensors", reason="needs torchvision 0.16")
    if not hasattr(tv_tensors, "KeyPoints"):
        with pytest.raises(packds.OptionError, match="needs torchvision 0.23"):
            next(iter(packds.Loader(path, 8, output="torch", ragged="tv_tensors")))
        return
    for _, targets in packds.Loader(path, 8, augment="letterbox64x32", output="torch", ragged="tv_tensors"):
        for target in targets:
            n = len(target["boxes"])
            assert isinstance(target["masks"], tv_tensors.Mask) and target["masks"].shape == (n, 32, 64)
            assert isinstance(target["keypoints"], tv_tensors.KeyPoints) and target["keypoints"].canvas_size == (32, 64)
            assert target["keypoints"].shape == (n, 3, 2) and target["visibility"].shape == (n, 3)


def test_holes_are_written_as_entries(tmp_path):
    square = [[0, 0, 1, 1], [0, 0, 7, 1], [0, 0, 7, 7], [0, 0, 1, 7]]
    hole = [[0, 1, 3, 3], [0, 1, 3, 5], [0, 1, 5, 5], [0, 1, 5, 3]]
    with packds.write(tmp_path / "a.pack", {"image": "image", "boxes": "boxes", "outlines": "polygons"}) as writer:
        entries = np.array(square + hole, np.float32)
        writer.add(image=np.zeros((8, 8, 3), np.uint8), boxes=[[1, 1, 7, 7]], outlines=entries)
    (batch,) = packds.Loader(tmp_path / "a.pack", 1, instance_masks=True)
    assert batch["outlines"][0].sum() == 36 - 4
    (plain,) = packds.Loader(tmp_path / "a.pack", 1)
    np.testing.assert_array_equal(plain["outlines"][0], entries)


def test_points_of_two_numbers_are_visible_and_unlabelled_points_are_zeros(tmp_path):
    schema = {"image": "image", "boxes": "boxes", "joints": ("keypoints", 2)}
    with packds.write(tmp_path / "a.pack", schema, keep_order=True) as writer:
        image, boxes = np.zeros((8, 8, 3), np.uint8), [[0, 0, 4, 4]]
        writer.add(image=image, boxes=boxes, joints=[[[1, 2], [3, 4]]])
        writer.add(image=image, boxes=boxes, joints=[[[1, 2, 0], [3, 4, 1]]])
        writer.add(image=image, boxes=[], joints=[])
    ds = packds.open(tmp_path / "a.pack")
    assert [ds[row]["joints"].tolist() for row in range(3)] == [[[[1, 2, 2], [3, 4, 2]]], [[[0, 0, 0], [3, 4, 1]]], []]
    assert ds.fields["joints"].keypoints is None
    with pytest.warns(UserWarning, match="left and right points of `joints` do not swap"):
        packds.Loader(tmp_path / "a.pack", 1, augment="center8,flip")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"joints": "keypoints"}, "the number of keypoints is unknown"),
        ({"joints": ("keypoints", 3, [[0, 1]])}, "a skeleton needs the names"),
        ({"joints": ("keypoints", ["a", "a"])}, "names of keypoints must differ"),
        ({"joints": ("keypoints", ["a", "b"], [[0, 2]])}, "the skeleton must connect two different points below 2"),
        ({"joints": ("keypoints", 2), "others": ("keypoints", 2)}, "at most one field of keypoints, found 2"),
        ({"outlines": "polygons", "others": "polygons"}, "at most one field of polygons, found 2"),
    ],
)
def test_schemas_of_keypoints_and_polygons_that_cannot_be_are_refused(tmp_path, change, words):
    with pytest.raises(packds.Error, match=words):
        packds.write(tmp_path / "a.pack", {"image": "image", "boxes": "boxes", **change})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"joints": [[[1, 1, 3]]]}, "0, 1 or 2; 0, 0, 0 if it is not labelled"),
        ({"joints": [[[np.nan, 1, 2]]]}, "expected x, y and the visibility of a point"),
        ({"joints": [[[1, 1, 2], [1, 1, 2]]]}, r"expected an array of f32 with shape \[n, 1, 3\]"),
        ({"joints": np.zeros((0, 1, 3))}, "expected 1 entry, as in `boxes`: one for each box; found 0"),
        ({"outlines": [[[[1, 1], [2, 2]]]]}, "expected at least 3 points of x and y in ring 0 of box 0"),
        ({"outlines": [[], [[[1, 1], [2, 2], [1, 3]]]]}, "the box of vertex 0: expected an index below 1, found 1"),
        ({"outlines": [[[[1, 1], [np.inf, 2], [1, 3]]]]}, "the place of vertex 1: expected finite numbers"),
    ],
)
def test_values_that_are_no_keypoints_or_polygons_are_refused(tmp_path, change, words):
    schema = {"image": "image", "boxes": "boxes", "joints": ("keypoints", 1), "outlines": "polygons"}
    sample = {"image": np.zeros((8, 8, 3), np.uint8), "boxes": [[0, 0, 4, 4]], "joints": [[[1, 1, 2]]], "outlines": [[]]}
    with packds.write(tmp_path / "a.pack", schema) as writer:
        writer.add(**sample)
        with pytest.raises(packds.ConvertError, match=words):
            writer.add(**{**sample, **change})
    assert len(packds.open(tmp_path / "a.pack")) == 1


def test_masks_need_polygons(path):
    with pytest.raises(packds.OptionError, match="no loaded field has the role polygons"):
        packds.Loader(path, 8, fields=["image", "boxes"], instance_masks=True)
