"""A reader of pack files in plain Python and NumPy, written only from format.md, to prove that this page is complete. It is slow,
but verifies checksums.

    pack = Pack("train.pack"); pack.item("image", 17); pack.columns["label"][17]; pack.paths()[17]
    python docs/reference/read_pack.py FILE      # a summary in JSON, with a CRC32C of all items of each field
"""
import json
import sys
from functools import reduce
from struct import iter_unpack, unpack_from

import numpy as np

DTYPES = dict(bool="?", u8="u1", i8="i1", u16="<u2", i16="<i2", u32="<u4", i32="<i4", u64="<u8", i64="<i8",
              f16="<f2", bf16="<u2", f32="<f4", f64="<f8")
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
        file_len, footer_off, footer_len, self.n_samples, uuid_again, table_crc = unpack_from("<QQQQ16sI", tail)
        check(required & ~3 == 0 and checksum_kind == 1, "the pack uses something newer")
        check(file_len == len(self.file) == footer_off + footer_len + 64 and uuid == uuid_again, "file length or uuid")
        self.sections = self.read_footer(footer_off, table_crc)
        schema = self.checked(4096, schema_len, schema_crc, "schema")
        check(schema == self.sections[b"SCHM"], "header and footer have two schemas")
        check(not json.loads(schema).get("must_understand"), "the schema uses something newer")
        self.fields = {f["name"]: f | {"item": np.dtype((DTYPES[f["dtype"]], tuple(f.get("shape", []))))}
                       for f in json.loads(schema)["fields"]}
        self.body = [field for field in self.fields.values() if field["store"] == "body"]
        self.n_chunks, self.strided = -(-self.n_samples // self.chunk_samples), not required & 1
        self.columns = dict(self.read_columns())

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

    def items(self, name, k):
        """The bytes of all items of a body field in chunk k."""
        field, table, n = self.fields[name], self.sections[b"CHNK"], self.n_samples - k * self.chunk_samples
        n, place = min(n, self.chunk_samples), self.body.index(field)
        size, n_blocks = field["item"].itemsize if field["kind"] == "tensor" else None, 0
        if self.strided:
            length, crc = self.chunk_stride if len(self.body) > 1 else n * size, *unpack_from("<I", table, 16 + 4 * k)
            data = self.checked(self.data_off + k * self.chunk_stride, length, crc, f"chunk {k}")
            start = sum(-(-f["item"].itemsize * self.chunk_samples // 4096) * 4096 for f in self.body[:place])
        else:
            data = self.checked(*unpack_from("<QQI", table, 16 + 32 * k), f"chunk {k}")
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
        """One item: an array or number for tensors, bytes otherwise."""
        if name in self.columns:
            return self.columns[name][sample]
        field, item = self.fields[name], self.items(name, sample // self.chunk_samples)[sample % self.chunk_samples]
        return np.frombuffer(item, field["item"])[0] if field["kind"] == "tensor" else item

    def paths(self):
        data, paths = self.sections.get(b"PATH", bytes(16)), []
        n, n_groups = unpack_from("<QQ", data)
        for start, size in iter_unpack("<QQ", data[16 : 16 + 16 * n_groups]):
            group, m = unzstd(data[16 + 16 * n_groups + start :], size), min(4096, n - len(paths))
            paths += cut(group, m, width=4)
        return paths


def summary(pack):
    crcs = {name: crc32c(column.tobytes()) for name, column in pack.columns.items()}
    for name in (field["name"] for field in pack.body):
        crcs[name] = crc32c(b"".join(item for k in range(pack.n_chunks) for item in pack.items(name, k)))
    paths, (classes, stats) = pack.paths(), (json.loads(pack.sections.get(tag, b"null")) for tag in (b"CLAS", b"STAT"))
    return dict(n_samples=pack.n_samples, n_chunks=pack.n_chunks, crc32c=crcs, classes=classes, stats=stats,
                n_paths=len(paths), paths_crc32c=crc32c(b"".join(path + b"\0" for path in paths)))


if __name__ == "__main__":
    packs = [summary(Pack(path)) for path in sys.argv[1:]]
    json.dump(packs if len(packs) > 1 else packs[0], sys.stdout)
