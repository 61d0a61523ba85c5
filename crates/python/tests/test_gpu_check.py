"""`scripts/gpu-check` and its measuring programs, without a GPU. The first run on a GPU must not fail because of a mistake in
them."""

import os
import re
import subprocess
import sys

import pytest
from conftest import REPOSITORY

pytestmark = pytest.mark.usefixtures("torch")


def gpu_check(*options: str, **environment: str) -> subprocess.CompletedProcess:
    """Runs the script with the tested packds, like on a machine without a GPU."""
    inherited = {name: value for name, value in os.environ.items() if name != "PACKDS_REQUIRE_GPU"}
    hidden = {"PYTHON": sys.executable, "CUDA_VISIBLE_DEVICES": ""}
    command = [REPOSITORY / "scripts" / "gpu-check", "--built", *options]
    return subprocess.run(command, env=inherited | hidden | environment, capture_output=True, text=True)


def reports() -> list:
    return sorted((REPOSITORY / "bench" / "gpu").glob("*"))


def test_without_a_gpu_every_part_is_skipped_by_name():
    before = reports()
    ended = gpu_check()
    assert ended.returncode == 0, ended.stdout + ended.stderr
    counted = re.search(r"^GPU: 0 of (\d+) tests run on this machine$", ended.stdout, re.MULTILINE)
    skipped = re.findall(r"^SKIPPED \(no CUDA device\): tests/test_cuda\.py::(\S+)", ended.stdout, re.MULTILINE)
    assert counted and int(counted[1]) == len(skipped) > 5
    assert "test_tensors_are_whole_whatever_streams_do" in skipped
    parts = re.findall(r"^SKIPPED \(no CUDA device\): part (\d)$", ended.stdout, re.MULTILINE)
    assert parts == [str(part) for part in range(2, 10)]
    assert reports() == before


def test_a_gpu_that_is_required_and_missing_is_a_failure():
    for part in ("1", "5"):
        ended = gpu_check("--part", part, PACKDS_REQUIRE_GPU="1")
        assert ended.returncode == 1, ended.stdout + ended.stderr
        assert "no CUDA device" in ended.stdout


def test_one_part_is_run_alone_and_others_are_refused():
    ended = gpu_check("--part", "3")
    assert ended.returncode == 0 and re.findall(r"==> part (\d)", ended.stdout) == ["3"]
    for options, said in [(["--part", "10"], "expected 1 to 9, found 10"), (["--part"], "found nothing"), (["--fast"], "--fast")]:
        ended = gpu_check(*options)
        assert ended.returncode == 2 and said in ended.stderr


def test_what_cannot_be_run_is_told_from_a_machine_without_a_gpu(tmp_path):
    ended = gpu_check(PYTHON="/nonexistent")
    assert ended.returncode == 2 and "no interpreter /nonexistent" in ended.stderr and "no CUDA device" not in ended.stdout
    # An interpreter that exists, relative to the caller's folder.
    bare = tmp_path / "python"
    bare.write_text("#!/bin/sh\nexit 1\n")
    bare.chmod(0o755)
    command = [REPOSITORY / "scripts" / "gpu-check", "--built"]
    ended = subprocess.run(command, env=os.environ | {"PYTHON": "./python"}, cwd=tmp_path, capture_output=True, text=True)
    assert ended.returncode == 2 and f"{bare} has no pytest" in ended.stderr
    usage = gpu_check("--help")
    assert usage.returncode == 0 and "--part N" in usage.stdout and "set -e" not in usage.stdout


def test_a_gpu_that_the_interpreter_does_not_see_is_an_error(tmp_path):
    found = tmp_path / "nvidia-smi"
    found.write_text("#!/bin/sh\necho 'GPU 0: one'\n")
    found.chmod(0o755)
    ended = gpu_check(PATH=f"{tmp_path}:{os.environ['PATH']}", CUDA_VISIBLE_DEVICES="none")
    assert ended.returncode == 2 and "there is a GPU, but" in ended.stderr and "which finds no GPU" in ended.stderr


