"""Training examples: the scripts in examples/, and all code of its migration guides."""

import os
import re
import shutil
import subprocess
import sys
from subprocess import PIPE

import pytest

from conftest import REPOSITORY, free_port, module_or_skip

EXAMPLES = REPOSITORY / "examples"
# Adapts the guides' code to a few photographs.
SMALL = {"batch_size=256": "batch_size=8", "num_workers=8": "num_workers=1", "threads=8": "threads=2"}
SMALL |= {"rrc224": "rrc64", "resnet50": "resnet18", "range(90)": "range(1)"}

pytestmark = pytest.mark.usefixtures("torch")


def script(name, *arguments, processes=1):
    """Runs an example, in several processes like torchrun. Returns the output of all."""
    command = [sys.executable, EXAMPLES / name, *map(str, arguments)]
    group = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": str(processes)}
    running = []
    for rank in range(processes):
        environment = os.environ | {"OMP_NUM_THREADS": "1"} | group | {"RANK": str(rank), "LOCAL_RANK": str(rank)}
        running.append(subprocess.Popen(command, stdout=PIPE, stderr=PIPE, text=True, env=environment))
    said = ""
    for process in running:
        out, errors = process.communicate(timeout=300)
        assert process.returncode == 0, errors
        said += out
    return said


@pytest.mark.parametrize("loader", ["packds", "dataloader", "memory"])
def test_a_resnet_9_learns_from_every_loader(cifar, tmp_path, torchvision, loader):
    said = script("cifar10_resnet9.py", cifar, "--packs", tmp_path, "--loaders", loader, "--steps", 8, "--batch-size", 16)
    accuracy = float(re.search(rf"{loader}: ([\d.]+) % correct after 8 steps", said)[1])
    assert accuracy >= 75


def imagenet(photos, packs, *more, processes=1):
    sizes = ("--train-size", 32, "--resize-size", 36, "--val-size", 32, "--model", "resnet18", "--threads", 1)
    return script("imagenet_resnet.py", photos, "--packs", packs, *sizes, *more, processes=processes)


def test_a_resnet_trains_by_the_reference_recipe(photos, tmp_path, torchvision):
    said = imagenet(photos, tmp_path, "--steps", 4, "--batch-size", 8, "--mix", "--ema", "--policy", "trivialaugment", "--erase", 0.1)
    assert "step 4 of 4" in said and "after step 4" in said


def test_training_stops_and_goes_on_with_another_number_of_processes(photos, tmp_path, torch, torchvision):
    if not torch.distributed.is_available():
        pytest.skip("this PyTorch has no distributed package")
    checkpoint = ("--checkpoint", tmp_path / "a.pt")
    imagenet(photos, tmp_path, "--steps", 2, "--batch-size", 4, *checkpoint, processes=2)
    said = imagenet(photos, tmp_path, "--steps", 4, "--batch-size", 8, *checkpoint)
    assert "resuming after step 2" in said and "step 4 of 4" in said


def test_a_retinanet_trains_on_boxes(tmp_path, torchvision):
    said = script("coco_retinanet.py", "shapes", "--packs", tmp_path, "--side", 64, "--steps", 3, "--batch-size", 2)
    assert re.search(r"step 3 of 3: loss \d", said)


def test_a_mask_rcnn_trains_on_boxes_and_masks(tmp_path, torchvision):
    said = script("coco_maskrcnn.py", "shapes", "--packs", tmp_path, "--side", 64, "--steps", 3, "--batch-size", 2)
    assert re.search(r"step 3 of 3: loss \d\S*, of masks \d", said)


# Definitions that the guides assume, on one line, to keep line numbers right.
YOURS = (
    "import torch; model = torch.nn.Sequential(torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(3, 10)); "
    "criterion = torch.nn.CrossEntropyLoss(); optimizer = torch.optim.SGD(model.parameters(), 0.01)"
)
# The variables that torchrun sets for a single process.
ALONE = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0", "RANK": "0", "WORLD_SIZE": "1"}


def code_of(page, wanted):
    """The Python code of selected blocks of a page, with unchanged line numbers."""
    text = page.read_text()
    lines = [YOURS]
    for found in re.finditer(r"^```python\n(.*?)^```", text, re.M | re.S):
        if not wanted(found[1]):
            continue
        lines += [""] * (text.count("\n", 0, found.start(1)) - len(lines)) + found[1].splitlines()
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("page", "with_ffcv"),
    [("migrate_from_dataloader.md", False), ("migrate_from_ffcv.md", False), ("migrate_from_ffcv.md", True)],
)
def test_all_code_of_a_guide_runs(page, with_ffcv, photos, tmp_path, torch, torchvision):
    if with_ffcv:
        module_or_skip("ffcv", "bench/setup-peers installs it")
    if not torch.distributed.is_available():
        pytest.skip("this PyTorch has no distributed package")
    run_code(code_of(EXAMPLES / page, lambda code: with_ffcv or not ("ffcv" in code or "pipelines" in code)), photos, tmp_path)


def test_the_tutorial_leads_to_a_training(photos, tmp_path, torchvision):
    page = REPOSITORY / "docs" / "tutorial" / "first-training.md"
    code = code_of(page, lambda code: True)
    assert "optimizer.step()" in code and "load_state_dict" in code
    [convert] = re.findall(r"^env/bin/packds (convert examples/photos .*)$", page.read_text(), re.M)
    code = f"import packds.__main__, sys; sys.argv[1:] = {convert.split()}; assert not packds.__main__.main()\n{code}"
    assert re.search(r"^epoch 2: loss \d", run_code(code, photos, tmp_path), re.M)


def test_the_readme_converts_and_loads(photos, tmp_path):
    code = code_of(REPOSITORY / "README.md", lambda code: "packds.Loader" in code)
    code += "\nprint(images.shape, images.dtype, labels.dtype)"
    assert run_code(code, photos, tmp_path).split("\n")[-2] == "torch.Size([8, 64, 64, 3]) torch.float32 torch.int64"


def run_code(code, photos, folder):
    """Runs a page's code in the folder of the photographs, which also stand in for ImageNet, with small sizes. Returns the
    output."""
    (folder / "examples").mkdir()
    (folder / "examples" / "photos").symlink_to(photos)
    for split in ("train", "val"):
        shutil.copytree(photos, folder / "imagenet" / split, ignore=lambda *_: ["LICENSES.md"])
    for whole, small in SMALL.items():
        code = code.replace(whole, small)
    (folder / "page.py").write_text(code)
    command = [sys.executable, "-W", "ignore", "page.py"]
    done = subprocess.run(command, cwd=folder, env=os.environ | ALONE, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout
