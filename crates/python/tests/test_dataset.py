"""Inspecting packs."""

import contextlib
import multiprocessing
import os
import pathlib
import pickle
import shutil
import signal
import threading
import time

import numpy as np
import pytest

import packds
from conftest import image_of


def test_a_sample_is_a_dict_of_its_fields(numbered):
    ds = packds.open(numbered)
    sample = ds[17]
    assert list(sample) == ["image", "label"]
    assert type(sample["label"]) is int
    np.testing.assert_array_equal(sample["image"], image_of(sample["label"]))


def test_single_numbers_of_every_type_are_pythons(tmp_path):
    schema = {"image": "image", "a": "bf16", "b": "f32", "c": "u8", "d": "bool"}
    with packds.write(tmp_path / "a.pack", schema, keep_order=True) as writer:
        for a in (-2.5, 3.140625, float("inf"), 1e-40):
            writer.add(image=image_of(1), a=a, b=0.5, c=7, d=True)
    samples = list(packds.open(tmp_path / "a.pack"))
    assert [sample["a"] for sample in samples] == [-2.5, 3.140625, float("inf"), pytest.approx(1e-40, rel=0.01)]
    assert [type(samples[0][name]) for name in "abcd"] == [float, float, int, bool]


def test_negative_indices_count_from_the_end(numbered):
    ds = packds.open(numbered)
    assert ds[-1]["label"] == ds[len(ds) - 1]["label"]


def test_a_data_set_offers_nothing_that_compares_samples(numbered):
    ds = packds.open(numbered)
    with pytest.raises(TypeError, match="not a container"):
        3 in ds
    assert not hasattr(ds, "index") and not hasattr(ds, "count")
    # Everything that needs only indices and a length works.
    assert next(reversed(ds))["label"] == ds[-1]["label"]
    assert next(iter(ds))["label"] == ds[0]["label"]


class Three:
    """A number like those of PyTorch, which only has `__index__`."""

    ndim = 0

    def __index__(self):
        return 3


@pytest.mark.parametrize("index", [np.int64(3), np.array(3), Three()], ids=["scalar", "array", "other"])
def test_other_libraries_numbers_are_indices_too(numbered, index):
    ds = packds.open(numbered)
    assert ds[index]["label"] == ds[3]["label"]


@pytest.mark.parametrize("index", [1000, -1001])
def test_a_sample_that_is_not_there_is_an_index_error(numbered, index):
    with pytest.raises(IndexError, match="the pack has 1000"):
        packds.open(numbered)[index]


@pytest.mark.parametrize(
    "index",
    [[3, 5, 8], [-1, 0], slice(10, 40, 7), slice(None, None, -300), np.array([7, 7]), np.arange(1000) % 300 == 0, []],
    ids=str,
)
def test_several_samples_are_those_that_numpy_would_choose(numbered, index):
    ds = packds.open(numbered)
    chosen = ds[index]
    expected = ds.labels[index if not isinstance(index, list) else np.array(index, int)]
    np.testing.assert_array_equal(chosen["label"], expected)
    assert chosen["image"].shape == (len(expected), 8, 8, 3)
    for image, label in zip(chosen["image"], expected):
        np.testing.assert_array_equal(image, image_of(label))


@pytest.mark.parametrize("index", [1.5, "a", [[1, 2]], [0.5]])
def test_what_is_no_index_is_refused(numbered, index):
    with pytest.raises((TypeError, ValueError)):
        packds.open(numbered)[index]


def test_a_mask_of_the_wrong_length_is_refused(numbered):
    with pytest.raises(IndexError, match="1000"):
        packds.open(numbered)[np.ones(3, bool)]


def test_samples_are_copies_that_may_be_written(numbered):
    ds = packds.open(numbered)
    image = ds[0]["image"]
    image[:] = 0
    assert ds[0]["image"].any()


def test_columns_are_not_copied_and_cannot_be_written(numbered):
    ds = packds.open(numbered)
    labels = ds.columns["label"]
    assert labels is ds.columns["label"]
    assert labels.__array_interface__["data"][0] == ds.labels.__array_interface__["data"][0]
    assert not labels.flags.writeable
    with pytest.raises(ValueError):
        labels[0] = 1


def test_columns_outlive_their_data_set(numbered):
    labels = packds.open(numbered).labels
    assert sorted(labels.tolist()) == list(range(1000))


