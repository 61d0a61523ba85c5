"""Writes and reads WebDataset with the library webdataset and Python's tarfile."""

import io
import json
import os
import sys
import tarfile

sys.path = [p for p in sys.path if os.path.abspath(p or ".") != os.path.dirname(os.path.abspath(__file__))]
import numpy as np
import webdataset as wds

sys.path.append(os.path.dirname(os.path.abspath(__file__)))
from records import N, NAMES, decoded, jpeg, pixels, png, points


def write(folder):
    for name in ["one.tar", "one.tar.gz"]:
        with wds.TarWriter(f"{folder}/{name}") as sink:
            for i in range(N):
                sink.write({"__key__": f"a/{i:04}", "png": png(i), "cls": i % 3, "points.npy": points(i),
                            "txt": f"caption {i}", "json": {"species": NAMES[i % 3], "n": i}, "id": i * 10})
    os.mkdir(f"{folder}/set")
    with wds.ShardWriter(f"{folder}/set/s-%06d.tar", maxcount=7, verbose=0) as sink:
        for i in range(N):
            sink.write({"__key__": f"{i:04}", "jpg" if i % 2 else "png": jpeg(i) if i % 2 else png(i), "cls": i % 3})
    # Long names and pax headers, written by Python's tarfile.
    for form in ["PAX", "GNU", "USTAR"]:
        with tarfile.open(f"{folder}/{form}.tar", "w", format=getattr(tarfile, f"{form}_FORMAT")) as tar:
            for i in range(N):
                base = ("x" * 90 + "/" + "y" * 40 if form != "USTAR" else "x" * 90) + f"/{i:04}"
                for extension, data in [("png", png(i)), ("cls", b"%d\n" % (i % 3)), ("pickle", b"\x80\x04.")]:
                    info = tarfile.TarInfo(f"{base}.{extension}")
                    info.size = len(data)
                    tar.addfile(info, io.BytesIO(data))
            link = tarfile.TarInfo("link.png")
            link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
            tar.addfile(link)
            info = tarfile.TarInfo("../../escaped.png")
            info.size = len(png(0))
            if form == "PAX":
                tar.addfile(info, io.BytesIO(png(0)))


def read(path):
    urls = sorted(f"{path}/{name}" for name in os.listdir(path) if ".tar" in name) if os.path.isdir(path) else [path]
    dataset = wds.WebDataset(urls, shardshuffle=False).decode("rgb8")
    rows = []
    for sample in dataset:
        keys = sorted(key for key in sample if not key.startswith("__"))
        row = {"keys": keys, "key": sample["__key__"], "label": sample["cls"]}
        image = sample["png"] if "png" in sample else sample["jpg"]
        row["same"] = bool((image == pixels(len(rows))).all())
        if "points.npy" in sample:
            row["points"] = bool((sample["points.npy"] == points(len(rows))).all())
        for name in ["txt.txt", "json.json"]:
            if name in sample:
                row[name] = sample[name]
        rows.append(row)
    first = tarfile.open(urls[0])
    owners = {(m.mtime, m.uid, m.gid, m.uname) for m in first.getmembers()}
    header = json.loads(first.pax_headers["PACKDS.metadata"])
    print(json.dumps({"rows": rows, "owners": sorted(owners), "packds": header["packds"], "shards": len(urls)}))


{"write": write, "read": read}[sys.argv[1]](sys.argv[2])
