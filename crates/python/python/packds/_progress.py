"""Progress of a long call: a tqdm bar if it is installed, else an occasional line."""

from __future__ import annotations

import sys
import time
from typing import Any

_LINE_EVERY = 10.0


class Progress:
    """Shows the progress of a call.

    As a context manager, it returns the function that reports progress, or None if nothing is shown.
    """

    def __init__(self, shown: bool, what: str, unit: str = " images") -> None:
        self._shown = shown
        self._what = what
        self._unit = unit
        self._bar: Any = None
        self._last = time.monotonic()

    def __enter__(self) -> Progress | None:
        if not self._shown:
            return None
        try:
            from tqdm.auto import tqdm  # type: ignore[import-untyped, unused-ignore]
        except ImportError:
            return self
        # Short calls show nothing.
        self._bar = tqdm(desc=self._what, unit=self._unit, unit_scale=self._unit == "B", delay=0.5)
        return self

    def __call__(self, done: int, total: int, phase: str) -> None:
        if self._bar is not None:
            if phase:
                self._bar.set_description_str(phase, refresh=False)
            self._bar.total = total or None
            self._bar.update(done - self._bar.n)
        elif time.monotonic() - self._last >= _LINE_EVERY and total:
            self._last = time.monotonic()
            print(f"packds: {phase or self._what}: {done} of {total}{self._unit}", file=sys.stderr)

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()
