"""Batches whose images all have the size of one bucket."""

import numpy as np
import pytest

import packds

SIZES = [(64, 64), (80, 48), (48, 80)]
SHAPES = {(64, 64, 3), (48, 80, 3), (80, 48, 3)}


def size_of(number: int) -> tuple[int, int]:
    return [(60, 60), (120, 70), (50, 90), (66, 64)][number % 4]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """120 images of four sizes, each of one colour that is its number, with a box."""
    path = tmp_path_factory.mktemp("buckets") / "sizes.pack"
    with packds.write(path, {"image": "image", "number": "i64", "boxes": "boxes"}) as writer:
        for number in range(120):
            width, height = size_of(number)
            box = [[width / 4, height / 4, width * 3 / 4, height * 3 / 4]]
            writer.add(image=np.full((height, width, 3), number, np.uint8), number=number, boxes=np.float32(box))
    return path


def loader_of(path, **options):
    return packds.Loader(path, **{"batch_size": 7, "buckets": SIZES, "seed": 3, **options})


@pytest.mark.parametrize("order", ["random", "window", "chunks"])
def test_all_images_of_a_batch_have_the_size_of_their_bucket(path, order):
    loader = loader_of(path, order=order, drop_last=True)
    seen, shapes = [], set()
    for batch in loader:
        images, numbers = batch["image"], batch["number"]
        shapes.add(images.shape[1:])
        assert images.shape[0] == 7 and (images == numbers[:, None, None, None]).all()
        wide = [width > height * 1.2 for width, height in map(size_of, numbers.tolist())]
        assert set(wide) == {images.shape[2] > images.shape[1]}
        seen += numbers.tolist()
    assert shapes == SHAPES and len(seen) == len(loader) * 7 == len(set(seen))
    left_out = 120 - len(seen)
    assert any(f"an epoch leaves out {left_out} samples" in notice for notice in loader.notices())


def test_an_order_that_always_leaves_out_the_same_samples_warns(path):
    with pytest.warns(UserWarning, match="every epoch leaves out the same 8 samples"):
        loader_of(path, order="sequential", drop_last=True)
    with pytest.warns(UserWarning, match="every epoch leaves out the same 60 samples"):
        loader_of(path, batch_size=31)


def test_without_drop_last_every_sample_occurs_once_and_len_is_right(path):
    loader = loader_of(path, drop_last=False)
    sizes = [len(batch["number"]) for batch in loader]
    assert len(sizes) == len(loader) and sum(sizes) == 120
    # The last batch of each bucket is shorter.
    assert all(size == 7 for size in sizes[:-3])


def test_ranks_have_the_same_bucket_at_each_step(path):
    ranks = [loader_of(path, rank=(rank, 3)) for rank in range(3)]
    numbers = []
    for batches in zip(*ranks, strict=True):
        assert len({batch["image"].shape for batch in batches}) == 1
        numbers += [number for batch in batches for number in batch["number"].tolist()]
    assert len(set(numbers)) == len(numbers) == len(ranks[0]) * 21


def test_a_state_continues_exactly(path):
    whole = [batch["number"].tolist() for batch in loader_of(path)]
    for taken in range(1, len(whole)):
        loader = loader_of(path)
        for _, _ in zip(range(taken), loader):
            pass
        resumed = loader_of(path)
        resumed.load_state_dict(loader.state_dict())
        assert [batch["number"].tolist() for batch in resumed] == whole[taken:]
    other = loader_of(path, buckets="64,48x80")
    with pytest.raises(packds.OptionError, match="another choice of samples or buckets"):
        other.load_state_dict(loader.state_dict())


@pytest.mark.filterwarnings("ignore:the new pack has no statistics")
@pytest.mark.parametrize("access", ["mapped", "direct"])
def test_a_set_of_packs_has_the_batches_of_its_merged_pack(path, tmp_path, access):
    reports = packds.split(path, tmp_path / "part.pack", ratio=(0.6, 0.4), chunk=4, progress=False)
    packds.append(tmp_path / "s.packs", [report["output"] for report in reports.values()], progress=False)
    packds.merge(tmp_path / "s.packs", tmp_path / "m.pack", progress=False)
    of_set, merged = (loader_of(tmp_path / name, order="window", window=3, access=access) for name in ("s.packs", "m.pack"))
    n = 0
    for one, other in zip(of_set, merged, strict=True):
        np.testing.assert_array_equal(one["image"], other["image"])
        np.testing.assert_array_equal(one["number"], other["number"])
        n += 1
    assert n == len(of_set) > 10


def test_boxes_move_with_the_images(path):
    for batch in loader_of(path, augment="cover:center,flip").batches():
        height, width = batch["image"].shape[1:3]
        # The box is in the middle of its image, so it is in the middle of the result.
        for (left, top, right, bottom), in batch["boxes"]:
            assert (left + right) / 2 == pytest.approx(width / 2, abs=0.6)
            assert (top + bottom) / 2 == pytest.approx(height / 2, abs=0.6)
        geometry = batch.geometry()
        assert set(geometry["out_width"]) == {width} and set(geometry["out_height"]) == {height}


def test_torch_tensors_have_the_size_of_their_bucket(path, torch):
    for layout, dims in ("chw", (2, 3)), ("channels_last", (2, 3)), ("hwc", (1, 2)):
        shapes = set()
        for batch in loader_of(path, output="torch", layout=layout, dtype="f32", augment="flip"):
            images = batch["image"]
            assert isinstance(images, torch.Tensor) and images.dtype == torch.float32
            shapes.add(tuple(images.shape[dim] for dim in dims))
        assert shapes == {shape[:2] for shape in SHAPES}


def test_targets_are_made_of_buckets(path, torch):
    images, targets = next(iter(loader_of(path, output="torch", ragged="targets")))
    assert len({image.shape for image in images}) == 1 and targets[0]["boxes"].shape == (1, 4)


def test_an_area_gives_the_sizes(path):
    loader = packds.Loader(path, 4, buckets="area:4096/16")
    assert {batch["image"].shape[1:] for batch in loader} == SHAPES
    assert loader.fields["image"] == ("u8", None)


def test_options_that_do_not_fit_are_refused(path):
    for options, message in [
        ({"augment": "rrc64"}, "rrc64"),
        ({"buckets": "64,32"}, "ratios"),
        ({"buckets": "area:64"}, "area:AREA/STEP"),
        ({"buckets": 64}, "expected a string or a list"),
        ({"buckets": [(1, 2, 3)]}, "width, height"),
        ({"batch_size": 120}, "none of them has the 120"),
    ]:
        with pytest.raises(packds.OptionError, match=message):
            packds.Loader(path, **{"batch_size": 7, "buckets": SIZES, **options})
    with pytest.raises(packds.OptionError, match="several packs cannot be put into buckets"):
        packds.Loader([path, path], 7, buckets=SIZES)
    with pytest.raises(packds.OptionError, match="needs|size|cover224"):
        packds.Loader(path, 7, augment="cover,flip")


def test_batches_of_several_sizes_stay_on_the_host(path, torch):
    with pytest.raises(packds.OptionError, match="stay on the host"):
        loader_of(path, output="torch", device="simulated")
