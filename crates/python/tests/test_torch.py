"""PyTorch's tensors and its own DataLoader."""

import itertools
import os
import pickle
import subprocess
import sys
import types

import numpy as np
import pytest

import packds
from conftest import free_port, image_of, module_or_skip
from docstrings import check_docstrings, check_examples

pytestmark = pytest.mark.usefixtures("torch")


def test_examples_in_docstrings_are_true(photos, photo_pack, tmp_path, monkeypatch):
    import packds.torch

    check_examples(packds.torch, photos, photo_pack, tmp_path, monkeypatch)


def test_every_public_name_has_a_docstring_with_an_example():
    import packds.torch

    check_docstrings(packds.torch)


def test_tensors_share_the_loaders_memory(numbered, torch):
    for images, labels in packds.Loader(numbered, batch_size=50, output="torch"):
        assert images.dtype == torch.uint8 and tuple(images.shape) == (50, 8, 8, 3)
        assert labels.dtype == torch.int64
        np.testing.assert_array_equal(images[3].numpy(), image_of(int(labels[3])))
        images += 1


def test_channels_last_is_the_shape_of_chw_with_the_memory_of_hwc(numbered, torch):
    options = {"batch_size": 4, "order": "sequential", "dtype": "f32"}
    planar, _ = next(iter(packds.Loader(numbered, layout="chw", output="torch", **options)))
    last, _ = next(iter(packds.Loader(numbered, layout="channels_last", output="torch", **options)))
    assert last.is_contiguous(memory_format=torch.channels_last)
    assert last.shape == planar.shape and torch.equal(last, planar)


def test_bfloat16_is_a_tensor_of_its_own(numbered, torch):
    options = {"batch_size": 4, "order": "sequential", "output": "torch"}
    exact, _ = next(iter(packds.Loader(numbered, dtype="f32", **options)))
    images, _ = next(iter(packds.Loader(numbered, dtype=torch.bfloat16, **options)))
    assert images.dtype == torch.bfloat16
    assert torch.allclose(images.float(), exact, atol=1 / 128)


def test_tensors_of_what_is_lent_may_be_written(numbered, torch):
    options = {"order": "sequential", "access": "mapped", "fields": ["image"]}
    for batch in packds.Loader(numbered, batch_size=40, lend=True, output="torch", **options).batches():
        assert batch.is_lent
        batch["image"].add_(1)
    first, sample = next(iter(packds.Loader(numbered, batch_size=32, **options))), packds.open(numbered)[0]
    np.testing.assert_array_equal(first["image"][0], sample["image"])


def test_mixed_labels_are_soft_tensors(photo_pack, torch):
    images, labels = next(iter(packds.Loader(photo_pack, batch_size=8, augment="cutmix:1", output="torch")))
    assert labels.dtype == torch.float32 and torch.allclose(labels.sum(1), torch.ones(8))


@pytest.mark.parametrize("workers", [0, 2])
def test_a_map_data_set_works_in_a_dataloader(numbered, torch, workers):
    from packds.torch import MapDataset

    loader = torch.utils.data.DataLoader(MapDataset(numbered), batch_size=30, shuffle=True, num_workers=workers)
    seen = []
    for images, labels in loader:
        for image, label in zip(images, labels):
            np.testing.assert_array_equal(image.permute(1, 2, 0).numpy(), image_of(int(label)))
        seen += labels.tolist()
    assert sorted(seen) == list(range(1000))


def test_a_map_data_set_goes_to_spawned_workers(numbered, torch):
    from packds.torch import MapDataset

    dataset = pickle.loads(pickle.dumps(MapDataset(numbered)))
    loader = torch.utils.data.DataLoader(dataset, batch_size=100, num_workers=1, multiprocessing_context="spawn")
    assert sorted(label for _, labels in loader for label in labels.tolist()) == list(range(1000))


def test_transforms_see_what_they_are_written_for(photo_pack, torch):
    from PIL import Image

    from packds.torch import MapDataset

    seen = []
    dataset = MapDataset(photo_pack, transform=lambda image: seen.append(image) or 1, target_transform=str, images="pil")
    assert dataset[0] == (1, str(dataset.targets[0]))
    assert isinstance(seen[0], Image.Image)
    assert dataset.classes == packds.open(photo_pack).classes
    image, _ = MapDataset(photo_pack, images="numpy")[0]
    np.testing.assert_array_equal(np.asarray(seen[0]), image)
    sample = MapDataset(photo_pack, fields=["label"])[0]
    assert list(sample) == ["label"]


