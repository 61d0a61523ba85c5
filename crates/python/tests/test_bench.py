"""The comparison with other loaders of `bench/python`, on few images."""

import json
import subprocess
import sys

from conftest import REPOSITORY

#: The command in bench/python/README.md, and options that make it short.
COMMAND = "bench/python/loaders.py IMAGES --out DIR"
SHORT = ["--n", "32", "--batch", "16", "--workers", "0", "--seconds", "0.05", "--rounds", "1"]


def test_the_comparison_of_loaders_runs_as_written(torchvision, photos, tmp_path):
    assert COMMAND in (REPOSITORY / "bench" / "python" / "README.md").read_text()
    (tmp_path / "IMAGES").symlink_to(photos)
    script, *words = COMMAND.split()
    command = [sys.executable, REPOSITORY / script, *words, *SHORT]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    report = json.loads((tmp_path / "DIR" / "loaders.json").read_text())
    for comparison in report["comparisons"]:
        assert sum(row["ours"] for row in comparison["rows"]) >= 2, ended.stderr
        assert (tmp_path / "DIR" / f"{comparison['name']}.svg").is_file()
    assert report["overhead"]["us_per_batch"]["rust"] > 0
