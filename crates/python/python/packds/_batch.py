"""A batch as a program gets it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _packds
from ._arrays import as_numpy


class Batch:
    """Samples of one step of one rank, field by field: `batch["image"]`.

    Attributes:
        ids: The samples `[n]` int64, by their place in the file.
        step: The step, from 0 in each epoch.
        epoch: The epoch.
        padding: How many samples at the end only fill up the epoch's last batch.
        bad_samples: `(pack, sample, error)` of samples that were left out or replaced.
        packs: The pack of each sample `[n]` int64, by its place in the list; 0 where there is one.
        mix: `(partner, share)` where images were mixed: each is `share` of itself and the rest of its partner. In a batch that
            was cut shorter, partners may be rows that were cut off.
        is_lent: Whether arrays are the pack's own memory, which must not be written.
        is_copied: Whether arrays are copies, because too many batches were held already.
    """

    __slots__ = ("_values", "bad_samples", "epoch", "ids", "is_copied", "is_lent", "mix", "packs", "padding", "step")

    def __init__(self, native: _packds.Batch, values: dict[str, Any], n_samples: int, on_gpu: bool) -> None:
        """Of the native batch the first `n_samples`, as `values` has them already: on a GPU or not."""
        self._values = values
        self.ids = as_numpy(native.ids())[:n_samples]
        self.step = native.step
        self.epoch = native.epoch
        self.padding = native.padding - (len(native) - n_samples)
        self.bad_samples = native.bad_samples()
        self.packs = np.asarray(native.packs()[:n_samples], np.int64)
        mix = native.mix()
        self.mix = None if mix is None else (as_numpy(mix[0])[:n_samples], as_numpy(mix[1])[:n_samples])
        # A GPU has copied what the host was lent.
        self.is_lent = native.is_lent and not on_gpu
        self.is_copied = native.is_copied

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, name: str) -> Any:
        try:
            return self._values[name]
        except KeyError:
            raise KeyError(f"batches have no field {name!r}; they have {', '.join(self._values)}") from None

    # It is no sequence, whatever `__getitem__` and `__len__` look like: `images, labels = batch` is a mistake.
    __iter__ = None

    def __contains__(self, name: object) -> bool:
        return name in self._values

    def keys(self) -> Sequence[str]:
        """The fields."""
        return list(self._values)

    def as_dict(self) -> dict[str, Any]:
        """Every field by name."""
        return dict(self._values)

    def __repr__(self) -> str:
        return f"<packds.Batch: epoch {self.epoch}, step {self.step}, {len(self)} samples: {', '.join(self._values)}>"
