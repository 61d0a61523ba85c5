"""If the system cannot start more threads, fewer threads do the work, or an error says what to do."""

import os
import subprocess
import sys
import textwrap

import pytest

# The program opens everything before the limit applies, because the new user may not be able to
# read the file.
PROGRAM = """
import os, resource, sys, tempfile
import numpy as np
import packds

path, n_more = sys.argv[1], int(sys.argv[2])
ds = packds.open(path)
loader = packds.Loader(path, batch_size=10, seed=1, order="sequential", access="mapped", threads=6)
folder = tempfile.mkdtemp()
os.chmod(folder, 0o777)
if os.getuid() == 0:
    # The limit does not apply to root, and counts all processes of a user. This user has no others.
    os.setuid(54321)
limit = len(os.listdir("/proc/self/task")) + n_more if n_more else 1
resource.setrlimit(resource.RLIMIT_NPROC, (limit, limit))
{then}
"""

NONE = """
for work in (
    ds.verify,
    lambda: packds.from_dataset({"image": np.zeros((3, 5, 5, 3), np.uint8)}, os.path.join(folder, "b.pack"), progress=False),
    lambda: next(iter(loader)),
):
    try:
        work()
    except packds.Error as error:
        assert "cannot start a thread" in str(error) and "ulimit -u" in str(error), error
    else:
        sys.exit("it went on")
assert os.listdir(folder) == []
"""

SOME = """
assert not any("threads" in notice for notice in loader.notices())
labels = [label for _, batch in zip(range(len(loader)), loader) for label in batch[1].tolist()]
assert labels == ds.labels.tolist()
(notice,) = [notice for notice in loader.notices() if "threads" in notice]
assert "of 6 loading threads" in notice and "ulimit -u" in notice, notice
assert 1 <= loader.stats()["threads"] < 6
assert ds.verify()["ok"]
"""


def run(path, n_more: int, then: str) -> None:
    command = [sys.executable, "-c", PROGRAM.format(then=textwrap.dedent(then)), path, str(n_more)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_without_any_thread_errors_are_the_packages_own(numbered):
    run(numbered, 0, NONE)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become a user whose processes are known")
def test_a_loader_goes_on_with_fewer_threads_and_says_so(numbered):
    run(numbered, 4, SOME)