@pytest.mark.parametrize("as_lists", [False, True])
def test_labels_and_columns_of_a_file_that_changed_are_an_error_each_time(as_lists, tmp_path):
    path = tmp_path / "a.pack"
    name = "labels" if as_lists else "label"
    with packds.write(path, {"image": "image", name: name}) as writer:
        for number in range(100):
            writer.add(image=np.zeros((40, 40, 3), np.uint8), **{name: [number % 9] if as_lists else number % 9})
    ds = packds.open(path)
    assert ds.labels.shape[0] == len(ds.columns[name]) == 100
    place = next(column["offset"] for column in ds.info()["columns"] if column["name"] == name)
    with open(path, "r+b") as file:
        file.seek(place)
        file.write(bytes([1] * 20))
    os.utime(path, ns=(1, 1))
    for change, told in ((lambda: None, "changed after it was opened"), (lambda: os.truncate(path, place), "changed while it was read")):
        change()
        for look in (lambda: ds.labels, lambda: ds.columns[name], lambda: ds.labels[:5], lambda: ds.labels[-3:]):
            with pytest.raises(packds.ReadError, match=told):
                look()


def test_a_column_that_is_not_there_names_those_that_are(numbered):
    with pytest.raises(KeyError, match="label"):
        packds.open(numbered).columns["nothing"]


def test_encoded_images_are_decoded_and_their_files_are_at_hand(file_pack, photos):
    from PIL import Image

    ds = packds.open(file_pack)
    for index in range(0, len(ds), 5):
        path = photos / ds.source_path(index)
        assert ds.raw(index) == path.read_bytes()
        with Image.open(path) as image:
            np.testing.assert_array_equal(ds[index]["image"], np.asarray(image.convert("RGB")))


def test_images_of_several_sizes_are_a_list(file_pack):
    images = packds.open(file_pack)[:8]["image"]
    assert isinstance(images, list) and len({image.shape for image in images}) > 1


def test_classes_and_statistics_are_those_of_the_footer(photo_pack, photos):
    ds = packds.open(photo_pack)
    assert ds.classes == sorted(path.name for path in photos.iterdir() if path.is_dir())
    assert len(ds.stats["fields"]["image"]["mean"]) == 3
    assert ds.info()["n_samples"] == len(ds)


def test_representations_name_fields_and_escape_names(tmp_path):
    path = tmp_path / "<b>.pack"
    with packds.write(path, {"image": "image", "caption": "text"}) as writer:
        writer.add(image=image_of(1), caption="x")
    ds = packds.open(path)
    assert "1 sample," in repr(ds) and "caption: text" in repr(ds)
    shown = ds._repr_html_()
    assert "data:image/png;base64," in shown
    assert "alt='#0'" in shown
    assert "<title>values of image, 0 to 255</title><rect" in shown
    assert "<b>" not in shown


def test_pictures_have_classes_masks_and_a_mark(photo_pack, tmp_path):
    ds = packds.open(photo_pack)
    shown = ds._repr_html_()
    first = ds.classes[0]
    assert f"alt='#0 {ds.classes[ds.labels[0]]}'" in shown
    assert f"<title>{first}: {np.count_nonzero(ds.labels == 0)}</title>" in shown
    assert f"samples of each label: {first} " in shown
    path = tmp_path / "masks.pack"
    with packds.write(path, {"image": "image", "mask": "mask"}) as writer:
        writer.add(image=image_of(1), mask=np.zeros((8, 8), np.uint8))
    assert packds.open(path)._repr_html_().count("<img") == 2


def test_a_flipped_bit_is_named_with_its_sample(numbered, tmp_path):
    path = tmp_path / "bad.pack"
    shutil.copy(numbered, path)
    offset = packds.open(path).info()["data_offset"] + 5 * 192 + 7
    with open(path, "r+b") as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ 1]))
    ds = packds.open(path)
    with pytest.raises(packds.FormatError, match="sample 5") as raised:
        ds[5]
    assert "verify" in raised.value.hint
    assert ds[4]["image"].shape == (8, 8, 3)
    assert packds.open(path, checksums="off")[5]["image"].shape == (8, 8, 3)
    report = ds.verify()
    assert not report["ok"] and report["bad_samples"][0]["sample"] == 5


def test_sizes_that_no_memory_has_are_damage(photos, tmp_path):
    path = tmp_path / "a.pack"
    packds.convert(photos, path, resize="short:64", progress=False)
    ds = packds.open(path)
    sides = {field.role: ds.columns[field.name] for field in ds.fields.values() if field.role in ("height", "width", "channels")}
    assert len(sides) == 3
    address = {role: side.__array_interface__["data"][0] for role, side in sides.items()}
    content = bytearray(path.read_bytes())
    first = content.index(sides["height"].tobytes()) - address["height"]
    for role, side in sides.items():
        start = first + address[role]
        content[start : start + side.nbytes] = b"\xff" * side.nbytes
    path.with_name("b.pack").write_bytes(content)
    with pytest.raises(packds.FormatError, match="sample 0"):
        packds.open(path.with_name("b.pack"), checksums="off")[0]


