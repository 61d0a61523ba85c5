"""The Python environment of the comparisons."""

from __future__ import annotations

import os
import sys
from pathlib import Path

VENV = Path(__file__).resolve().parent.parent / ".venv"


def enter_venv() -> None:
    """Restarts the script in bench/.venv, if it exists and no other environment was chosen."""
    python = VENV / "bin" / "python"
    if sys.prefix == sys.base_prefix and python.exists():
        os.execv(python, [str(python), *sys.argv])


def counts(text: str) -> tuple[int, ...]:
    """Option type: comma-separated positive integers."""
    numbers = tuple(int(count) for count in text.split(","))
    if min(numbers) < 1:
        raise ValueError(text)
    return numbers
