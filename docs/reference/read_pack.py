"""A reader of pack files and sets in plain Python and NumPy, written only from format.md, to prove that this page is complete. It is
slow, but verifies checksums.

    pack = open_pack("train.pack"); pack.item("image", 17); pack.columns["label"][17]; pack.paths()[17]
    pack = open_pack("train.packs")              # a set: its latest version; "train.packs@3": version 3
    python docs/reference/read_pack.py PACK      # a summary in JSON, with a CRC32C of all items of each field
"""
import json
import re
import sys
from functools import reduce
from pathlib import Path
from struct import iter_unpack, unpack_from

import numpy as np

DTYPES = dict(bool="?", u8="u1", i8="i1", u16="<u2", i16="<i2", u32="<u4", i32="<i4", u64="<u8", i64="<i8",
              f16="<f2", bf16="<u2", f32="<f4", f64="<f8")
KINDS = {"tensor", "image", "bytes", "string", "json", "ragged"}
FIELD = dict(name=None, kind=None, store=None, dtype=None, shape=[], role=None, of=None, seek_index_of=None,
             codec={"name": "none"}, layout=None, color=None, normalize=None, keypoints=None)
U64, UUID = range(1 << 64), "[0-9a-f]{32}"
SHARD = dict(path=str, n_samples=range(1, 1 << 48), bytes=U64, pack_uuid=UUID, footer_crc32c="[0-9a-f]{8}", body_bytes=U64,
             largest_chunk=U64)
MANIFEST = dict(format="packds set", major=range(1, 2), version=range(1, 1 << 64), parent=(UUID,), pack_uuid=UUID, dataset_uuid=UUID,
                n_samples=range(1, 1 << 48), chunk_samples=range(1, (1 << 20) + 1), has_paths=bool,
                schema=dict(fields=[{}], must_understand=([str],)), shards=[SHARD], stats={},
                classes=[dict(field=str, names=[str], counts=[U64])], provenance={})
STATS = dict(fields={str: dict(n_pixels=U64, mean=[float], std=[float], min=[range(256)], max=[range(256)], histogram=[[U64]])},
             labels={str: dict(icc=(float,))}, sizes={str: dict(min=U64, mean=float, max=U64, total=U64)},
             seek={str: dict(n_indexed=U64, bytes=U64, image_bytes=U64)})
TABLE = [reduce(lambda crc, _: crc >> 1 ^ 0x82F63B78 * (crc & 1), range(8), n) for n in range(256)]


def crc32c(data):
    return reduce(lambda crc, byte: TABLE[(crc ^ byte) & 255] ^ crc >> 8, data, 0xFFFFFFFF) ^ 0xFFFFFFFF


def check(condition, message):
    if not condition:
        raise ValueError(message)


def unzstd(frame, size):
    import zstandard  # here, because packs without codec and paths need NumPy alone
    data = zstandard.ZstdDecompressor(max_window_size=1 << 23).stream_reader(frame).read(size + 1)
    check(len(data) == size, "decoded length")
    return data


def cut(data, n, size=None, width=8, skip=0):
    """Cuts data into n parts of `size` bytes each. Without `size`, data starts with n + 1 offsets of `width` bytes each, then `skip`
    other bytes. The offsets count from the end of both."""
    if size:
        return [data[i * size : (i + 1) * size] for i in range(n)]
    ends, data = np.frombuffer(data, f"<u{width}", n + 1).tolist(), data[width * (n + 1) + skip :]
    return [data[a:b] for a, b in zip(ends, ends[1:])]


