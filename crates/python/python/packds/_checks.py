"""Checks the types of arguments. Errors name the argument."""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ._errors import OptionError


def _short(value: Any) -> str:
    """The start of a value's `repr`."""
    text = repr(value)
    return text if len(text) <= 100 else text[:97] + "..."


def path(name: str, value: Any) -> str:
    """A path as a string."""
    try:
        text = os.fspath(value)
    except TypeError:
        text = None
    if not isinstance(text, str):
        raise OptionError(f"{name}: expected a path, found {_short(value)}")
    return text


def text(name: str, value: Any) -> str:
    """A string."""
    if not isinstance(value, str):
        raise OptionError(f"{name}: expected a string, found {_short(value)}")
    return value


def truth(name: str, value: Any) -> bool:
    """A Python or NumPy bool."""
    if not isinstance(value, bool) and not (type(value).__module__ == "numpy" and type(value).__name__ in ("bool", "bool_")):
        raise OptionError(f"{name}: expected True or False, found {_short(value)}")
    return bool(value)


def whole(name: str, value: Any, bits: int) -> int:
    """An integer of 0 or more that fits in this many bits."""
    try:
        number = operator.index(value)
    except TypeError:
        raise OptionError(f"{name}: expected a whole number, found {_short(value)}") from None
    if not 0 <= number < 1 << bits:
        raise OptionError(f"{name}: expected 0 to 2**{bits} - 1, found {number}")
    return number


def number(name: str, value: Any) -> float:
    """A number, but not a string."""
    try:
        if isinstance(value, (str, bytes)):
            raise TypeError
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise OptionError(f"{name}: expected a number, found {_short(value)}") from None


def several(name: str, what: str, value: Any) -> list[Any]:
    """The items of a list, a tuple, an array or similar, but not of a string or a dict."""
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, (Sequence, Iterable)):
        raise OptionError(f"{name}: expected {what}, found {_short(value)}")
    try:
        return list(value)
    except TypeError:
        # A zero-dimensional array.
        raise OptionError(f"{name}: expected {what}, found {_short(value)}") from None


def numbers(name: str, value: Any) -> list[float]:
    """Several numbers."""
    return [number(name, one) for one in several(name, "numbers", value)]


def names(name: str, value: Any) -> list[str]:
    """One name or several."""
    found = [value] if isinstance(value, str) else several(name, "names", value)
    for one in found:
        if not isinstance(one, str):
            raise OptionError(f"{name}: expected names, found {_short(one)}")
    return found


def two(name: str, what: str, value: Any) -> tuple[Any, Any]:
    """A pair."""
    found = several(name, what, value)
    if len(found) != 2:
        raise OptionError(f"{name}: expected {what}, found {_short(value)}")
    return found[0], found[1]