def test_pipelines_that_make_tensors_of_pictures_get_pictures(photo_pack, torchvision, torch):
    from torchvision import transforms

    from packds.torch import MapDataset

    plain, label = MapDataset(photo_pack)[3]
    pipelines = [transforms.ToTensor(), transforms.Compose([transforms.ToTensor(), transforms.Normalize(0, 1)])]
    pipelines += [transforms.Compose([transforms.Compose([transforms.CenterCrop(64), transforms.ToTensor()])])]
    for pipeline in pipelines:
        assert torch.equal(MapDataset(photo_pack, pipeline)[3][0], plain.float() / 255)
    assert torch.equal(MapDataset(photo_pack, transforms.PILToTensor())[3][0], plain)
    # Other transforms get tensors, even if they convert these to PIL images themselves. Explicit options
    # take precedence.
    pictures_first = transforms.Compose([transforms.ToPILImage(), transforms.CenterCrop(64), transforms.ToTensor()])
    assert torch.equal(MapDataset(photo_pack, pictures_first)[3][0], MapDataset(photo_pack, pipelines[2])[3][0])
    assert MapDataset(photo_pack, transforms.CenterCrop(8))[3][0].dtype == torch.uint8
    with pytest.raises(TypeError):
        MapDataset(photo_pack, transforms.ToTensor(), images="torch")[3]


def calls_to_tensor(image):
    from torchvision import transforms

    return transforms.ToTensor()(image)


@pytest.mark.parametrize("workers", [0, 1])
def test_functions_that_call_totensor_are_told_what_they_get(photo_pack, torchvision, torch, workers):
    from packds.torch import MapDataset

    def first(**options):
        data = MapDataset(photo_pack, calls_to_tensor, **options)
        return next(iter(torch.utils.data.DataLoader(data, num_workers=workers)))

    got = r"transform got a torch.uint8 tensor \[3, 64, 64\] and raised TypeError: pic should be PIL Image"
    with pytest.raises(packds.OptionError, match=got) as raised:
        first()
    assert "pass images='pil' if it takes PIL images, as ToTensor does, or images='numpy' for arrays [H, W, C]" in str(raised.value)
    plain = MapDataset(photo_pack)[0][0]
    for images in ("pil", "numpy"):
        assert torch.equal(first(images=images)[0][0], plain.float() / 255)
    # With an explicit option, the function's own error is raised.
    with pytest.raises(TypeError, match="pic should be PIL Image"):
        first(images="torch")
    with pytest.raises(packds.OptionError, match="raised AttributeError: 'Tensor' object has no attribute 'convert'"):
        MapDataset(photo_pack, lambda image: image.convert("L"))[0]
    with pytest.raises(KeyError):
        MapDataset(photo_pack, lambda image: {}["a"])[0]


def test_transforms_of_a_map_data_set_can_be_assigned_and_nothing_else(photo_pack, torchvision, torch):
    from torchvision import transforms

    from packds.torch import MapDataset

    data = MapDataset(photo_pack)
    data.transform, data.target_transform = transforms.ToTensor(), str
    image, label = data[0]
    assert image.dtype == torch.float32 and isinstance(label, str) and data.images == "pil"
    data = pickle.loads(pickle.dumps(data))
    data.transform = None
    assert data[0][0].dtype == torch.uint8 and data.images == "torch"
    with pytest.raises(packds.OptionError, match="transform: expected a function, found 3"):
        data.transform = 3
    with pytest.raises(AttributeError, match="images cannot be changed: make another dataset; transform and target_transform can be assigned"):
        data.images = "numpy"
    with pytest.raises(AttributeError, match="a MapDataset has no attribute 'tranform': did you mean transform?"):
        data.tranform = str


