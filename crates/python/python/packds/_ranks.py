"""Determines the rank of this process in distributed training."""

from __future__ import annotations

import os
import sys
from typing import Union

from ._checks import two, whole
from ._errors import OptionError

RankLike = Union[str, None, "tuple[int, int]"]


def ranks(rank: RankLike) -> tuple[int, int]:
    """Rank and world size: the given pair, (0, 1) for None, or for `"env"` those of PyTorch or torchrun."""
    if rank is None:
        return 0, 1
    if isinstance(rank, str):
        if rank != "env":
            raise OptionError(f"rank: expected 'env', None or (rank, world), found {rank!r}")
        return _of_torch() or _of_environment() or (0, 1)
    number, world = two("rank", "'env', None or (rank, world)", rank)
    return whole("rank", number, 32), whole("world", world, 32)


def check_group(rank: RankLike, found: tuple[int, int]) -> None:
    """Fails if the rank was read before the process group existed. In that case, all ranks would load the same samples."""
    group = _of_torch() if isinstance(rank, str) and rank == "env" else None
    if group is None or group == found:
        return
    (number, world), (made_as, of) = group, found
    text = f"torch.distributed says rank {number} of {world}, but this loader was created as rank {made_as} of {of}"
    raise OptionError(text, "create it after init_process_group, or pass rank=(rank, world)")


def _of_torch() -> tuple[int, int] | None:
    # If torch is not imported, torch.distributed is not used.
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
        text = f"RANK and WORLD_SIZE must be whole numbers, found RANK={rank!r} and WORLD_SIZE={world!r}"
        raise OptionError(text, "pass rank=(rank, world), or rank=None") from None
