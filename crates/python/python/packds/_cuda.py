"""Tensors on a GPU: allocated by PyTorch, written by the native module on PyTorch's current stream."""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import os
import re
from collections.abc import Sequence
from typing import Any

from . import _packds
from ._errors import OptionError

#: A device for tests: the native module simulates a slow GPU, and tensors are on the CPU.
SIMULATED = "simulated"

# PyTorch's types with the same bits. Older versions lack u16, u32 and u64, so signed types replace them.
_BITS = {
    "bool": "bool", "u8": "uint8", "i8": "int8", "u16": "int16", "i16": "int16", "u32": "int32", "i32": "int32",
    "u64": "int64", "i64": "int64", "f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64",
}  # fmt: skip
# For two unsigned types, the next larger type that can represent all their values, and the mask of their bits.
_WIDER = {"u16": ("int32", 0xFFFF), "u32": ("int64", 0xFFFF_FFFF)}


def device_name(device: Any, output: str) -> str:
    """The device's name in PyTorch. Fails if batches cannot be copied to it.

    Raises:
        OptionError: The device does not exist, or batches cannot be copied to it.
    """
    known = "expected cpu, or with output='torch' cuda, cuda:0, ... or another device that this PyTorch supports"
    if not isinstance(device, str) and type(device).__module__ != "torch":
        hint = f"pass 'cuda:{device}'" if isinstance(device, int) and not isinstance(device, bool) else None
        raise OptionError(f"device: {known}, found {device!r}", hint)
    name = str(device)
    kind = name.partition(":")[0]
    # For GPUs, the native module reports what is missing. Without PyTorch's tensors, only "cpu" is valid, which is
    # checked elsewhere.
    if name in ("cpu", SIMULATED) or kind == "cuda" or output != "torch":
        if kind == "cuda" and not re.fullmatch(r"cuda(:(0|[1-9][0-9]*))?", name):
            raise OptionError(f"device: {known}, found {name!r}")
        return name
    import torch

    try:
        if kind == "meta":
            raise RuntimeError("tensors on it have no values")
        torch.empty(1, device=torch.device(name))
    except Exception as error:
        # PyTorch raises various exceptions; the first sentence gives the reason.
        why = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise OptionError(f"device: {known}, found {name!r}: {why[:200]}") from None
    return name


def find_nvjpeg() -> None:
    """Loads nvJPEG from PyPI's packages, if installed, so that the native module finds it by name.

    Otherwise the native module searches the system's libraries, and reports what is missing.
    """
    for package, name in (("cu13", "libnvjpeg.so.13"), ("nvjpeg", "libnvjpeg.so.12")):
        try:
            found = importlib.util.find_spec(f"nvidia.{package}")
        except ModuleNotFoundError:
            return
        for folder in (found and found.submodule_search_locations) or ():
            path = os.path.join(folder, "lib", name)
            if os.path.exists(path):
                with contextlib.suppress(OSError):
                    ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
                    return


def number_of(device: str) -> str | None:
    """The native module's name for a GPU: its number, or `simulated`. None if batches stay on the host."""
    if device == SIMULATED:
        return device
    kind, _, number = device.partition(":")
    if kind != "cuda":
        return None
    if number:
        return number
    import torch

    # The native module reports a missing driver.
    return str(torch.cuda.current_device()) if torch.cuda.is_available() else "0"


class Gpu:
    """The GPU that receives a loader's batches as tensors."""

    def __init__(self, device: str, number: str, fields: Sequence[tuple[str, int, str, Sequence[int] | None]]) -> None:
        import torch

        if number == SIMULATED:
            self._device = torch.device("cpu")
        elif not torch.cuda.is_available():
            # The driver works: the native module has opened the GPU.
            raise OptionError(
                f"device {device!r}: this PyTorch ({torch.__version__}) cannot use the GPU",
                "install a PyTorch with CUDA, or leave device out",
            )
        else:
            self._device = torch.device("cuda", int(number))
        self._fields = [
            None if shape is None else (getattr(torch, _BITS[dtype]), tuple(shape))
            for _, _, dtype, shape in fields
        ]

    def tensors(self, native: _packds.Batch) -> list[Any]:
        """The batch's fields, written on the current stream. None for variable-size fields."""
        import torch

        n = len(native)
        tensors: list[Any] = [
            None if field is None else torch.empty((n, *field[1]), dtype=field[0], device=self._device)
            for field in self._fields
        ]
        stream = torch.cuda.current_stream(self._device).cuda_stream if self._device.type == "cuda" else None
        native.write_on_gpu(stream, [None if tensor is None else tensor.data_ptr() for tensor in tensors])
        return tensors


def widened(dtype: str) -> Any:
    """The function that converts the bits of a type that PyTorch lacks to values. None if no conversion is needed."""
    if dtype not in _WIDER:
        return None
    import torch

    wider, mask = _WIDER[dtype]
    return lambda bits: bits.to(getattr(torch, wider)) & mask