def test_a_whole_pack_verifies(numbered):
    assert packds.open(numbered).verify(jobs=2)["ok"]


def works_in_the_background() -> bool:
    """Whether this process runs a worker thread for Python."""
    for task in pathlib.Path("/proc/self/task").iterdir():
        # A thread may end during the check.
        with contextlib.suppress(OSError):
            if (task / "comm").read_text() == "packds-work\n":
                return True
    return False


def test_ctrl_c_ends_a_verification(tmp_path):
    path = tmp_path / "a.pack"
    images = np.full((20_000, 4, 4, 3), 7, np.uint8)
    packds.from_dataset({"image": images}, path, progress=False)
    # A damaged file takes longest, because every sample is described.
    content = path.read_bytes()
    path.with_name("b.pack").write_bytes(content.replace(images[:1000].tobytes(), bytes(images[:1000].nbytes)))
    ds = packds.open(path.with_name("b.pack"))
    timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        ds.verify(jobs=1)
    # The call was interrupted before its work was finished.
    assert works_in_the_background()
    timer.join()
    while works_in_the_background():
        time.sleep(0.01)


def test_missing_and_foreign_files_are_different_errors(tmp_path):
    with pytest.raises(packds.ReadError, match="cannot open") as raised:
        packds.open(tmp_path / "missing.pack")
    assert isinstance(raised.value, OSError)
    foreign = tmp_path / "foreign.pack"
    foreign.write_bytes(b"x" * 10_000)
    with pytest.raises(packds.FormatError, match="foreign.pack"):
        packds.open(foreign)


def test_a_pickled_data_set_is_opened_again(numbered):
    ds = packds.open(numbered)
    again = pickle.loads(pickle.dumps(ds))
    np.testing.assert_array_equal(again[3]["image"], ds[3]["image"])


def test_a_pickled_data_set_does_not_open_another_file(numbered, photo_pack, tmp_path):
    path = tmp_path / "a.pack"
    shutil.copy(numbered, path)
    pickled = pickle.dumps(packds.open(path))
    shutil.copy(photo_pack, tmp_path / "b.pack")
    os.replace(tmp_path / "b.pack", path)
    with pytest.raises(packds.ReadError, match="expected the pack"):
        pickle.loads(pickled)


def _label_sum(ds, queue):
    queue.put(sum(ds[index]["label"] for index in range(100)))


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_data_set_goes_to_other_processes(numbered, method):
    ds = packds.open(numbered)
    context = multiprocessing.get_context(method)
    queue = context.Queue()
    process = context.Process(target=_label_sum, args=(ds, queue))
    process.start()
    assert queue.get(timeout=60) == int(ds.labels[:100].sum())
    process.join()


def test_threads_may_share_a_data_set(file_pack):
    from concurrent.futures import ThreadPoolExecutor

    ds = packds.open(file_pack)
    with ThreadPoolExecutor(8) as pool:
        sums = list(pool.map(lambda index: int(ds[index % 8]["image"].sum()), range(64)))
    assert sums == sums[:8] * 8


def test_names_of_classes_have_their_ids(photo_pack, numbered):
    ds = packds.open(photo_pack)
    assert ds.class_to_idx == {name: number for number, name in enumerate(ds.classes)} != {}
    assert packds.open(numbered).class_to_idx == {}


def test_a_pack_without_labels_says_what_it_has(tmp_path):
    packds.from_dataset({"image": [image_of(1)], "number": [0.5]}, tmp_path / "a.pack", progress=False)
    with pytest.raises(packds.OptionError, match="no labels that are class ids; its fields are image, number"):
        packds.open(tmp_path / "a.pack").labels


def test_histograms_come_when_they_are_asked_for(photo_pack, numbered):
    ds = packds.open(photo_pack)
    assert set(ds.stats["fields"]["image"]) == {"n_pixels", "mean", "std", "min", "max"}
    counts = ds.histogram()
    assert counts.shape == (3, 256) and counts.dtype == np.int64
    pixels = ds[:]["image"].reshape(-1, 3)
    for channel in range(3):
        np.testing.assert_array_equal(counts[channel], np.bincount(pixels[:, channel], minlength=256))
    np.testing.assert_array_equal(ds.histogram("image"), counts)
    with pytest.raises(packds.OptionError, match="there is no histogram of field 'label'"):
        ds.histogram("label")
