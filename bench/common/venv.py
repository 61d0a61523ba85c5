"""The environment that the comparisons run in."""

from __future__ import annotations

import os
import sys
from pathlib import Path

VENV = Path(__file__).resolve().parent.parent / ".venv"


def enter_venv() -> None:
    """Starts the script again in bench/.venv, where there is one and no other was chosen."""
    python = VENV / "bin" / "python"
    if sys.prefix == sys.base_prefix and python.exists():
        os.execv(python, [str(python), *sys.argv])


def counts(text: str) -> tuple[int, ...]:
    """Numbers from 1, by commas: an option's type."""
    numbers = tuple(int(count) for count in text.split(","))
    if min(numbers) < 1:
        raise ValueError(text)
    return numbers
