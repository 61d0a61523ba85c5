"""Shared by the tests: folders of photographs, packs, and PyTorch if installed."""

import importlib
import os
import pathlib
import signal
import socket

import numpy as np
import pytest

import packds

# A background process may ignore SIGINT, and the programs that the tests start would inherit this setting.
signal.signal(signal.SIGINT, signal.default_int_handler)

REPOSITORY = pathlib.Path(__file__).resolve().parents[3]


def module_or_skip(name: str, hint: str):
    """The module. If it is missing, the test is skipped with a clear message. Modules in PACKDS_REQUIRE (separated by spaces)
    must be installed. PACKDS_REQUIRE_TORCH=1 makes a missing PyTorch a failure, and so does PACKDS_REQUIRE_GPU=1, because GPUs
    need PyTorch."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        if name.split(".")[0] in os.environ.get("PACKDS_REQUIRE", "").split():
            pytest.fail(f"{name} is missing, and PACKDS_REQUIRE names it: {error}")
        for variable in ("PACKDS_REQUIRE_TORCH", "PACKDS_REQUIRE_GPU"):
            if name.startswith("torch") and os.environ.get(variable) == "1":
                pytest.fail(f"{name} is missing, and {variable}=1")
        pytest.skip(f"SKIPPED: no {name}; {hint}")


def pytest_configure(config):
    config.addinivalue_line("markers", "gpu: needs a GPU; without one it is skipped, or fails if PACKDS_REQUIRE_GPU=1")


@pytest.fixture
def gpu(torch, request) -> str:
    """PyTorch's name of the first GPU."""
    if torch.cuda.is_available():
        return "cuda:0"
    text = f"SKIPPED (no CUDA device): {request.node.name}"
    if os.environ.get("PACKDS_REQUIRE_GPU") == "1":
        pytest.fail(text)
    pytest.skip(text)


@pytest.fixture
def torchvision(torch):
    return module_or_skip("torchvision", "scripts/setup installs it for /usr/bin/python3")


@pytest.fixture(scope="session")
def cifar(tmp_path_factory) -> pathlib.Path:
    """Images of 32x32 in two classes that a net can easily distinguish."""
    from PIL import Image

    folder = tmp_path_factory.mktemp("cifar")
    rng = np.random.default_rng(0)
    for split, n in (("train", 32), ("test", 8)):
        for label, name in enumerate(("dark", "light")):
            (folder / split / name).mkdir(parents=True)
            for number in range(n):
                pixels = rng.integers(0, 100, (32, 32, 3), np.uint8) + np.uint8(120 * label)
                Image.fromarray(pixels).save(folder / split / name / f"{number}.png")
    return folder


def pytest_terminal_summary(terminalreporter):
    """The GPU tests that did not run, and the number that did."""
    reports = [
        (outcome, report)
        for outcome in ("passed", "failed", "skipped", "error")
        for report in terminalreporter.getreports(outcome)
        # The report of a module that cannot be imported has no keywords.
        if "gpu" in getattr(report, "keywords", ()) and (report.when == "call" or report.skipped or report.failed)
    ]
    if not reports:
        return
    # Without PyTorch, no GPU was used either.
    skipped = [report for _, report in reports if report.skipped or "no CUDA device" in str(report.longrepr)]
    for report in skipped:
        terminalreporter.write_line(f"SKIPPED (no CUDA device): {report.nodeid}")
    n, run = len(reports), len(reports) - len(skipped)
    terminalreporter.write_line(f"GPU: {run} of {n} tests run on this machine")


@pytest.fixture
def torch():
    return module_or_skip("torch", "scripts/setup installs it for /usr/bin/python3")


@pytest.fixture(scope="session")
def photos() -> pathlib.Path:
    """Class folders with photographs of several sizes."""
    return REPOSITORY / "examples" / "photos"


@pytest.fixture(scope="session")
def photo_pack(photos, tmp_path_factory) -> pathlib.Path:
    """The photographs as raw pixels, 64x64."""
    path = tmp_path_factory.mktemp("packs") / "photos.pack"
    packds.convert(photos, path, resize="short:72", crop="center:64", progress=False)
    return path


@pytest.fixture(scope="session")
def file_pack(photos, tmp_path_factory) -> pathlib.Path:
    """The photographs as files of different sizes."""
    path = tmp_path_factory.mktemp("packs") / "files.pack"
    packds.convert(photos, path, mode="encoded", progress=False)
    return path


def image_of(number: int, side: int = 8) -> np.ndarray:
    """An image that encodes its number."""
    rng = np.random.default_rng(number)
    return rng.integers(0, 256, (side, side, 3), np.uint8)


@pytest.fixture(scope="session")
def numbered(tmp_path_factory) -> pathlib.Path:
    """1000 images in chunks of 32; sample `i`, in the order of the file, is `image_of(label)`."""
    path = tmp_path_factory.mktemp("packs") / "numbered.pack"
    with packds.write(path, {"image": "image", "label": "label"}, chunk=32) as writer:
        for number in range(1000):
            writer.add(image=image_of(number), label=number)
    return path


def free_port() -> int:
    with socket.socket() as opened:
        opened.bind(("127.0.0.1", 0))
        port: int = opened.getsockname()[1]
        return port
