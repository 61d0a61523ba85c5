"""Resources used by a process and its children, from /proc."""

from __future__ import annotations

import os
from pathlib import Path


def family(pid: int) -> list[int]:
    """The ids of the process and all its living descendants."""
    found = [pid]
    for member in found:
        try:
            for task in Path(f"/proc/{member}/task").iterdir():
                found += [int(child) for child in (task / "children").read_text().split()]
        except OSError:
            continue
    return found


def cpu_seconds(pid: int) -> float:
    """CPU time of the process and its descendants, including those that ended and were waited for."""
    ticks = 0
    for member in family(pid):
        try:
            # The command's name may contain spaces. The fields after the last bracket cannot.
            fields = Path(f"/proc/{member}/stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        ticks += sum(int(field) for field in fields[11:15])
    return ticks / os.sysconf("SC_CLK_TCK")


def memory_bytes(pid: int, key: str) -> int:
    """The sum of a line of /proc/PID/status, such as RssAnon or VmHWM, over the process and its descendants."""
    total = 0
    for member in family(pid):
        try:
            lines = Path(f"/proc/{member}/status").read_text().splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) for line in lines if line.startswith(f"{key}:"))
    return total * 1024