def test_what_default_collate_makes_of_a_map_data_set(photo_pack, file_pack, torch, tmp_path):
    """docs/how-to/pytorch.md has a table of this."""
    from packds.torch import MapDataset

    def batch(path, **options):
        data = MapDataset(path, **options)
        made = next(iter(torch.utils.data.DataLoader(data, batch_size=4)))
        # PyTorch versions that read samples one by one give the same result.
        one_by_one = torch.utils.data.default_collate([data[number] for number in range(4)])
        assert isinstance(made, list) or kinds(made) == kinds(one_by_one)
        return made

    def kinds(values):
        return {name: (str(value.dtype), list(value.shape)) for name, value in values.items() if torch.is_tensor(value)}

    images, labels = batch(photo_pack)
    assert kinds({"image": images, "label": labels}) == {"image": ("torch.uint8", [4, 3, 64, 64]), "label": ("torch.int64", [4])}
    assert kinds(batch(photo_pack, fields=["image", "label"])) == kinds({"image": images, "label": labels})
    assert batch(photo_pack, images="numpy")[0].shape == (4, 64, 64, 3)
    with pytest.raises(TypeError, match="PIL.Image"):
        batch(photo_pack, images="pil")
    schema = {"image": "image", "mask": "mask", "labels": "labels", "box": ("f32", (4,)), "age": "i16", "height": "f64"}
    schema |= {"name": "text", "more": "json", "raw": "bytes"}
    with packds.write(tmp_path / "all.pack", schema, classes=["a", "b", "c"]) as writer:
        for number in range(4):
            more = {"labels": [number % 3], "box": [0, 0, 1, 1], "age": number, "height": number / 2}
            more |= {"name": str(number), "more": {"a": number}, "raw": bytes([number])}
            writer.add(image=image_of(number), mask=np.zeros((8, 8), np.uint8), **more)
    made = batch(tmp_path / "all.pack")
    assert sorted(made.pop("name")) == ["0", "1", "2", "3"] and sorted(made.pop("raw")) == [b"\0", b"\1", b"\2", b"\3"]
    assert made.pop("more")["a"].dtype == torch.int64
    assert len(made) == 6 and kinds(made) == {
        "image": ("torch.uint8", [4, 3, 8, 8]),
        "mask": ("torch.uint8", [4, 8, 8]),
        "labels": ("torch.float32", [4, 3]),
        "box": ("torch.float32", [4, 4]),
        "age": ("torch.int16", [4]),
        "height": ("torch.float64", [4]),
    }
    with pytest.raises(RuntimeError, match="stack expects each tensor to be equal size"):
        batch(file_pack)


def test_options_of_a_dataloader_are_sent_to_it(numbered, torch):
    from packds.torch import IterableDataset, MapDataset

    for make in (IterableDataset, MapDataset):
        with pytest.raises(TypeError, match=f"packds.torch.{make.__name__} has no option 'num_workers': pass it to the DataLoader"):
            make(numbered, num_workers=2)
    with pytest.raises(TypeError, match="no option 'batch_size': pass it to the DataLoader"):
        MapDataset(numbered, batch_size=2)
    with pytest.raises(TypeError, match="packds.torch.IterableDataset has no option 'shufle': for shuffle, order="):
        IterableDataset(numbered, shufle=True)
    with pytest.raises(AttributeError, match="batch_size cannot be changed: make another dataset; none of its attributes can be assigned"):
        IterableDataset(numbered, 50).batch_size = 4


def test_a_map_data_set_knows_classes_as_torchvision_does(photo_pack, torch):
    from packds.torch import MapDataset

    dataset = MapDataset(photo_pack)
    assert dataset.class_to_idx == packds.open(photo_pack).class_to_idx
    assert MapDataset(photo_pack, fields=["image"]).targets == dataset.targets == packds.open(photo_pack).labels.tolist()


def test_workers_do_not_draw_seeds_of_their_own(numbered, torch):
    from packds.torch import IterableDataset

    dataset = IterableDataset(numbered, 50, seed=None)
    loader = torch.utils.data.DataLoader(dataset, batch_size=None, num_workers=2)
    assert sorted(sum(labels_of(loader), [])) == list(range(1000))


def test_packs_of_bfloat16_give_tensors_of_it(photos, tmp_path, torch):
    from packds.torch import MapDataset

    packds.convert(photos, tmp_path / "a.pack", dtype="bf16", progress=False)
    image, _ = MapDataset(tmp_path / "a.pack")[0]
    exact, _ = next(iter(packds.Loader(tmp_path / "a.pack", batch_size=1, order="sequential", output="torch")))
    assert image.dtype == torch.bfloat16 and torch.equal(image, exact[0].permute(2, 0, 1))


