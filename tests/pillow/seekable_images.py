"""Writes JPEGs of every kind that can have a seek index to the given folder, with Pillow."""

import sys
from pathlib import Path

from PIL import Image

from odd_images import picture

SIZES = ((1, 1), (2, 3), (15, 16), (17, 33), (97, 131), (203, 66), (333, 17), (19, 300))


def write_all(folder: Path) -> None:
    for width, height in SIZES:
        image = Image.fromarray(picture(width, height, seed=width))
        for quality in (1, 30, 75, 95):
            for optimize in (False, True):
                options = {"quality": quality, "optimize": optimize}
                name = f"{width}x{height}-{quality}{'-optimized' if optimize else ''}.jpg"
                for subsampling in ("4:4:4", "4:2:2", "4:2:0"):
                    plain = subsampling.replace(":", "")
                    image.save(folder / f"{plain}-{name}", subsampling=subsampling, **options)
                # JPEG files with RGB pixels that were not converted to YCbCr. Only the Adobe marker indicates this.
                image.save(folder / f"rgb-{name}", keep_rgb=True, **options)
                image.convert("L").save(folder / f"gray-{name}", **options)


if __name__ == "__main__":
    write_all(Path(sys.argv[1]))
