"""Batches."""

import gc
import os
import pathlib
import signal
import subprocess
import sys
import textwrap
import threading
import time
import types

import numpy as np
import pytest

import packds
from conftest import image_of


def threads() -> int:
    """Threads of the loader in this process."""
    tasks = pathlib.Path("/proc/self/task").iterdir()
    return sum((task / "comm").read_text().startswith("packds-load") for task in tasks)


def no_threads_are_left() -> bool:
    end = time.monotonic() + 10
    while threads() and time.monotonic() < end:
        time.sleep(0.01)
    return threads() == 0


def labels_of(loader) -> list:
    return [labels.tolist() for _, labels in loader]


def holds_in_a_fork(check) -> bool:
    """Whether `check()` is true in a forked child."""
    child = os.fork()
    if child == 0:
        holds = False
        try:
            holds = check()
        finally:
            os._exit(0 if holds else 1)
    return os.waitpid(child, 0)[1] == 0


def test_a_batch_is_images_and_labels(numbered):
    for images, labels in packds.Loader(numbered, batch_size=100, seed=3):
        assert images.shape == (100, 8, 8, 3) and images.dtype == np.uint8
        assert labels.shape == (100,) and labels.dtype == np.int32
        for image, label in zip(images, labels):
            np.testing.assert_array_equal(image, image_of(label))


@pytest.mark.parametrize("order", ["auto", "random", "window", "chunks", "sequential"])
def test_an_epoch_has_every_sample_once(numbered, order):
    loader = packds.Loader(numbered, batch_size=50, order=order, seed=1)
    seen = [label for batch in labels_of(loader) for label in batch]
    assert sorted(seen) == list(range(1000))


def test_the_same_seed_gives_the_same_batches_on_any_threads(numbered):
    one = labels_of(packds.Loader(numbered, batch_size=50, seed=5, threads=1))
    assert one == labels_of(packds.Loader(numbered, batch_size=50, seed=5, threads=3))
    assert one != labels_of(packds.Loader(numbered, batch_size=50, seed=6))


def test_a_seed_is_drawn_where_none_is_given(numbered):
    def drawn() -> packds.Loader:
        np.random.seed(5)
        if "torch" in sys.modules:
            sys.modules["torch"].manual_seed(5)
        return packds.Loader(numbered, 50, seed=None)

    one, other, next_one = drawn(), drawn(), packds.Loader(numbered, 50, seed=None)
    assert one.seed == other.seed != next_one.seed
    assert packds.Loader(numbered, 50).seed == 0
    assert labels_of(one) == labels_of(other) == labels_of(packds.Loader(numbered, 50, seed=one.seed))
    # The resumed run has the seed of the saved run.
    next_one.load_state_dict(other.state_dict())
    assert next_one.seed == one.seed and labels_of(next_one) == labels_of(one)


def test_a_state_that_does_not_fit_leaves_a_drawn_seed_as_it_was(numbered, photo_pack):
    loader = packds.Loader(numbered, 50, seed=None)
    seed, batches = loader.seed, labels_of(loader)
    with pytest.raises(packds.OptionError):
        loader.load_state_dict(packds.Loader(photo_pack, 2, seed=3).state_dict())
    loader.set_epoch(0)
    assert (loader.seed, labels_of(loader)) == (seed, batches)


def test_ranks_do_not_draw_seeds_of_their_own(numbered):
    with pytest.raises(packds.OptionError, match="seed: None would draw a different seed on each rank"):
        packds.Loader(numbered, 50, seed=None, rank=(0, 2))


def test_a_second_iteration_is_the_next_epoch(numbered):
    loader = packds.Loader(numbered, batch_size=50)
    first, second = labels_of(loader), labels_of(loader)
    assert loader.epoch == 2
    assert first != second
    loader.set_epoch(0)
    assert labels_of(loader) == first
    assert labels_of(packds.Loader(numbered, batch_size=50, epoch=1)) == second


def test_an_iteration_begins_with_its_first_batch(numbered):
    loader = packds.Loader(numbered, batch_size=50)
    iterations = [iter(loader) for _ in range(3)]
    assert (threads(), loader.epoch) == (0, 0)
    loader.set_epoch(4)
    labels = [next(iterations[1])[1].tolist(), *labels_of(iterations[1])]
    assert labels == labels_of(packds.Loader(numbered, batch_size=50, epoch=4))
    assert loader.epoch == 5


