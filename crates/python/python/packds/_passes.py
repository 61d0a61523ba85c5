"""Which epoch each pass over a data set is, counted by all processes that make its batches."""

from __future__ import annotations

import fcntl
import os
import secrets
import struct
from collections.abc import Callable

# Whose pass, who begins it (twice 64 bits), and the epoch that it is, or that nothing is said of it.
_RECORD = struct.Struct("<qqqq")
_UNSAID = -1
# In place of who begins it: no pass begins, the epoch is that of the next one.
_NEXT = (0, -(1 << 63))
_NAME = "packds-passes"


class Passes:
    """The epochs of the passes that a process makes, itself or by workers: one after the other.

    Nobody tells the process that holds a DataLoader when a pass begins, and its workers are often made anew for each. So all
    of them share a list in memory, to which each appends by single writes, which the kernel keeps whole and in an order:
    a pass is what the first record of it says, in every process alike.
    """

    def __init__(self, epoch: int) -> None:
        #: Passes that this process has begun, with those of the process that it was forked or spawned from.
        self._begun = 0
        #: The pass that this process began last.
        self._last: tuple[int, int] | None = None
        self._start(epoch)

    def _start(self, epoch: int) -> None:
        self._owner = os.getpid()
        self._fd = os.memfd_create(_NAME)
        fcntl.fcntl(self._fd, fcntl.F_SETFL, os.O_APPEND)
        self.set(self._owner, epoch)

    @property
    def is_shared(self) -> bool:
        """Whether another process made the list."""
        return self._owner != os.getpid()

    def set(self, holder: int, epoch: int) -> None:
        """Makes the next pass of a process this epoch."""
        os.write(self._fd, _RECORD.pack(holder, *_NEXT, epoch))

    def next(self, holder: int) -> int:
        """The epoch of a process's next pass."""
        return self._read(holder)[0]

    def begin(self, holder: int, seed: int | None) -> int:
        """The epoch of a pass that begins now. Workers have the seed of their DataLoader's pass, which is the same in all."""
        # Workers that live on keep their seed: by it and by how many passes they have begun they know each other.
        who = (secrets.randbits(63), 0) if seed is None else (seed, self._begun)
        self._append(holder, who, _UNSAID)
        return self._read(holder)[1][who]

    def resume(self, holder: int, seed: int, epoch: int) -> None:
        """Makes the pass that workers begin now this epoch, and the next pass the one behind it."""
        # Workers that go on have the seed of the run before, which a later pass of this run may be given too: its number
        # would be the same, but for the sign.
        self._append(holder, (seed, ~self._begun), epoch)

    @property
    def are_of_workers(self) -> bool:
        """Whether the last pass of this process was begun by workers: only they know how far it is."""
        passes = self._read(os.getpid())[1]
        return bool(passes) and list(passes)[-1] != self._last

    def _append(self, holder: int, who: tuple[int, int], epoch: int) -> None:
        self._begun += 1
        self._last = who
        if who not in self._read(holder)[1]:
            os.write(self._fd, _RECORD.pack(holder, *who, epoch))

    def _read(self, holder: int) -> tuple[int, dict[tuple[int, int], int]]:
        """The epoch that comes next, and those of all passes begun so far, by who began them."""
        records = _RECORD.iter_unpack(os.pread(self._fd, os.fstat(self._fd).st_size, 0))
        # What it began with is for every process.
        epoch, passes = next(records)[3], {}
        for whose, seed, begun, said in records:
            if whose != holder:
                continue
            if (seed, begun) == _NEXT:
                epoch = said
            elif (seed, begun) not in passes:
                passes[seed, begun] = epoch if said == _UNSAID else said
                epoch = passes[seed, begun] + 1
        return epoch, passes

    # Bound here: when a process ends, its modules are emptied before its last objects go.
    def __del__(self, close: Callable[[int], None] = os.close) -> None:
        try:
            close(self._fd)
        except (AttributeError, OSError):
            # It was never opened, or somebody closed all files, as daemons do.
            pass

    # Spawned processes share the list. What is copied within a process counts for itself.

    def __getstate__(self) -> tuple[int, int, str, int]:
        return self._begun, os.getpid(), f"/proc/{os.getpid()}/fd/{self._fd}", self.next(os.getpid())

    def __setstate__(self, state: tuple[int, int, str, int]) -> None:
        self._begun, maker, place, epoch = state
        self._last = None
        fd = None if maker == os.getpid() else _opened(place)
        if fd is None:
            self._start(epoch)
        else:
            self._owner, self._fd = maker, fd


def _opened(place: str) -> int | None:
    """The list of another process; None where that is gone, or out of reach."""
    try:
        # A number may have gone to another process since.
        if not os.readlink(place).startswith(f"/memfd:{_NAME}"):
            return None
        return os.open(place, os.O_RDWR | os.O_APPEND)
    except OSError:
        return None
