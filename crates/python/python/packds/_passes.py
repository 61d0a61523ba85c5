"""Determines the epoch of each pass over a dataset, consistently in all processes that make its batches."""

from __future__ import annotations

import fcntl
import os
import secrets
import struct
from collections.abc import Callable

# A record: the process, two 64-bit numbers that identify who began the pass, and the epoch or `_NOT_SET`.
_RECORD = struct.Struct("<qqqq")
_NOT_SET = -1
# A record with this value instead of those two numbers does not begin a pass; it sets the epoch of the next one.
_NEXT = (0, -(1 << 63))
_NAME = "packds-passes"


class Passes:
    """The epochs of consecutive passes of a process that makes batches itself or has workers that do.

    The process that holds a DataLoader is not notified when a pass begins, and its workers are often recreated for each pass.
    So all of them share a list in memory. Each process appends a record with a single write, and the kernel keeps such records
    whole and in order. The first record of a pass determines its epoch in every process.
    """

    def __init__(self, epoch: int) -> None:
        #: Number of passes that this process has begun, including those of the process from which it was
        #: forked or spawned.
        self._begun = 0
        #: The last pass that this process began.
        self._last: tuple[int, int] | None = None
        self._start(epoch)

    def _start(self, epoch: int) -> None:
        self._owner = os.getpid()
        self._fd = os.memfd_create(_NAME)
        fcntl.fcntl(self._fd, fcntl.F_SETFL, os.O_APPEND)
        self.set(self._owner, epoch)

    @property
    def is_shared(self) -> bool:
        """Whether another process created the list."""
        return self._owner != os.getpid()

    def set(self, holder: int, epoch: int) -> None:
        """Sets the epoch of a process's next pass."""
        os.write(self._fd, _RECORD.pack(holder, *_NEXT, epoch))

    def next(self, holder: int) -> int:
        """The epoch of a process's next pass."""
        return self._read(holder)[0]

    def begin(self, holder: int, seed: int | None) -> int:
        """Begins a pass and returns its epoch. The workers of a pass have the same seed from their DataLoader."""
        # Persistent workers keep their seed. The seed and the number of passes begun identify workers of the same
        # pass.
        who = (secrets.randbits(63), 0) if seed is None else (seed, self._begun)
        self._append(holder, who, _NOT_SET)
        return self._read(holder)[1][who]

    def resume(self, holder: int, seed: int, epoch: int) -> None:
        """Sets the epoch of the pass that workers begin now, and the following epoch for the next pass."""
        # Resumed workers have the seed of the previous run, and a later pass of this run may have the same seed. The
        # inverted number distinguishes them.
        self._append(holder, (seed, ~self._begun), epoch)

    @property
    def are_of_workers(self) -> bool:
        """Whether workers began the last pass of this process. In that case, only they know its progress."""
        passes = self._read(os.getpid())[1]
        return bool(passes) and list(passes)[-1] != self._last

    def _append(self, holder: int, who: tuple[int, int], epoch: int) -> None:
        self._begun += 1
        self._last = who
        if who not in self._read(holder)[1]:
            os.write(self._fd, _RECORD.pack(holder, *who, epoch))

    def _read(self, holder: int) -> tuple[int, dict[tuple[int, int], int]]:
        """The next epoch, and the epoch of each pass so far, by who began it."""
        records = _RECORD.iter_unpack(os.pread(self._fd, os.fstat(self._fd).st_size, 0))
        # The initial epoch applies to every process.
        epoch, passes = next(records)[3], {}
        for whose, seed, begun, recorded in records:
            if whose != holder:
                continue
            if (seed, begun) == _NEXT:
                epoch = recorded
            elif (seed, begun) not in passes:
                passes[seed, begun] = epoch if recorded == _NOT_SET else recorded
                epoch = passes[seed, begun] + 1
        return epoch, passes

    # `close` is bound as a default, because at exit Python clears modules before it destroys the last objects.
    def __del__(self, close: Callable[[int], None] = os.close) -> None:
        try:
            close(self._fd)
        except (AttributeError, OSError):
            # The file was never opened, or the program closed all files, as daemons do.
            pass

    # Spawned processes share the list. A copy within the same process gets its own list.

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
    """The list of another process. None if that process has ended or is inaccessible."""
    try:
        # The process id may have been reused.
        if not os.readlink(place).startswith(f"/memfd:{_NAME}"):
            return None
        return os.open(place, os.O_RDWR | os.O_APPEND)
    except OSError:
        return None
