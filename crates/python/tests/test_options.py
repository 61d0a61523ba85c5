"""Options with a wrong type or value are errors of packds that name them, before anything is done."""

import inspect
import pathlib

import numpy as np
import pytest

import packds
from conftest import image_of

# Values that are wrong for most options. An option may accept some of them.
WRONG = [object(), True, 1.5, float("nan"), -2, 3, 10**30, "xyz", "", b"x", [1, "a"], (1, 2), {}, {"a": 1}, len, None, "a\0b"]
WRONG += [np.zeros(3), np.float32(1.5), ["\0"]]
IMAGE = image_of(1)


def loads(name, value, folder):
    options = {"data": folder / "a.pack", "batch_size": 4, "rank": None, name: value}
    with packds.Loader(**options) as loader:
        next(iter(loader))


def converts(name, value, folder):
    options = {"src": folder / "images", "dst": folder / "b.pack", "force": True, "progress": False, name: value}
    packds.convert(**options)


def exports(name, value, folder):
    options = {"pack": folder / "a.pack", "dst": folder / "b.npz", "force": True, "progress": False, name: value}
    packds.export(**options)


def takes(name, value, folder):
    packds.subset(**{"pack": folder / "a.pack", "dst": folder / "b.pack", "force": True, "progress": False, name: value})


def splits(name, value, folder):
    options = {"pack": folder / "a.pack", "dst": folder / "b.pack", "ratio": "0.5,0.5", "force": True, "progress": False}
    packds.split(**options | {name: value})


def merges(name, value, folder):
    packds.merge(**{"packs": [folder / "a.pack"], "dst": folder / "b.pack", "force": True, "progress": False, name: value})


def reorders(name, value, folder):
    packds.reorder(**{"pack": folder / "a.pack", "dst": folder / "b.pack", "force": True, "progress": False, name: value})


def relabels(name, value, folder):
    options = {"pack": folder / "a.pack", "dst": folder / "b.pack", "force": True, "progress": False}
    packds.relabel(**options | {name: value})


def drops(name, value, folder):
    options = {"pack": folder / "a.pack", "dst": folder / "b.pack", "fields": "source_id", "force": True, "progress": False}
    packds.drop_field(**options | {name: value})


def adds(name, value, folder):
    np.save(folder / "more.npy", np.zeros(16))
    options = {"pack": folder / "a.pack", "dst": folder / "b.pack", "table": folder / "more.npy", "force": True, "progress": False}
    packds.add_field(**options | {name: value})


def compacts(name, value, folder):
    if not (folder / "s.packs").exists():
        packds.append(folder / "s.packs", folder / "a.pack", progress=False)
    packds.compact(**{"dst": folder / "s.packs", "progress": False, name: value})


def compares(name, value, folder):
    packds.diff(**{"old": folder / "a.pack", "new": folder / "a.pack", "progress": False, name: value})


def writes(name, value, folder):
    options = {"dst": folder / "b.pack", "schema": None, "force": True, name: value}
    with packds.write(**options) as writer:
        writer.add(image=IMAGE, label=1)


def packs(name, value, folder):
    options = {"dataset": [(IMAGE, 1)], "dst": folder / "b.pack", "force": True, "progress": False, name: value}
    packds.from_dataset(**options)


def opens(name, value, folder):
    packds.open(**{"path": folder / "a.pack", name: value})


def loads_state(name, value, folder):
    with packds.Loader(folder / "a.pack", 4, rank=None) as loader:
        loader.load_state_dict(value if name == "all" else {**loader.state_dict(), name: value})


WRITER = "mode raw_fraction quality resize crop filter dtype normalize layout codec chunk batch keep_order seed jobs force".split()
EDITS = [
    (takes, packds.subset),
    (splits, packds.split),
    (merges, packds.merge),
    (reorders, packds.reorder),
    (relabels, packds.relabel),
    (drops, packds.drop_field),
    (compares, packds.diff),
    (adds, packds.add_field),
    (compacts, packds.compact),
]
CASES = [(loads, name) for name in inspect.signature(packds.Loader).parameters]
CASES += [(converts, name) for name in inspect.signature(packds.convert).parameters]
CASES += [(exports, name) for name in inspect.signature(packds.export).parameters]
CASES += [(does, name) for does, of in EDITS for name in inspect.signature(of).parameters]
CASES += [(writes, name) for name in [*WRITER, "dst", "schema", "classes", "progress"]]
CASES += [(packs, name) for name in ["dataset", "dst", "fields", "classes", "progress"]]
CASES += [(opens, name) for name in ["path", "checksums"]]
CASES += [(loads_state, name) for name in ["all", "version", "state"]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory, photos) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("options")
    samples = [(image_of(number), number % 2) for number in range(16)]
    packds.from_dataset(samples, folder / "a.pack", progress=False)
    (folder / "images" / "one").mkdir(parents=True)
    first = next(iter(sorted(photos.glob("*/*.*"))))
    (folder / "images" / "one" / first.name).write_bytes(first.read_bytes())
    return folder


