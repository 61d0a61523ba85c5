"""What packds raises."""

from __future__ import annotations

import re

_OPTION = re.compile(r"(?<![\w-])--([a-z][a-z-]*[a-z])")


def _words(text: str) -> str:
    """The command's options as Python calls them: `--on-error` is `on_error`."""
    return _OPTION.sub(lambda found: found[1].replace("-", "_"), text)


class Error(Exception):
    """Anything that packds raises itself.

    Attributes:
        hint: What to do about it, or None. It is in the text too.
    """

    hint: str | None

    def __init__(self, message: str = "", hint: str | None = None) -> None:
        self.hint = None if hint is None else _words(hint)
        text = _words(message)
        super().__init__(text if hint is None else f"{text}\nhint: {self.hint}")


class OptionError(Error, ValueError):
    """What was asked for is not possible: an option, a field that is not there, an index."""


class FormatError(Error):
    """A file is no pack, or a damaged one; the text names file, chunk, sample and bytes."""


class ConvertError(Error):
    """A conversion, an export or the writing of samples failed; nothing was left at the target."""


class ReadError(Error, OSError):
    """The system could not open or read a file, or it changed while it was open."""
