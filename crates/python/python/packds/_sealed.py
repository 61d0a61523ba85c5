"""Objects with few assignable attributes. Assigning to any other attribute would have no effect, so it is an error."""

from __future__ import annotations

import difflib
import inspect
from typing import TYPE_CHECKING, Any, ClassVar


class Sealed:
    """Rejects assignments to public attributes other than `_ASSIGNABLE`, after `_seal()`. Subclasses outside the package may
    have more attributes."""

    _ASSIGNABLE: ClassVar[tuple[str, ...]] = ()
    #: What errors call the object.
    _NOUN: ClassVar[str] = "dataset"
    #: The public attributes after construction. None until then.
    _sealed: frozenset[str] | None = None

    def _seal(self) -> None:
        """Must be called at the end of `__init__`."""
        self._sealed = frozenset(name for name in self.__dict__ if not name.startswith("_"))

    if not TYPE_CHECKING:

        def __setattr__(self, name: str, value: Any) -> None:
            if self._sealed is not None and not name.startswith("_") and name not in self._ASSIGNABLE:
                self._refuse(name)
            super().__setattr__(name, value)

    def _refuse(self, name: str) -> None:
        ours = next(one for one in type(self).__mro__ if one.__module__.partition(".")[0] == "packds")
        shown = {one for one in dir(ours) if not one.startswith("_")} | (self._sealed or frozenset())
        options = {one.name for one in inspect.signature(ours).parameters.values() if one.kind is not one.VAR_KEYWORD}
        if f"set_{name}" in shown:
            raise AttributeError(f"{name} cannot be assigned: call set_{name}()")
        *others, last = self._ASSIGNABLE or ("none of its attributes",)
        can = f"{', '.join(others)} and {last} can be assigned" if others else f"{last} can be assigned"
        if name in shown | options:
            raise AttributeError(f"{name} cannot be changed: make another {self._NOUN}; {can}")
        if type(self) is ours:
            alike = difflib.get_close_matches(name, [*self._ASSIGNABLE, *sorted(shown | options)], 1)
            guess = f": did you mean {alike[0]}?" if alike else ";"
            raise AttributeError(f"a {ours.__name__} has no attribute {name!r}{guess} {can}")