@pytest.mark.parametrize(("does", "name"), CASES, ids=[f"{does.__name__}-{name}" for does, name in CASES])
def test_what_no_option_takes_is_an_error_of_packds(does, name, folder, monkeypatch):
    monkeypatch.chdir(folder)
    for value in WRONG:
        try:
            does(name, value, folder)
        except packds.Error as error:
            assert str(error), repr(value)


# Options, and a part of the error that each causes.
REFUSED = [
    ({"normalize": True}, r"normalize: expected dataset, imagenet or \(mean, std\), found True"),
    ({"normalize": "imagnet"}, "normalize: expected dataset, imagenet"),
    ({"normalize": "stats"}, "hint: .*normalize='dataset'"),
    ({"normalize": (1, 2, 3)}, "normalize: .*found .1, 2, 3."),
    ({"normalize": ([127] * 3, [60] * 3)}, "apply to values in 0..1, found a mean of 127\nhint: divide both by 255"),
    ({"rank": 3}, r"rank: expected 'env', None or \(rank, world\), found 3"),
    ({"rank": (2, 2)}, "rank 2"),
    ({"augment": ["rrc", 24]}, "augment: expected names, found 24"),
    ({"threads": -2}, "threads: .*found -2"),
    ({"dtype": "fp16"}, "dtype: expected u8, f16, bf16 or f32, found 'fp16'"),
    ({"dtype": "int8"}, "dtype: expected u8, f16, bf16 or f32, found 'int8'"),
    ({"dtype": np.float64}, "dtype: expected u8, f16, bf16 or f32, found <class 'numpy.float64'>"),
    ({"dtype": object}, "dtype: expected u8"),
    ({"normalize": "dataset", "augment": "flip,norm:imagenet"}, "normalize: 'norm:imagenet' in augment already sets this\nhint: leave one"),
    ({"dtype": "f16", "augment": ["flip", "f32"]}, "dtype: 'f32' in augment already sets this"),
    ({"layout": "channels_last", "augment": "flip, chw", "output": "torch"}, "layout: 'chw' in augment already sets this"),
    ({"balance": "image"}, "balance: expected one of the columns label, .*found 'image'"),
    ({"balance": "lable"}, "balance: expected one of the columns label, .*found 'lable'"),
    ({"fields": 3}, "fields: expected names, found 3"),
    ({"fields": ["image", 3]}, "fields: expected names, found 3"),
    ({"drop_last": "no"}, "drop_last: expected True or False, found 'no'"),
    ({"memory": 1.5}, "memory: .*found 1.5"),
    ({"weights": np.zeros(16)}, "weights: all are 0"),
    ({"samples": []}, "samples: no sample is selected"),
    ({"samples": np.zeros(16, bool)}, "samples: no sample is selected"),
    ({"weights": "xyz"}, "weights: expected numbers, found 'xyz'"),
    ({"order": True}, "order: expected a string, found True"),
    ({"output": ["torch"]}, "output: expected"),
    ({"data": []}, "data: expected a pack"),
    ({"data": None}, "path: expected a path, found None"),
    ({"device": "gpu"}, "device"),
    ({"device": 0}, "device: expected cpu.*found 0\nhint: pass 'cuda:0'"),
]


@pytest.mark.parametrize(("options", "text"), REFUSED, ids=[str(options) for options, _ in REFUSED])
def test_a_loader_says_which_option_is_wrong_and_what_it_takes(options, text, folder):
    with pytest.raises(packds.OptionError, match=text):
        packds.Loader(**{"data": folder / "a.pack", "batch_size": 4, "rank": None, **options})


@pytest.mark.parametrize("state", [None, 3, {}, {"version": 1}, {"version": 1, "state": 3}, {"version": "1", "state": ""}])
def test_what_is_no_state_is_refused(state, folder):
    with pytest.raises(packds.OptionError), packds.Loader(folder / "a.pack", 4) as loader:
        loader.load_state_dict(state)


