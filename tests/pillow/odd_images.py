"""Writes images of many unusual kinds, so that the decoders can be compared with Pillow's.

Everything is computed from fixed seeds, without photographs.
"""

import io
import struct
import zlib
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps


def picture(width: int, height: int, seed: int = 1) -> np.ndarray:
    """Smooth colours with edges and some noise, so that compression is neither trivial nor impossible."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width].astype(np.float64)
    red = 127 + 120 * np.sin(x / 9.0) * np.cos(y / 13.0)
    green = 255 * ((x // 16 + y // 11) % 2)
    blue = 255 * (x + y) / max(1, width + height - 2)
    image = np.stack([red, green, blue], axis=-1) + rng.normal(0, 12, (height, width, 3))
    return np.clip(image, 0, 255).astype(np.uint8)


def png_chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def pack_rows(rows: np.ndarray, depth: int) -> bytes:
    """Filter byte 0 and the samples of each row, packed to `depth` bits."""
    out = bytearray()
    for row in rows:
        out.append(0)
        flat = row.reshape(-1)
        if depth == 16:
            out += flat.astype(">u2").tobytes()
        elif depth == 8:
            out += flat.astype(np.uint8).tobytes()
        else:
            bits = ((flat[:, None] >> np.arange(depth - 1, -1, -1)) & 1).astype(np.uint8)
            out += np.packbits(bits.reshape(-1)).tobytes()
    return bytes(out)


ADAM7 = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]


def write_png(samples: np.ndarray, depth: int, color_type: int, interlaced: bool, extra: bytes = b"") -> bytes:
    """A PNG of any colour type and depth. Pillow cannot write every combination."""
    height, width = samples.shape[:2]
    if interlaced:
        parts = [samples[y::dy, x::dx] for x, y, dx, dy in ADAM7]
        data = b"".join(pack_rows(part, depth) for part in parts if part.size)
    else:
        data = pack_rows(samples, depth)
    header = struct.pack(">IIBBBBB", width, height, depth, color_type, 0, 0, int(interlaced))
    return (
        b"\x89PNG\r\n\x1a\n" + png_chunk(b"IHDR", header) + extra
        + png_chunk(b"IDAT", zlib.compress(data)) + png_chunk(b"IEND", b"")
    )


def png_images(folder: Path) -> None:
    rng = np.random.default_rng(2)
    channels = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
    depths = {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}
    for color_type, n_channels in channels.items():
        for depth in depths[color_type]:
            for interlaced in (False, True):
                samples = rng.integers(0, 1 << depth, (37, 53, n_channels), dtype=np.int64)
                if depth == 16 and not interlaced:
                    samples //= 100
                extra = b""
                if color_type == 3:
                    colors = rng.integers(0, 256, (1 << depth) * 3, dtype=np.uint8).tobytes()
                    extra = png_chunk(b"PLTE", colors)
                    if interlaced:
                        extra += png_chunk(b"tRNS", bytes([0, 128]))
                elif color_type in (0, 2) and interlaced:
                    extra = png_chunk(b"tRNS", struct.pack(">H", 1) * n_channels)
                name = f"png-type{color_type}-depth{depth}{'-interlaced' if interlaced else ''}.png"
                (folder / name).write_bytes(write_png(samples, depth, color_type, interlaced, extra))


def jpeg_images(folder: Path) -> None:
    for width, height in ((203, 131), (64, 48), (17, 190)):
        image = Image.fromarray(picture(width, height))
        size = f"{width}x{height}"
        for name in ("4:4:4", "4:2:2", "4:2:0", "4:1:1"):
            plain = name.replace(":", "")
            image.save(folder / f"jpeg-{plain}-{size}.jpg", quality=85, subsampling=name)
            image.save(folder / f"jpeg-{plain}-{size}-progressive.jpg", quality=85, subsampling=name, progressive=True)
            image.save(folder / f"jpeg-{plain}-{size}-restart.jpg", quality=85, subsampling=name, restart_marker_blocks=3)
        # 4:4:0 is 4:2:2 with the axes swapped. Pillow cannot write it, so the header is patched.
        for factors in (0x12, 0x24, 0x42, 0x14, 0x22):
            (folder / f"jpeg-factors{factors:02x}-{size}.jpg").write_bytes(with_factors(width, height, factors))
        image.convert("L").save(folder / f"jpeg-gray-{size}.jpg", quality=90)
        image.convert("L").save(folder / f"jpeg-gray-{size}-progressive.jpg", quality=90, progressive=True)
        image.convert("CMYK").save(folder / f"jpeg-cmyk-{size}.jpg", quality=90)
        image.convert("CMYK").save(folder / f"jpeg-cmyk-{size}-progressive.jpg", quality=90, progressive=True)
        (folder / f"jpeg-ycck-{size}.jpg").write_bytes(as_ycck(image))
        image.save(folder / f"jpeg-rgb-{size}.jpg", quality=90, keep_rgb=True)
        image.save(folder / f"jpeg-quality20-{size}.jpg", quality=20)
    whole = (folder / "jpeg-420-203x131.jpg").read_bytes()
    (folder / "jpeg-trailing-garbage.jpg").write_bytes(whole + b"trailing garbage")
    (folder / "jpeg-early-end.jpg").write_bytes(whole[: len(whole) // 2] + b"\xff\xd9")
    damaged = bytearray(whole)
    damaged[len(whole) * 2 // 3] ^= 0x5A
    (folder / "jpeg-damaged.jpg").write_bytes(bytes(damaged))


def as_ycck(image: Image.Image) -> bytes:
    """A CMYK JPEG whose Adobe marker says YCCK. Its data is unchanged, but is decoded as luma and chroma."""
    out = io.BytesIO()
    image.convert("CMYK").save(out, "JPEG", quality=90)
    data = bytearray(out.getvalue())
    at = data.index(b"Adobe")
    data[at + 11] = 2
    return bytes(data)


def with_factors(width: int, height: int, factors: int) -> bytes:
    """A JPEG with arbitrary sampling factors of the first component: the coefficients of another file with the same number of
    blocks per unit, under a new header. The picture is nonsense, but the same for every decoder."""
    h, v = factors >> 4, factors & 15
    units_x, units_y = -(-width // (8 * h)), -(-height // (8 * v))
    if h * v == 2:
        subsampling, unit = "4:2:2", (16, 8)
    else:
        subsampling, unit = "4:2:0", (16, 16)
    out = io.BytesIO()
    image = Image.fromarray(picture(unit[0] * units_x, unit[1] * units_y, seed=factors))
    image.save(out, "JPEG", quality=80, subsampling=subsampling)
    data = bytearray(out.getvalue())
    at = data.index(b"\xff\xc0")
    data[at + 5 : at + 9] = struct.pack(">HH", height, width)
    if h * v in (2, 4):
        data[at + 11] = factors
    else:  # Pillow cannot write eight blocks of luma, so chroma is subsampled instead
        data[at + 11] = 0x22
        data[at + 14] = 0x12
        data[at + 17] = 0x21
    return bytes(data)


def orientation_images(folder: Path) -> None:
    for orientation in range(1, 9):
        image = Image.fromarray(picture(97, 61, seed=orientation))
        exif = Image.Exif()
        exif[0x0112] = orientation
        image.save(folder / f"orient-{orientation}.jpg", quality=90, exif=exif.tobytes())
        image.save(folder / f"orient-{orientation}.png", exif=exif.tobytes())
        image.save(folder / f"orient-{orientation}.webp", lossless=True, exif=exif.tobytes())
        image.save(folder / f"orient-{orientation}.tif", tiffinfo={0x0112: orientation})


def webp_images(folder: Path) -> None:
    for width, height in ((203, 131), (64, 48), (1, 9)):
        image = Image.fromarray(picture(width, height))
        alpha = Image.fromarray(picture(width, height, seed=5)[..., 2])
        rgba = image.copy()
        rgba.putalpha(alpha)
        size = f"{width}x{height}"
        for quality in (20, 80, 100):
            image.save(folder / f"webp-lossy{quality}-{size}.webp", quality=quality)
        image.save(folder / f"webp-lossless-{size}.webp", lossless=True)
        rgba.save(folder / f"webp-lossy-alpha-{size}.webp", quality=75)
        rgba.save(folder / f"webp-lossless-alpha-{size}.webp", lossless=True, exact=True)
    frames = [Image.fromarray(picture(50, 40, seed=s)) for s in (1, 2)]
    frames[0].save(folder / "webp-animated.webp", save_all=True, append_images=frames[1:], lossless=True)


def gif_images(folder: Path) -> None:
    frames = [Image.fromarray(picture(75, 52, seed=s)).quantize(64) for s in (1, 2, 3)]
    frames[0].save(folder / "gif-still.gif")
    frames[0].save(folder / "gif-interlaced.gif", interlace=1)
    frames[0].save(folder / "gif-flat.gif", interlace=0)
    frames[0].save(folder / "gif-transparent.gif", transparency=5)
    frames[0].save(folder / "gif-animated.gif", save_all=True, append_images=frames[1:], duration=50)
    frames[0].convert("L").save(folder / "gif-gray.gif")
    # A first frame smaller than the screen, with and without a transparent index.
    small = (folder / "gif-flat.gif").read_bytes()
    at = small.index(b"\x2c", 13 + 3 * 64)
    for name, transparent in (("offset", None), ("offset-transparent", 9)):
        data = bytearray(small)
        data[6:10] = struct.pack("<HH", 90, 70)
        data[at + 1 : at + 5] = struct.pack("<HH", 7, 11)
        if transparent is not None:
            data[at:at] = bytes([0x21, 0xF9, 4, 1, 0, 0, transparent, 0])
        data[:6] = b"GIF89a"
        (folder / f"gif-{name}.gif").write_bytes(bytes(data))


def bmp_images(folder: Path) -> None:
    image = Image.fromarray(picture(61, 45))
    image.save(folder / "bmp-rgb.bmp")
    image.convert("L").save(folder / "bmp-gray.bmp")
    image.convert("1").save(folder / "bmp-bits.bmp")
    image.quantize(200).save(folder / "bmp-palette.bmp")
    image.quantize(12).save(folder / "bmp-palette12.bmp")
    rgba = image.copy()
    rgba.putalpha(128)
    rgba.save(folder / "bmp-rgba.bmp")
    data = bytearray((folder / "bmp-rgb.bmp").read_bytes())
    data[22:26] = struct.pack("<i", -45)
    (folder / "bmp-top-down.bmp").write_bytes(bytes(data))
    for name, data in odd_bmps((folder / "bmp-palette.bmp").read_bytes()).items():
        (folder / f"bmp-{name}.bmp").write_bytes(data)


def odd_bmps(palette: bytes) -> dict[str, bytes]:
    """BMP files whose pixel offset points to the palette or is 0, that lack the last padding, or that have unusual run
    lengths. Pillow rejects the broken ones."""

    def starting_at(start: int, data: bytes = palette) -> bytes:
        return data[:10] + struct.pack("<I", start) + data[14:]

    def run_lengths(runs: bytes, bits: int = 8) -> bytes:
        head = bytearray(palette[: struct.unpack_from("<I", palette, 10)[0]])
        head[18:26] = struct.pack("<ii", 7, 3)
        head[28:34] = struct.pack("<HI", bits, 1 if bits == 8 else 2)
        return bytes(head) + runs

    rows = bytes([7, 5, 0, 0]) * 3 + b"\0\1"
    return {
        "start-of-palette": starting_at(54),
        "no-start": starting_at(0),
        "no-padding": palette[:-3],
        "palette-no-padding": starting_at(54)[:-3],
        "broken-cut": palette[:-4],
        "runs": run_lengths(rows),
        "runs-literal": run_lengths(bytes([0, 3, 1, 2, 3, 0, 4, 9, 0, 0]) + rows[4:]),
        "runs-delta": run_lengths(bytes([2, 9, 0, 2, 3, 1, 4, 8, 0, 0, 7, 1, 0, 1])),
        "runs-nibbles": run_lengths(bytes([7, 0x5A, 0, 0, 0, 7, 0x12, 0x34, 0x56, 0x70, 0, 0, 7, 0x11]), 4),
        "runs-too-long": run_lengths(bytes([9, 5, 0, 0, 5, 6, 5, 7, 0, 0, 7, 8, 0, 1])),
        "runs-literal-too-long": run_lengths(bytes([0, 9, *range(9), 0, 3, 5, 0, 0, *rows[4:]])),
        "runs-beyond-end": run_lengths(rows[:12] + bytes([200, 3]) + rows[12:]),
        "runs-delta-beyond-end": run_lengths(bytes([7, 5, 0, 0, 0, 2, 3, 250])),
        "broken-runs-few": run_lengths(bytes([7, 5, 0, 0, 7, 6, 0, 1])),
        "broken-runs-cut": run_lengths(bytes([7, 5, 0, 0, 7])),
        "broken-runs-literal-cut": run_lengths(bytes([0, 9, 1, 2])),
    }


def tiff_images(folder: Path) -> None:
    image = Image.fromarray(picture(83, 57))
    gray16 = Image.fromarray((np.arange(83 * 57, dtype=np.uint16) * 13 % 700).reshape(57, 83))
    kinds = {
        "rgb": image, "gray": image.convert("L"), "palette": image.quantize(100), "bits": image.convert("1"),
        "cmyk": image.convert("CMYK"), "gray16": gray16, "palette4": image.quantize(16),
    }
    rgba = image.copy()
    rgba.putalpha(Image.fromarray(picture(83, 57, seed=3)[..., 0]))
    kinds["rgba"] = rgba
    for kind, picture_of in kinds.items():
        for compression in (None, "tiff_lzw", "tiff_adobe_deflate", "packbits"):
            suffix = (compression or "none").replace("tiff_", "")
            picture_of.save(folder / f"tiff-{kind}-{suffix}.tif", compression=compression)
    ImageOps.invert(image.convert("L")).save(folder / "tiff-white-is-zero.tif", tiffinfo={262: 0})
    (folder / "tiff-rgb16.tif").write_bytes(write_tiff(picture(40, 30).astype(np.uint16) * 257 + 77, 2, 16))
    for name, data in odd_tiffs().items():
        (folder / f"tiff-{name}.tif").write_bytes(data)


def write_tiff(
    samples: np.ndarray, photometric: int, bits: int = 8, order: str = "<", more: tuple = (), deflated: bool = False,
    reversed_bits: bool = False,
) -> bytes:
    """A TIFF with one strip and tags that Pillow does not write. Samples of fewer than 8 bits are packed."""
    height, width = samples.shape[:2]
    n_channels = samples.shape[2] if samples.ndim == 3 else 1
    if bits < 8:
        data = b"".join(pack_rows(row[None], bits)[1:] for row in samples)
    else:
        data = samples.astype(f"{order}u{bits // 8}").tobytes()
    data = zlib.compress(data) if deflated else data
    if reversed_bits:
        data = np.packbits(np.unpackbits(np.frombuffer(data, np.uint8)).reshape(-1, 8)[:, ::-1]).tobytes()
        more = (*more, (266, 3, [2]))
    tags = [
        (256, 3, [width]), (257, 3, [height]), (258, 3, [bits] * n_channels), (259, 3, [8 if deflated else 1]),
        (262, 3, [photometric]), (273, 4, [0]), (277, 3, [n_channels]), (278, 3, [height]), (279, 4, [len(data)]), *more,
    ]
    extra_at = 8 + 2 + len(tags) * 12 + 4
    extra = b""
    bodies = {}
    for tag, kind, values in tags:
        body = struct.pack(f"{order}{len(values)}{'H' if kind == 3 else 'I'}", *values)
        if len(body) > 4:
            bodies[tag] = struct.pack(f"{order}I", extra_at + len(extra))
            extra += body
        else:
            bodies[tag] = body.ljust(4, b"\0")
    bodies[273] = struct.pack(f"{order}I", extra_at + len(extra))
    directory = struct.pack(f"{order}H", len(tags))
    for tag, kind, values in sorted(tags):
        directory += struct.pack(f"{order}HHI", tag, kind, len(values)) + bodies[tag]
    head = (b"II*\0" if order == "<" else b"MM\0*") + struct.pack(f"{order}I", 8)
    return head + directory + bytes(4) + extra + data


def odd_tiffs() -> dict[str, bytes]:
    """TIFF files with the lowest bit first in each byte, and TIFF files with colours multiplied by alpha."""
    color = picture(37, 23)
    gray = color[..., 1]
    alpha = picture(37, 23, seed=4)[..., 0]
    alpha[:5, :9], alpha[5:9, :9] = 0, 255
    rgba = np.dstack([(color.astype(int) * alpha[..., None] // 255).astype(np.uint8), alpha])
    rgba[10:14, 10:14, :3] = 250  # brighter than possible with this alpha
    colors = [int(value) * 257 for value in np.random.default_rng(3).integers(0, 256, 48)]
    low = {"reversed_bits": True}
    tiffs = {
        "low-bits": write_tiff(gray >> 7, 1, 1, **low),
        "low-white-bits": write_tiff(gray >> 7, 0, 1, **low),
        "low-gray2": write_tiff(gray >> 6, 1, 2, **low),
        "low-gray4": write_tiff(gray >> 4, 1, 4, ">", **low),
        "low-gray": write_tiff(gray, 1, **low),
        "low-gray16": write_tiff(gray.astype(np.uint16) * 2, 1, 16, **low),
        "low-palette4": write_tiff(gray >> 4, 3, 4, more=((320, 3, colors),), deflated=True, **low),
        "low-rgb": write_tiff(color, 2, **low),
        "low-rgb-deflate": write_tiff(color, 2, deflated=True, **low),
        "multiplied": write_tiff(rgba, 2, more=((338, 3, [1]),)),
        "multiplied-deflate": write_tiff(rgba, 2, more=((338, 3, [1]),), deflated=True),
        "unused-alpha": write_tiff(rgba, 2, more=((338, 3, [0]),)),
    }
    for order, name in (("<", "little"), (">", "big")):
        tiffs[f"multiplied16-{name}"] = write_tiff(rgba.astype(np.uint16) * 257, 2, 16, order, ((338, 3, [1]),))
    return tiffs


def pnm_images(folder: Path) -> None:
    """PNM files as Pillow writes them, and files with plain text, deep samples, comments, missing data or wrong headers."""
    color, gray = picture(37, 23), picture(37, 23)[..., 1]
    for name, image in (("bits", Image.fromarray(color).convert("1")), ("gray", Image.fromarray(gray)), ("rgb", Image.fromarray(color))):
        image.save(folder / f"pnm-{name}.pnm")
    Image.fromarray(gray.astype(np.uint16) * 3).save(folder / "pnm-gray16.pgm")

    def plain(kind: int, samples: np.ndarray, largest: int | None, head: str = "") -> bytes:
        size = f"{samples.shape[1]} {samples.shape[0]}"
        top = f"P{kind}\n{head}{size}\n" + (f"{largest}\n" if largest else "")
        return (top + "\n".join(" ".join(map(str, row.reshape(-1))) for row in samples) + "\n").encode()

    def binary(kind: int, samples: np.ndarray, largest: int, type_of: str = ">u2") -> bytes:
        return f"P{kind} {samples.shape[1]} {samples.shape[0]} {largest}\n".encode() + samples.astype(type_of).tobytes()

    files = {
        "plain-bits": plain(1, gray >> 7, None),
        "plain-bits-joined": b"P1 9 2\n101010101010\n1# a comment\n01010",
        "plain-gray": plain(2, gray, 255, "# a comment\n"),
        "plain-gray9": plain(2, gray % 10, 9),
        "plain-gray16": plain(2, gray.astype(int) * 3, 1000),
        "plain-rgb": plain(3, color, 255),
        "plain-rgb16": plain(3, color.astype(int) * 200, 65535),
        "plain-comments": b"P2\n#\n3 2 9\n1 2 # c\n3\n4 5#d\n 6",
        "comments": b"P5\n# one\n3# two\n 2\r255\n123456",
        "gray100": binary(5, gray // 2, 100, "u1"),
        "gray1000": binary(5, gray.astype(int) * 5, 1000),
        "rgb100": binary(6, color // 3, 100, "u1"),
        "rgb16": binary(6, color.astype(int) * 257, 65535),
        "rgb1000": binary(6, color.astype(int) * 3, 1000),
        "broken-cut": binary(5, gray, 255, "u1")[:-1],
        "broken-plain-cut": b"P2 3 2 9\n1 2 3 4 5",
        "broken-letters": b"P2 2 1 9\n1 x",
        "broken-too-large": b"P2 2 1 9\n1 10",
        "broken-no-largest": b"P5 2 1 0\n12",
        "broken-bits": b"P1 2 1\n12",
    }
    for name, data in files.items():
        (folder / f"pnm-{name}.pnm").write_bytes(data)


def tga_images(folder: Path) -> None:
    """TGA files as Pillow writes them, and files that are flipped, have a colour map, or are truncated."""
    image = Image.fromarray(picture(37, 23))
    rgba = image.copy()
    rgba.putalpha(Image.fromarray(picture(37, 23, seed=4)[..., 0]))
    flat = Image.fromarray(picture(37, 23) // 64 * 64)
    kinds = {
        "rgb": image, "flat": flat, "rgba": rgba, "gray": image.convert("L"), "gray-alpha": rgba.convert("LA"),
        "palette": image.quantize(100), "bits": image.convert("1"),
    }
    for name, kind in kinds.items():
        for compression in (None, "tga_rle"):
            for orientation in (-1, 1):
                if name == "bits" and compression:
                    continue
                kind.save(folder / f"tga-{name}-{compression}-{orientation}.tga", compression=compression, orientation=orientation)
    head = struct.pack("<BBBHHBHHHHBB", 3, 0, 2, 0, 0, 0, 0, 0, 5, 4, 16, 0x20) + b"abc"
    pixels = picture(20, 1)[..., :2].tobytes()
    mapped = struct.pack("<BBBHHBHHHHBB", 0, 1, 1, 7, 20, 16, 0, 0, 5, 4, 8, 0x30) + picture(20, 1)[..., :2].tobytes()
    files = {
        "rgb15": head + pixels,
        "right-to-left": head[:17] + b"\x10" + head[18:] + pixels,
        "mapped15": mapped + bytes(range(7, 27)),
        "mapped-over": mapped + bytes(range(90, 110)),
        "runs-over-rows": head[:2] + b"\x0a" + head[3:] + b"\x13" + pixels,
        "broken-cut": head + pixels[:-1],
        "broken-runs-cut": head[:2] + b"\x0a" + head[3:] + b"\x13" + pixels[:-1],
    }
    for name, data in files.items():
        (folder / f"tga-{name}.tga").write_bytes(data)


def qoi_images(folder: Path) -> None:
    """QOI files as Pillow writes them: with noise, runs and alpha."""
    image = Image.fromarray(picture(37, 23))
    rgba = image.copy()
    rgba.putalpha(Image.fromarray(picture(37, 23, seed=4)[..., 0]))
    smooth = np.add.outer(np.arange(40), np.arange(60)).astype(np.uint8)
    smooth = np.dstack([smooth, smooth // 3, 255 - smooth // 9])
    for name, kind in {"rgb": image, "rgba": rgba, "smooth": Image.fromarray(smooth), "black": Image.new("RGB", (90, 70))}.items():
        kind.save(folder / f"qoi-{name}.qoi")
    data = (folder / "qoi-smooth.qoi").read_bytes()
    (folder / "qoi-broken-cut.qoi").write_bytes(data[: len(data) // 2])


def large_images(folder: Path) -> None:
    """Sizes for which the order of the two resize passes matters."""
    for width, height in ((300, 1100), (1100, 300), (640, 480), (479, 641)):
        Image.fromarray(picture(width, height)).save(folder / f"size-{width}x{height}.jpg", quality=80)


def write_all(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for write in (
        png_images, jpeg_images, orientation_images, webp_images, gif_images, bmp_images, tiff_images, pnm_images, tga_images,
        qoi_images, large_images,
    ):
        write(folder)
