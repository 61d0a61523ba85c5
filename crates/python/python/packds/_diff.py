"""How two packs differ."""

from __future__ import annotations

from typing import Any

from . import _packds
from ._arrays import json_dict
from ._checks import truth
from ._convert import given_options
from ._dataset import Dataset, PathLike, opened
from ._habits import OF_EDITS, with_habits
from ._progress import Progress


@with_habits("packds.diff", OF_EDITS)
def diff(old: Dataset | PathLike, new: Dataset | PathLike, *, number: int = 10, progress: bool = True) -> dict[str, Any]:
    """Says how two packs differ: in fields, classes and samples. No image is decoded.

    >>> report = packds.diff("train.pack", "train.pack", progress=False)
    >>> report["is_equal"], report["n_equal"]
    (True, 28)

    Args:
        old: A `Dataset` or a path.
        new: The pack to compare with it.
        number: The maximum number of samples of each kind, and of classes, that are listed. All are counted.
        progress: Shows progress.

    Returns:
        The report: `is_equal`, `fields`, `classes`, `n_added`, `n_removed`, `n_changed`, `n_equal`, `changed` and others.

    Raises:
        ConvertError: A pack is damaged.
        OptionError: An option has a wrong value.
    """
    given = given_options("diff", locals())
    with Progress(truth("progress", progress), "comparing") as show:
        return json_dict(_packds.diff([opened(old)._pack, opened(new)._pack], given, show))
