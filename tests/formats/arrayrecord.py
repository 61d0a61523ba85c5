"""Writes ArrayRecord with the library array_record, and prints what its own reader returns."""

import json
import random
import sys
from pathlib import Path

from array_record.python.array_record_module import ArrayRecordReader, ArrayRecordWriter

sys.path.append(str(Path(__file__).parents[2] / "fixtures/make"))
from make_array_record import example, png  # noqa: E402

OPTIONS = {
    "none": "group_size:7,uncompressed",
    "zstd": "group_size:1,zstd:3",
    "brotli": "group_size:64,brotli:4",
    "snappy": "group_size:300,snappy",
    "padded": "group_size:10,zstd:1,pad_to_block_boundary:true",
    "transposed": "group_size:10,transpose:true",
}
N = 200


def blob(i):
    """Bytes of up to 200 kB, of which some can be compressed. None are empty, and none are text."""
    dice = random.Random(i)
    n = dice.choice([1, 3, 100, 4000, 65536, 70000, 200000])
    return b"\xff" + (dice.randbytes(n) if i % 2 else bytes([i]) * n)


def record(i):
    return example({"image/encoded": png(i), "image/class/label": i % 3, "blob": blob(i)})


def main():
    folder = Path(sys.argv[2])
    if sys.argv[1] == "write":
        for name, options in OPTIONS.items():
            writer = ArrayRecordWriter(str(folder / f"{name}.array_record"), options)
            for i in range(N):
                writer.write(record(i))
            writer.close()
        return
    records = ArrayRecordReader(str(folder)).read_all()
    assert records == [record(i) for i in range(N)]
    print(json.dumps({"blob": [blob(i).hex() for i in range(N)]}))


if __name__ == "__main__":
    main()
