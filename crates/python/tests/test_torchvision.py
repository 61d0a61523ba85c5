"""Compares the words of the augmentation language with torchvision's transforms of Pillow images, with the same random numbers.

The random numbers come from docs/reference/augment_draws.py, which was written only from docs/reference/augmentation.md.
"""

import importlib.util
import math

import numpy as np
import pytest

import packds
from conftest import REPOSITORY

SEED, EPOCH = 11, 2
SIZES = [(1, 1), (2, 5), (7, 1), (16, 11), (33, 24), (57, 64)]
N = 60


def load_draws():
    spec = importlib.util.spec_from_file_location("augment_draws", REPOSITORY / "docs" / "reference" / "augment_draws.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


D = load_draws()


def pictures(width: int, height: int, channels: int) -> list[np.ndarray]:
    """Noise, and pictures with few values, which equalization spreads."""
    rng = np.random.default_rng(width * 1000 + height * 10 + channels)
    shape = (height, width, channels)
    noise = rng.integers(0, 256, (N, *shape), np.uint8)
    narrow = rng.normal(100, 15, (N, *shape)).clip(0, 255).astype(np.uint8)
    return [noise[number] if number % 2 else narrow[number] for number in range(N)]


@pytest.fixture(scope="module", params=[(size, channels) for size in SIZES for channels in (1, 3)], ids=str)
def made(request, tmp_path_factory):
    """A pack of pictures of one size, and these pictures in its order."""
    (width, height), channels = request.param
    images = pictures(width, height, channels)
    path = tmp_path_factory.mktemp("made") / "a.pack"
    with packds.write(path, {"image": "image", "label": "label"}, keep_order=True) as writer:
        for number, image in enumerate(images):
            writer.add(image=image, label=number)
    return path, images


def results(path, augment: str, **options) -> np.ndarray:
    """The loader's results for all samples, in order."""
    loader = packds.Loader(path, N, order="sequential", seed=SEED, augment=augment, drop_last=False, **options)
    loader.set_epoch(EPOCH)
    with loader:
        batch = next(iter(loader.batches()))
        assert list(batch["label"]) == list(range(N))
        return np.array(batch["image"])


def to_pil(image: np.ndarray):
    from PIL import Image

    return Image.fromarray(image[..., 0] if image.shape[-1] == 1 else image)


def from_pil(image) -> np.ndarray:
    array = np.asarray(image)
    return array.reshape(*array.shape[:2], -1)


def filters(torchvision):
    modes = torchvision.transforms.InterpolationMode
    return [("nearest", modes.NEAREST), ("bilinear", modes.BILINEAR), ("bicubic", modes.BICUBIC)]


POLICIES = {
    "randaugment": lambda d, size: D.randaugment(d, 2, 9, 31, size),
    "randaugment:3/9/10": lambda d, size: D.randaugment(d, 3, 9, 10, size),
    "trivialaugment": lambda d, size: D.trivialaugment(d, 31),
    "autoaugment": lambda d, size: D.autoaugment(d, "imagenet", size),
    "autoaugment:cifar10": lambda d, size: D.autoaugment(d, "cifar10", size),
    "autoaugment:svhn": lambda d, size: D.autoaugment(d, "svhn", size),
}


@pytest.mark.parametrize("text", POLICIES)
def test_policies_give_the_bytes_of_torchvision(made, torchvision, text):
    from torchvision.transforms.autoaugment import _apply_op

    path, images = made
    height, width, channels = images[0].shape
    for (name, mode), fill in zip(filters(torchvision), (None, 77, [9, 80, 201][:channels])):
        values = "" if fill is None else ",fill:" + "/".join(map(str, np.atleast_1d(fill)))
        found = results(path, f"{text}{values},filter:{name}")
        for number, image in enumerate(images):
            wanted = to_pil(image)
            ops = POLICIES[text](D.Draws(SEED, EPOCH, number, 0, 0), (width, height))
            for op, magnitude in ops:
                lone = fill[0] if channels == 1 and isinstance(fill, list) else fill
                wanted = _apply_op(wanted, op, magnitude, mode, lone)
            np.testing.assert_array_equal(found[number], from_pil(wanted), f"{ops} {name} {fill}")


def test_every_operation_is_drawn_in_these_tests():
    drawn = [op for number in range(N) for draw in POLICIES.values() for op, _ in draw(D.Draws(SEED, EPOCH, number, 0, 0), (33, 24))]
    assert {*D.POLICY_OPS, "Invert"} == set(drawn)


def test_magnitudes_are_those_of_torchvisions_tables(torchvision):
    from torchvision.transforms import AutoAugment, RandAugment, TrivialAugmentWide

    for bins in (10, 31):
        spaces = [(RandAugment(), (width, height)) for width, height in SIZES + [(224, 224), (331, 662)]]
        for transform, size in [*spaces, (TrivialAugmentWide(), None), (AutoAugment(), (32, 32))]:
            space = transform._augmentation_space(*([bins] if size is None else [bins, size[::-1]]))
            for op, (magnitudes, is_signed) in space.items():
                assert is_signed == (op in D.POLICY_OPS[1:10])
                found = [D.magnitude(op, place, bins, size) for place in range(bins)]
                if magnitudes.ndim == 0:
                    assert set(found) == {0.0}
                    continue
                # The last bits of torch's results depend on the CPU.
                np.testing.assert_allclose(found, magnitudes.tolist(), rtol=2e-6, atol=1e-6)
                if op.startswith("Translate"):
                    assert [int(m) for m in found] == [int(m) for m in magnitudes.tolist()]
                if op == "Solarize":
                    assert [math.ceil(m) for m in found] == [math.ceil(m) for m in magnitudes.tolist()]


def test_learned_policies_are_torchvisions(torchvision):
    from torchvision.transforms import AutoAugment, AutoAugmentPolicy

    for policy in AutoAugmentPolicy:
        words = [row.split() for row in D.POLICIES[policy.value].split("|")]
        ours = [[(w[0], int(w[1]) / 10, int(w[2])), (w[3], int(w[4]) / 10, int(w[5]))] for w in words]
        assert ours == [[(op, p, bin_ or 0) for op, p, bin_ in pair] for pair in AutoAugment(policy).policies]


def test_affine_maps_give_the_bytes_of_torchvision(made, torchvision):
    from torchvision.transforms import functional as F

    path, images = made
    height, width, _ = images[0].shape
    for (name, mode), fill in zip(filters(torchvision), (0, 120, 255)):
        found = results(path, f"affine:30/0.2/0.3/0.7-1.3/10/8,fill:{fill},filter:{name}")
        for number, image in enumerate(images):
            d = D.Draws(SEED, EPOCH, number, 0, 0)
            translate = [round(d.uniform(1, -0.2 * width, 0.2 * width)), round(d.uniform(2, -0.3 * height, 0.3 * height))]
            shear = [d.uniform(4, -10, 10), d.uniform(5, -8, 8)]
            wanted = F.affine(to_pil(image), d.uniform(0, -30, 30), translate, d.uniform(3, 0.7, 1.3), shear, mode, fill)
            np.testing.assert_array_equal(found[number], from_pil(wanted))


def test_affine_maps_take_the_parameters_that_torchvision_takes(torchvision, monkeypatch):
    """`RandomAffine` with our draws instead of its own."""
    import torch
    from torchvision.transforms import RandomAffine

    width, height = 41, 30
    for sample in range(20):
        d = D.Draws(SEED, EPOCH, sample, 0, 0)
        places = iter([0, 1, 2, 3, 4, 5])
        unit = lambda low, high: d.uniform(next(places), low, high)  # noqa: B023,E731
        with monkeypatch.context() as patch:
            patch.setattr(torch.Tensor, "uniform_", lambda _, low, high: torch.tensor([unit(low, high)], dtype=torch.float64))
            found = RandomAffine.get_params([-30.0, 30.0], [0.2, 0.3], [0.7, 1.3], [-10.0, 10.0, -8.0, 8.0], [width, height])
        d = D.Draws(SEED, EPOCH, sample, 0, 0)
        moved = (round(d.uniform(1, -0.2 * width, 0.2 * width)), round(d.uniform(2, -0.3 * height, 0.3 * height)))
        shear = (d.uniform(4, -10, 10), d.uniform(5, -8, 8))
        assert found == (d.uniform(0, -30, 30), moved, d.uniform(3, 0.7, 1.3), shear)


def test_random_erasing_sets_the_drawn_values(made, torch, torchvision):
    from torchvision.transforms import functional as F

    path, images = made
    height, width, channels = images[0].shape
    found = results(path, "erase:0.8/random", dtype="f32", layout="chw")
    n_erased = 0
    for number, image in enumerate(images):
        wanted = torch.from_numpy(image).permute(2, 0, 1) / 255
        d = D.Draws(SEED, EPOCH, number, 0, 0)
        area = D.erased(d, width, height, 0.8, (0.02, 0.33), (0.3, 3.3))
        if area is not None:
            x, y, w, h = area
            values = [D.normal(d, place) for place in range(channels * h * w)]
            wanted = F.erase(wanted, y, x, h, w, torch.tensor(values, dtype=torch.float32).reshape(channels, h, w))
            n_erased += 1
        np.testing.assert_allclose(found[number], wanted.numpy(), rtol=1e-6, atol=1e-7)
    assert n_erased > N / 3 or min(width, height) < 3


def test_a_recipe_of_the_references_is_one_text(made, torch, torchvision):
    """Flip, policy, normalization, erasing: the steps of `ClassificationPresetTrain` after its crop."""
    from torchvision.transforms import functional as F
    from torchvision.transforms.autoaugment import _apply_op

    path, images = made
    height, width, channels = images[0].shape
    found = results(path, "flip,trivialaugment,erase:0.3,norm:0.45/0.25,chw")
    for number, image in enumerate(images):
        draws = [D.Draws(SEED, EPOCH, number, 0, op) for op in range(3)]
        wanted = to_pil(image)
        if draws[0].unit(0) < 0.5:
            wanted = F.hflip(wanted)
        for op, magnitude in D.trivialaugment(draws[1], 31):
            wanted = _apply_op(wanted, op, magnitude, filters(torchvision)[1][1], None)
        tensor = F.normalize(F.convert_image_dtype(F.pil_to_tensor(wanted), torch.float), [0.45] * channels, [0.25] * channels)
        area = D.erased(draws[2], width, height, 0.3, (0.02, 0.33), (0.3, 3.3))
        if area is not None:
            x, y, w, h = area
            tensor = F.erase(tensor, y, x, h, w, torch.zeros(channels, 1, 1))
        np.testing.assert_allclose(found[number], tensor.numpy(), rtol=1e-5, atol=2e-6)


def test_policies_do_not_depend_on_threads_or_batches(made):
    path, _ = made
    text = "randaugment:4/20,erase:0.5/random,f32"
    all_at_once = results(path, text, threads=1)
    loader = packds.Loader(path, 7, order="sequential", seed=SEED, augment=text, drop_last=False, threads=3)
    loader.set_epoch(EPOCH)
    with loader:
        parts = [np.array(batch["image"]) for batch in loader.batches()]
    np.testing.assert_array_equal(np.concatenate(parts), all_at_once)
