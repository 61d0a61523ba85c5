"""Reads samples with the library of their format, and prints a line of JSON for each value.

The request is JSON on stdin. `compare.rs` reads the lines. Nothing is written into the source.
"""

import json
import os
import sys
import tempfile
import zlib

# A file or folder in the working directory may have the name of the library.
sys.path[:] = [path for path in sys.path if path]
# Libraries may print to stdout.
LINES = os.fdopen(os.dup(1), "w", encoding="utf-8")
os.dup2(2, 1)

# 8 bits per channel.
MODES = ("1", "L", "P", "RGB", "RGBA", "LA", "PA", "CMYK", "YCbCr", "RGBX", "RGBa", "La")


def say(**line):
    print(json.dumps(line), file=LINES, flush=True)


class Mds:
    def __init__(self, path, spool):
        from streaming.base.format import reader_from_json

        self.path, self.spool, self.make = path, spool, reader_from_json
        with open(os.path.join(path, "index.json"), encoding="utf-8") as file:
            self.shards = json.load(file)["shards"]
        self.n_samples = sum(shard["samples"] for shard in self.shards)
        self.first, self.last, self.at = 0, 0, -1
        self.reader = None

    def row(self, number):
        while number >= self.last:
            self.at += 1
            self.first, self.last, self.reader = self.last, self.last + self.shards[self.at]["samples"], None
        if self.reader is None:
            self.reader = self.open(self.shards[self.at])
        return self.reader[number - self.first]

    def open(self, shard):
        raw, folder = shard["raw_data"]["basename"], self.path
        if not os.path.exists(os.path.join(folder, raw)):
            from streaming.base.compression import decompress

            with open(os.path.join(folder, shard["zip_data"]["basename"]), "rb") as file:
                data = decompress(shard["compression"], file.read())
            raw, folder = "shard.mds", self.spool
            shard = {**shard, "raw_data": {**shard["raw_data"], "basename": raw}}
            with open(os.path.join(folder, raw), "wb") as file:
                file.write(data)
        return self.make(folder, "", shard)


class LitData:
    def __init__(self, path, spool):
        from litdata import StreamingDataset

        # The library unpacks chunks next to them, and then deletes them. Only the links are deleted.
        links, cache = os.path.join(spool, "links"), os.path.join(spool, "cache")
        os.mkdir(links)
        for name in os.listdir(path):
            os.symlink(os.path.join(os.path.abspath(path), name), os.path.join(links, name))
        self.rows = StreamingDataset(links, cache_dir=cache, shuffle=False)
        self.n_samples = len(self.rows)

    def row(self, number):
        return self.rows[number]


class Stored:
    """A value of FFCV that only its compiled pipelines decode."""


class Beton:
    def __init__(self, path, _):
        from ffcv.reader import Reader

        reader = Reader(path)
        self.rows, self.n_samples = reader.metadata, len(reader.metadata)
        self.columns = dict(zip(reader.field_names, self.rows.dtype.names))

    def row(self, number):
        is_number = {name: self.rows.dtype[column].kind in "if" for name, column in self.columns.items()}
        return {name: self.rows[column][number] if is_number[name] else Stored for name, column in self.columns.items()}


LIBRARIES = {"mds": ("streaming", Mds), "litdata": ("litdata", LitData), "beton": ("ffcv", Beton)}


def flat(value, wanted, prefix=""):
    """The columns of a sample. Keys of nested dictionaries are joined with a dot."""
    if isinstance(value, (bytearray, memoryview)):
        value = bytes(value)
    if prefix.removesuffix(".") in wanted:
        return {prefix.removesuffix("."): value}
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, tuple) or isinstance(value, list) and (not prefix or has_below(wanted, prefix)):
        items = enumerate(value)
    else:
        return {prefix.removesuffix("."): value}
    columns = {}
    for key, item in items:
        columns.update(flat(item, wanted, f"{prefix}{key}."))
    return columns


def has_below(wanted, prefix):
    return any(name.startswith(prefix) for name in wanted)


def is_picture(value):
    import numpy as np

    if hasattr(value, "convert"):
        return True
    if isinstance(value, bytes):
        return value[:3] == b"\xff\xd8\xff" or value[:4] in (b"\x89PNG", b"GIF8", b"RIFF") or value[:2] == b"BM"
    return hasattr(value, "ndim") and np.ndim(value) >= 2


FITS = {
    "pixels": is_picture,
    "mask": is_picture,
    "number": lambda value: isinstance(value, (int, float, str)) or getattr(value, "ndim", None) == 0,
    "text": lambda value: isinstance(value, str),
}


