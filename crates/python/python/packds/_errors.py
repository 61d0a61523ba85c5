"""What packds raises."""

from __future__ import annotations

import os
import re
import sys
import warnings
from typing import Any

# A whole command stays one: `packds info --shuffle`.
_OPTION = re.compile(r"`packds [^`]*`|(?<![\w-])--([a-z][a-z-]*[a-z])")
_RENAMED = {"from": "from_format"}


def words(text: str) -> str:
    """The command's options as Python calls them: `--on-error` is `on_error`, `--from` is `from_format`."""

    def word(found: re.Match[str]) -> str:
        name = found[1]
        return found[0] if name is None else _RENAMED.get(name, name.replace("-", "_"))

    return _OPTION.sub(word, text)


#: What of a report is sentences. All else is names and numbers, which stay as they are.
_SENTENCES = ("lost", "notes", "text", "warnings", "why")


def in_words(report: Any, key: str = "") -> Any:
    """A report of the native part with its sentences in Python's words."""
    if isinstance(report, dict):
        return {name: in_words(value, name) for name, value in report.items()}
    if isinstance(report, list):
        return [in_words(value, key) for value in report]
    return words(report) if isinstance(report, str) and key in _SENTENCES else report


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

    hint: str | None

    def __init__(self, message: str = "", hint: str | None = None) -> None:
        self.hint = None if hint is None else words(hint)
        text = words(message)
        super().__init__(text if hint is None else f"{text}\nhint: {self.hint}")


class OptionError(Error, ValueError):
    """What was asked for is not possible: an option, a field that is not there, an index."""


class FormatError(Error):
    """A file is no pack, or a damaged one; the text names file, chunk, sample and bytes."""


class ConvertError(Error):
    """A conversion, an export or the writing of samples failed; nothing was left at the target."""


class ReadError(Error, OSError):
    """The system could not open or read a file, or it changed while it was open."""
