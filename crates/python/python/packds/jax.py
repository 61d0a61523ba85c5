"""Batches as JAX arrays. `packds.Loader(..., output="jax")` gives them at once."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from ._batch import make_known

__all__ = ["arrays"]

make_known()


def arrays(batch: Any, device: Any = None) -> Any:
    """The NumPy arrays of a batch, in whatever tuples and dicts it has them, as JAX arrays on a device.

    On the CPU they share the batch's memory through DLPack; anything else is copied.

    Args:
        batch: A batch as a loader gives it, or any part of one.
        device: A device or a sharding of JAX's; by default the arrays stay on the CPU.
    """

    def one(leaf: Any) -> Any:
        if not isinstance(leaf, np.ndarray):
            return leaf
        if device is not None:
            return jax.device_put(leaf, device)
        return jax.dlpack.from_dlpack(leaf) if leaf.flags.writeable else jax.numpy.asarray(leaf)

    return jax.tree_util.tree_map(one, batch)
