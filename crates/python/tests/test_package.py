"""The package itself: examples in docstrings, names, requirements."""

import ast
import errno
import inspect
import pickle
import pkgutil
import re
import subprocess
import sys
import sysconfig
import traceback
import typing

import numpy as np
import pytest

import packds
from conftest import REPOSITORY, module_or_skip
from docstrings import check_docstrings, check_examples

# The modules that need only NumPy.
MODULES = ["packds", *(module.name for module in pkgutil.iter_modules(packds.__path__, "packds.") if module.name[7] == "_")]


@pytest.mark.parametrize("name", [*MODULES, "packds.jax"])
def test_examples_in_docstrings_are_true(name, photos, photo_pack, tmp_path, monkeypatch):
    module = module_or_skip(name, "scripts/setup installs what it needs")
    check_examples(module, photos, photo_pack, tmp_path, monkeypatch)


@pytest.mark.parametrize("name", ["packds", "packds.jax"])
def test_every_public_name_has_a_docstring_with_an_example(name):
    check_docstrings(module_or_skip(name, "scripts/setup installs what it needs"))


@pytest.mark.parametrize("arguments", ["--version", "--help", "formats --json", "nonsense"])
def test_the_module_is_the_command(arguments):
    def run(*start):
        done = subprocess.run([sys.executable, *start, *arguments.split()], capture_output=True, text=True)
        return done.returncode, done.stdout, done.stderr

    assert run("-m", "packds") == run(f"{sysconfig.get_path('scripts')}/packds")


def test_exceptions_are_one_tree():
    for error in (packds.FormatError, packds.ConvertError, packds.ReadError, packds.OptionError):
        assert issubclass(error, packds.Error)
    assert issubclass(packds.ReadError, OSError) and issubclass(packds.OptionError, ValueError)


def test_hints_are_in_the_text():
    error = packds.ConvertError("mode='raw' is not possible", "leave keep_order out")
    assert str(error) == "mode='raw' is not possible\nhint: leave keep_order out"
    assert error.hint == "leave keep_order out"


ERRORS = ["ConvertError", "Error", "FormatError", "NotFoundError", "OptionError", "ReadError", "SourceNotFoundError"]


@pytest.mark.parametrize("name", ERRORS)
def test_errors_are_shown_by_their_public_names(name):
    told = traceback.format_exception_only(getattr(packds, name)("what happened"))
    assert told == [f"packds.{name}: what happened\n"]


@pytest.mark.parametrize("does", [packds.open, packds.Loader, lambda path: packds.convert(path, "a.pack", progress=False)])
def test_a_file_that_is_not_there_is_a_file_not_found(tmp_path, does):
    missing = tmp_path / "nothing"
    with pytest.raises(FileNotFoundError) as caught:
        does(missing)
    error = caught.value
    assert isinstance(error, packds.Error)
    assert (error.errno, error.filename) == (errno.ENOENT, str(missing))
    assert str(error).startswith(f"{missing}: ") and "Errno" not in str(error)
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.errno, again.filename) == (str(error), error.errno, error.filename)


def test_what_cannot_be_read_has_the_systems_number(tmp_path):
    (tmp_path / "a.pack").symlink_to("a.pack")
    with pytest.raises(packds.ReadError) as caught:
        packds.open(tmp_path / "a.pack")
    assert caught.value.errno == errno.ELOOP and not isinstance(caught.value, FileNotFoundError)


@pytest.mark.parametrize("kind", [getattr(packds, name) for name in ERRORS])
def test_errors_go_to_other_processes(kind):
    error = kind("nothing is there", "look elsewhere")
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.hint) == (kind, str(error), "look elsewhere")


GUIDES = ["README.md", "docs/tutorial/first-training.md", "docs/reference/python.md", "docs/reference/cuda.md"]
GUIDES += [f"docs/how-to/{name}.md" for name in ("pytorch", "jax", "write-packs", "cookbook", "distributed", "doctor")]
GUIDES += ["examples/migrate_from_dataloader.md", "examples/migrate_from_ffcv.md"]


@pytest.mark.parametrize("page", GUIDES)
def test_names_and_arguments_in_the_guides_are_there(page):
    for code in re.findall(r"^```python\n(.*?)^```", (REPOSITORY / page).read_text(), re.M | re.S):
        for node in ast.walk(ast.parse(code)):
            if not (isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "packds"):
                continue
            assert node.attr in packds.__all__, f"packds.{node.attr}"
        for node in ast.walk(ast.parse(code)):
            if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("packds."):
                given = {keyword.arg: None for keyword in node.keywords if keyword.arg is not None}
                inspect.signature(getattr(packds, ast.unparse(node.func).split(".")[1])).bind_partial(*node.args, **given)