def test_the_length_is_the_number_of_batches(numbered):
    assert len(packds.Loader(numbered, batch_size=64)) == 15
    assert len(packds.Loader(numbered, batch_size=64, drop_last=False)) == 16


def test_behind_the_last_epoch_there_is_none(numbered):
    last = 2**32 - 1
    loader = packds.Loader(numbered, batch_size=50, epoch=last)
    assert len(loader) == 20
    assert len(labels_of(loader)) == 20
    assert (loader.epoch, len(loader)) == (last + 1, 0)
    for call in (lambda: next(iter(loader)), loader.state_dict):
        with pytest.raises(packds.OptionError, match="4294967295 was the last"):
            call()
    assert "0 batches" in repr(loader)
    loader.set_epoch(3)
    assert len(labels_of(loader)) == 20


def test_what_is_left_of_an_epoch_is_told_apart_from_its_length(numbered):
    loader = packds.Loader(numbered, batch_size=50)
    assert (len(loader), loader.batches_left) == (20, 20)
    for number, _ in enumerate(loader, 1):
        assert (len(loader), loader.batches_left) == (20, 20 - number)
        state = loader.state_dict()
        if number == 7:
            break
    # The next iteration yields the next epoch.
    assert loader.batches_left == 20
    loader.load_state_dict(state)
    assert (len(loader), loader.batches_left) == (20, 13)
    assert len(labels_of(loader)) == 13
    assert loader.batches_left == 20


def test_a_loader_tells_how_many_samples_an_epoch_has(numbered):
    assert packds.Loader(numbered, batch_size=64, rank=(1, 2)).n_samples == 1000
    chosen = packds.Loader(numbered, batch_size=4, samples=slice(10, 40, 2))
    assert (chosen.n_samples, len(chosen.dataset), len(chosen.datasets[0])) == (15, 15, 1000)
    assert packds.Loader(numbered, batch_size=4, weights=np.full(1000, 2)).n_samples == 2000
    assert packds.Loader([numbered, numbered], batch_size=4).n_samples == 2000


def counts(loader) -> tuple[int, int, int, int]:
    return len(loader), loader.batches_left, loader.n_samples, len(loader.dataset)


