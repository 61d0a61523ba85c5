"""A truncated pack causes an error, not the end of the process, even if another SIGBUS handler runs first."""

import os
import shutil
import subprocess
import sys
import textwrap

import pytest

# The code of each program before and after it opens the pack. Then the file is truncated, and samples and batches are
# read.
BEFORE = {"faulthandler before": "faulthandler.enable()"}
AFTER = {
    "nothing else": "",
    "faulthandler after": "faulthandler.enable()",
    "a fork": "if os.fork(): sys.exit(os.waitstatus_to_exitcode(os.wait()[1]))",
    "a fork with a handler of its own": """
        if os.fork(): sys.exit(os.waitstatus_to_exitcode(os.wait()[1]))
        signal.signal(signal.SIGBUS, signal.SIG_DFL)
    """,
    "the default again": "signal.signal(signal.SIGBUS, signal.SIG_DFL)",
}

PROGRAM = """
import faulthandler, os, signal, sys
import packds
{before}
path = sys.argv[1]
ds = packds.open(path)
info = ds.info()
{after}
os.truncate(path, 8192)
for read in (lambda: ds[500], lambda: ds[400:410], lambda: ds.columns["label"], lambda: ds.source_path(3)):
    try:
        print(read())
    except packds.ReadError as error:
        assert "changed while it was read" in str(error), error
    else:
        sys.exit("read beyond the end")
"""

# The handler is installed after the pack was opened and before the epoch begins.
EPOCH = """
import faulthandler, os, signal, sys
import packds
path = sys.argv[1]
loader = packds.Loader(path, batch_size=10, order="sequential", access="mapped", slots=2)
{after}
batches = iter(loader)
next(batches)
os.truncate(path, 8192)
try:
    for _ in batches:
        pass
except packds.ReadError as error:
    assert "changed while it was read" in str(error), error
else:
    sys.exit("read beyond the end")
"""


def ends_well(program: str, path) -> None:
    done = subprocess.run([sys.executable, "-c", program, path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("case", [*BEFORE, *AFTER])
def test_samples_of_a_pack_that_is_cut_short_are_an_error(case, numbered, tmp_path):
    path = shutil.copy(numbered, tmp_path / "a.pack")
    after = textwrap.dedent(AFTER.get(case, ""))
    ends_well(PROGRAM.format(before=BEFORE.get(case, ""), after=after), path)


@pytest.mark.parametrize("case", ["nothing else", "faulthandler after", "the default again"])
def test_an_epoch_of_a_pack_that_is_cut_short_ends_in_an_error(case, numbered, tmp_path):
    path = shutil.copy(numbered, tmp_path / "a.pack")
    ends_well(EPOCH.format(after=AFTER[case]), path)


def test_a_fault_elsewhere_is_still_faulthandlers(numbered):
    program = """
        import ctypes, faulthandler, mmap, os, sys, tempfile
        import packds
        ds = packds.open(sys.argv[1])
        faulthandler.enable()
        # Reading a sample puts the handler of packds first again.
        ds[0]
        with tempfile.TemporaryFile() as file:
            file.truncate(8192)
            mapped = mmap.mmap(file.fileno(), 8192)
            file.truncate(0)
            print(mapped[5000])
    """
    command = [sys.executable, "-c", textwrap.dedent(program), numbered]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == -7, done
    assert "Fatal Python error: Bus error" in done.stderr and "line 12" in done.stderr
    assert done.stderr.count("Fatal Python error") == 1
    assert os.path.exists(numbered)
