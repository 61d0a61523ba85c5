"""A reader of pack files in plain Python and NumPy, written from format.md to prove that page; slow, checks everything.

    pack = Pack("train.pack"); pack.item("image", 17); pack.column("label"); pack.path(17)
    python docs/read_pack.py FILE      # a summary in JSON, with a CRC32C of all items of each field
"""
import json
import struct
import sys

import numpy as np

DTYPES = dict(bool="?", u8="u1", i8="i1", u16="<u2", i16="<i2", u32="<u4", i32="<i4", u64="<u8", i64="<i8",
              f16="<f2", bf16="<u2", f32="<f4", f64="<f8")
TABLE = []
for n in range(256):
    for _ in range(8):
        n = n >> 1 ^ 0x82F63B78 * (n & 1)
    TABLE.append(n)


def crc32c(data, crc=0):
    crc ^= 0xFFFFFFFF
    for byte in bytes(data):
        crc = TABLE[(crc ^ byte) & 255] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def check(condition, message):
    if not condition:
        raise ValueError(message)


def align(x, a):
    return -(-x // a) * a


def unzstd(frame, size):
    import zstandard

    return zstandard.ZstdDecompressor(max_window_size=1 << 23).decompress(frame, max_output_size=size)


def cut(data, n):
    """The n items of variable size behind their table of n + 1 offsets."""
    ends = np.frombuffer(data, "<u8", n + 1).astype(int)
    check(ends[0] == 0 and (np.diff(ends) >= 0).all() and ends[-1] == len(data) - 8 * (n + 1), "item table")
    return [data[8 * (n + 1) + a : 8 * (n + 1) + b] for a, b in zip(ends, ends[1:])]


def unfilter(item, steps, height, width, channels):
    planes = np.frombuffer(item, "u1").reshape(channels, height, width).copy()
    if "up" in steps:
        planes = np.cumsum(planes, axis=1, dtype="u1")
    if "green" in steps and channels == 3:
        planes[0] += planes[1]
        planes[2] += planes[1]
    return (planes.transpose(1, 2, 0) if "planar" in steps else planes).tobytes()


class Pack:
    def __init__(self, path):
        self.file = file = np.memmap(path, "u1", "r")
        head, tail = self.bytes(0, 4096), self.bytes(len(file) - 64, 64)
        check(head[:8] == b"\x89PACK\r\n\x1a" and head[8:10] == b"\x01\0", "not a pack of version 1")
        check(tail[56:] == b"\x89PKEND\r\n", "no trailer: the file is unfinished or truncated")
        check(crc32c(head[:4092]) == struct.unpack("<I", head[4092:])[0], "header checksum")
        check(not any(head[116:4092]) and head[34:36] == b"\0\0", "header, reserved")
        check(crc32c(tail[:52] + tail[56:]) == struct.unpack("<I", tail[52:56])[0], "trailer checksum")
        (_, header_len, required, _, align_log2, checksum, self.chunk_samples, uuid, _, schema_off, schema_len, data_off,
         self.sample_stride, self.chunk_stride, schema_crc) = struct.unpack("<10xHIQQBB2xI16s16sQQQQQI", head[:116])
        file_len, footer_off, footer_len, self.n_samples, uuid2, table_crc = struct.unpack("<QQQQ16sI", tail[:52])
        check((header_len, checksum, schema_off, required & ~3) == (4096, 1, 4096, 0), "header")
        check(file_len == len(file) and footer_off + footer_len + 64 == file_len and uuid == uuid2, "trailer")
        self.sections = self.read_footer(footer_off, footer_len, table_crc)
        check(crc32c(self.sections["SCHM"]) == schema_crc == crc32c(self.bytes(4096, schema_len)), "schema checksum")
        self.schema = json.loads(self.sections["SCHM"])
        check(not self.schema.get("must_understand"), "schema uses something newer")
        self.fields = {field["name"]: field for field in self.schema["fields"]}
        self.body = [f for f in self.schema["fields"] if f["store"] == "body"]
        self.data_off = align(4096 + schema_len, 1 << align_log2)
        check(data_off == self.data_off, "data offset")
        self.chunks = self.read_chunk_table(1 << align_log2)
        self.columns = self.read_columns()

    def bytes(self, offset, size):
        check(0 <= offset and offset + size <= len(self.file), "outside the file")
        return self.file[offset : offset + size].tobytes()

    def read_footer(self, offset, size, table_crc):
        n, zero = struct.unpack("<II", self.bytes(offset, 8))
        check(n <= 256 and zero == 0 and crc32c(self.bytes(offset, 8 + 32 * n)) == table_crc, "section table")
        sections, end = {}, offset + 8 + 32 * n
        for i in range(n):
            tag, flags, at, length, crc, zero = struct.unpack("<4sIQQII", self.bytes(offset + 8 + 32 * i, 32))
            tag = tag.decode("latin-1")
            check(at == align(end, 64) and not any(self.bytes(end, at - end)) and zero == 0, f"place of {tag}")
            check(tag in "SCHM CHNK COLS STAT CLAS PROV PATH".split() or not flags & 1, f"unknown section {tag}")
            sections[tag], end = self.bytes(at, length), at + length
            check(crc32c(sections[tag]) == crc, f"checksum of {tag}")
        check(end == offset + size, "footer length")
        return sections

    def read_chunk_table(self, alignment):
        table, chunks, end = self.sections["CHNK"], [], self.data_off
        n, entry_bytes, kind = struct.unpack("<QII", table[:16])
        strided = all(f["kind"] == "tensor" and f.get("codec", {"name": "none"})["name"] == "none" for f in self.body)
        check(n == -(-self.n_samples // self.chunk_samples) and kind == (not strided), "chunk table")
        check(entry_bytes == (4 if strided else 32) and len(table) == 16 + n * entry_bytes, "chunk table length")
        for k in range(n):
            samples = min(self.chunk_samples, self.n_samples - k * self.chunk_samples)
            if strided:
                length = self.chunk_stride if len(self.body) > 1 else samples * self.sample_stride
                offset, crc = self.data_off + k * self.chunk_stride, struct.unpack_from("<I", table, 16 + 4 * k)[0]
            else:
                offset, length, crc, count = struct.unpack_from("<QQII", table, 16 + 32 * k)
                check(offset == align(end, alignment) and count == samples, f"entry of chunk {k}")
            end = offset + length
            check(crc32c(self.bytes(offset, length)) == crc, f"checksum of chunk {k}")
            chunks.append((offset, length, samples))
        self.strided, self.body_end = strided, end
        return chunks

    def read_columns(self):
        directory, columns, end = self.sections["COLS"], {}, self.body_end
        crcs = 8 + 24 * struct.unpack("<I", directory[:4])[0]
        for i in range((crcs - 8) // 24):
            number, n_blocks, offset, length = struct.unpack_from("<IIQQ", directory, 8 + 24 * i)
            field, data = self.schema["fields"][number], self.bytes(offset, length)
            check(offset == align(end, 4096) and n_blocks == -(-length >> 20), f"place of column {field['name']}")
            for block in range(n_blocks):
                crc = struct.unpack_from("<I", directory, crcs)[0]
                check(crc32c(data[block << 20 : block + 1 << 20]) == crc, f"checksum of column {field['name']}")
                crcs += 4
            shape = [self.n_samples] + field.get("shape", [])
            columns[field["name"]], end = np.frombuffer(data, DTYPES[field["dtype"]]).reshape(shape), offset + length
        check(crcs == len(directory), "column directory")
        return columns

    def column(self, name):
        return self.columns[name]

    def described(self, role, name, sample):
        columns = [f["name"] for f in self.fields.values() if f.get("role") == role and f.get("of") == name]
        return int(self.columns[columns[0]][sample]) if columns else None

    def items(self, name, k):
        """The bytes of all items of a body field in chunk k."""
        (offset, length, n), field = self.chunks[k], self.fields[name]
        data, position = self.bytes(offset, length), [f["name"] for f in self.body].index(name)
        sizes = [int(np.prod([np.dtype(DTYPES[f["dtype"]]).itemsize] + f.get("shape", []))) for f in self.body]
        size, codec = sizes[position] if field["kind"] == "tensor" else None, field.get("codec", {"name": "none"})
        if self.strided:
            at = sum(align(s * self.chunk_samples, 4096) for s in sizes[:position])
            return [data[at + i * size : at + (i + 1) * size] for i in range(n)]
        at, length, n_blocks, per_block = struct.unpack_from("<QQII", data, 32 * position)
        part = data[at : at + length]
        split = lambda raw, m: [raw[i * size : (i + 1) * size] for i in range(m)] if size else cut(raw, m)
        if codec["name"] == "none":
            return split(part, n)
        table, items = 8 * (2 * n_blocks + 1), []
        numbers = struct.unpack_from(f"<{2 * n_blocks + 1}Q", part)
        for b, decoded in enumerate(numbers[n_blocks + 1 :]):
            raw = part[table + numbers[b] : table + numbers[b + 1]]
            raw = raw if len(raw) == decoded else unzstd(raw, decoded)
            check(len(raw) == decoded, "decoded length")
            items += split(raw, min(per_block, n - b * per_block))
        steps = codec["filter"].split("+")
        return [self.unfiltered(field, k * self.chunk_samples + i, item, steps) for i, item in enumerate(items)]

    def unfiltered(self, field, sample, item, steps):
        if steps == ["none"]:
            return item
        if field["kind"] == "tensor":
            c, h, w = field["shape"] if field["layout"] == "chw" else field["shape"][2:] + field["shape"][:2]
        else:
            coding, h, w, c = (self.described(r, field["name"], sample) for r in "coding height width channels".split())
            if coding != 0 or None in (h, w, c) or h * w * c != len(item) or not item:
                return item
        return unfilter(item, steps, h, w, c)

    def item(self, name, sample):
        """One item: an array for tensors, bytes otherwise."""
        field = self.fields[name]
        if field["store"] == "column":
            return self.columns[name][sample]
        item = self.items(name, sample // self.chunk_samples)[sample % self.chunk_samples]
        return np.frombuffer(item, DTYPES[field["dtype"]]).reshape(field.get("shape", [])) if field["kind"] == "tensor" else item

    def paths(self):
        data, paths = self.sections.get("PATH"), []
        n, n_groups = struct.unpack("<QQ", data[:16]) if data else (0, 0)
        groups = [struct.unpack_from("<QQ", data, 16 + 16 * g) for g in range(n_groups)]
        for g, (start, decoded) in enumerate(groups):
            end = groups[g + 1][0] if g + 1 < n_groups else None
            raw, m = unzstd(data[16 + 16 * n_groups :][start:end], decoded), min(4096, n - 4096 * g)
            ends = struct.unpack_from(f"<{m + 1}I", raw)
            paths += [raw[4 * (m + 1) :][a:b] for a, b in zip(ends, ends[1:])]
        return paths

    def section(self, tag):
        return json.loads(self.sections.get(tag, b"null"))


def summary(pack):
    crcs = {}
    for name, field in pack.fields.items():
        chunks = range(len(pack.chunks))
        items = b"".join(b"".join(pack.items(name, k)) for k in chunks) if field["store"] == "body" else pack.column(name).tobytes()
        crcs[name] = crc32c(items)
    paths = pack.paths()
    return dict(n_samples=pack.n_samples, n_chunks=len(pack.chunks), crc32c=crcs, n_paths=len(paths),
                paths_crc32c=crc32c(b"".join(p + b"\0" for p in paths)), classes=pack.section("CLAS"), stats=pack.section("STAT"))


if __name__ == "__main__":
    json.dump([summary(Pack(path)) for path in sys.argv[1:]] if len(sys.argv) > 2 else summary(Pack(sys.argv[1])), sys.stdout)
