"""The checks that every loader passes, and loaders that do not."""

import importlib.util
import subprocess
import sys

import pytest

from conftest import REPOSITORY, module_or_skip

SCRIPT = REPOSITORY / "examples" / "conformance.py"
TORCHDATA = "scripts/setup installs it"


@pytest.fixture(scope="module")
def conformance():
    spec = importlib.util.spec_from_file_location("conformance", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules["conformance"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["conformance"]


@pytest.fixture(scope="module")
def data(conformance, tmp_path_factory):
    return conformance.Data.make(tmp_path_factory.mktemp("conformance"))


def test_a_loader_conforms(conformance, data):
    assert conformance.failures(conformance.Loader, data) == {}


@pytest.mark.parametrize("name", ["iterable-dataset", "map-dataset"])
def test_data_sets_for_pytorch_conform(conformance, data, torch, name):
    assert conformance.failures(conformance.ADAPTERS[name], data) == {}


def test_an_iterable_data_set_in_workers_conforms(conformance, data, torch):
    module_or_skip("torchdata.stateful_dataloader", TORCHDATA)
    assert conformance.failures(conformance.StatefulWorkers, data) == {}


def test_pytorchs_own_loader_conforms(conformance, data, torchvision):
    assert conformance.failures(conformance.ImageFolder, data) == {}


def broken(conformance, **methods):
    return type("Broken", (conformance.Loader,), methods)


def test_each_check_finds_the_loaders_that_fail_it(conformance, data):
    whole = conformance.Loader.epoch

    def twice(self):
        batches = list(whole(self))
        return iter([*batches[:-1], batches[0]])

    def fewer(self):
        batches = list(whole(self))
        return iter(batches[self.loader.rank == 1 :])

    def others(self):
        return ([label + 1 for label in batch] for batch in whole(self))

    def refuse(self, state):
        raise ValueError("no such state")

    def begin_anew(self, state):
        conformance.Loader.go_on(self, self.loader.state_dict())

    failed = conformance.failures(broken(conformance, epoch=twice), data)
    assert "came more than once" in failed["exact_cover"] and "more than once" in failed["elastic_ranks"]
    assert "ranks have [12, 11" in conformance.failures(broken(conformance, epoch=fewer), data)["equal_steps"]
    assert "[101] are none of" in conformance.failures(broken(conformance, epoch=others), data)["exact_cover"]
    failed = conformance.failures(broken(conformance, go_on=refuse), data)
    assert failed == dict.fromkeys(["resume_twice", "elastic_ranks"], "ValueError: no such state")
    failed = conformance.failures(broken(conformance, go_on=begin_anew), data)
    assert sorted(failed) == ["elastic_ranks", "resume_twice"]
    assert "without a stop" in failed["resume_twice"]


def test_the_script_tells_each_check_and_takes_adapters_of_others(tmp_path):
    (tmp_path / "mine.py").write_text("from conformance import Loader\nclass Mine(Loader):\n    def go_on(self, state): pass\n")
    # Also without assertions.
    command = [sys.executable, "-O", str(SCRIPT), "loader", "mine:Mine"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env={"PYTHONPATH": f"{tmp_path}:{SCRIPT.parent}"})
    lines = done.stdout.splitlines()
    assert done.returncode == 1 and len(lines) == 8, done.stderr
    assert all(line.endswith("ok") for line in lines[:6])
    assert all("FAILED: " in line for line in lines[6:])