def test_one_field_may_be_named_alone(folder):
    batch = next(iter(packds.Loader(folder / "a.pack", 4, fields="image")))
    assert list(batch.keys()) == ["image"]
    assert list(packds.open(folder / "a.pack").sample(0, "label")) == ["label"]


def test_paths_of_images_that_are_missing_are_named(folder, tmp_path):
    with pytest.raises(packds.ConvertError, match="nothing.png: No such file"):
        packds.from_dataset([{"image": "nothing.png"}], tmp_path / "b.pack", {"image": "image"}, progress=False)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("option", "instead"),
    [
        ("shuffle", "order="),
        ("num_workers", "threads="),
        ("transform", "augment="),
        ("pin_memory", "device='cuda'"),
        ("sampler", "samples="),
        ("collate_fn", "MapDataset"),
        ("batchsize", "did you mean batch_size"),
        ("batchSize", "did you mean batch_size"),
        ("bs", "batch_size="),
        ("drop_lst", "did you mean drop_last"),
        ("dropLast", "did you mean drop_last"),
        ("drop_remainder", "drop_last="),
        ("transforms", "for transform, pass augment="),
        ("suffle", "for shuffle, order="),
        ("num_worker", "for num_workers, pass threads="),
        ("mean", "normalize="),
        ("epochs", "iterating again starts the next epoch"),
        ("n_samples", "samples="),
        ("resize", "augment="),
        # No known name is similar.
        *((name, "; the options are batch_size, order, ") for name in ("xyzzy", "mode", "train", "classes", "verbose", "stride")),
    ],
)
def test_options_of_other_loaders_are_told_what_they_are_called_here(folder, option, instead):
    with pytest.raises(TypeError, match=f"^packds.Loader has no option '{option}'.*{instead}"):
        packds.Loader(folder / "a.pack", **{option: 1})


@pytest.mark.parametrize(
    ("function", "option", "instead"),
    [
        (packds.convert, "num_workers", "pass jobs="),
        (packds.convert, "overwrite", "pass force=True"),
        (packds.convert, "qualty", "did you mean quality"),
        (packds.convert, "from", "pass from_format="),
        (packds.convert, "xyzzy", "; the options are mode, raw_fraction, "),
        (packds.export, "format", "pass to="),
        (packds.from_dataset, "shuffle", "keep_order=True"),
        (packds.from_dataset, "class_names", "did you mean classes"),
        (packds.from_dataset, "velocity", "; the options are fields, classes, progress, mode, "),
        (packds.write, "velocity", "; the options are schema, classes, progress, mode, "),
        (packds.Writer, "keeporder", "did you mean keep_order"),
    ],
)
def test_unknown_options_of_functions_are_told_what_was_meant(tmp_path, function, option, instead):
    with pytest.raises(TypeError, match=f"^packds.{function.__name__} has no option '{option}'.*{instead}"):
        function([], tmp_path / "a.pack", **{option: 1})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("bach_size", "a Loader has no attribute 'bach_size': did you mean batch_size?"),
        ("xyzzy", "a Loader has no attribute 'xyzzy';"),
        ("epoch", r"epoch cannot be assigned: call set_epoch\(\)"),
        ("n_samples", "n_samples cannot be changed: make another loader;"),
        ("dataset", "dataset cannot be changed: make another loader;"),
        ("world", "world cannot be changed: make another loader;"),
    ],
)
def test_attributes_that_a_loader_does_not_have_are_not_assigned(folder, name, said):
    loader = packds.Loader(folder / "a.pack", 2)
    with pytest.raises(AttributeError, match=said) as raised:
        setattr(loader, name, 3)
    assert name == "epoch" or str(raised.value).endswith("batch_size, augment and resolution can be assigned")
    assert not hasattr(loader, "bach_size") and not hasattr(loader, "xyzzy")


def test_attributes_of_a_data_set_are_not_assigned(folder):
    dataset = packds.open(folder / "a.pack")
    with pytest.raises(AttributeError, match="a Dataset has no attribute 'clases': did you mean classes. none of its attributes can be assigned"):
        dataset.clases = []
    with pytest.raises(AttributeError, match="labels cannot be changed: make another dataset"):
        dataset.labels = []


def test_classes_of_users_may_have_attributes_of_their_own(folder):
    class Mine(packds.Loader):
        def __init__(self, path):
            super().__init__(path, 2)
            self.bonus = 1

    loader = Mine(folder / "a.pack")
    loader.bonus += 1
    assert loader.bonus == 2
    with pytest.raises(AttributeError, match="seed cannot be changed"):
        loader.seed = 3
