"""Native memory as NumPy, PyTorch and JAX arrays, without a copy."""

from __future__ import annotations

import functools
import json
from typing import Any, Callable

import numpy as np

from . import _packds
from ._errors import OptionError

#: Element types of packs with NumPy's names for them.
NUMPY_NAMES: dict[str, str] = dict(_packds.DTYPES)
_PACK_NAMES: dict[str, str] = {numpy: ours for ours, numpy in NUMPY_NAMES.items()}

# Types that older versions of PyTorch lack, and the types that replace them.
_TORCH_WIDER = {"u16": np.int32, "u32": np.int64, "u64": np.int64}


def _text(item: bytes | str) -> str:
    return item if isinstance(item, str) else item.decode()


#: Converts variable-size items of these kinds. Items of other kinds are not converted.
OF_KIND: dict[str, Callable[[Any], Any]] = {"string": _text, "json": json.loads}


def dtype_name(dtype: Any) -> str:
    """The pack's name for an element type: `f32` for `"f32"`, `"float32"`, `numpy.float32` and `torch.float32`.

    >>> dtype_name(np.float32), dtype_name("bfloat16"), dtype_name("u8")
    ('f32', 'bf16', 'u8')
    """
    if isinstance(dtype, str) and dtype in NUMPY_NAMES:
        return dtype
    text = str(dtype).removeprefix("torch.")
    if text not in _PACK_NAMES:
        try:
            text = np.dtype(dtype).name
        except TypeError:
            pass
    try:
        return _PACK_NAMES[text]
    except KeyError:
        known = ", ".join(NUMPY_NAMES)
        raise OptionError(f"packs do not support the element type {dtype!r}; supported: {known}") from None


@functools.cache
def bfloat16() -> np.dtype[Any] | None:
    """NumPy's bfloat16 if the package ml_dtypes is installed, else None."""
    try:
        import ml_dtypes
    except ImportError:
        return None
    return np.dtype(ml_dtypes.bfloat16)


def json_dict(text: str) -> dict[str, Any]:
    """Parses a JSON object from the native module."""
    parsed: dict[str, Any] = json.loads(text)
    return parsed


def as_numpy(memory: _packds.Memory) -> np.ndarray[Any, Any]:
    """An array that shares this memory and keeps it alive. Without ml_dtypes, bfloat16 values are returned as their bits (`uint16`)."""
    array = np.asarray(memory)
    if memory.dtype == "bf16" and (dtype := bfloat16()) is not None:
        return array.view(dtype)
    return array


def multi_hot(bits: np.ndarray[Any, Any], n_classes: int) -> np.ndarray[Any, Any]:
    """Sets of class ids as rows of 0 and 1, in float32 for losses. Id `i` is bit `i % 8` of byte `i // 8`.

    >>> multi_hot(np.array([0b101], np.uint8), 4)
    array([1., 0., 1., 0.], dtype=float32)
    """
    return np.unpackbits(bits, axis=-1, count=n_classes, bitorder="little").astype(np.float32)


def widened_bfloat16(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Converts bfloat16 to float32. Without ml_dtypes, `array` contains the bits."""
    return (array.view(np.uint16).astype(np.uint32) << np.uint32(16)).view(np.float32)


def as_torch(memory: _packds.Memory) -> Any:
    """A tensor that shares this memory and keeps it alive. Read-only memory is copied, because every tensor is writable."""
    array = np.asarray(memory)
    return tensor_of(array if array.flags.writeable else array.copy(), memory.dtype)


def tensor_of(array: np.ndarray[Any, Any], dtype: str) -> Any:
    """Converts an array to a tensor, without a copy if PyTorch has its type. A bfloat16 array may contain only the bits."""
    import torch

    if dtype == "bf16":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    if dtype in _TORCH_WIDER:
        return torch.from_numpy(array.astype(_TORCH_WIDER[dtype]))
    return torch.from_numpy(array)


def as_jax(memory: _packds.Memory) -> Any:
    """The memory as a JAX array, without a copy if JAX allows it."""
    import jax

    array = as_numpy(memory)
    if memory.dtype == "bf16" or not array.flags.writeable:
        return jax.numpy.asarray(array)
    return jax.dlpack.from_dlpack(array)


AS: dict[str, Callable[[Any], Any]] = {"numpy": as_numpy, "torch": as_torch, "jax": as_jax}


def converter(output: str) -> Callable[[Any], Any]:
    """The function that makes arrays of the library `output` from memory."""
    try:
        return AS[output]
    except (KeyError, TypeError):
        raise OptionError(f"output: expected numpy, torch or jax, found {output!r}") from None
