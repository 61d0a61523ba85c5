"""What packds raises."""

from __future__ import annotations

import os
import sys
import warnings
from typing import Any


def warn(text: str, kind: type[Warning] = UserWarning, source: Any = None) -> None:
    """Warns at the line outside of the package that led here."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and os.path.dirname(frame.f_code.co_filename) == os.path.dirname(__file__):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, kind, stacklevel=level, source=source)


class Error(Exception):
    """Anything that packds raises itself.

    Attributes:
        hint: What to do about it, or None. It is in the text too.
    """

    __module__ = "packds"
    hint: str | None

    def __init__(self, message: str = "", hint: str | None = None) -> None:
        self.hint = hint
        super().__init__(message if hint is None else f"{message}\nhint: {hint}")

    def __str__(self) -> str:
        # With `errno` and `filename` the system's errors would say these instead.
        return str(self.args[0])

    def __reduce__(self) -> tuple[Any, ...]:
        of_system = {name: getattr(self, name) for name in ("errno", "filename") if hasattr(self, name)}
        return type(self), self.args, {**self.__dict__, **of_system}


class OptionError(Error, ValueError):
    """What was asked for is not possible: an option, a field that is not there, an index."""

    __module__ = "packds"


class FormatError(Error):
    """A file is no pack, or a damaged one; the text names file, chunk, sample and bytes."""

    __module__ = "packds"


class ConvertError(Error):
    """A conversion, an export or the writing of samples failed; nothing was left at the target."""

    __module__ = "packds"


class ReadError(Error, OSError):
    """The system could not open or read a file, or it changed while it was open. `errno` is the system's number, where it gave one."""

    __module__ = "packds"


class NotFoundError(ReadError, FileNotFoundError):
    """There is no such pack. `filename` is its path."""

    __module__ = "packds"


class SourceNotFoundError(ConvertError, FileNotFoundError):
    """There is no such source of a conversion, or no such file that a manifest names. `filename` is its path."""

    __module__ = "packds"
