"""The conformance checks, run on loaders that pass them and on loaders that do not."""

import importlib.util
import itertools
import subprocess
import sys
import threading

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
    assert "occurred more than once" in failed["exact_cover"] and "more than once" in failed["elastic_ranks"]
    assert "ranks have [12, 11" in conformance.failures(broken(conformance, epoch=fewer), data)["equal_steps"]
    assert "[101] are not in the dataset" in conformance.failures(broken(conformance, epoch=others), data)["exact_cover"]
    failed = conformance.failures(broken(conformance, go_on=refuse), data)
    assert failed == dict.fromkeys(["resume_twice", "elastic_ranks"], "ValueError: no such state")
    failed = conformance.failures(broken(conformance, go_on=begin_anew), data)
    assert sorted(failed) == ["elastic_ranks", "resume_twice"]
    assert "without a stop" in failed["resume_twice"]


def test_loaders_that_do_not_end_fail(conformance, data):
    def endless(self):
        return itertools.repeat([1])

    def waiting(self, state):
        threading.Event().wait()

    failed = conformance.failures(broken(conformance, epoch=endless), data)
    assert failed == dict.fromkeys(failed, "an epoch of 101 samples has more than 1010 batches") and len(failed) == 4
    failed = conformance.failures(broken(conformance, go_on=waiting), data, 5)
    assert failed == {"resume_twice": "did not end within 5 s", "elastic_ranks": "not run, because resume_twice did not end"}


def script(folder, *arguments, options=(), **environment):
    command = [sys.executable, *options, str(SCRIPT), *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, env=environment)


def test_the_script_finds_adapters_in_the_current_folder_and_says_where_it_looked(tmp_path):
    (tmp_path / "mine.py").write_text("from conformance import Loader as Mine\n")
    done = script(tmp_path, "mine:Mine")
    assert done.returncode == 0 and len(done.stdout.splitlines()) == 4, done.stderr
    for name, said in (("other:Mine", "No module named 'other'"), ("mine:Other", "has no attribute 'Other'")):
        done = script(tmp_path, name)
        assert done.returncode == 1 and said in done.stderr and f"searched in {tmp_path} first" in done.stderr
        assert "Traceback" not in done.stderr


def test_the_script_ends_where_a_loader_waits_for_ever(tmp_path):
    (tmp_path / "mine.py").write_text(
        "import threading\nfrom conformance import Loader\n"
        "class Mine(Loader):\n    def epoch(self): threading.Event().wait()\n"
    )
    done = script(tmp_path, "mine:Mine", "--seconds", "1")
    assert done.returncode == 1 and "exact_cover     FAILED: did not end within 1 s" in done.stdout, done.stderr


def test_without_packds_other_loaders_are_checked(tmp_path):
    (tmp_path / "mine.py").write_text(
        "import random\n"
        "class Mine:\n"
        "    at_once = 1\n"
        "    def __init__(self, data, rank, world, batch):\n"
        "        self.n, self.at, self.part = sum(1 for _ in data.folder.iterdir()), (0, 0), (rank, world, batch)\n"
        "    def epoch(self):\n"
        "        (epoch, step), (rank, world, batch) = self.at, self.part\n"
        "        order = random.Random(epoch).sample(range(self.n), self.n)\n"
        "        for step in range(step, self.n // batch):\n"
        "            self.at = (epoch, step + 1)\n"
        "            yield order[step * batch:(step + 1) * batch][rank::world]\n"
        "        self.at = (epoch + 1, 0)\n"
        "    def state(self): return self.at\n"
        "    def go_on(self, state): self.at = state\n"
    )
    # Hides packds from the script, which would otherwise find it.
    hidden = "import importlib.util as u, runpy, sys; find = u.find_spec; u.find_spec = lambda m: None if m == 'packds' else find(m); "
    hidden += "sys.modules['packds'] = None; sys.argv = sys.argv[1:]; sys.path[0] = ''; runpy.run_path(sys.argv[0], run_name='__main__')"
    command = [sys.executable, "-c", hidden, str(SCRIPT), "mine:Mine", "loader"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    lines = done.stdout.splitlines()
    assert [line.split()[-1] for line in lines[:4]] == ["ok"] * 4, done.stdout + done.stderr
    assert lines[4:] == [f"{'loader':<20} not checked: packds is not installed"] and done.returncode == 1


def test_the_script_tells_each_check_and_takes_adapters_of_others(tmp_path):
    (tmp_path / "mine.py").write_text("from conformance import Loader\nclass Mine(Loader):\n    def go_on(self, state): pass\n")
    # The checks must also work without assertions.
    done = script(SCRIPT.parent, "loader", "mine:Mine", options=["-O"], PYTHONPATH=str(tmp_path))
    lines = done.stdout.splitlines()
    assert done.returncode == 1 and len(lines) == 8, done.stderr
    assert all(line.endswith("ok") for line in lines[:6])
    assert all("FAILED: " in line for line in lines[6:])
