"""Values of options, for type checkers. At run time the native module checks them."""

from __future__ import annotations

from typing import Literal

Access = Literal["auto", "mapped", "direct"]
BadSamples = Literal["error", "skip", "substitute"]
Checksums = Literal["first_touch", "always", "off"]
DatasetChecksums = Literal["always", "off"]
Jpeg = Literal["host", "gpu"]
Layout = Literal["hwc", "chw", "channels_last"]
Order = Literal["auto", "random", "window", "chunks", "sequential"]
Output = Literal["numpy", "torch", "jax"]
Ragged = Literal["list", "padded", "flat", "targets", "tv_tensors"]
Register = Literal["staging", "file", "gds"]
Tier = Literal["auto", "resident", "gpu-window", "host-window", "host"]

Filter = Literal["nearest", "box", "bilinear", "bicubic", "lanczos"]
MaskOrder = Literal["columns", "rows"]
Mode = Literal["raw", "encoded", "mixed"]
OnError = Literal["stop", "skip", "substitute"]
Orientation = Literal["ignore", "apply"]
PackLayout = Literal["hwc", "chw"]

ExportedImages = Literal["pixels", "files"]
TorchImages = Literal["torch", "numpy", "pil"]
