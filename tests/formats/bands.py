"""Uses tifffile to write TIFF files with bands: bands.py DIR. Prints the numbers that tifffile reads from them."""

import json
import sys
from pathlib import Path

# Some modules in this script's folder have the names of libraries, so Python must not search this folder.
sys.path.pop(0)

import numpy as np
import tifffile
from PIL import Image

N = 4
PIXELS = np.random.default_rng(3).integers(0, 60000, (N, 11, 9, 6)).astype(np.uint16)
MASKS = np.random.default_rng(4).integers(0, 3, (N, 11, 9)).astype(np.uint8)
OPTIONS = {"photometric": "minisblack", "planarconfig": "contig"}


def write(path, pixels, **options):
    path.parent.mkdir(parents=True, exist_ok=True)
    tifffile.imwrite(path, pixels, **{**OPTIONS, **options})


root = Path(sys.argv[1])
for i in range(N):
    pixels, name = PIXELS[i], f"{'ab'[i % 2]}/{i}.tif"
    for dtype in ("u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "f8"):
        write(root / "types" / dtype / name, pixels.astype(dtype))
    write(root / "kinds/deflate" / name, pixels, compression="zlib", predictor=True)
    write(root / "kinds/tiles" / name, pixels, tile=(16, 16))
    write(root / "kinds/strips" / name, pixels, rowsperstrip=4)
    write(root / "kinds/big_endian" / name, pixels, byteorder=">")
    write(root / "kinds/big_tiff" / name, pixels, bigtiff=True)
    write(root / "kinds/rgb" / name, pixels, photometric="rgb")
    write(root / "kinds/planes" / name, np.moveaxis(pixels, -1, 0), planarconfig="separate")
    write(root / "two" / name, pixels[..., :2].astype(np.uint8))
    write(root / "colors" / name, pixels[..., :3].astype(np.float32), photometric="rgb")
    split = root / "splits" / ("train" if i < 3 else "test")
    write(split / name, pixels[..., :4])
    write(root / f"pairs/images/{i}.tif", pixels)
    (root / "pairs/masks").mkdir(exist_ok=True)
    Image.fromarray(MASKS[i]).save(root / f"pairs/masks/{i}.png")
    write(root / f"pages/{i}.tif", np.stack([pixels, pixels]))
rows = [f"{'ab'[i % 2]}/{i}.tif,{i % 2}" for i in range(N)]
(root / "types/u2/list.csv").write_text("\n".join(["path,label", *rows]) + "\n")


def read(folder):
    """The bytes of the arrays in a folder, in the order of the paths."""
    arrays = [tifffile.imread(path) for path in sorted((root / folder).rglob("*.tif"))]
    return b"".join(np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<")).tobytes() for array in arrays).hex()


folders = [f"types/{path.name}" for path in (root / "types").iterdir()]
folders += [f"kinds/{path.name}" for path in (root / "kinds").iterdir() if path.name != "planes"]
folders += ["two", "colors", "splits/train", "splits/test", "pairs/images"]
print(json.dumps({"masks": MASKS.tobytes().hex(), **{folder: read(folder) for folder in folders}}))
