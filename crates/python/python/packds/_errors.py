"""The exceptions that packds raises."""

from __future__ import annotations

import os
import sys
import warnings
from typing import Any


def warn(text: str, kind: type[Warning] = UserWarning, source: Any = None) -> None:
    """Issues a warning. Its location is the line of the program that called the package."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and os.path.dirname(frame.f_code.co_filename) == os.path.dirname(__file__):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, kind, stacklevel=level, source=source)


class Error(Exception):
    """The base class of the exceptions that packds itself raises.

    >>> try:
    ...     packds.convert("photos", "train.pack", progress=False)
    ... except packds.Error as error:
    ...     print(error.hint)
    force=True replaces it

    Attributes:
        hint: What to do about the error, or None. The message includes it.
    """

    __module__ = "packds"
    hint: str | None

    def __init__(self, message: str = "", hint: str | None = None) -> None:
        self.hint = hint
        super().__init__(message if hint is None else f"{message}\nhint: {hint}")

    def __str__(self) -> str:
        # If `errno` and `filename` are set, an OSError would print these instead of the message.
        return str(self.args[0])

    def __reduce__(self) -> tuple[Any, ...]:
        of_system = {name: getattr(self, name) for name in ("errno", "filename") if hasattr(self, name)}
        return type(self), self.args, {**self.__dict__, **of_system}


class OptionError(Error, ValueError):
    """The request is invalid: an unknown or unsuitable option, a missing field, an index out of range.

    >>> packds.Loader("train.pack", batch_size=1000)
    Traceback (most recent call last):
    packds.OptionError: no whole batch: expected at least the global batch of 1000 samples, found 28...
    """

    __module__ = "packds"


class FormatError(Error):
    """A file is not a pack, or is damaged. The message names the file, the chunk, the sample and the bytes.

    >>> packds.open("photos/cat/face.jpg")
    Traceback (most recent call last):
    packds.FormatError: photos/cat/face.jpg: not a pack...
    """

    __module__ = "packds"


class ConvertError(Error):
    """A conversion, an export or a writer failed. Nothing was left at the target.

    >>> packds.convert("photos", "missing/photos.pack", progress=False)
    Traceback (most recent call last):
    packds.ConvertError: missing/photos.pack: the folder missing does not exist...
    """

    __module__ = "packds"


class ReadError(Error, OSError):
    """The system could not open or read a file, or the file changed while it was open. `errno` is the system's error number, or
    None.

    >>> packds.open("photos")
    Traceback (most recent call last):
    packds.ReadError: photos: cannot open: ...
    """

    __module__ = "packds"


class NotFoundError(ReadError, FileNotFoundError):
    """The pack does not exist. `filename` is its path.

    >>> try:
    ...     packds.open("missing.pack")
    ... except FileNotFoundError as error:
    ...     print(error.filename)
    missing.pack
    """

    __module__ = "packds"


class SourceNotFoundError(ConvertError, FileNotFoundError):
    """The source of a conversion, or a file that a manifest names, does not exist. `filename` is its path.

    >>> try:
    ...     packds.convert("missing", "photos.pack", progress=False)
    ... except FileNotFoundError as error:
    ...     print(error.filename)
    missing
    """

    __module__ = "packds"
