"""Writes the results of Pillow and torchvision for images, for `crates/pixels/tests/pillow.rs`.

    python reference.py OUTPUT [FOLDER]

Without FOLDER, the images are those of odd_images.py, with all cases. With FOLDER, they are all files below it, with fewer
cases. OUTPUT gets `cases.json` and one raw file per image with all its cases. torchvision is not needed: its Resize and
CenterCrop on Pillow images are a few lines, repeated here from their documentation.
"""

import json
import sys
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps
from PIL import __version__ as pillow_version

import odd_images

FILTERS = {
    "nearest": Image.Resampling.NEAREST,
    "box": Image.Resampling.BOX,
    "bilinear": Image.Resampling.BILINEAR,
    "bicubic": Image.Resampling.BICUBIC,
    "lanczos": Image.Resampling.LANCZOS,
}
VIEWS = 48
VIEW_SIDES = (16, 60, 250)


def resize(image: Image.Image, spec: str, filter_name: str) -> Image.Image:
    if spec == "none":
        return image
    width, height = image.size
    short, long = (width, height) if width <= height else (height, width)
    kind, _, value = spec.partition(":")
    if kind == "short":
        new_short, new_long = int(value), int(int(value) * long / short)
    elif kind == "long" or kind == "max" and long > int(value):
        new_short, new_long = max(1, int(int(value) * short / long)), int(value)
    elif kind == "max":
        new_short, new_long = short, long
    else:
        size = tuple(int(side) for side in spec.split("x"))
        return image.resize(size, FILTERS[filter_name])
    size = (new_short, new_long) if width <= height else (new_long, new_short)
    return image if size == image.size else image.resize(size, FILTERS[filter_name])


def center_crop(image: Image.Image, spec: str) -> Image.Image:
    if spec == "none":
        return image
    sides = [int(side) for side in spec.partition(":")[2].split("x")]
    crop_width, crop_height = sides[0], sides[-1]
    width, height = image.size
    if crop_width > width or crop_height > height:
        left = (crop_width - width) // 2 if crop_width > width else 0
        top = (crop_height - height) // 2 if crop_height > height else 0
        right = (crop_width - width + 1) // 2 if crop_width > width else 0
        bottom = (crop_height - height + 1) // 2 if crop_height > height else 0
        image = ImageOps.expand(image, (left, top, right, bottom), fill=0)
        width, height = image.size
    top = int(round((height - crop_height) / 2.0))
    left = int(round((width - crop_width) / 2.0))
    return image.crop((left, top, left + crop_width, top + crop_height))


def case(color: str, resize_spec: str, crop: str, filter_name: str, orientation: str) -> dict[str, str]:
    return {"color": color, "resize": resize_spec, "crop": crop, "filter": filter_name, "orientation": orientation}


def odd_cases() -> list[dict[str, str]]:
    cases = [case(color, "none", "none", "bilinear", turn) for color in ("rgb", "gray", "index") for turn in ("ignore", "apply")]
    for filter_name in FILTERS:
        for spec in ("short:40", "64x64", "30x150", "170x20", "short:256"):
            cases.append(case("rgb", spec, "none", filter_name, "ignore"))
        cases.append(case("rgb", "short:40", "center:32", filter_name, "ignore"))
        cases.append(case("rgb", "short:40", "center:41x35", filter_name, "apply"))
        cases.append(case("rgb", "90x20", "center:33x30", filter_name, "ignore"))
        cases.append(case("gray", "short:37", "center:31x36", filter_name, "ignore"))
        cases.append(case("gray", "90x100", "none", filter_name, "apply"))
        cases.append(case("rgb", "short:256", "center:224", filter_name, "ignore"))
    for crop in ("center:1", "center:33x25", "center:40x300", "center:15x16", "center:224"):
        cases.append(case("rgb", "none", crop, "bilinear", "ignore"))
        cases.append(case("gray", "none", crop, "bilinear", "apply"))
    cases += [case("rgb", spec, "none", "bicubic", "apply") for spec in ("long:70", "max:60", "max:3000")]
    cases += [case("index", "short:32", "center:32", "nearest", "ignore")]
    return cases


def folder_cases() -> list[dict[str, str]]:
    cases = [case(color, "none", "none", "bilinear", "ignore") for color in ("rgb", "gray")]
    for filter_name in FILTERS:
        cases.append(case("rgb", "short:256", "center:224", filter_name, "ignore"))
        cases.append(case("rgb", "224x224", "none", filter_name, "ignore"))
        cases.append(case("gray", "short:256", "center:224", filter_name, "apply"))
    cases.append(case("rgb", "short:700", "center:600", "bilinear", "ignore"))
    cases.append(case("rgb", "none", "center:333x201", "bilinear", "ignore"))
    return cases


def convert(image: Image.Image, color: str) -> Image.Image | None:
    if color == "index":
        if image.mode in ("P", "L"):
            return image
        if image.mode == "1":
            return Image.fromarray(np.array(image).astype(np.uint8))
        return None
    return image.convert("RGB" if color == "rgb" else "L")