def test_tensors_of_bfloat16_are_written_bit_by_bit(tmp_path, torch):
    values = torch.linspace(-3, 5, 12).to(torch.bfloat16).reshape(4, 3)
    samples = [{"image": image_of(1), "x": row, "y": row.sum()} for row in values]
    packds.from_dataset(samples, tmp_path / "a.pack", keep_order=True, progress=False)
    ds = packds.open(tmp_path / "a.pack")
    assert (ds.fields["x"].dtype, ds.fields["y"].dtype) == ("bf16", "bf16")
    with packds.Loader(ds, batch_size=4, order="sequential", output="torch") as loader:
        batch = next(iter(loader))
        assert torch.equal(batch["x"], values)
        assert torch.equal(batch["y"].flatten(), values.sum(1).flatten())
    with packds.write(tmp_path / "b.pack", {"image": "image", "x": ("f32", (3,))}) as writer:
        writer.add(image=image_of(1), x=values[0])
    np.testing.assert_array_equal(packds.open(tmp_path / "b.pack")[0]["x"], values[0].float().numpy())


def test_several_samples_are_the_same_as_each(file_pack):
    from packds.torch import MapDataset

    dataset = MapDataset(file_pack)
    for (image, label), index in zip(dataset.__getitems__([5, 2, 5]), [5, 2, 5]):
        assert label == dataset[index][1]
        assert (image == dataset[index][0]).all()


@pytest.mark.filterwarnings("ignore:This DataLoader will create")
@pytest.mark.parametrize("workers", [0, 1, 3])
@pytest.mark.parametrize("drop_last", [True, False])
def test_an_iterable_data_set_gives_each_sample_once(numbered, torch, workers, drop_last):
    from packds.torch import IterableDataset

    dataset = IterableDataset(numbered, 30, drop_last=drop_last, seed=3)
    loader = torch.utils.data.DataLoader(dataset, batch_size=None, num_workers=workers)
    seen = [label for _, labels in loader for label in labels.tolist()]
    assert len(seen) == len(set(seen))
    if drop_last:
        assert len(seen) > 1000 - 30 * max(1, workers)
    else:
        assert sorted(seen) == list(range(1000))


@pytest.mark.filterwarnings("ignore:This DataLoader will create")
@pytest.mark.parametrize("workers", [0, 2, 3])
def test_an_iterable_data_set_gives_as_many_batches_as_the_guide_says_and_no_length(numbered, torch, workers):
    from packds.torch import IterableDataset

    dataset = IterableDataset(numbered, 110, rank=(0, 2))
    loader = torch.utils.data.DataLoader(dataset, batch_size=None, num_workers=workers)
    with pytest.raises(TypeError, match="has no len"):
        len(loader)
    # The number of batches, as described in docs/how-to/pytorch.md.
    n, world, workers = 1000, 2, max(workers, 1)
    assert sum(1 for _ in loader) == workers * (n // (world * workers * 110))


def test_epochs_of_an_iterable_data_set_differ(numbered, torch):
    from packds.torch import IterableDataset

    dataset = IterableDataset(numbered, 50)
    epochs = []
    for epoch in (0, 1, 0):
        dataset.set_epoch(epoch)
        epochs.append([labels.tolist() for _, labels in torch.utils.data.DataLoader(dataset, batch_size=None, num_workers=1)])
    assert epochs[0] == epochs[2] != epochs[1]


def passes_of(torch, dataset, n, workers, **options) -> list:
    """The sorted labels of each of `n` passes over one DataLoader."""
    loader = torch.utils.data.DataLoader(dataset, batch_size=None, num_workers=workers, **options)
    return [sorted(label for _, labels in loader for label in labels.tolist()) for _ in range(n)]


def epochs_of(path, n, world) -> list:
    """The sorted labels of each of the first `n` epochs, over this number of ranks."""
    ranks = [packds.Loader(path, 30, samples=range(100), seed=3, rank=(rank, world)) for rank in range(world)]
    return [sorted(label for loader in ranks for _, labels in loader for label in labels.tolist()) for _ in range(n)]


SHARES = {"samples": range(100), "seed": 3}


@pytest.mark.parametrize(("workers", "context"), [(0, None), (1, "fork"), (2, "fork"), (2, "spawn")])
@pytest.mark.parametrize("lives_on", [False, True])
def test_each_pass_over_an_iterable_data_set_is_the_next_epoch(numbered, torch, workers, context, lives_on):
    from packds.torch import IterableDataset

    # Each epoch drops the samples that do not fill a batch. These samples differ from epoch to epoch, which tells
    # epochs apart.
    dataset = IterableDataset(numbered, 30, **SHARES)
    options = {"multiprocessing_context": context, "persistent_workers": lives_on} if workers else {}
    expected = epochs_of(numbered, 4, max(workers, 1))
    assert expected[0] != expected[1]
    assert passes_of(torch, dataset, 3, workers, **options) == expected[:3]
    assert dataset.epoch == 3
    # The same holds for another DataLoader.
    assert passes_of(torch, dataset, 1, workers, **options) == expected[3:]


@pytest.mark.parametrize("lives_on", [False, True])
def test_set_epoch_reaches_workers(numbered, torch, lives_on):
    from packds.torch import IterableDataset

    dataset = IterableDataset(numbered, 30, epoch=1, **SHARES)
    loader = torch.utils.data.DataLoader(dataset, batch_size=None, num_workers=2, persistent_workers=lives_on)

    def seen() -> list:
        return sorted(label for _, labels in loader for label in labels.tolist())

    expected = epochs_of(numbered, 6, 2)
    assert [seen(), seen()] == expected[1:3]
    dataset.set_epoch(4)
    assert [seen(), seen()] == expected[4:6]
    dataset.set_epoch(0)
    assert seen() == expected[0]


def test_passes_that_are_left_early_or_side_by_side_are_epochs_of_their_own(numbered, torch):
    from packds.torch import IterableDataset

    dataset = IterableDataset(numbered, 10, **SHARES)
    loader = torch.utils.data.DataLoader(dataset, batch_size=None, num_workers=2)
    for _ in loader:
        break
    assert dataset.epoch == 1
    both = list(zip(loader, loader))
    assert dataset.epoch == 3
    for which in (0, 1):
        labels = [label for pair in both for label in pair[which][1].tolist()]
        assert len(labels) == len(set(labels)) == 100


def test_a_copy_of_an_iterable_data_set_counts_for_itself(numbered, torch):
    from packds.torch import IterableDataset

    dataset = IterableDataset(numbered, 30, epoch=5, **SHARES)
    again = pickle.loads(pickle.dumps(dataset))
    assert passes_of(torch, dataset, 1, 2) == passes_of(torch, again, 1, 2)
    assert (dataset.epoch, again.epoch) == (6, 6)


def test_workers_that_cannot_count_together_say_so(numbered, torch, monkeypatch):
    from packds import _passes
    from packds.torch import IterableDataset

    dataset = IterableDataset(numbered, 30, **SHARES)
    monkeypatch.setattr(torch.utils.data, "get_worker_info", lambda: types.SimpleNamespace(id=0, num_workers=1, seed=7))
    assert not dataset._passes.is_shared and _passes._opened("/proc/1/fd/999999") is None
    with pytest.warns(RuntimeWarning, match="call set_epoch before each pass"):
        next(iter(dataset))


def test_ranks_that_are_forked_or_spawned_with_a_data_set_count_apart(numbered, torch):
    from packds.torch import IterableDataset

    dataset = IterableDataset(numbered, 30, epoch=2, rank=None, **SHARES)
    for start in ("fork", "spawn"):
        context = torch.multiprocessing.get_context(start)
        queue = context.Queue()
        processes = [context.Process(target=_count, args=(dataset, queue)) for _ in range(2)]
        for process in processes:
            process.start()
        assert [queue.get(timeout=120) for _ in processes] == [[2, 3], [2, 3]]
        for process in processes:
            process.join(60)
    assert dataset.epoch == 2


def labels_of(batches) -> list:
    return [labels.tolist() for _, labels in batches]


@pytest.mark.filterwarnings("ignore:This DataLoader will create")
@pytest.mark.parametrize("drop_last", [True, False])
@pytest.mark.parametrize("workers", [0, 2, 3])
def test_ranks_with_workers_have_equally_many_batches(numbered, torch, workers, drop_last):
    from packds.torch import IterableDataset

    steps, seen = [], set()
    for rank in range(4):
        dataset = IterableDataset(numbered, 30, rank=(rank, 4), drop_last=drop_last, samples=range(970))
        batches = labels_of(torch.utils.data.DataLoader(dataset, batch_size=None, num_workers=workers))
        steps.append(len(batches))
        assert {len(batch) for batch in batches} == {30}
        seen |= {label for batch in batches for label in batch}
    assert len(set(steps)) == 1
    assert drop_last or len(seen) == 970


def test_global_batches_do_not_depend_on_how_many_ranks_have_workers(numbered, torch):
    from packds.torch import IterableDataset

    def steps(world):
        ranks = [IterableDataset(numbered, 24 // world, rank=(rank, world)) for rank in range(world)]
        loaders = [torch.utils.data.DataLoader(dataset, batch_size=None, num_workers=2) for dataset in ranks]
        return [sorted(sum(batches, [])) for batches in zip(*map(labels_of, loaders))]

    assert steps(1) == steps(2) == steps(4)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("options", [{}, {"batch_size": 4}, {"batch_size": 4, "drop_last": True}], ids=str)
def test_a_dataloader_that_would_batch_batches_is_refused(numbered, torch, workers, options):
    from packds.torch import IterableDataset

    loader = torch.utils.data.DataLoader(IterableDataset(numbered, 30), num_workers=workers, **options)
    with pytest.raises(packds.OptionError, match="pass batch_size=None to the DataLoader"):
        next(iter(loader))


# PyTorch's workers may abort if their loader is dropped while they start, and its destructor then raises.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(("workers", "context"), [(0, None), (2, "fork"), (2, "spawn")])
def test_a_dataloader_that_accelerate_prepared_is_refused(numbered, torch, workers, context):
    from packds.torch import IterableDataset

    # Accelerate's loaders iterate over a DataLoader from this module.
    accelerate = {"__name__": "accelerate.data_loader"}
    exec("def first(loader): return next(iter(loader))", accelerate)

    def loader(**options):
        options |= {"num_workers": workers, "multiprocessing_context": context}
        return torch.utils.data.DataLoader(IterableDataset(numbered, 50, rank=(0, world)), batch_size=None, **options)

    # Accelerate's launchers call all training code.
    launcher = {"__name__": "accelerate.utils.launch"}
    exec("def call(function, *args): return function(*args)", launcher)
    for world in (1, 2):
        assert len(next(iter(loader()))) == 2
        assert len(launcher["call"](lambda: next(iter(loader())))) == 2
        with pytest.raises(packds.OptionError, match="leave the DataLoader out of prepare"):
            accelerate["first"](loader())


def test_accelerate_sets_no_epoch_in_the_place_of_a_state(numbered, torch):
    accelerate = module_or_skip("accelerate", "scripts/setup installs it")
    from packds.torch import IterableDataset

    data = IterableDataset(numbered, 50)
    next(iter(torch.utils.data.DataLoader(data, batch_size=None)))
    state = data.state_dict()
    # Otherwise accelerate 0.29 rejects DataLoaders without a batch size.
    config = accelerate.utils.DataLoaderConfiguration(dispatch_batches=False)
    prepared = accelerate.Accelerator(cpu=True, dataloader_config=config).prepare(torch.utils.data.DataLoader(data, batch_size=None))
    data.load_state_dict(state)
    with pytest.raises(packds.OptionError, match="set the epoch of each pass\nhint: leave the DataLoader out of prepare"):
        next(iter(prepared))
    assert len(labels_of(torch.utils.data.DataLoader(data, batch_size=None))) == 19


def test_a_data_set_goes_on_from_its_state_in_the_middle_of_any_epoch(numbered, torch):
    from packds.torch import IterableDataset

    def loader(dataset):
        return torch.utils.data.DataLoader(dataset, batch_size=None)

    first = IterableDataset(numbered, 50, seed=3)
    whole = [labels_of(loader(first)) for _ in range(3)]
    dataset = IterableDataset(numbered, 50, seed=3, epoch=1)
    assert labels_of(itertools.islice(loader(dataset), 7)) == whole[1][:7]
    again = IterableDataset(numbered, 50, seed=3)
    again.load_state_dict(dataset.state_dict())
    assert again.epoch == 1
    assert labels_of(loader(again)) == whole[1][7:]
    assert again.state_dict()["is_over"] and labels_of(loader(again)) == whole[2]
    # A state saved after an epoch's end resumes with the next epoch.
    last = IterableDataset(numbered, 50, seed=3)
    last.load_state_dict(first.state_dict())
    assert last.epoch == 3


def test_states_that_do_not_fit_are_refused(numbered, torch):
    from packds.torch import IterableDataset

    dataset = IterableDataset(numbered, 50)
    for state in (None, {}, {"version": 1}, packds.Loader(numbered, 50).state_dict()):
        with pytest.raises(packds.OptionError, match="state: expected a value returned by"):
            dataset.load_state_dict(state)
    next(iter(dataset))
    other = IterableDataset(numbered, 50, seed=1)
    other.load_state_dict(dataset.state_dict())
    with pytest.raises(packds.OptionError, match="seed"):
        next(iter(other))
    state = dataset.state_dict()
    dataset.load_state_dict(state)
    loader = torch.utils.data.DataLoader(dataset, batch_size=None, num_workers=2)
    with pytest.raises(packds.OptionError, match="saved with num_workers=1, found 2"):
        next(iter(loader))
    with pytest.raises(packds.OptionError, match="workers make the batches"):
        dataset.state_dict()


@pytest.fixture
def stateful(torch):
    return module_or_skip("torchdata.stateful_dataloader", "scripts/setup installs it").StatefulDataLoader


@pytest.mark.parametrize("lives_on", [False, True])
@pytest.mark.parametrize("workers", [0, 1, 2])
@pytest.mark.parametrize("epoch", [0, 2])
def test_a_stateful_dataloader_goes_on_in_any_epoch(numbered, torch, stateful, epoch, workers, lives_on):
    from packds.torch import IterableDataset

    def loader():
        # A new dataset with the same seed, as in a restarted training run.
        torch.manual_seed(7)
        dataset = IterableDataset(numbered, 50, seed=3)
        return stateful(dataset, batch_size=None, num_workers=workers, persistent_workers=lives_on and workers > 0)

    first = loader()
    whole = [labels_of(first) for _ in range(epoch + 3)]
    for steps in (1, len(whole[0])):
        begun = loader()
        for _ in range(epoch):
            labels_of(begun)
        iterator = iter(begun)
        assert labels_of(itertools.islice(iterator, steps)) == whole[epoch][:steps]
        going_on = loader()
        going_on.load_state_dict(begun.state_dict())
        assert labels_of(going_on) == whole[epoch][steps:]
        assert labels_of(going_on) == whole[epoch + 1]
        # A state from after the end of an epoch.
        at_end = loader()
        at_end.load_state_dict(going_on.state_dict())
        assert labels_of(at_end) == whole[epoch + 2]


def test_a_stateful_dataloader_with_another_global_batch_is_refused(numbered, torch, stateful):
    from packds.torch import IterableDataset

    begun = stateful(IterableDataset(numbered, 10), batch_size=None, num_workers=2)
    labels_of(itertools.islice(begun, 3))
    going_on = stateful(IterableDataset(numbered, 20), batch_size=None, num_workers=2)
    going_on.load_state_dict(begun.state_dict())
    with pytest.raises(packds.OptionError, match="global batch of 10 samples, found 20"):
        next(iter(going_on))


@pytest.mark.parametrize("end", ["dataset._me = dataset", "import os; os.close(dataset._passes._fd); del dataset"])
def test_a_data_set_ends_without_a_word(numbered, torch, end):
    script = f"from packds.torch import IterableDataset; dataset = IterableDataset({str(numbered)!r}, 10); {end}"
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")


def _count(dataset, queue):
    import torch

    epochs = []
    for _ in range(2):
        epochs.append(dataset.epoch)
        list(torch.utils.data.DataLoader(dataset, batch_size=None, num_workers=1))
    queue.put(epochs)


@pytest.mark.parametrize(
    "options",
    [{"order": "x"}, {"augment": "rcc24"}, {"fields": ["nothing"]}, {"batch_size": 2000}, {"normalize": "imagnet"}],
)
def test_wrong_options_are_refused_before_there_is_a_worker(numbered, torch, options):
    from packds.torch import IterableDataset

    with pytest.raises(packds.OptionError):
        IterableDataset(numbered, **options)
    with pytest.raises(TypeError, match="ordr"):
        IterableDataset(numbered, ordr="random")


def test_a_dataloader_is_not_packed_batch_by_batch(numbered, torch, tmp_path):
    samples = [(torch.zeros(8, 8, 3, dtype=torch.uint8), 0)] * 4
    loaders = [torch.utils.data.DataLoader(samples, batch_size=2), packds.Loader(numbered)]
    for loader, name in zip(loaders, ["a DataLoader", "a packds.Loader"]):
        with pytest.raises(packds.OptionError, match=f"{name} yields batches.*\n.*loader.dataset"):
            packds.from_dataset(loader, tmp_path / "a.pack", progress=False)
    assert list(tmp_path.iterdir()) == []
    assert packds.from_dataset(loaders[0].dataset, tmp_path / "a.pack", progress=False)["n_samples"] == 4
    assert packds.from_dataset(loaders[1].dataset, tmp_path / "b.pack", progress=False)["n_samples"] == 1000


def test_a_part_of_a_data_set_keeps_its_class_names(torch, tmp_path):
    class Pets(torch.utils.data.Dataset):
        classes = ("cat", "dog")

        def __len__(self):
            return 4

        def __getitem__(self, index):
            return image_of(index), index % 2

    part = torch.utils.data.Subset(torch.utils.data.Subset(Pets(), [0, 1, 2]), [2, 1])
    packds.from_dataset(part, tmp_path / "a.pack", progress=False)
    assert packds.open(tmp_path / "a.pack").classes == ["cat", "dog"]


@pytest.mark.parametrize("device", ["gpu", "xpu", "meta", 0, None, 1.5], ids=lambda device: f"is {device!r}")
def test_devices_that_there_are_none_of_are_refused_with_those_that_there_are(numbered, torch, device):
    with pytest.raises(packds.OptionError, match="device: expected cpu, or with output='torch' cuda, cuda:0, .*found"):
        packds.Loader(numbered, 4, output="torch", device=device)


def test_devices_of_pytorch_are_taken_as_it_writes_them(numbered, torch):
    for device in ("cpu", torch.device("cpu"), "cpu:0"):
        with packds.Loader(numbered, 4, output="torch", device=device) as loader:
            images, _ = next(iter(loader))
            assert images.device.type == "cpu"


def test_tensors_of_torch_can_be_packed(tmp_path, torch):
    samples = [(torch.from_numpy(image_of(i)).permute(2, 0, 1), torch.tensor(i)) for i in range(4)]
    packds.from_dataset(samples, tmp_path / "a.pack", keep_order=True, progress=False)
    ds = packds.open(tmp_path / "a.pack")
    assert ds.fields["image"].layout == "chw"
    np.testing.assert_array_equal(ds[2]["image"], np.moveaxis(image_of(2), -1, 0))


def _train(rank, world, path, port, queue):
    import os

    import torch.distributed as distributed

    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    distributed.init_process_group("gloo", rank=rank, world_size=world)
    loader = packds.Loader(path, batch_size=40 // world, seed=2, output="torch")
    queue.put((rank, [labels.tolist() for _, labels in loader]))
    distributed.barrier()
    distributed.destroy_process_group()


@pytest.mark.parametrize("world", [2, 4])
def test_processes_of_a_group_share_the_same_global_batches(numbered, torch, world):
    if not torch.distributed.is_available():
        pytest.skip("this PyTorch has no distributed package")
    context = torch.multiprocessing.get_context("spawn")
    queue = context.Queue()
    port = free_port()
    processes = [context.Process(target=_train, args=(rank, world, numbered, port, queue)) for rank in range(world)]
    for process in processes:
        process.start()
    parts = dict(queue.get(timeout=120) for _ in processes)
    for process in processes:
        process.join(60)
    alone = [labels.tolist() for _, labels in packds.Loader(numbered, batch_size=40, seed=2, rank=None)]
    together = [sum((parts[rank][step] for rank in range(world)), []) for step in range(len(alone))]
    assert together == alone


def test_workers_report_a_pack_that_is_cut_short(numbered, tmp_path, torch):
    # PyTorch's workers have their own SIGBUS handler, which ends them.
    from packds.torch import MapDataset

    path = tmp_path / "a.pack"
    path.write_bytes(numbered.read_bytes())
    loader = torch.utils.data.DataLoader(MapDataset(path), batch_size=10, num_workers=1)
    os.truncate(path, 8192)
    with pytest.raises(Exception, match="changed while it was read"):
        list(loader)
