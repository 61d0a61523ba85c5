"""Docstrings, and the examples in them."""

import doctest
import functools
import inspect
import pathlib
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np

import packds


def members(name: str, thing: Any) -> Iterator[tuple[str, Any]]:
    """A named thing, and if it is a class, its public methods and properties."""
    yield name, thing
    for own, value in vars(thing).items() if inspect.isclass(thing) else ():
        if not own.startswith("_") and (callable(value) or isinstance(value, (property, functools.cached_property))):
            yield f"{name}.{own}", value


def public(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """The public names of a module, without its constants."""
    for name in module.__all__:
        if callable(thing := getattr(module, name)):
            yield from members(f"{module.__name__}.{name}", thing)


def check_docstrings(module: ModuleType) -> None:
    """Every public name has a docstring. Those of functions, classes and methods have an example; the example of a class may
    also show its properties."""
    for name, thing in public(module):
        text = inspect.getdoc(thing)
        assert text, f"{name} has no docstring"
        assert ">>> " in text or not callable(thing), f"the docstring of {name} has no example"


def examples(module: ModuleType) -> Iterator[doctest.DocTest]:
    """The examples of a module, including those of private functions. Each docstring is a separate test."""
    documented = [(module.__name__, module)]
    for name, thing in vars(module).items():
        if getattr(thing, "__module__", None) == module.__name__:
            documented += members(f"{module.__name__}.{name}", thing)
    names = {"np": np, "packds": packds} | vars(module)
    for name, thing in documented:
        yield doctest.DocTestParser().get_doctest(inspect.getdoc(thing) or "", names, name, None, 0)


def check_examples(module: ModuleType, photos: pathlib.Path, pack: pathlib.Path, folder: pathlib.Path, monkeypatch: Any) -> None:
    """Runs the examples of a module. Each starts in a new folder with the photographs, and a pack of them."""
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    for test in examples(module):
        if not test.examples:
            continue
        (place := folder / test.name).mkdir()
        (place / "photos").symlink_to(photos)
        (place / "train.pack").symlink_to(pack)
        monkeypatch.chdir(place)
        runner.run(test)
    assert runner.failures == 0