def render(path: Path, wanted: dict[str, str]) -> np.ndarray | None:
    with Image.open(path) as image:
        image.load()
        if wanted["orientation"] == "apply":
            image = ImageOps.exif_transpose(image)
        image = convert(image, wanted["color"])
        if image is None:
            return None
        if image.mode == "P":
            image = Image.fromarray(np.array(image))
        image = resize(image, wanted["resize"], wanted["filter"])
        return np.array(center_crop(image, wanted["crop"]))


def views_of(path: Path, number: int) -> list[tuple[dict, np.ndarray]]:
    """Random crops of the upright picture, resized and flipped, with their pixels."""
    random = np.random.RandomState(number)
    found = []
    with Image.open(path) as image:
        image.load()
        image = ImageOps.exif_transpose(image)
        colors = {color: convert(image, color) for color in ("rgb", "gray")}
    for index in range(VIEWS):
        color = "gray" if index % 4 == 3 else "rgb"
        filter_name = list(FILTERS)[random.randint(len(FILTERS))]
        area = [draw_side(random, side) for side in image.size]
        (x, width), (y, height) = area
        size = tuple(int(random.randint(1, 4 + VIEW_SIDES[random.randint(3)])) for _ in range(2))
        if index % 8 == 7:
            size = (width, size[1]) if random.randint(2) else (size[0], height)
        flips = [bool(random.randint(2)) for _ in range(2)]
        pixels = colors[color].crop((x, y, x + width, y + height)).resize(size, FILTERS[filter_name])
        for flip, way in zip(flips, (Image.Transpose.FLIP_LEFT_RIGHT, Image.Transpose.FLIP_TOP_BOTTOM)):
            if flip:
                pixels = pixels.transpose(way)
        view = {"area": [x, y, width, height], "size": size, "filter": filter_name, "flips": flips, "color": color}
        found.append((view, np.array(pixels)))
    return found


def draw_side(random: np.random.RandomState, side: int) -> tuple[int, int]:
    """A start and a length along a side: single pixels, the whole side, its ends, and random parts."""
    length = [1, side, int(random.randint(1, side + 1)), int(random.randint(1, side + 1))][random.randint(4)]
    first = [0, side - length, int(random.randint(0, side - length + 1))][random.randint(3)]
    return first, length


def paddings() -> list[tuple[dict, np.ndarray, np.ndarray]]:
    """CIFAR's random crop with each kind of padding: the picture, and the cropped part."""
    random = np.random.RandomState(7)
    found = []
    for index in range(240):
        channels = (1, 3, 4)[index % 3]
        height, width = (32, 32) if index % 2 else random.randint(5, 40, size=2).tolist()
        picture = random.randint(0, 256, size=(height, width, channels)).astype(np.uint8)
        mode = ("constant", "edge", "reflect", "symmetric")[index // 3 % 4]
        border = ((4, 4), (4, 4), (0, 0))
        if mode == "constant":
            padded = np.stack([np.pad(picture[:, :, c], 4, constant_values=10 * c + 1) for c in range(channels)], 2)
        else:
            padded = np.pad(picture, border, mode=mode)
        x, y = (int(random.randint(0, 9)) for _ in range(2))
        window = padded[y : y + height, x : x + width]
        flips = [bool(random.randint(2)) for _ in range(2)]
        window = window[:: -1 if flips[1] else 1, :: -1 if flips[0] else 1]
        case = {"mode": mode, "corner": [x - 4, y - 4], "flips": flips, "shape": [height, width, channels]}
        found.append((case, picture, window))
    return found


def write_views(output: Path, paths: list[Path]) -> None:
    listed, padded = [], []
    with open(output / "views.raw", "wb") as out:
        for number, path in enumerate(paths):
            try:
                views = views_of(path, number)
            except Exception:  # the file is bad, which the other cases report
                continue
            for view, pixels in views:
                listed.append({"image": str(path), "offset": out.tell(), **view})
                out.write(pixels.tobytes())
        for case, picture, window in paddings():
            padded.append({"offset": out.tell(), **case})
            out.write(picture.tobytes() + window.tobytes())
    (output / "views.json").write_text(json.dumps({"views": listed, "padded": padded}))


def main() -> None:
    output = Path(sys.argv[1])
    output.mkdir(parents=True, exist_ok=True)
    if len(sys.argv) > 2:
        images, cases = Path(sys.argv[2]), folder_cases()
    else:
        images, cases = output / "images", odd_cases()
        odd_images.write_all(images)
    listed = []
    paths = sorted(path for path in images.rglob("*") if path.is_file())
    for number, path in enumerate(paths):
        raw = f"{number}.raw"
        with open(output / raw, "wb") as out:
            for wanted in cases:
                try:
                    pixels = render(path, wanted)
                except Exception as error:  # the file is bad, so the Rust decoder must reject it too
                    listed.append({"image": str(path), "raw": None, "error": repr(error), **wanted})
                    continue
                if pixels is None:
                    continue
                size = {"width": pixels.shape[1], "height": pixels.shape[0], "offset": out.tell(), "bytes": pixels.size}
                out.write(pixels.tobytes())
                listed.append({"image": str(path), "raw": raw, **size, **wanted})
    write_views(output, paths)
    (output / "cases.json").write_text(json.dumps({"pillow": pillow_version, "cases": listed}))


if __name__ == "__main__":
    main()