def described(thing) -> set:
    """The arguments in a docstring."""
    arguments = (inspect.getdoc(thing) or "").partition("Args:")[2].partition("\n\n")[0]
    return {name for names in re.findall(r"^    ([\w, ]+): ", arguments, re.M) for name in names.split(", ")}


FUNCTIONS = ["Loader", "add_field", "append", "build", "commit", "compact", "convert", "diff", "doctor", "drop_field", "export"]
FUNCTIONS += ["from_dataset", "merge", "open", "plan", "relabel", "reorder", "split", "subset", "write"]


@pytest.mark.parametrize("name", [*FUNCTIONS, "torch.MapDataset", "torch.IterableDataset", "jax.arrays"])
def test_every_argument_is_described(name):
    module, _, attribute = f"packds.{name}".rpartition(".")
    thing = getattr(module_or_skip(module, "scripts/setup installs what it needs"), attribute)
    arguments = set(inspect.signature(thing).parameters)
    # `IterableDataset` passes `rank` and `epoch` on, and describes them as part of `options`.
    assert described(thing) | {"rank", "epoch"} >= arguments
    assert described(thing) <= arguments


def test_words_of_types_are_those_that_are_known(numbered, photos, tmp_path):
    from packds import _types

    def refused(does, name) -> str:
        with pytest.raises(packds.OptionError, match=f"{name}: expected") as caught:
            does(**{name: "xyz"})
        return str(caught.value)

    def loads(**options):
        packds.Loader(numbered, **options)

    def loads_to_gpu(**options):
        packds.Loader(numbered, output="torch", device="simulated", **options)

    def converts(**options):
        packds.convert(photos, tmp_path / "a.pack", progress=False, **options)

    def exports(**options):
        packds.export(numbered, tmp_path / "a.npz", progress=False, **options)

    asked = {"Order": loads, "Access": loads, "Checksums": loads, "BadSamples": loads, "Output": loads, "Layout": loads}
    asked |= {"Tier": loads_to_gpu, "Register": loads_to_gpu, "Jpeg": loads_to_gpu} if "torch" in sys.modules else {}
    asked |= {"Mode": converts, "Filter": converts, "Orientation": converts, "OnError": converts, "PackLayout": converts}
    asked |= {"MaskOrder": converts}
    asked |= {"ExportedImages": exports}
    for name, does in asked.items():
        option = {"PackLayout": "layout", "ExportedImages": "images"}.get(name, re.sub(r"(?<!^)([A-Z])", r"_\1", name).lower())
        told = refused(does, option).partition(": expected ")[2].partition(", found")[0]
        assert sorted(re.split(r", | or ", told)) == sorted(typing.get_args(getattr(_types, name))), name


def test_every_argument_of_a_loader_is_described():
    guide = (REPOSITORY / "docs" / "reference" / "python.md").read_text()
    arguments = list(inspect.signature(packds.Loader).parameters)
    described = re.findall(r"^ +([\w, ]+): ", inspect.getdoc(packds.Loader) or "", re.M)
    assert {name for names in described for name in names.split(", ")} == {*arguments, "OptionError", "UserWarning"}
    assert [name for name in arguments if name != "data" and not re.search(rf"\b{name}\b", guide)] == []


def test_the_native_part_has_what_its_stub_says():
    from importlib import resources

    from packds import _packds

    stub = resources.files("packds").joinpath("_packds.pyi").read_text()
    for name in re.findall(r"^(?:class|def) (\w+)", stub, re.M):
        thing = getattr(_packds, name)
        if not inspect.isclass(thing):
            continue
        body = stub.split(f"class {name}:")[1].split("\n@final")[0].split("\ndef ")[0]
        declared = set(re.findall(r"    def (\w+)", body)) - {"__new__"}
        assert declared <= set(dir(thing)), name
        public = {member for member in vars(thing) if not member.startswith("_")}
        assert public <= declared, name


def test_nothing_but_numpy_is_imported():
    script = "import sys, packds; print(sorted({name.split('.')[0] for name in sys.modules}))"
    modules = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    for name in ("torch", "jax", "PIL", "tqdm", "pandas", "pyarrow"):
        assert f"'{name}'" not in modules


def test_arrays_are_shared_through_dlpack(numbered):
    images, _ = next(iter(packds.Loader(numbered, batch_size=8)))
    shared = np.from_dlpack(images)
    assert np.shares_memory(shared, images)