class Pack:
    def __init__(self, path):
        self.file = np.memmap(path, "u1", "r")
        head, tail = self.file[:4096].tobytes(), self.file[-64:].tobytes()
        check(head[:10] == b"\x89PACK\r\n\x1a\x01\0", "not a pack of version 1")
        check(tail[56:] == b"\x89PKEND\r\n", "no trailer: the file is unfinished or truncated")
        check(crc32c(head[:4092]) == int.from_bytes(head[4092:], "little"), "checksum of header")
        check(crc32c(tail[:52] + tail[56:]) == int.from_bytes(tail[52:56], "little"), "checksum of trailer")
        (required, checksum_kind, self.chunk_samples, uuid, schema_len, self.data_off, self.chunk_stride,
         schema_crc) = unpack_from("<16xQ9xB2xI16s24xQQ8xQI", head)
        file_len, footer_off, footer_len, self.n_samples, self.uuid, self.table_crc = unpack_from("<QQQQ16sI", tail)
        check(required & ~11 == 0 and checksum_kind == 1, "the pack uses something newer")
        check(file_len == len(self.file) == footer_off + footer_len + 64 and uuid == self.uuid, "file length or uuid")
        self.sections = self.read_footer(footer_off, self.table_crc)
        schema = self.checked(4096, schema_len, schema_crc, "schema")
        check(schema == self.sections[b"SCHM"], "header and footer have two schemas")
        self.schema = json.loads(schema)
        check(not self.schema.get("must_understand") and all(f["kind"] in KINDS for f in self.schema["fields"]),
              "the schema uses something newer")
        self.fields = {f["name"]: f | {"item": np.dtype((DTYPES[f["dtype"]], tuple(f.get("shape", []))))}
                       for f in self.schema["fields"]}
        self.body = [field for field in self.fields.values() if field["store"] == "body"]
        self.n_chunks, self.strided = -(-self.n_samples // self.chunk_samples), not required & 1
        self.columns = dict(self.read_columns())
        self.classes, self.stats = (json.loads(self.sections.get(tag, b"null")) for tag in (b"CLAS", b"STAT"))

    def checked(self, offset, size, crc, what):
        data = self.file[offset : offset + size].tobytes()
        check(len(data) == size and crc32c(data) == crc, f"checksum of {what}")
        return data

    def read_footer(self, offset, table_crc):
        size, sections = 8 + 32 * int.from_bytes(self.file[offset : offset + 4], "little"), {}
        table = self.checked(offset, size, table_crc, "section table")
        for tag, flags, *place in iter_unpack("<4sIQQI4x", table[8:]):
            check(tag in b"SCHM CHNK COLS STAT CLAS PROV PATH".split() or not flags & 1, f"unknown section {tag}")
            sections[tag] = self.checked(*place, f"section {tag}")
        return sections

    def read_columns(self):
        directory, fields = self.sections[b"COLS"], list(self.fields.values())
        crcs = 8 + 24 * unpack_from("<I", directory)[0]
        for number, n_crcs, offset, size in iter_unpack("<IIQQ", directory[8:crcs]):
            name, data = fields[number]["name"], b""
            for crc in unpack_from(f"<{n_crcs}I", directory, crcs):
                data += self.checked(offset + len(data), min(size - len(data), 1 << 20), crc, f"column {name}")
            crcs += 4 * n_crcs
            yield name, np.frombuffer(data, fields[number]["item"])

    def samples_in(self, k):
        return min(self.n_samples - k * self.chunk_samples, self.chunk_samples)

    def chunk(self, k):
        """Where chunk k starts, its stored length and its checksum."""
        table = self.sections[b"CHNK"]
        if not self.strided:
            return unpack_from("<QQI", table, 16 + 32 * k)
        length = self.chunk_stride if len(self.body) > 1 else self.samples_in(k) * self.body[0]["item"].itemsize
        return self.data_off + k * self.chunk_stride, length, *unpack_from("<I", table, 16 + 4 * k)

    def items(self, name, k):
        """The bytes of all items of a body field in chunk k."""
        field, n = self.fields[name], self.samples_in(k)
        place, data = self.body.index(field), self.checked(*self.chunk(k), f"chunk {k}")
        size, n_blocks = field["item"].itemsize if field["kind"] == "tensor" else None, 0
        if self.strided:
            start = sum(-(-f["item"].itemsize * self.chunk_samples // 4096) * 4096 for f in self.body[:place])
        else:
            start, n_blocks, block_samples = unpack_from("<Q8xII", data, 32 * place)
        if n_blocks == 0:
            return cut(data[start:], n, size)
        lengths, items = unpack_from(f"<{n_blocks}Q", data, start + 8 * (n_blocks + 1)), []
        for block, decoded in zip(cut(data[start:], n_blocks, skip=8 * n_blocks), lengths):
            block = block if len(block) == decoded else unzstd(block, decoded)
            items += cut(block, min(block_samples, n - len(items)), size)
        return [self.unfiltered(name, k * self.chunk_samples + i, item) for i, item in enumerate(items)]

    def unfiltered(self, name, sample, item):
        field, steps, coding = self.fields[name], self.fields[name]["codec"]["filter"], 0
        if field["kind"] == "tensor":
            h, w, c = map(dict(zip(field.get("layout", ""), field.get("shape", []))).get, "hwc")
        else:
            about = {f["role"]: int(self.columns[n][sample]) for n, f in self.fields.items() if f.get("of") == name}
            coding, h, w, c = map(about.get, ("coding", "height", "width", "channels"))
        if steps == "none" or coding != 0 or None in (h, w, c) or h * w * c != len(item) or not item:
            return item
        planes = np.frombuffer(bytearray(item), "u1").reshape(c, h, w)
        planes = np.cumsum(planes, axis=1, dtype="u1") if "up" in steps else planes
        if "green" in steps and c == 3:
            planes[[0, 2]] += planes[1]
        return (planes.transpose(1, 2, 0) if "planar" in steps else planes).tobytes()

    def item(self, name, sample):
        """One item: an array or number for tensors, an array `[entries, ...]` for ragged fields, bytes otherwise."""
        if name in self.columns:
            return self.columns[name][sample]
        field, item = self.fields[name], self.items(name, sample // self.chunk_samples)[sample % self.chunk_samples]
        if field["kind"] not in ("tensor", "ragged"):
            return item
        entries = np.frombuffer(item, field["item"])  # an error if the item ends inside an entry
        return entries[0] if field["kind"] == "tensor" else entries

    def paths(self):
        data, paths = self.sections.get(b"PATH", bytes(16)), []
        n, n_groups = unpack_from("<QQ", data)
        for start, size in iter_unpack("<QQ", data[16 : 16 + 16 * n_groups]):
            group, m = unzstd(data[16 + 16 * n_groups + start :], size), min(4096, n - len(paths))
            paths += cut(group, m, width=4)
        return paths


def version_of(name):
    """The version whose manifest has this file name, or 0."""
    number = re.fullmatch("manifest-([0-9]{8,20})[.]json", name)
    return int(number[1]) if number and f"manifest-{int(number[1]):08}.json" == name else 0


def manifest_at(path):
    """The manifest that the path of a set names, or None if it is not the path of a set."""
    name, _, version = path.name.rpartition("@")
    if version_of(path.name):
        return path
    if name.endswith(".packs") and re.fullmatch("[0-9]{1,20}", version) and not path.exists():
        manifest = path.with_name(name) / f"manifest-{int(version):08}.json"
        check(manifest.exists(), f"the set has no version {int(version)}")
        return manifest
    if path.name.endswith(".packs") and path.is_dir():
        latest = max((entry.name for entry in path.iterdir()), key=version_of, default="")
        check(version_of(latest), "expected a set, found a folder without a manifest")
        return path / latest
    return None


def once(pairs):
    check(len(dict(pairs)) == len(pairs), "a key occurs twice")
    return dict(pairs)


def expect(value, kind, name):
    """Checks a value of a manifest. A kind is a type, a range of integers, a pattern of text, [kind of all entries], {key: kind},
    {str: kind of all values}, or (kind,) if the value may be null or missing."""
    if isinstance(kind, dict):
        check(isinstance(value, dict), f"{name}: expected an object")
        for key in value if str in kind else kind:
            expect(value.get(key), kind[str if str in kind else key], f"{name}.{key}")
    elif isinstance(kind, list):
        check(isinstance(value, list), f"{name}: expected a list")
        for number, entry in enumerate(value):
            expect(entry, kind[0], f"{name}[{number}]")
    elif isinstance(kind, tuple):
        if value is not None:
            expect(value, kind[0], name)
    else:
        fits = (type(value) is int and value in kind if isinstance(kind, range)
                else isinstance(value, str) and re.fullmatch(kind, value) if isinstance(kind, str)
                else type(value) is kind or kind is float and type(value) is int)
        check(fits, f"{name}: unexpected value {str(value)[:80]!r}")


def read_manifest(path):
    end = re.fullmatch(rb'(.*),"crc32c":"([0-9a-f]{8})"}\n', path.read_bytes(), re.DOTALL)
    check(end, "no checksum at the end of the manifest: it is damaged or unfinished")
    check(crc32c(end[1]) == int(end[2], 16), "checksum of manifest")
    try:
        manifest = json.loads(end[1].decode() + "}", object_pairs_hook=once)
        json.dumps(manifest, allow_nan=False, ensure_ascii=False).encode()  # an error for infinity, NaN and single surrogates
    except (ValueError, RecursionError) as error:
        raise ValueError(f"manifest: invalid JSON: {error}") from None
    expect(manifest, MANIFEST, "manifest")
    expect(dict.fromkeys(STATS, {}) | manifest["stats"], STATS, "manifest.stats")
    check(manifest["version"] == version_of(path.name), "the version is not that of the file name")
    check(not manifest["schema"].get("must_understand"), "the schema uses something newer")
    shards = manifest["shards"]
    for name in (shard["path"] for shard in shards):
        parts = set(name.split("/"))
        check(not parts & {"", ".", ".."} and not set(name) & {"\\", "\0"} and len(name.encode()) <= 1024,
              f"shard {name[:80]!r}: its path is not inside the set")
    check(shards and len({shard["path"] for shard in shards}) == len(shards), "expected at least one shard, and each only once")
    check(sum(shard["n_samples"] for shard in shards) == manifest["n_samples"], "number of samples of all shards")
    check(sum(-(-shard["bytes"] >> 21) << 21 for shard in shards) < 1 << 63, "size of the set")
    return manifest


def meaning(schema):
    """What two schemas of the same meaning have in common: the keys that this version knows, with defaults."""
    return [{key: default if field.get(key) is None else field[key] for key, default in FIELD.items()}
            for field in schema["fields"]]


class Set:
    """A version of a set, with the attributes and methods of a pack of all its samples."""

    def __init__(self, path):
        self.manifest = read_manifest(path)
        self.n_samples, self.chunk_samples, self.schema, self.classes, self.stats = map(
            self.manifest.get, ("n_samples", "chunk_samples", "schema", "classes", "stats"))
        self.shards = [self.shard(path.parent, entry) for entry in self.manifest["shards"]]
        self.fields, self.body = self.shards[0].fields, self.shards[0].body
        self.n_chunks = sum(shard.n_chunks for shard in self.shards)
        self.columns = {name: np.concatenate([shard.columns[name] for shard in self.shards]) for name in self.shards[0].columns}

    def shard(self, folder, entry):
        try:
            pack = Pack(folder / entry["path"])
            chunks = [pack.chunk(k) for k in range(pack.n_chunks)]
            found = dict(n_samples=pack.n_samples, bytes=len(pack.file), pack_uuid=pack.uuid.hex(),
                         footer_crc32c=f"{pack.table_crc:08x}", body_bytes=sum(chunks[-1][:2]) - pack.data_off if chunks else 0,
                         largest_chunk=max((length for _, length, _ in chunks), default=0))
            for key, value in found.items():
                check(value == entry[key], f"another file than in the manifest: expected {key} {entry[key]}, found {value}")
            check(pack.chunk_samples == self.chunk_samples, "other samples per chunk than the set")
            check((b"PATH" in pack.sections) == self.manifest["has_paths"], "only some shards have paths")
            check(meaning(pack.schema) == meaning(self.schema), "other fields than the set")
            return pack
        except (OSError, ValueError) as error:
            raise ValueError(f"shard {entry['path']!r}: {error}") from None

    def part(self, count, number):
        """The shard with a sample or chunk, and its number there. `count` is "n_samples" or "n_chunks"."""
        for shard in self.shards:
            if number < getattr(shard, count):
                return shard, number
            number -= getattr(shard, count)
        raise IndexError(f"the set has only {getattr(self, count)} {count[2:]}")

    def items(self, name, k):
        shard, k = self.part("n_chunks", k)
        return shard.items(name, k)

    def item(self, name, sample):
        shard, sample = self.part("n_samples", sample)
        return shard.item(name, sample)

    def paths(self):
        return [path for shard in self.shards for path in shard.paths()]


def open_pack(path):
    manifest = manifest_at(Path(path))
    return Set(manifest) if manifest else Pack(path)


def summary(pack):
    crcs = {name: crc32c(column.tobytes()) for name, column in pack.columns.items()}
    for name in (field["name"] for field in pack.body):
        crcs[name] = crc32c(b"".join(item for k in range(pack.n_chunks) for item in pack.items(name, k)))
    paths = pack.paths()
    return dict(n_samples=pack.n_samples, n_chunks=pack.n_chunks, crc32c=crcs, classes=pack.classes, stats=pack.stats,
                n_paths=len(paths), paths_crc32c=crc32c(b"".join(path + b"\0" for path in paths)))


if __name__ == "__main__":
    packs = [summary(open_pack(path)) for path in sys.argv[1:]]
    json.dump(packs if len(packs) > 1 else packs[0], sys.stdout)
