"""Finds out who iterates over a dataset. PyTorch and accelerate pass no information, so their stack frames are inspected."""

from __future__ import annotations

import sys
from types import FrameType

from ._errors import OptionError

# The module that iterates over a prepared DataLoader. accelerate's launchers call all training code,
# prepared or not.
_PREPARED = "accelerate.data_loader"


def refuse_collation() -> None:
    """Rejects a DataLoader that would make batches of batches. Call it from the `__iter__` that PyTorch calls."""
    fetcher = sys._getframe(2).f_locals.get("self")
    if getattr(fetcher, "auto_collation", False):
        raise OptionError("an IterableDataset gives whole batches, which this DataLoader would batch again", "give it batch_size=None")


def refuse_preparation() -> None:
    """Rejects a DataLoader that accelerate has prepared. It would divide batches among processes, although they are already
    this rank's share. It would also set the epoch of each pass, whatever `set_epoch` or a loaded state says.

    Forked workers have the frames of the process that started them. For other workers, the dataset is pickled under these
    frames.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_globals.get("__name__") == _PREPARED:
            text = "accelerate would divide batches that are one process's share already, and set the epoch of each pass"
            raise OptionError(text, "leave the DataLoader out of prepare()")
        frame = frame.f_back
