"""Which of the processes that train together this is."""

from __future__ import annotations

import os
import sys
from typing import Union

from ._errors import OptionError

RankLike = Union[str, None, "tuple[int, int]"]


def ranks(rank: RankLike) -> tuple[int, int]:
    """Rank and world: as given, (0, 1) for None, and for `"env"` what PyTorch or torchrun say."""
    if rank is None:
        return 0, 1
    if rank == "env":
        return _of_torch() or _of_environment() or (0, 1)
    if isinstance(rank, str):
        raise OptionError(f"rank: expected env, None or (rank, world), found {rank!r}")
    number, world = rank
    return int(number), int(world)


def _of_torch() -> tuple[int, int] | None:
    # Who has not imported it does not train with it.
    torch = sys.modules.get("torch")
    distributed = getattr(torch, "distributed", None)
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    return distributed.get_rank(), distributed.get_world_size()


def _of_environment() -> tuple[int, int] | None:
    rank, world = os.environ.get("RANK"), os.environ.get("WORLD_SIZE")
    if rank is None or world is None:
        return None
    try:
        return int(rank), int(world)
    except ValueError:
        text = f"RANK={rank!r} and WORLD_SIZE={world!r} are no numbers"
        raise OptionError(text, "give rank=(rank, world), or rank=None") from None
