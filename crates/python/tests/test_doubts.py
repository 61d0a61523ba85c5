"""Options that cost accuracy cause one warning."""

import warnings

import numpy as np
import pytest

import packds
from conftest import image_of


@pytest.fixture(scope="session")
def sorted_pack(tmp_path_factory):
    """256 images in chunks of 16, class by class."""
    path = tmp_path_factory.mktemp("packs") / "sorted.pack"
    with packds.write(path, {"image": "image", "label": "label"}, chunk=16) as writer:
        for number in range(256):
            writer.add(image=image_of(number), label=number // 32)
    # The writer shuffles, so its output is sorted again, without warnings.
    ds, path = packds.open(path), path.with_name("again.pack")
    order = np.argsort(ds.labels, kind="stable")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        packds.from_dataset([ds[int(i)] for i in order], path, keep_order=True, chunk=16, progress=False)
    return path


def said(make) -> list:
    """The texts of the warnings that `make` causes. Each must point to this file."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        make()
    assert all(one.filename == __file__ and one.category is UserWarning for one in caught)
    return [str(one.message) for one in caught]


def test_chunks_of_a_sorted_pack_are_a_warning_that_says_what_to_do(sorted_pack):
    [text] = said(lambda: packds.Loader(sorted_pack, 16, order="chunks"))
    assert "order 'chunks' is harmful for this pack: the file is sorted by `label`" in text
    assert "use a window of" in text


def test_orders_that_mix_enough_and_the_files_own_are_no_warning(sorted_pack, numbered):
    for order in ("random", "sequential"):
        assert said(lambda order=order: packds.Loader(sorted_pack, 16, order=order)) == []
    for order in ("auto", "random", "window", "chunks", "sequential"):
        assert said(lambda order=order: packds.Loader(numbered, 50, order=order)) == []


def test_samples_that_no_epoch_has_are_a_warning(numbered):
    [text] = said(lambda: packds.Loader(numbered, 64, order="sequential", drop_last=True))
    assert text == "every epoch leaves out the same 40 samples: to include them, use drop_last=False"


def test_in_the_order_sequential_every_sample_comes_unless_said_otherwise(numbered):
    labels = [labels.tolist() for _, labels in packds.Loader(numbered, 64, order="sequential")]
    assert [len(batch) for batch in labels] == [64] * 15 + [40]
    assert sum(labels, []) == packds.open(numbered).labels.tolist()
    assert len(packds.Loader(numbered, 2000, order="sequential")) == 1
    with pytest.raises(packds.OptionError, match="drop_last"):
        packds.Loader(numbered, 2000, order="sequential", drop_last=True)


def test_a_mixture_in_the_order_sequential_still_drops(numbered):
    assert len(packds.Loader([numbered, numbered], 40, order="sequential")) == 50


def test_going_on_and_iterating_warn_no_second_time(sorted_pack):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loader = packds.Loader(sorted_pack, 16, order="chunks")
    state = loader.state_dict()
    assert said(lambda: (loader.load_state_dict(state), list(loader))) == []


def test_keeping_the_order_of_a_sorted_source_is_a_warning(photos, tmp_path):
    options = {"resize": "short:72", "crop": 64, "chunk": 4, "progress": False}
    [text] = said(lambda: packds.convert(photos, tmp_path / "a.pack", keep_order=True, **options))
    assert "the samples keep the order of the source, which is sorted by class (icc" in text
    assert "without keep_order, the samples are shuffled" in text
    assert said(lambda: packds.convert(photos, tmp_path / "b.pack", **options)) == []
    # A single chunk is read as a whole.
    assert said(lambda: packds.convert(photos, tmp_path / "c.pack", keep_order=True, **{**options, "chunk": 1024})) == []


def test_weights_that_make_an_epoch_much_shorter_or_longer_are_a_warning_with_the_way_to_scale(numbered):
    [text] = said(lambda: packds.Loader(numbered, 5, weights=np.full(1000, 0.01)))
    assert text == (
        "weights: their sum 10 is the number of samples in an epoch; the pack has 1000: "
        "weights * 1000 / weights.sum() gives epochs of 1000"
    )
    assert len(said(lambda: packds.Loader(numbered, 5, weights=np.full(1000, 5.0)))) == 1
    assert said(lambda: packds.Loader(numbered, 5, weights=np.linspace(0.5, 1.5, 1000))) == []


def test_weights_divided_by_their_sum_are_an_error_that_says_so(numbered):
    weights = np.linspace(1, 9, 1000)
    with pytest.raises(packds.OptionError, match=r"sum 1 \(as if they were divided by their sum\).*\n.*weights . 1000 / weights.sum"):
        packds.Loader(numbered, 5, weights=weights / weights.sum())


@pytest.mark.parametrize("weight", [np.inf, np.nan])
def test_weights_that_are_no_numbers_are_an_error_and_no_warning(numbered, weight):
    weights = np.ones(1000)
    weights[7] = weight

    def refused():
        with pytest.raises(packds.OptionError, match="weight"):
            packds.Loader(numbered, 5, weights=weights)

    assert said(refused) == []


def test_classes_of_some_samples_come_equally_often(tmp_path):
    arrays = {"image": np.zeros((100, 8, 8, 3), np.uint8), "label": np.repeat([0, 1], [90, 10])}
    packds.from_dataset(arrays, tmp_path / "a.pack", progress=False)
    ds = packds.open(tmp_path / "a.pack")
    # 30 of one class, 10 of the other.
    chosen = np.concatenate([np.flatnonzero(ds.labels == 0)[:30], np.flatnonzero(ds.labels == 1)])
    loader = packds.Loader(ds, 10, samples=np.sort(chosen), balance="label", drop_last=False)
    ids, labels = [], []
    for _ in range(40):
        for batch in loader.batches():
            ids += batch.ids.tolist()
            labels += batch["label"].tolist()
    assert set(ids) == set(chosen.tolist())
    assert np.mean(labels) == pytest.approx(0.5, abs=0.05)
    assert len(labels) / 40 == pytest.approx(40, rel=0.1)
    assert len(loader.dataset) == 40


def test_fields_that_only_a_later_pack_of_a_mixture_has_are_told(tmp_path):
    for name, more in (("a", {}), ("b", {"extra": ("f32", (None,))})):
        with packds.write(tmp_path / f"{name}.pack", {"image": "image", "boxes": "boxes", **more}) as writer:
            for number in range(32):
                writer.add(image=image_of(number), boxes=[], **dict.fromkeys(more, []))
    packs = [tmp_path / "a.pack", tmp_path / "b.pack"]
    with pytest.warns(UserWarning, match=r"b\.pack: `extra` will not be loaded, because the first pack has no such field"):
        packds.Loader(packs, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        packds.Loader(packs, 4, fields=["image", "boxes"], order="random")
