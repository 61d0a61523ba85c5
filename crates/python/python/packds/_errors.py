"""What packds raises."""

from __future__ import annotations

import os
import re
import sys
import warnings
from typing import Any

_RENAMED = {"from": "from_format"}
# What may stand behind an option as its value; what else is there goes on with the sentence. Keys and formats may be any word but
# the few that do.
_VALUE = (
    r"\d+(?:\.\d+)?|[A-Z]{2,}(?:/[A-Z]+|xHEIGHT)?|(?:center|short|long|max):\w+|raw|encoded|mixed|skip|substitute|stop|all|none|"
    r"dataset|imagenet|pixels|[uif]\d+|bf16|hwc|chw|zstd|"
    r"(?:(?<=-key )|(?<=--from )|(?<=--to ))(?!(?:and|are|for|is|name|names|or|out)\b)[\w./-]*\w"
)
_OPTION = re.compile(
    # A whole command stays one: `packds info --shuffle`.
    r"`\w+ [^`]*`|'packds (?P<command>formats|verify)'|"
    # A switch alone, an option with a value, or what something is said of.
    r"'--(?P<switch>[a-z-]+)'|"
    rf"(?P<quote>'?)(?<![\w-])--(?P<name>[a-z][a-z-]*[a-z])(?: (?P<value>{_VALUE})(?![\w/])| <[^>]*>)?(?P=quote)|"
    r"(?<![\w/])(?P<pair>MEAN/STD)(?![\w/])"
)
_COMMANDS = {"formats": "packds.formats()", "verify": "packds.open(path).verify()"}
_PAIRS = {"WIDTHxHEIGHT": "(width, height)", "MEAN/STD": "(mean, std)"}

# What the command's parser says of a value, and how it names numbers.
_INVALID = re.compile(
    r"invalid value '(?P<found>.*)' for '--(?P<name>[a-z-]+) <[^>]*>'"
    r"(?:: (?:invalid \w+: )?(?P<why>.*)|\s*\[possible values: (?P<known>.*)\])?",
    re.DOTALL,
)
_RANGE = re.compile(r"\S+ is not in (\d+)\.\.(=?)(\d+)")
_NO_NUMBER = {"invalid digit found in string": "a whole number from 0 on", "invalid float literal": "a number"}


def _name(option: str) -> str:
    return _RENAMED.get(option, option.replace("-", "_"))


def words(text: str) -> str:
    """The command's options as Python has them: `--on-error` is `on_error`, `--from npz` is `from_format='npz'`, `'--force'` is
    `force=True`, and what its parser says of a value is said as the package does."""
    invalid = _INVALID.fullmatch(text)
    return _OPTION.sub(_word, text) if invalid is None else _invalid(invalid)


def _word(found: re.Match[str]) -> str:
    if found["command"]:
        return _COMMANDS[found["command"]]
    if found["pair"]:
        return _PAIRS[found["pair"]]
    if found["switch"]:
        return f"{_name(found['switch'])}=True"
    if not found["name"]:
        return found[0]
    name, value = _name(found["name"]), found["value"]
    if value is None:
        return name
    is_plain = value in _PAIRS or value[0].isdigit()
    return f"{name}={_PAIRS.get(value, value) if is_plain else repr(value)}"


def _invalid(said: re.Match[str]) -> str:
    """`name: expected .., found ..`."""
    name, found, why = _name(said["name"]), said["found"], said["why"] or ""
    if said["known"]:
        *others, last = said["known"].split(", ")
        return f"{name}: expected {', '.join(others)} or {last}, found {found!r}"
    if within := _RANGE.fullmatch(why):
        return f"{name}: expected {within[1]} to {within[3] if within[2] else int(within[3]) - 1}, found {found}"
    if why in _NO_NUMBER:
        return f"{name}: expected {_NO_NUMBER[why]}, found {found}"
    return f"{name}: {why}" if "found" in why else f"{name}: {why or 'not possible'}, found {found!r}"


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

    __module__ = "packds"
    hint: str | None

    def __init__(self, message: str = "", hint: str | None = None) -> None:
        self.hint = None if hint is None else words(hint)
        text = words(message)
        super().__init__(text if hint is None else f"{text}\nhint: {self.hint}")

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
