"""The selected samples of a pack."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ._dataset import Dataset, Field
from ._display import counted


class Subset:
    """Selected samples of a pack. As in PyTorch's `Subset`, item `i` is `dataset[indices[i]]`.

    >>> subset = packds.Loader("train.pack", batch_size=2, samples=[0, 4, 8, 9]).dataset
    >>> len(subset), subset.indices
    (4, array([0, 4, 8, 9]))
    >>> bool((subset[1]["image"] == subset.dataset[4]["image"]).all())
    True

    Attributes:
        dataset: The whole pack. The `ids` of batches are positions in it.
        indices: The positions of the selected samples in the pack.
    """

    def __init__(self, dataset: Dataset, indices: Sequence[int]) -> None:
        self.dataset = dataset
        self.indices = np.asarray(indices, np.int64)

    @property
    def path(self) -> str:
        """The path of the pack."""
        return self.dataset.path

    @property
    def fields(self) -> dict[str, Field]:
        """Every field by name."""
        return self.dataset.fields

    @property
    def classes(self) -> list[str]:
        """The name of each class id of the pack."""
        return self.dataset.classes

    @property
    def labels(self) -> np.ndarray[Any, Any]:
        """The labels of these samples.

        >>> subset = packds.Loader("train.pack", batch_size=2, samples=[0, 4, 8, 9]).dataset
        >>> subset.labels.shape
        (4,)

        Raises:
            OptionError: The pack has no labels.
        """
        labels: np.ndarray[Any, Any] = self.dataset.labels[self.indices]
        return labels

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, index: Any) -> dict[str, Any]:
        """One sample, or several by a slice, a list of indices or a mask, like a `Dataset`."""
        return self.dataset[self.indices[index]]

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (self.dataset[index] for index in self.indices)

    def __repr__(self) -> str:
        return f"<packds.Subset of {len(self)} of {counted(len(self.dataset), 'sample')} of {self.path!r}>"
