"""docs/how-to/cookbook.md: its commands and its code, in the order of the page, on a few images of each kind."""

import json
import os
import re
import shlex
import subprocess
import sys
import tarfile

import numpy as np
import pytest

from conftest import REPOSITORY

PAGE = REPOSITORY / "docs" / "how-to" / "cookbook.md"
N = 10
# Definitions that the page assumes, and a runner for its commands.
BEFORE = """
import sys, warnings
import numpy as np
import packds, packds.__main__

def command(*words):
    sys.argv[1:] = words
    assert packds.__main__.main() == 0, words

def scans():
    for i in range(8):
        yield np.full((512, 512), i, np.uint16), i % 2, f"patient {i}"
"""
# Replacements in the code of the page: smaller batches, and shards that exist.
SMALL = [(r'(Loader\((?:"[\w.]+"|frames), )\d+', r"\g<1>4"), (r"000099", "000001"), (r"'--batch', '256'", "'--batch', '4'")]

pytestmark = pytest.mark.usefixtures("torch", "torchvision")


@pytest.fixture
def datasets(photos, tmp_path):
    """A folder with the page's sources."""
    from PIL import Image

    import packds

    files = sorted(path for path in photos.rglob("*") if path.suffix in (".jpg", ".png"))[:N]
    (tmp_path / "images").mkdir()
    (tmp_path / "masks").mkdir()
    for split in ("train", "val"):
        for i, file in enumerate(files):
            folder = tmp_path / "imagenet" / split / f"class{i % 2}"
            folder.mkdir(parents=True, exist_ok=True)
            (folder / file.name).symlink_to(file)
    with open(tmp_path / "points.jsonl", "w") as points, open(tmp_path / "captions.jsonl", "w") as captions:
        for i, file in enumerate(files):
            with Image.open(file) as image:
                image.convert("RGB").save(tmp_path / "images" / f"{i}.jpg")
                Image.new("L", image.size, i % 3).save(tmp_path / "masks" / f"{i}.png")
            named = {"image": f"images/{i}.jpg"}
            print(json.dumps(named | {"corners": [[1, 2], [30, 40]] * (i % 3), "classes": [1] * (i % 3)}), file=points)
            print(json.dumps(named | {"caption": f"picture {i}", "source": "web", "rating": i}), file=captions)
    coco = {
        "images": [{"id": i, "file_name": f"{i}.jpg"} for i in range(N)],
        "annotations": [{"image_id": i, "category_id": 3, "bbox": [1, 2, 30, 40]} for i in range(0, N, 2)],
        "categories": [{"id": 3, "name": "car"}],
    }
    (tmp_path / "coco" / "annotations").mkdir(parents=True)
    (tmp_path / "coco" / "annotations" / "instances_train2017.json").write_text(json.dumps(coco))
    (tmp_path / "coco" / "train2017").symlink_to(tmp_path / "images")
    rows = [f"images/{i}.jpg,masks/{i}.png" for i in range(N)]
    (tmp_path / "seg.csv").write_text("\n".join(["image,mask", *rows]))
    (tmp_path / "tags.csv").write_text("\n".join(["image,labels", *(f"images/{i}.jpg,{'cat;dog' if i % 2 else 'cat'}" for i in range(N))]))
    frames = [{"image": f"images/{i}.jpg", "label": "jump", "video": i, "frame": 8} for i in range(N)]
    (tmp_path / "frames.jsonl").write_text("\n".join(map(json.dumps, frames)))
    rng = np.random.default_rng(0)
    for name, shape, dtype in (("ct", (N, 32, 32), np.uint16), ("clips", (N, 4, 32, 32, 3), np.uint8)):
        (tmp_path / name).mkdir()
        np.save(tmp_path / name / "image.npy", rng.integers(0, 200, shape).astype(dtype))
        np.save(tmp_path / name / "label.npy", np.arange(N) % 2)
    (tmp_path / "cifar-10-batches-bin").mkdir()
    (tmp_path / "cifar-10-batches-bin" / "batches.meta.txt").write_text("\n".join("abcdefghij"))
    for name in ("data_batch_1", "test_batch"):
        records = rng.integers(0, 256, (N, 3073), np.uint8)
        records[:, 0] %= 10
        records.tofile(tmp_path / "cifar-10-batches-bin" / f"{name}.bin")
    with tarfile.open(tmp_path / "cifar-10-binary.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "cifar-10-batches-bin", "cifar-10-batches-bin")
    # Sources that others would publish, exported from a pack.
    packds.convert(tmp_path / "imagenet" / "train", tmp_path / "a.pack", mode="encoded", progress=False)
    for name in ("path/to/dataset/train-0.parquet", "shards/train-000000.tar", "shards/train-000001.tar"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        packds.export(tmp_path / "a.pack", tmp_path / name, progress=False)
    return tmp_path


def test_all_commands_and_code_of_the_cookbook_run(datasets):
    script, n_commands = BEFORE, 0
    for language, block in re.findall(r"^```(\w*)\n(.*?)^```", PAGE.read_text(), re.M | re.S):
        if language == "python":
            # There is no complete ImageNet here.
            script += "" if "1281167" in block else block
            continue
        for line in re.findall(r"^packds (.*)$", block, re.M):
            words = shlex.split(line.partition(" > ")[0])
            # The page reuses pack names.
            replaces = words[0] in ("convert", "export") and "--dry-run" not in words
            script += f"command(*{words + ['--force'] * replaces!r})\n"
            n_commands += 1
    assert n_commands > 15
    for pattern, small in SMALL:
        script = re.sub(pattern, small, script)
    (datasets / "page.py").write_text(script)
    command = [sys.executable, "-W", "ignore", "page.py"]
    done = subprocess.run(command, cwd=datasets, env=os.environ.copy(), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