def columns_of(fields, row):
    """The column of each field, where one is known. packds calls images, labels and masks by its own names."""
    found = {}
    for field in fields:
        name = field["key"] or field["name"]
        if name in row:
            found[field["name"]] = name
    free = [name for name in row if name not in found.values()]
    for field in fields:
        if field["name"] not in found:
            fits = FITS.get(field["kind"], lambda value: False)
            fitting = [name for name in free if row[name] is not Stored and fits(row[name])]
            if len(fitting) == 1:
                found[field["name"]] = fitting[0]
    return found


def picture(value, field):
    """The pixels of a picture, as the pack gives them."""
    import numpy as np

    if isinstance(value, bytes):
        from io import BytesIO

        from PIL import Image

        value = Image.open(BytesIO(value))
    if hasattr(value, "convert"):
        if value.mode not in MODES or value.mode == "1" and field["kind"] == "mask":
            raise ValueError(f"images of Pillow's mode {value.mode}")
        return np.asarray(value.convert(field["color"]) if field["color"] else value)
    value = array(value, field)
    channels = next((n for n in (value.shape[-1], value.shape[0]) if n in (1, 2, 3, 4)), 1) if value.ndim == 3 else 1
    wanted = {"RGB": 3, "L": 1}.get(field["color"], channels)
    if channels == 1 and wanted == 3:
        value = value.reshape([n for n in value.shape if n != 1] if value.ndim == 3 else value.shape)
        return np.repeat(value[..., None], 3, axis=2)
    if channels != wanted:
        raise ValueError(f"arrays with {channels} channels, of which the pack has {wanted}")
    return value


def array(value, field):
    import numpy as np

    if hasattr(value, "detach"):
        import torch

        value = value.detach()
        value = (value.view(torch.int16) if value.dtype == torch.bfloat16 else value).numpy()
    if isinstance(value, bytes):
        value = np.frombuffer(value, np.uint8)
    return np.asarray(value).astype(field["dtype"], copy=False)


def described(value):
    """The sides that are not 1, and the checksum of the bytes."""
    if value.size == 0:
        return "empty"
    sides = "x".join(str(n) for n in value.shape if n != 1)
    return f"{sides or 1} values, CRC-32 {zlib.crc32(value.tobytes()):08x}"


def values(value, field):
    """What the pack may have for a value. The order of the dimensions of an image may differ."""
    kind = field["kind"]
    if kind == "json":
        return [value if isinstance(value, str) else json.dumps(value)]
    if kind == "text" or isinstance(value, str):
        return [str(value)]
    if kind == "number":
        value = value.item() if hasattr(value, "item") else value
        return [repr(int(value) if isinstance(value, bool) else value)]
    # Libraries decode the files of some fields.
    is_file = kind == "file" and isinstance(value, bytes)
    value = picture(value, field) if field["is_picture"] and not is_file else array(value, field)
    all = [described(value)]
    if field["is_picture"] and value.ndim == 3:
        all += [described(value.transpose(order)) for order in ((1, 2, 0), (2, 0, 1))]
    return all


def main():
    request = json.load(sys.stdin)
    name, library = LIBRARIES[request["format"]]
    try:
        version = getattr(__import__(name), "__version__", None)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        return say(missing=name, python=sys.executable)
    with tempfile.TemporaryDirectory() as spool:
        source = library(request["path"], spool)
        say(library=name, version=version, n_samples=source.n_samples)
        compare(source, request)
    say(done=True)


def compare(source, request):
    fields, columns = request["fields"], None
    wanted = [field["key"] or field["name"] for field in fields]
    for number in request["samples"]:
        if number >= source.n_samples:
            continue
        row = flat(source.row(number), wanted)
        if columns is None:
            columns = columns_of(fields, row)
            for field in fields:
                if field["name"] not in columns:
                    say(field=field["name"], skipped="no column of the source is known to be this field")
                elif row[columns[field["name"]]] is Stored:
                    del columns[field["name"]]
                    say(field=field["name"], skipped="only FFCV's compiled pipelines decode it")
        for field in fields:
            column = columns.get(field["name"])
            if column is None:
                continue
            try:
                found = values(row[column], field)
            except (ValueError, TypeError, OverflowError) as error:
                del columns[field["name"]]
                say(field=field["name"], skipped=f"sample {number}: {error}")
                continue
            say(sample=number, field=field["name"], values=found)


if __name__ == "__main__":
    main()
    LINES.flush()
    # Threads of the library may still run.
    os._exit(0)
