"""Writes and reads LMDB with its own library."""

import io
import json
import os
import pickle
import struct
import sys

here = os.path.dirname(os.path.abspath(__file__))
sys.path = [p for p in sys.path if os.path.abspath(p or ".") != here]
import lmdb
import numpy as np

sys.path.append(here)
from records import H, N, NAMES, W, decoded, pixels, png, points


def npy(array):
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def varint(n):
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def datum(i):
    data = pixels(i).transpose(2, 0, 1).tobytes()
    return (b"\x08\x03\x10" + varint(H) + b"\x18" + varint(W) + b"\x22" + varint(len(data)) + data
            + b"\x28" + varint(i % 3))


def fill(path, entries, subdir=True, db=None):
    env = lmdb.open(path, map_size=1 << 26, subdir=subdir, max_dbs=3)
    with env.begin(write=True) as txn:
        into = env.open_db(db, txn=txn) if db else None
        for key, value in entries:
            txn.put(key.encode(), value, **({"db": into} if into else {}))
    env.close()


def write(folder):
    fill(f"{folder}/datum", ((f"{i:08}_x", datum(i)) for i in range(N)))
    fill(f"{folder}/file.mdb", ((f"{NAMES[i % 3]}/{i:04}.png", png(i)) for i in range(N)), subdir=False)
    both = [(f"image-{i:09}", png(i)) for i in range(1, N)] + [(f"label-{i:09}", b"%d" % (i % 3)) for i in range(1, N)]
    fill(f"{folder}/keys", both + [("num-samples", b"%d" % (N - 1))])
    fill(f"{folder}/gap", [entry for entry in both if entry[0] != f"label-{4:09}"])
    fill(f"{folder}/npy", ((f"{i:05}", npy(pixels(i))) for i in range(N)), db=b"images")
    fill(f"{folder}/pickled", ((f"{i:05}", pickle.dumps((png(i), i))) for i in range(N)))
    fill(f"{folder}/codes", [(f"image-{i}", png(i)) for i in range(4)] + [(f"label-{i}", b"00%d" % (7 + i % 2)) for i in range(4)])
    for name in ["two", "both"]:
        fill(f"{folder}/{name}", ((f"{i:05}", png(i)) for i in range(N)), db=b"images")
    for name, db, value in [("two", b"labels", b"%d"), ("both", b"labels", b"%d"), ("both", b"names", b"class %d")]:
        fill(f"{folder}/{name}", ((f"{i:05}", value % (i % 3)) for i in range(N)), db=db)
    fill(f"{folder}/binary", [("00000", png(0))], db=b"images")
    fill(f"{folder}/binary", [("00000", struct.pack("<q", 1))], db=b"labels")
    # Many entries, some of them long, some written twice and some deleted. They cause free pages and several levels.
    env = lmdb.open(f"{folder}/many", map_size=1 << 28)
    for turn in range(3):
        with env.begin(write=True) as txn:
            for i in range(turn, 4000, turn + 1):
                txn.put(f"{i:06}".encode(), png(i % N) + b"\0" * (i % 9000 if turn == 2 else i % 50))
    with env.begin(write=True) as txn:
        for i in range(0, 4000, 3):
            txn.delete(f"{i:06}".encode())
    env.close()


def read(path):
    env = lmdb.open(path, readonly=True, lock=False)
    stat, info = env.stat(), env.info()
    rows, keys = [], []
    with env.begin() as txn:
        for key, value in txn.cursor():
            keys.append(key.decode())
        for i in range(int(txn.get(b"__len__"))):
            row = {"same": bool((decoded(txn.get(b"%08d" % i)) == pixels(i)).all()),
                   "label": int(txn.get(b"%08d/label.txt" % i))}
            array = txn.get(b"%08d/points.npy" % i)
            if array:
                row["points"] = bool((np.load(io.BytesIO(array)) == points(i)).all())
            rows.append(row)
        classes = json.loads(txn.get(b"__classes__"))
        assert json.loads(txn.get(b"__packds__"))["packds"] == 1
    pages = 2 + stat["branch_pages"] + stat["leaf_pages"] + stat["overflow_pages"]
    size = os.path.getsize(f"{path}/data.mdb")
    env.close()
    # A copy that the library made by visiting every page, and a modified copy.
    os.mkdir(f"{path}-copy")
    env = lmdb.open(path, readonly=True, lock=False)
    env.copy(f"{path}-copy", compact=True)
    env.close()
    env = lmdb.open(f"{path}-copy", map_size=1 << 28)
    with env.begin(write=True) as txn:
        txn.put(b"00000000x", b"new")
        assert txn.delete(b"__len__") and txn.stat()["entries"] == stat["entries"]
    env.close()
    os.mkdir(f"{path}-same")
    with open(f"{path}/data.mdb", "rb") as a, open(f"{path}-same/data.mdb", "wb") as b:
        b.write(a.read())
    env = lmdb.open(f"{path}-same", map_size=1 << 28)
    with env.begin(write=True) as txn:
        txn.put(b"00000001", b"x" * 20000)
        txn.put(b"00000002/zzz", b"y")
        assert txn.delete(b"00000000")
    with env.begin() as txn:
        assert len(list(txn.cursor())) == stat["entries"] and txn.get(b"00000001") == b"x" * 20000
    env.close()
    print(json.dumps({"rows": rows, "sorted": keys == sorted(keys), "entries": stat["entries"], "n_keys": len(keys),
                      "pages_fit": pages * 4096 == size, "last_page": info["last_pgno"] * 4096 + 4096 == size,
                      "depth": stat["depth"], "classes": classes}))


{"write": write, "read": read}[sys.argv[1]](sys.argv[2])
