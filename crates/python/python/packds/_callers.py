"""Finds out who iterates over a dataset, by inspecting stack frames, because PyTorch and accelerate do not provide this information."""

from __future__ import annotations

import sys
from types import FrameType

from ._errors import OptionError

# The module of accelerate that iterates over a prepared DataLoader. Other modules of accelerate may call any training
# code, prepared or not.
_PREPARED = "accelerate.data_loader"


def refuse_collation() -> None:
    """Rejects a DataLoader that would make batches of batches. Call this function in the `__iter__` that PyTorch calls."""
    fetcher = sys._getframe(2).f_locals.get("self")
    if getattr(fetcher, "auto_collation", False):
        text = "a packds IterableDataset yields whole batches, and this DataLoader would batch them again"
        raise OptionError(text, "pass batch_size=None to the DataLoader")


def refuse_preparation() -> None:
    """Rejects a DataLoader that accelerate has prepared. accelerate would divide batches among processes, although each batch is
    already this rank's share. It would also set the epoch of each pass, overriding `set_epoch` and loaded states.

    Forked workers have the stack frames of the process that started them. For other workers, the dataset is pickled while
    these frames are on the stack.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_globals.get("__name__") == _PREPARED:
            text = "accelerate would divide batches that are already one process's share, and set the epoch of each pass"
            raise OptionError(text, "leave the DataLoader out of prepare()")
        frame = frame.f_back
