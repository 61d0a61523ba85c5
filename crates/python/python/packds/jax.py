"""Converts batches to JAX arrays. `packds.Loader(..., output="jax")` returns them directly."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from ._batch import make_known

__all__ = ["arrays"]

make_known()


def arrays(batch: Any, device: Any = None) -> Any:
    """Converts the NumPy arrays of a batch, in any nested tuples and dicts, to JAX arrays on a device.

    On the CPU, arrays share the batch's memory through DLPack. For other devices they are copied.

    >>> import packds.jax
    >>> for batch in packds.Loader("train.pack", batch_size=4):
    ...     images, labels = packds.jax.arrays(batch)
    >>> images.shape
    (4, 64, 64, 3)

    Args:
        batch: A loader's batch, or any part of a batch.
        device: A JAX device or sharding; by default the arrays stay on the CPU.
    """

    def one(leaf: Any) -> Any:
        if not isinstance(leaf, np.ndarray):
            return leaf
        if device is not None:
            return jax.device_put(leaf, device)
        return jax.dlpack.from_dlpack(leaf) if leaf.flags.writeable else jax.numpy.asarray(leaf)

    return jax.tree_util.tree_map(one, batch)
