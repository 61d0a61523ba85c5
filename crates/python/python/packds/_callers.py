"""Who iterates over a data set: PyTorch and accelerate tell a data set nothing, so their frames are looked at."""

from __future__ import annotations

import sys
from types import FrameType

from ._errors import OptionError

# What iterates over a prepared DataLoader. accelerate's launchers call whole trainings, prepared or not.
_DIVIDER = "accelerate.data_loader"


def refuse_collation() -> None:
    """Refuses a DataLoader that would make batches of batches. To be called where `__iter__` is what PyTorch calls."""
    fetcher = sys._getframe(2).f_locals.get("self")
    if getattr(fetcher, "auto_collation", False):
        raise OptionError("an IterableDataset gives whole batches, which this DataLoader would batch again", "give it batch_size=None")


def refuse_division(world: int) -> None:
    """Refuses a DataLoader whose batches accelerate divides among processes: they are this rank's share already.

    Workers that are forked have the frames of the process that started them, and what goes to others is pickled under these.
    """
    frame: FrameType | None = sys._getframe(1)
    while world > 1 and frame is not None:
        if frame.f_globals.get("__name__") == _DIVIDER:
            text = f"accelerate would divide batches among {world} processes that are divided among them already"
            raise OptionError(text, "leave the DataLoader out of prepare()")
        frame = frame.f_back