def test_counts_are_those_of_the_guide(numbered):
    loader = packds.Loader(numbered, 64)
    assert counts(loader) == (15, 15, 1000, 1000)
    batches = iter(loader)
    assert counts(loader) == (15, 15, 1000, 1000)
    for _ in range(5):
        next(batches)
    assert counts(loader) == (15, 10, 1000, 1000)
    state = loader.state_dict()
    batches.close()
    assert (counts(loader), loader.epoch) == ((15, 15, 1000, 1000), 1)
    loader.load_state_dict(state)
    assert (counts(loader), loader.epoch) == ((15, 10, 1000, 1000), 0)
    ranks = packds.Loader(numbered, 32, rank=(1, 2))
    ranks.load_state_dict(state)
    assert counts(ranks) == (15, 10, 1000, 1000)
    # Batches are counted per rank, after padding or dropping. Samples are counted over all ranks.
    for world in (1, 2, 4):
        assert counts(packds.Loader(numbered, 64, rank=(0, world))) == (1000 // (64 * world), 1000 // (64 * world), 1000, 1000)
        for options in ({"order": "sequential"}, {"drop_last": False}):
            whole = -(-1000 // (64 * world))
            assert counts(packds.Loader(numbered, 64, rank=(0, world), **options)) == (whole, whole, 1000, 1000)
    assert counts(packds.Loader(numbered, 64, samples=slice(300))) == (4, 4, 300, 300)
    weighted = packds.Loader(numbered, 64, weights=np.full(1000, 1.5))
    n = weighted.n_samples
    assert 1400 < n < 1600 and counts(weighted) == (n // 64, n // 64, n, 1000)
    weighted.set_epoch(1)
    assert weighted.n_samples != n
    assert counts(packds.Loader([numbered, numbered], 64, proportions=[3, 1]))[2:] == (2000, 1000)


def test_the_data_set_of_chosen_samples_is_these(numbered):
    dataset = packds.Loader(numbered, batch_size=2, samples=[3, 8, 13], order="sequential").dataset
    ds = packds.open(numbered)
    assert dataset.labels.tolist() == [sample["label"] for sample in dataset] == ds.labels[[3, 8, 13]].tolist()
    assert dataset[-1]["label"] == ds[13]["label"] and dataset[1:]["label"].tolist() == ds[[8, 13]]["label"].tolist()
    assert (dataset.classes, dataset.path, list(dataset.fields)) == (ds.classes, ds.path, list(ds.fields))
    assert "3 of 1000 samples" in repr(dataset)


def test_without_drop_last_the_last_batch_is_shorter(numbered):
    batches = labels_of(packds.Loader(numbered, batch_size=64, drop_last=False))
    assert [len(batch) for batch in batches] == [64] * 15 + [40]
    assert sorted(sum(batches, [])) == list(range(1000))


def test_named_fields_come_by_name(numbered):
    batch = next(iter(packds.Loader(numbered, batch_size=4, fields=["label", "source_id"])))
    assert list(batch.keys()) == ["label", "source_id"]


def test_texts_and_json_come_as_lists(tmp_path):
    path = tmp_path / "a.pack"
    with packds.write(path, {"image": "image", "caption": "text", "boxes": "json"}, keep_order=True) as writer:
        for number in range(8):
            writer.add(image=image_of(number), caption="x" * number, boxes=[[number]])
    batch = next(iter(packds.Loader(path, batch_size=8, order="sequential")))
    assert batch["caption"] == ["x" * number for number in range(8)]
    assert batch["boxes"] == [[[number]] for number in range(8)]


def test_batch_objects_know_where_they_come_from(numbered):
    loader = packds.Loader(numbered, batch_size=300, drop_last=False, rank=(0, 1))
    ds = packds.open(numbered)
    for step, batch in enumerate(loader.batches()):
        assert (batch.epoch, batch.step, batch.padding) == (0, step, 0)
        np.testing.assert_array_equal(ds.labels[batch.ids], batch["label"])
    assert len(batch) == len(batch.packs) == 100
    assert "label" in repr(batch)


def test_a_batch_object_has_its_fields_by_name(numbered):
    batch = next(packds.Loader(numbered, batch_size=4).batches())
    assert "image" in batch and "mask" not in batch
    assert list(dict(batch)) == list(batch.keys()) == ["image", "label"]


def test_padding_of_the_last_batches_of_ranks_is_told(numbered):
    real = []
    for rank in range(3):
        for batch in packds.Loader(numbered, batch_size=100, drop_last=False, rank=(rank, 3)).batches():
            assert len(batch) == len(batch["label"]) == 100
            real += batch["label"][: len(batch) - batch.padding].tolist()
    assert sorted(real) == list(range(1000))


def test_arrays_are_the_loaders_memory_and_never_change(numbered):
    held = []
    loader = packds.Loader(numbered, batch_size=10, slots=8)
    for images, labels in loader:
        assert images.flags.writeable and not images.flags.owndata
        held.append((images, labels))
        if len(held) > 5:
            held.pop(0)
    for images, labels in held:
        for image, label in zip(images, labels):
            np.testing.assert_array_equal(image, image_of(label))


def test_all_batches_of_an_epoch_may_be_held(numbered):
    loader = packds.Loader(numbered, batch_size=10, slots=3)
    batches = list(loader)
    assert len(batches) == 100
    for images, labels in batches:
        np.testing.assert_array_equal(images[0], image_of(labels[0]))


def test_arrays_outlive_everything(numbered):
    images, labels = next(iter(packds.Loader(numbered, batch_size=10)))
    gc.collect()
    np.testing.assert_array_equal(images[3], image_of(labels[3]))


def test_arrays_may_be_written(numbered):
    loader = packds.Loader(numbered, batch_size=10, order="sequential")
    for images, _ in loader:
        images[:] = 7
    np.testing.assert_array_equal(packds.open(numbered)[0]["image"], next(iter(loader))[0][0])


def test_lent_batches_are_the_file_and_cannot_be_written(numbered):
    loader = packds.Loader(numbered, batch_size=32, order="sequential", lend=True, access="mapped", fields=["image"])
    batch = next(iter(loader.batches()))
    assert batch.is_lent and not batch["image"].flags.writeable


@pytest.mark.parametrize(("dtype", "numpy"), [("f32", np.float32), (np.float16, np.float16), ("float32", np.float32)])
def test_images_are_normalized_as_asked(photo_pack, dtype, numpy):
    mean, std = (0.5, 0.4, 0.3), (0.2, 0.3, 0.4)
    options = {"batch_size": 8, "order": "sequential"}
    raw, _ = next(iter(packds.Loader(photo_pack, **options)))
    images, _ = next(iter(packds.Loader(photo_pack, dtype=dtype, normalize=(mean, std), layout="chw", **options)))
    assert images.dtype == numpy and images.shape == (8, 3, 64, 64)
    expected = (raw / 255 - np.array(mean)) / np.array(std)
    np.testing.assert_allclose(images, np.moveaxis(expected, -1, 1), atol=4e-3)


def test_the_packs_own_statistics_normalize(photo_pack):
    ds = packds.open(photo_pack)
    images = np.concatenate([images for images, _ in packds.Loader(ds, batch_size=8, normalize="dataset")])
    assert abs(images.mean()) < 0.1 and abs(images.std() - 1) < 0.1


def test_augmentations_crop_and_decode(file_pack):
    for augment in ("rrc32,flip", ["rrc32", "flip"]):
        for images, _ in packds.Loader(file_pack, batch_size=8, augment=augment, layout="chw"):
            assert images.shape == (8, 3, 32, 32)


def test_views_are_a_tuple(file_pack):
    (one, other), _ = next(iter(packds.Loader(file_pack, batch_size=8, augment="rrc32,views:2")))
    assert one.shape == other.shape == (8, 32, 32, 3)
    assert not np.array_equal(one, other)


def test_mixed_images_have_soft_labels(photo_pack):
    loader = packds.Loader(photo_pack, batch_size=8, augment="mixup:1", dtype="f32")
    images, labels = next(iter(loader))
    assert labels.shape == (8, len(loader.dataset.classes)) and labels.dtype == np.float32
    np.testing.assert_allclose(labels.sum(1), 1, rtol=1e-5)


def test_mixed_labels_have_the_classes_of_all_packs(tmp_path):
    for name, n_classes in (("few", 2), ("many", 5)):
        arrays = {"image": np.zeros((20, 8, 8, 3), np.uint8), "label": np.arange(20) % n_classes}
        packds.from_dataset(arrays, tmp_path / name, progress=False)
    packs = [tmp_path / "few", tmp_path / "many"]
    for _, labels in packds.Loader(packs, batch_size=10, augment="mixup:1", dtype="f32"):
        assert labels.shape == (10, 5)
        np.testing.assert_allclose(labels.sum(1), 1, rtol=1e-5)


def test_what_has_no_class_is_not_mixed(tmp_path):
    arrays = {"image": np.zeros((20, 8, 8, 3), np.uint8), "label": np.arange(20) % 3 - 1}
    packds.from_dataset(arrays, tmp_path / "a.pack", progress=False)
    with pytest.raises(packds.OptionError, match="negative class id"):
        next(iter(packds.Loader(tmp_path / "a.pack", batch_size=10, augment="mixup:1", dtype="f32")))


def test_bfloat16_is_its_bits_or_ml_dtypes(photo_pack):
    images, _ = next(iter(packds.Loader(photo_pack, batch_size=2, dtype="bf16")))
    assert images.dtype.itemsize == 2


def test_ranks_share_an_epoch(numbered):
    parts = [packds.Loader(numbered, batch_size=25, rank=(rank, 4), seed=9) for rank in range(4)]
    whole = labels_of(packds.Loader(numbered, batch_size=100, rank=None, seed=9))
    for step, batches in enumerate(zip(*map(labels_of, parts))):
        assert sorted(sum(batches, [])) == sorted(whole[step])


def test_ranks_are_those_of_the_environment(numbered, monkeypatch):
    monkeypatch.setenv("RANK", "2")
    monkeypatch.setenv("WORLD_SIZE", "4")
    loader = packds.Loader(numbered, batch_size=25)
    assert (loader.rank, loader.world) == (2, 4)
    assert packds.Loader(numbered, batch_size=25, rank=None).world == 1
    monkeypatch.setenv("RANK", "x")
    with pytest.raises(packds.OptionError, match="RANK"):
        packds.Loader(numbered)


def test_a_loader_made_before_the_process_group_is_refused(numbered, monkeypatch):
    def group(rank, world):
        said = {"is_available": True, "is_initialized": True, "get_rank": rank, "get_world_size": world}
        functions = {name: lambda value=value: value for name, value in said.items()}
        monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(distributed=types.SimpleNamespace(**functions)))

    alone, told = packds.Loader(numbered), packds.Loader(numbered, rank=(0, 1))
    group(1, 2)
    with pytest.raises(packds.OptionError, match="rank 1 of 2.* rank 0 of 1") as raised:
        next(iter(alone))
    assert "init_process_group" in raised.value.hint
    assert len(labels_of(told)) == len(told)
    assert len(labels_of(packds.Loader(numbered))) == 15


@pytest.mark.filterwarnings("ignore:weights. their sum 10")
def test_subsets_weights_and_balance_choose_samples(numbered, photo_pack):
    seen = sum(labels_of(packds.Loader(numbered, batch_size=5, samples=np.arange(1000) < 20)), [])
    assert sorted(seen) == sorted(packds.open(numbered).labels[:20].tolist())
    weights = np.zeros(1000)
    weights[7] = 10
    seen = sum(labels_of(packds.Loader(numbered, batch_size=5, weights=weights)), [])
    assert seen == [packds.open(numbered).labels[7]] * 10
    assert labels_of(packds.Loader(photo_pack, batch_size=8, balance="label"))
    with pytest.raises(packds.OptionError, match="use only one of them"):
        packds.Loader(numbered, samples=[1], weights=np.ones(1000))


def test_repeated_samples_are_refused(numbered):
    for samples in ([7, 3, 7], np.array([1, 2, -999]), [0, 0]):
        with pytest.raises(packds.OptionError, match=r"sample (7|1|0) appears again at index [12]\n.*weights="):
            packds.Loader(numbered, batch_size=1, samples=samples)


def test_unsorted_samples_are_a_set_of_a_random_order_and_refused_with_a_fixed_one(numbered):
    seen = labels_of(packds.Loader(numbered, batch_size=1, samples=[5, 3, 1], order="random"))
    ds = packds.open(numbered)
    assert sorted(label for (label,) in seen) == sorted(ds[[1, 3, 5]]["label"].tolist())
    for samples in ([5, 3, 1], slice(9, 0, -1)):
        with pytest.raises(packds.OptionError, match="found [38] after [59]\n.*sort them; .*order= sets the order"):
            packds.Loader(numbered, batch_size=1, samples=samples, order="sequential")
    loader = packds.Loader(numbered, batch_size=3, samples=[1, 3, 5], order="sequential")
    assert labels_of(loader) == [ds[[1, 3, 5]]["label"].tolist()]


@pytest.mark.parametrize("samples", [[1000], [1.5], "all", object()])
def test_samples_that_are_none_are_refused(numbered, samples):
    with pytest.raises(packds.OptionError, match="samples: "):
        packds.Loader(numbered, samples=samples)


def test_packs_of_other_classes_are_not_mixed(tmp_path):
    sets = {"a": ["cat", "dog"], "b": ["cat", "bird"], "c": [0, 1]}
    for name, labels in sets.items():
        samples = [(image_of(number), labels[number % 2]) for number in range(8)]
        packds.from_dataset(samples, tmp_path / f"{name}.pack", progress=False)
    a, b, c = (tmp_path / f"{name}.pack" for name in sets)
    with pytest.raises(packds.OptionError, match="b.pack: field `label`: expected class 0 `cat`.*found class 0 `bird`"):
        packds.Loader([a, b], batch_size=4)
    with pytest.raises(packds.OptionError, match="c.pack: field `label`: .*found no class names.*\n.*classes="):
        packds.Loader([a, c], batch_size=4)
    assert len(packds.Loader([a, b], batch_size=4, fields="image")) == len(packds.Loader([a, a], batch_size=4)) == 4


def test_packs_are_mixed_in_their_proportions(numbered):
    loader = packds.Loader([numbered, numbered], batch_size=40, proportions=[3, 1])
    for batch in loader.batches():
        assert sum(pack == 1 for pack in batch.packs) == 10


def test_a_run_goes_on_where_it_was_stopped(numbered):
    loader = packds.Loader(numbered, batch_size=50, seed=4)
    labels_of(loader)
    expected, states = [], []
    for _, labels in loader:
        expected.append(labels.tolist())
        states.append(loader.state_dict())
    for step in (0, 7, 18):
        again = packds.Loader(numbered, batch_size=50, seed=4, threads=1)
        again.load_state_dict(states[step])
        assert again.epoch == 1
        assert labels_of(again) == expected[step + 1 :]
        assert again.epoch == 2
    # After the last batch comes the next epoch.
    again.load_state_dict(states[19])
    assert again.epoch == 2
    assert labels_of(again) == labels_of(loader)
    assert again.epoch == 3


@pytest.mark.parametrize("order", ["sequential", "random", "chunks", "window"])
def test_a_run_goes_on_with_another_batch_size_and_has_each_sample_once(numbered, order):
    def make(batch_size):
        return packds.Loader(numbered, batch_size=batch_size, order=order, drop_last=False)

    for before, steps, after in [(50, 3, 64), (64, 5, 7), (30, 1, 90), (7, 11, 128)]:
        loader = make(before)
        labels = []
        for step, (_, batch) in enumerate(loader, 1):
            labels += batch.tolist()
            if step == steps:
                break
        again = make(after)
        again.load_state_dict(loader.state_dict())
        labels += sum(labels_of(again), [])
        assert sorted(labels) == list(range(1000)), (before, steps, after)


def test_a_run_goes_on_after_a_loop_that_was_left(numbered):
    loader = packds.Loader(numbered, batch_size=50)
    whole = labels_of(packds.Loader(numbered, batch_size=50))
    for step, _ in enumerate(loader):
        if step == 4:
            break
    state = loader.state_dict()
    again = packds.Loader(numbered, batch_size=50)
    again.load_state_dict(state)
    assert labels_of(again) == whole[5:]
    # Without the state, the next iteration yields the next epoch.
    assert loader.epoch == 1


def test_a_state_between_epochs_is_the_next_epochs_start(numbered):
    loader = packds.Loader(numbered, batch_size=50)
    labels_of(loader)
    state = loader.state_dict()
    expected = labels_of(loader)
    again = packds.Loader(numbered, batch_size=50)
    again.load_state_dict(state)
    assert labels_of(again) == expected


def test_mixtures_go_on_too(numbered):
    make = lambda: packds.Loader([numbered, numbered], batch_size=40, proportions=[1, 1])
    loader = make()
    iteration = iter(loader)
    for _ in range(3):
        next(iteration)
    state = loader.state_dict()
    expected = [labels.tolist() for _, labels in iteration]
    again = make()
    again.load_state_dict(state)
    assert labels_of(again) == expected


def test_a_forked_child_goes_on_with_the_order_of_a_state(numbered):
    saved = packds.Loader(numbered, batch_size=50, order="chunks")
    next(iter(saved))
    state = saved.state_dict()
    expected = labels_of(packds.Loader(numbered, batch_size=50, order="chunks"))[1:]
    again = packds.Loader(numbered, batch_size=50)
    again.load_state_dict(state)
    assert holds_in_a_fork(lambda: labels_of(again) == expected)
    assert labels_of(again) == expected


@pytest.mark.parametrize("change", [{"seed": 1}, {"order": "chunks"}, {"samples": [1, 2, 3, 4, 5]}])
def test_the_state_of_another_run_is_refused(numbered, change):
    state = packds.Loader(numbered, batch_size=5, order="random").state_dict()
    other = packds.Loader(numbered, **{"batch_size": 5, "order": "random", **change})
    with pytest.raises(packds.OptionError):
        other.load_state_dict(state)
    with pytest.raises(packds.OptionError, match="version"):
        other.load_state_dict({})


def test_leaving_a_loop_ends_the_threads(numbered):
    for _ in packds.Loader(numbered, batch_size=5):
        break
    assert no_threads_are_left()


def test_an_exception_in_the_loop_reaches_the_caller_and_ends_the_threads(numbered):
    loader = packds.Loader(numbered, batch_size=5)
    with pytest.raises(ZeroDivisionError):
        for _ in loader:
            1 / 0
    gc.collect()
    assert no_threads_are_left()
    assert len(labels_of(loader)) == 200


def test_a_new_iteration_closes_the_one_before(numbered):
    loader = packds.Loader(numbered, batch_size=5)
    before = iter(loader)
    next(before)
    assert len(labels_of(loader)) == 200
    with pytest.raises(packds.OptionError, match="closed"):
        next(before)


def test_an_iteration_that_is_over_stays_over(numbered):
    iteration = iter(packds.Loader(numbered, batch_size=500))
    assert len(list(iteration)) == 2
    assert list(iteration) == [] and no_threads_are_left()


def test_a_with_block_ends_the_threads(numbered):
    with packds.Loader(numbered, batch_size=5) as loader:
        iteration = iter(loader)
        next(iteration)
    assert no_threads_are_left()


@pytest.mark.parametrize("order", ["loader first", "iteration first", "arrays first"])
def test_things_may_be_dropped_in_any_order(numbered, order):
    loader = packds.Loader(numbered, batch_size=5)
    iteration = iter(loader)
    arrays = next(iteration)
    names = {"loader first": "lia", "iteration first": "ial", "arrays first": "ail"}[order]
    things = {"l": loader, "i": iteration, "a": arrays}
    del loader, iteration, arrays
    for name in names:
        del things[name]
    gc.collect()
    assert no_threads_are_left()


def test_threads_may_take_batches_side_by_side(numbered):
    iteration = iter(packds.Loader(numbered, batch_size=5))
    seen = []

    def take():
        for _, labels in iteration:
            seen.extend(labels.tolist())

    workers = [threading.Thread(target=take) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert sorted(seen) == list(range(1000))


def test_threads_begin_an_iteration_once(numbered):
    for _ in range(20):
        iteration = iter(packds.Loader(numbered, batch_size=50))
        together, seen = threading.Barrier(4), []

        def take():
            together.wait()
            seen.extend(labels.tolist() for _, labels in iteration)

        workers = [threading.Thread(target=take) for _ in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert len(seen) == 20


def test_threads_may_hold_every_batch(numbered):
    iteration = iter(packds.Loader(numbered, batch_size=5, slots=2))
    kept = []

    def take():
        for batch in iteration:
            kept.append(batch)

    workers = [threading.Thread(target=take) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(kept) == 200
    for images, labels in kept:
        np.testing.assert_array_equal(images[2], image_of(labels[2]))


def test_a_forked_child_makes_its_own_threads(numbered):
    loader = packds.Loader(numbered, batch_size=50)
    expected = labels_of(loader)
    loader.set_epoch(0)
    assert holds_in_a_fork(lambda: labels_of(loader) == expected)


def test_an_iteration_does_not_go_on_in_a_forked_child(numbered):
    iteration = iter(packds.Loader(numbered, batch_size=50))
    next(iteration)

    def is_refused() -> bool:
        with pytest.raises(packds.Error, match="fork"):
            next(iteration)
        return True

    assert holds_in_a_fork(is_refused)
    assert len(list(iteration)) == 19


def test_ctrl_c_ends_a_wait_for_a_batch(file_pack):
    script = textwrap.dedent(
        """
        import sys, packds
        # Deliberately slow: the first batch takes far longer than this test's limit.
        loader = packds.Loader(sys.argv[1], batch_size=24, augment="rrc1500,blur:51/9-9/1", threads=2, slots=2)
        try:
            print("ready", flush=True)
            next(iter(loader))
            print("a batch", flush=True)
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        """
    )
    with subprocess.Popen([sys.executable, "-c", script, file_pack], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "interrupted\n"
        assert process.wait(60) == 0


@pytest.mark.parametrize("output", ["numpy", "torch"])
def test_memory_does_not_grow_in_a_hundred_thousand_batches(numbered, request, output):
    if output == "torch":
        request.getfixturevalue("torch")

    def resident() -> int:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    # Some epochs are consumed completely, others end early.
    loader = packds.Loader(numbered, batch_size=1, slots=8, threads=1, output=output)
    n_batches, before = 0, 0
    while n_batches < 100_000:
        for _ in loader:
            n_batches += 1
            if n_batches % 1000 == 10:
                break
        if n_batches >= 5000:
            before = before or resident()
    assert resident() - before < 4 << 20


def test_what_cannot_be_is_said(numbered, file_pack):
    for options, said in [
        ({"order": "sorted"}, "order"),
        ({"order": "random", "window": 3}, "window"),
        ({"layout": "nchw"}, "layout"),
        ({"layout": "channels_last"}, "torch"),
        ({"dtype": "complex64"}, "complex64"),
        ({"dtype": "i32"}, "i32"),
        ({"augment": "spin"}, "spin"),
        ({"normalize": "mean"}, "normalize"),
        ({"output": "tf"}, "output"),
        ({"device": "cuda"}, "torch"),
        ({"fields": ["nothing"]}, "nothing"),
        ({"memory": "lots"}, "memory"),
        ({"memory": 10}, "memory"),
        ({"threads": 0}, "threads"),
        ({"threads": "many"}, "threads"),
        ({"threads": 100_000}, "threads: expected at most 1024, found 100000"),
        ({"proportions": [0]}, "proportion"),
        ({"proportions": [float("nan")]}, "proportion"),
        ({"proportions": [1, 1]}, "each of 1 packs, found 2"),
        ({"access": "fast"}, "access"),
        ({"checksums": "never"}, "checksums"),
        ({"bad_samples": "keep"}, "bad_samples"),
        ({"rank": (4, 4)}, "rank"),
        ({"rank": "all"}, "rank"),
        ({"batch_size": 0}, "batch"),
        ({"batch_size": -1}, "batch_size"),
        ({"batch_size": 2.5}, "batch_size"),
        ({"batch_size": 1001}, "drop_last=False"),
        ({"seed": -1}, "seed"),
        ({"epoch": -1}, "epoch"),
        ({"epoch": 1 << 32}, "epoch"),
        ({"window": -1}, "window"),
        ({"threads": -1}, "threads"),
        ({"slots": 1.5}, "slots"),
        ({"memory": -1}, "memory"),
        ({"rank": (-1, 2)}, "rank"),
        ({"samples": [10**9]}, "1000000000"),
        ({"weights": [1.0]}, "weight"),
    ]:
        with pytest.raises((packds.OptionError, IndexError), match=said):
            packds.Loader(numbered, **options)
    with pytest.raises(packds.OptionError, match="size"):
        packds.Loader(file_pack, augment="flip")
    with pytest.raises(packds.OptionError, match="drop_last"):
        packds.Loader([numbered, numbered], drop_last=False)
    with pytest.raises(packds.OptionError, match="each of 2 packs, found 0"):
        packds.Loader([numbered, numbered], proportions=[])
    with pytest.raises(packds.OptionError, match="epoch"):
        packds.Loader(numbered).set_epoch(-1)


def test_a_loader_tells_what_it_did(numbered):
    loader = packds.Loader(numbered, batch_size=50)
    labels_of(loader)
    stats = loader.stats()
    assert (stats["batches"], stats["samples"]) == (20, 1000)
    assert loader.notices() and "--" not in " ".join(loader.notices())
    assert loader.access[0] in ("mapped", "direct")
    assert loader.shuffle_report()["order"] == "random"
    assert "20 batches of 50" in repr(loader)


def test_a_loader_tells_what_it_tuned(numbered):
    loader = packds.Loader(numbered, batch_size=50)
    [first] = loader.tuning()
    assert first["batches"] == 0 and first["threads"] >= 1 and first["prefetch"] == 2
    assert "threads are tuned" in first["why"]
    stats = loader.stats()
    assert (stats["threads"], stats["prefetch"]) == (first["threads"], 2)

    # 800 batches. Training is slower than loading, so each batch is ready when it is requested.
    loader = packds.Loader(numbered, batch_size=10)
    for _ in range(8):
        for _ in loader:
            time.sleep(0.001)
    last = loader.tuning()[-1]
    stats = loader.stats()
    assert (stats["threads"], stats["prefetch"]) == (last["threads"], last["prefetch"])
    for_one = packds.Loader(numbered, batch_size=10, epoch=8, threads=1, prefetch=1)
    assert labels_of(loader) == labels_of(for_one)
    assert len(for_one.tuning()) == 1 and "fixed" in for_one.tuning()[0]["why"]


def test_a_loader_is_not_pickled(numbered):
    import pickle

    with pytest.raises(TypeError, match="each process"):
        pickle.dumps(packds.Loader(numbered))
