"""Batches in PyTorch: labels, variable-size images, fields by name."""

import numpy as np
import pytest

import packds
from conftest import image_of, module_or_skip

pytestmark = pytest.mark.usefixtures("torch")


@pytest.mark.parametrize("shape", [(), (2,)], ids=str)
@pytest.mark.parametrize("dtype", ["f64", "f32", "f16", "bf16"])
def test_float_labels_are_float32(tmp_path, torch, dtype, shape):
    from packds.torch import MapDataset

    samples = [{"image": np.zeros((8, 8, 3), np.uint8), "target": np.full(shape, number / 4), "other": 0.5} for number in range(8)]
    packds.from_dataset(samples, tmp_path / "a.pack", {"image": "image", "target": (dtype, shape)}, keep_order=True, progress=False)
    expected = torch.tensor(np.stack([one["target"] for one in samples]), dtype=torch.float32)
    for device in ("cpu", "simulated"):
        [(_, targets)] = packds.Loader(tmp_path / "a.pack", 8, order="sequential", output="torch", device=device)
        assert targets.dtype == torch.float32 and torch.equal(targets, expected)
    dataset = MapDataset(tmp_path / "a.pack")
    [(_, targets)] = torch.utils.data.DataLoader(dataset, batch_size=8)
    assert targets.dtype == torch.float32 and torch.equal(targets, expected)
    assert torch.equal(dataset[3][1], expected[3]) and dataset[3][1].dtype == torch.float32


@pytest.mark.parametrize("device", ["cpu", "simulated"])
def test_lists_of_labels_are_rows_of_float32(tmp_path, torch, device):
    from packds.torch import MapDataset

    with packds.write(tmp_path / "a.pack", {"image": "image", "labels": "labels"}, keep_order=True) as writer:
        for number in range(8):
            writer.add(image=image_of(number), labels=[number, 8])
    expected = torch.eye(8, 9)
    expected[:, 8] = 1
    [(_, labels)] = packds.Loader(tmp_path / "a.pack", 8, order="sequential", output="torch", device=device)
    assert labels.dtype == torch.float32 and torch.equal(labels, expected)
    [(_, labels)] = torch.utils.data.DataLoader(MapDataset(tmp_path / "a.pack"), batch_size=8)
    assert labels.dtype == torch.float32 and torch.equal(labels, expected)


def test_images_of_sizes_of_their_own_are_tensors(file_pack, torch):
    ds = packds.open(file_pack)
    for batch in packds.Loader(file_pack, 4, output="torch").batches():
        for sample, image in zip(batch.ids, batch["image"]):
            assert torch.equal(image, torch.from_numpy(ds[sample]["image"]))


def test_pytorchs_trees_know_batches_with_names(numbered, torch):
    from torch.utils import _pytree

    batch = next(iter(packds.Loader(numbered, 4, fields=["image", "label"], output="torch")))
    doubled = _pytree.tree_map(lambda tensor: tensor * 2, batch)
    assert isinstance(doubled, packds.NamedBatch) and torch.equal(doubled["label"], batch["label"] * 2)


def test_a_dataloader_gives_plain_dicts(numbered, torch):
    from packds.torch import IterableDataset

    dataset = IterableDataset(numbered, 50, fields=["image", "label"])
    batch = next(iter(torch.utils.data.DataLoader(dataset, batch_size=None, num_workers=1)))
    assert type(batch) is dict and list(batch) == ["image", "label"]


def test_accelerate_moves_batches_with_names(numbered, torch):
    operations = module_or_skip("accelerate.utils.operations", "pip install accelerate")
    batch = next(iter(packds.Loader(numbered, 4, fields=["image", "label"], output="torch")))
    moved = operations.send_to_device(batch, "cpu")
    assert isinstance(moved, packds.NamedBatch) and torch.equal(moved["label"], batch["label"])
    assert operations.find_batch_size(batch) == 4


@pytest.mark.parametrize("device", ["cpu", "simulated"])
def test_mixed_labels_are_tensors_where_batches_go(tmp_path, torch, device):
    schema = {"labels": "labels", "target": "f64"}
    with packds.write(tmp_path / "a.pack", {"image": "image", **schema}) as writer:
        for number in range(8):
            writer.add(image=image_of(number), labels=[number % 5], target=number / 3)
    batch = next(iter(packds.Loader(tmp_path / "a.pack", 8, augment="mixup:1", output="torch", device=device)))
    assert batch["labels"].dtype == batch["target"].dtype == torch.float32
    assert torch.allclose(batch["labels"].sum(1), torch.ones(8)) and ((batch["labels"] > 0) & (batch["labels"] < 1)).any()
