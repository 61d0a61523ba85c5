"""Writes Pillow's results for the operations at load time, for `crates/pixels/tests/operations.rs`.

    python operations.py OUTPUT

OUTPUT gets `cases.json` and `pixels.raw`, the concatenated bytes of all pictures. torchvision is not needed: its operations on
Pillow images are a few Pillow calls, repeated here from its documentation. Every factor is an f32, like the operations'
arguments.
"""

import json
import sys
from pathlib import Path

import numpy as np
from PIL import Image, ImageEnhance, ImageOps
from PIL import __version__ as pillow_version

SIZES = [(1, 1), (7, 5), (61, 1), (1, 40), (33, 17), (64, 48)]
FACTORS = [-0.7, 0.0, 0.1, 0.33, 0.5, 0.8, 0.999, 1.0, 1.001, 1.2, 1.7, 2.5, 300.0]
TURNS = [-0.5, -0.333, -0.1, -0.003, 0.0, 0.004, 0.05, 0.1, 0.25, 0.4999, 0.5]
ANGLES = [-370.0, -45.0, -0.001, 0.0, 0.3, 12.0, 30.0, 89.9999, 90.0, 91.0, 180.0, 255.5, 270.0, 359.999]
MATRICES = [
    [1.0, 0.0, 0.0, 0.0, 1.0, 0.0],
    [1.0, 0.0, 3.7, 0.0, 1.0, -2.2],
    [0.5, 0.0, 2.0, 0.0, 1.7, -1.25],
    [-0.5, 0.0, 30.0, 0.0, -1.0, 12.0],
    [0.9, 0.3, -2.5, -0.2, 1.1, 1.5],
    [0.05, 0.01, 8.0, 0.02, 0.04, 9.0],
    [3.0, -2.0, 1.0, 4.0, 5.0, -6.0],
    [3000.1, -2.0, 1.0, 4.0, 5000.7, -6.0],
    [1e9, 1.0, 0.0, 1.0, 1e-9, 0.5],
    [1.0, 1e-7, 32766.0, 1e-7, 1.0, 0.0],
    [0.0, 0.0, 0.5, 0.0, 0.0, 0.99],
]


def f32(value: float) -> float:
    return float(np.float32(value))


def turn_hue(image: Image.Image, turn: float) -> Image.Image:
    if image.mode == "L":
        return image
    hue, saturation, value = image.convert("HSV").split()
    turned = np.array(hue) + np.int32(turn * 255).astype(np.uint8)
    return Image.merge("HSV", (Image.fromarray(turned), saturation, value)).convert("RGB")


def pictures() -> list[Image.Image]:
    random = np.random.default_rng(4)
    images = []
    for width, height in SIZES:
        noise = random.integers(0, 256, (height, width, 3), dtype=np.uint8)
        rows, columns = np.mgrid[0:height, 0:width]
        smooth = np.stack([rows * 5 + columns, rows + columns * 3, 255 - rows * 2], axis=-1) % 256
        images += [Image.fromarray(noise), Image.fromarray(smooth.astype(np.uint8)), Image.fromarray(noise[..., 0])]
    # Images with few values, for stretching and equalizing histograms: some values are in most pixels, others in none.
    for width, height in ((31, 29), (64, 48)):
        narrow = random.normal(90, 12, (height, width, 3)).clip(40, 130)
        narrow[..., 1] = 77
        narrow[..., 2] = np.where(narrow[..., 2] > 100, 101, 40)
        images += [Image.fromarray(narrow.astype(np.uint8)), Image.fromarray(narrow[..., 0].astype(np.uint8))]
    return images


def colors() -> Image.Image:
    """Every fifth value of each channel, and the last values."""
    values = np.append(np.arange(0, 256, 5), [1, 254]).astype(np.uint8)
    cube = np.stack(np.meshgrid(values, values, values), axis=-1)
    return Image.fromarray(np.ascontiguousarray(cube.reshape(len(values), -1, 3)))


def color_cases(image: Image.Image):
    for factor in map(f32, FACTORS):
        yield "brightness", [factor], ImageEnhance.Brightness(image).enhance(factor)
        yield "contrast", [factor], ImageEnhance.Contrast(image).enhance(factor)
        yield "saturation", [factor], ImageEnhance.Color(image).enhance(factor)
        yield "sharpness", [factor], ImageEnhance.Sharpness(image).enhance(factor)
    for turn in map(f32, TURNS):
        yield "hue", [turn], turn_hue(image, turn)
    yield "grayscale", [], image.convert("L").convert(image.mode)
    for threshold in (0, 1, 128, 255):
        yield "solarize", [threshold], ImageOps.solarize(image, threshold)
    yield "invert", [], ImageOps.invert(image)
    for bits in range(1, 9):
        yield "posterize", [bits], ImageOps.posterize(image, bits)
    yield "autocontrast", [], ImageOps.autocontrast(image)
    yield "equalize", [], ImageOps.equalize(image)


def map_cases(image: Image.Image):
    fill = (10, 200, 77) if image.mode == "RGB" else 10
    for name in ("nearest", "bilinear", "bicubic"):
        filter_ = Image.Resampling[name.upper()]
        for matrix in MATRICES:
            transformed = image.transform(image.size, Image.Transform.AFFINE, matrix, filter_, fillcolor=fill)
            yield name, matrix, transformed
            transformed = image.transform(image.size, Image.Transform.AFFINE, matrix, filter_)
            yield f"{name} black", matrix, transformed
        for angle in ANGLES:
            yield f"rotation {name}", [angle], image.rotate(angle, filter_, fillcolor=fill)


def main() -> None:
    output = Path(sys.argv[1])
    cases, raw = [], bytearray()

    def add(image: Image.Image) -> int:
        raw.extend(image.tobytes())
        return len(raw) - len(image.tobytes())

    jobs = [(image, [*color_cases(image), *map_cases(image)]) for image in pictures()]
    cube = colors()
    jobs.append((cube, color_cases(cube)))
    for image, results in jobs:
        source = {"width": image.width, "height": image.height, "channels": len(image.getbands()), "source": add(image)}
        for operation, arguments, result in results:
            assert (result.size, result.mode) == (image.size, image.mode)
            cases.append(source | {"operation": operation, "arguments": arguments, "result": add(result)})
    (output / "pixels.raw").write_bytes(raw)
    (output / "cases.json").write_text(json.dumps({"pillow": pillow_version, "cases": cases}))


main()