@pytest.mark.parametrize(
    ("program", "options", "said"),
    [
        ("gpu_step.py", ["--steps", "2", "--device", "simulated"], "--steps: expected"),
        ("gpu_step.py", [], "finds no GPU"),
        ("gpu_cifar.py", ["data"], "finds no GPU"),
    ],
)
def test_a_program_that_cannot_measure_says_why(program, options, said):
    command = [sys.executable, REPOSITORY / "bench" / "python" / program, *options]
    ended = subprocess.run(command, env=os.environ | {"CUDA_VISIBLE_DEVICES": ""}, capture_output=True, text=True)
    assert ended.returncode == 2 and said in ended.stderr and "Traceback" not in ended.stderr


@pytest.mark.parametrize("model", ["small", "none"])
def test_the_training_step_is_measured_in_every_way_of_feeding_it(model):
    pytest.importorskip("PIL")
    options = f"--device simulated --model {model} --images 48 --batch 8 --steps 10 --side 24 --workers 2"
    program = REPOSITORY / "bench" / "python" / "gpu_step.py"
    ended = subprocess.run([sys.executable, program, *options.split()], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    *rows, told = ended.stdout.splitlines()[2:]
    assert told.startswith("chunks are copied ")
    numbers = r" \d+\.\d\d +\d+ +([+-]\d+\.\d%|-) +\d+\.\d% +\d+\.\d +\d+\.\d\d$"
    assert all(re.search(numbers, row) for row in rows)
    cached = ["one batch cached on the GPU"] if model == "small" else []
    plain = ("resident", "gpu-window", "gpu-window, registered file", "host")
    augmented = [f"{tier}, {form}" for form in ("random areas", "and colours") for tier in ("resident", "host")]
    tiers = [f"packds, tier {tier}" for tier in (*plain, *augmented)]
    tiers += ["packds, JPEG files by the GPU", "packds, JPEG files by the host"]
    rest = ["packds on the host, then .to(device)", "DataLoader, 2 workers, mapped array", "DataLoader, 2 workers, JPEG files"]
    assert [row[:40].strip() for row in rows] == cached + tiers + rest


@pytest.mark.parametrize(("target", "workers"), [(1, "0,1"), (101, "0")])
def test_training_to_an_accuracy_is_measured_in_every_way_of_feeding_it(cifar, torchvision, target, workers):
    options = f"--device cpu --target {target} --seeds 0 --workers {workers} --steps 8 --batch-size 16"
    program = REPOSITORY / "bench" / "python" / "gpu_cifar.py"
    ended = subprocess.run([sys.executable, program, cifar, *options.split()], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    tried = re.findall(r"^DataLoader, (\d) workers: [\d,]+ images/s in epoch (\d)$", ended.stdout, re.MULTILINE)
    # An epoch has 4 steps. One epoch is enough for the low target.
    assert tried == [(one, "1") for one in workers.split(",")]
    runs = re.findall(r"^(\w.*\S) +0 +(\d) +([\d.]+)% +\d+\.\d +\d+\.\d$", ended.stdout, re.MULTILINE)
    assert [name for name, *_ in runs[:2]] == ["packds", "tensors on the GPU"] and len(runs) == 3
    assert re.match(r"DataLoader, \d workers$", runs[2][0])
    assert all(int(epochs) == (2 if target > 100 else 1) for _, epochs, _ in runs)
    said = ended.stdout.splitlines()[-3:]
    if target > 100:
        assert all(line.endswith(": 101.0 % was reached by 0 of 1 seeds") for line in said)
    else:
        assert all(re.search(r": \d+\.\d s, \d+\.\d\d of tensors on the GPU$", line) for line in said)


def test_a_training_that_fails_ends_the_measurement_with_its_error(tmp_path):
    program = REPOSITORY / "bench" / "python" / "gpu_cifar.py"
    ended = subprocess.run([sys.executable, program, tmp_path, "--device", "cpu"], capture_output=True, text=True)
    assert ended.returncode == 1 and "has no folders train and test" in ended.stderr
