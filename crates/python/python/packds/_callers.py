"""Who iterates over a data set: PyTorch and accelerate tell a data set nothing, so their frames are looked at."""

from __future__ import annotations

import sys
from types import FrameType

from ._errors import OptionError

# What iterates over a prepared DataLoader. accelerate's launchers call whole trainings, prepared or not.
_PREPARED = "accelerate.data_loader"


def refuse_collation() -> None:
    """Refuses a DataLoader that would make batches of batches. To be called where `__iter__` is what PyTorch calls."""
    fetcher = sys._getframe(2).f_locals.get("self")
    if getattr(fetcher, "auto_collation", False):
        raise OptionError("an IterableDataset gives whole batches, which this DataLoader would batch again", "give it batch_size=None")


def refuse_preparation() -> None:
    """Refuses a DataLoader that accelerate has prepared. It would divide batches among processes, which are this rank's share already,
    and set the epoch of each pass, whatever `set_epoch` or a loaded state have said.

    Workers that are forked have the frames of the process that started them, and what goes to others is pickled under these.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_globals.get("__name__") == _PREPARED:
            text = "accelerate would divide batches that are one process's share already, and set the epoch of each pass"
            raise OptionError(text, "leave the DataLoader out of prepare()")
        frame = frame.f_back
