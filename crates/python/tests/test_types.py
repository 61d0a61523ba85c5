"""The package's types, checked by mypy as users would check them."""

import subprocess
import sys
import textwrap

import pytest

from conftest import REPOSITORY, module_or_skip

# Code that uses the package as users do, with mistakes that types should detect.
USER = """
    from typing import Any

    import numpy as np
    import packds

    report: dict[str, Any] = packds.convert("photos", "a.pack", mode="encoded", resize=(256, 224), crop=224)
    ds = packds.open("a.pack")
    n: int = len(ds)
    names: list[str] = ds.classes
    image: np.ndarray[Any, Any] = ds[3]["image"]
    labels: np.ndarray[Any, Any] = ds.labels
    ids: dict[str, int] = ds.class_to_idx
    loader = packds.Loader(ds, 256, augment=["rrc224", "flip"], normalize="imagenet", dtype=np.float16, rank=(0, 2))
    packds.Loader([ds, "b.pack"], fields="image", samples=[1, 2], normalize=(0.5, 0.25), proportions=[1, 2])
    for images, _ in loader:
        print(images.shape, len(loader))
    for batch in loader.batches():
        packs: np.ndarray[Any, Any] = batch.packs
    loader.load_state_dict(loader.state_dict())
    with packds.write("b.pack", {"image": "image", "box": ("f32", (4,))}) as writer:
        writer.add(image=image, box=[0, 0, 1, 1])
    packds.from_dataset([(image, 3)], "c.pack")
    try:
        packds.export(ds, "a.npz")
    except packds.ConvertError as error:
        print(error.hint)
    packds.Loader(ds, batchsize=256)
    loader.epoch = 3
    loader.batch_size, loader.augment, loader.resolution = 64, ["rrc160"], (160, 128)
    packds.open(3)
    packds.Loader(ds, order="shuffled")
    packds.Loader(ds, output="pytorch")
    packds.convert("photos", "a.pack", mode="files")
    packds.export(ds, "a.npz", images="png")
"""
MISTAKES = ["batchsize", 'Property "epoch"', 'Argument 1 to "open"', '"order"', '"output"', '"mode"', '"images"']


@pytest.fixture
def mypy(tmp_path):
    module_or_skip("mypy", "scripts/setup installs it")

    def run(*arguments, module="mypy"):
        command = [sys.executable, "-m", module, *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=tmp_path)

    return run


def test_a_users_mistakes_are_found_and_nothing_else(mypy, tmp_path):
    (tmp_path / "user.py").write_text(textwrap.dedent(USER))
    errors = [line for line in mypy("--strict", "user.py").stdout.splitlines() if ": error:" in line]
    assert len(errors) == len(MISTAKES), errors
    for line, mistake in zip(errors, MISTAKES):
        assert mistake in line


# Without PyTorch, its classes have no types. If it is installed, not all of its functions are typed.
LENIENT = (
    "--ignore-missing-imports",
    "--allow-subclassing-any",
    "--allow-untyped-calls",
    "--allow-untyped-decorators",
    "--no-warn-return-any",
    "--no-warn-unused-ignores",
)


def test_the_package_and_its_examples_are_typed(mypy):
    examples = sorted((REPOSITORY / "examples").glob("*.py"))
    assert len(examples) >= 2
    for files in (["-p", "packds"], examples):
        done = mypy("--strict", *LENIENT, *files)
        assert done.returncode == 0, done.stdout


def test_the_native_parts_stub_is_true(mypy):
    done = mypy("packds._packds", "--ignore-missing-stub", "--ignore-positional-only", module="mypy.stubtest")
    assert done.returncode == 0, done.stdout
