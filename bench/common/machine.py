"""The conditions of a measurement: the machine, its load, and whether files were in the page cache."""

from __future__ import annotations

import ctypes
import mmap
import os
import platform
import time
from collections.abc import Iterator
from pathlib import Path

PAGE = mmap.PAGESIZE


def describe() -> dict[str, object]:
    model = "unknown processor"
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {
        "cpu": model,
        "cores": len(os.sched_getaffinity(0)),
        "memory_bytes": memory,
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
    }


def busy_cores(seconds: float = 1.0) -> float:
    """The number of cores that all processes keep busy while this process sleeps."""

    def busy() -> int:
        fields = [int(field) for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
        # user, nice, system, irq, softirq; steal is left out, because it belongs to other machines
        return fields[0] + fields[1] + fields[2] + fields[5] + fields[6]

    before, start = busy(), time.perf_counter()
    time.sleep(seconds)
    return (busy() - before) / os.sysconf("SC_CLK_TCK") / (time.perf_counter() - start)


def files_of(path: Path) -> Iterator[Path]:
    if path.is_dir():
        yield from (file for file in path.rglob("*") if file.is_file())
    else:
        yield path


def warm(path: Path) -> int:
    """Reads a file, or all files of a folder, once. Returns their size in bytes."""
    buffer, total = bytearray(1 << 20), 0
    for file in files_of(path):
        with file.open("rb", buffering=0) as opened:
            while count := opened.readinto(buffer):
                total += count
    return total


def resident(path: Path) -> float:
    """The share of a file, or of all files of a folder, in the page cache."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    libc.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p]
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    pages = present = 0
    for file in files_of(path):
        size = file.stat().st_size
        if size == 0:
            continue
        with file.open("rb") as opened:
            place = libc.mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, opened.fileno(), 0)
        if place in (None, ctypes.c_void_p(-1).value):
            raise OSError(ctypes.get_errno(), "mmap", str(file))
        count = -(-size // PAGE)
        states = ctypes.create_string_buffer(count)
        if libc.mincore(place, size, states) == 0:
            present += sum(state & 1 for state in states.raw)
        pages += count
        libc.munmap(place, size)
    return present / max(pages, 1)


def evict(path: Path) -> None:
    """Drops a file, or all files of a folder, from the page cache, unless a process maps them."""
    for file in files_of(path):
        with file.open("rb") as opened:
            os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def to_disk(path: Path) -> int:
    """Syncs a file, or all files of a folder, to disk. Returns their size in bytes."""
    total = 0
    for file in files_of(path):
        with file.open("rb") as opened:
            os.fsync(opened.fileno())
            total += os.fstat(opened.fileno()).st_size
    return total
