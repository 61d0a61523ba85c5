"""Parquet and Arrow, with pyarrow, pandas and Hugging Face's datasets.

`table.py write DIR` makes sources and prints what is in them; `table.py read PATH` checks an exported file and prints it;
`table.py long_texts PATH` makes small files with 700 MiB of texts.
"""

import io
import json
import os
import sys

os.environ["HF_DATASETS_OFFLINE"] = "1"
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["HF_DATASETS_DISABLE_PROGRESS_BARS"] = "1"

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.ipc
import pyarrow.parquet as pq
from PIL import Image

N, H, W = 12, 6, 8
NAMES = ["zebra", "ant", "fox"]


def pixels():
    return np.random.default_rng(7).integers(0, 256, (N, H, W, 3), dtype=np.uint8)


def png(image):
    out = io.BytesIO()
    Image.fromarray(image).save(out, "PNG")
    return out.getvalue()


def labels():
    return [i % 3 for i in range(N)]


def hugging_face(folder):
    import datasets
    from datasets import Array3D, ClassLabel, Dataset, DatasetDict, Features, Value

    images = [{"bytes": png(image), "path": f"a/{i}.png"} for i, image in enumerate(pixels())]
    features = Features({
        "image": datasets.Image(),
        "label": ClassLabel(names=NAMES),
        "caption": Value("string"),
        "score": Value("float32"),
        "spans": datasets.Sequence(Value("int32")),
    })
    columns = {
        "image": images,
        "label": labels(),
        "caption": [f"caption {i}" for i in range(N)],
        "score": [i / 2 for i in range(N)],
        "spans": [list(range(i % 3)) for i in range(N)],
    }
    whole = Dataset.from_dict(columns, features=features)
    whole.to_parquet(f"{folder}/hf.parquet", batch_size=5)
    DatasetDict({"train": whole, "test": whole.select(range(3))}).save_to_disk(f"{folder}/hf_saved")
    arrays = {"image": list(pixels()), "label": labels()}
    features = Features({"image": Array3D((H, W, 3), "uint8"), "label": ClassLabel(names=NAMES)})
    Dataset.from_dict(arrays, features=features).to_parquet(f"{folder}/array3d.parquet")
    os.mkdir(f"{folder}/set")
    for i, (first, last) in enumerate([(0, 5), (5, N)]):
        part = whole.select(range(first, last))
        part.to_parquet(f"{folder}/set/train-{i:05}-of-00002.parquet")
    whole.select(range(2)).to_parquet(f"{folder}/set/test-00000-of-00001.parquet")
    no_bytes = pa.table({"image": pa.array([{"bytes": None, "path": "x.png"}], pa.struct(
        [("bytes", pa.binary()), ("path", pa.string())]))})
    pq.write_table(no_bytes, f"{folder}/no_bytes.parquet")


def typed(folder):
    """Columns of types that packs cannot store."""
    import datetime
    import decimal

    second = datetime.datetime(2024, 1, 31, 12, 0, 0)
    one = [1706702400]
    columns = {
        "local": pa.array(one, pa.timestamp("s")), "utc": pa.array([1706702400001], pa.timestamp("ms", tz="UTC")),
        "berlin": pa.array([1706702400 * 10**9], pa.timestamp("ns", tz="Europe/Berlin")),
        "offset": pa.array(one, pa.timestamp("s", tz="+02:00")), "missing": pa.array([None], pa.timestamp("s", tz="UTC")),
        "date": pa.array([second.date()]), "time": pa.array([second.time()]), "took": pa.array([1500], pa.duration("ms")),
        "price": pa.array([decimal.Decimal("1.25")]), "times": pa.array([one], pa.list_(pa.timestamp("s", tz="UTC"))),
        "map": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())), "view": pa.array([[1, 2]], pa.list_view(pa.int32())),
        "parts": pa.array([[b"x"]]),
    }
    table = pa.table({"image": pa.array([png(pixels()[0])]), "label": pa.array([1]), **columns})
    pq.write_table(table, f"{folder}/typed.parquet")
    with pa.ipc.new_file(f"{folder}/typed.arrow", table.schema) as writer:
        writer.write_table(table)


def plain(folder):
    flat = pixels().reshape(N, -1)
    tensor = pa.fixed_shape_tensor(pa.uint8(), (H, W, 3))
    storage = pa.FixedSizeListArray.from_arrays(pa.array(flat.reshape(-1)), H * W * 3)
    table = pa.table({
        "image": pa.ExtensionArray.from_storage(tensor, storage),
        "label": pa.array(labels(), pa.int8()),
        "vector": pa.FixedSizeListArray.from_arrays(pa.array(np.arange(N * 4, dtype=np.float32)), 4),
        "count": pa.array([None if i == 2 else i for i in range(N)], pa.int32()),
        "when": pa.array([i * 1000 for i in range(N)], pa.timestamp("ms")),
        "half": pa.array(np.arange(N, dtype=np.float16)),
    })
    writers = {
        "file.arrow": (pa.ipc.new_file, None),
        "stream.arrow": (pa.ipc.new_stream, None),
        "lz4.arrow": (pa.ipc.new_file, "lz4"),
        "zstd_stream.arrow": (pa.ipc.new_stream, "zstd"),
    }
    for name, (new, codec) in writers.items():
        options = pa.ipc.IpcWriteOptions(compression=codec)
        with new(f"{folder}/{name}", table.schema, options=options) as writer:
            writer.write_table(table, max_chunksize=5)
    pq.write_table(table, f"{folder}/tensor.parquet", row_group_size=5, write_page_checksum=True)
    for codec in ["none", "snappy", "gzip", "zstd", "lz4"]:
        files = pa.table({
            "img": pa.array([png(image) for image in pixels()], pa.large_binary()),
            "label": pa.array([NAMES[i] for i in labels()]).dictionary_encode(),
        })
        pq.write_table(files, f"{folder}/files_{codec}.parquet", compression=codec, row_group_size=7)
    pa.feather.write_feather(files, f"{folder}/two.feather")
    pa.feather.write_feather(pa.table({"x": [1]}), f"{folder}/one.feather", version=1)
    pq.write_table(files, f"{folder}/brotli.parquet", compression="brotli")
    swapped = pa.fixed_shape_tensor(pa.uint8(), (W, H, 3), permutation=[1, 0, 2])
    moved = pa.table({"image": pa.ExtensionArray.from_storage(swapped, storage)})
    pq.write_table(moved, f"{folder}/permuted.parquet")
    nulls = pa.table({"image": pa.array([png(pixels()[0]), None]), "label": [0, 1]})
    pq.write_table(nulls, f"{folder}/null_image.parquet")
    nulls = pa.table({"image": [png(pixels()[0])] * 2, "label": [0, None]})
    pq.write_table(nulls, f"{folder}/null_label.parquet")
    pq.write_table(nulls.slice(0, 0), f"{folder}/no_rows.parquet")
    pq.write_table(pa.table({"path": ["a"], "label": [0]}), f"{folder}/no_image.parquet")


def write(folder):
    hugging_face(folder)
    plain(folder)
    typed(folder)
    return {"pixels": [image.tobytes().hex() for image in pixels()], "labels": labels()}


def images_of(column):
    kind = column.type
    if isinstance(kind, pa.FixedShapeTensorType):
        return list(column.combine_chunks().to_numpy_ndarray())
    if pa.types.is_fixed_size_binary(kind):
        return [np.frombuffer(item, np.uint8) for item in column.to_pylist()]
    return [np.asarray(Image.open(io.BytesIO(item["bytes"]))) for item in column.to_pylist()]


def described(table):
    others = {name: str(table.schema.field(name).type) for name in table.column_names}
    features = json.loads(table.schema.metadata[b"huggingface"])["info"]["features"]
    return {
        "pixels": [image.tobytes().hex() for image in images_of(table["image"])],
        "labels": table["label"].to_pylist(),
        "names": features["label"].get("names"),
        "types": others,
        "columns": {n: table[n].to_pylist() for n in table.column_names if n in ("caption", "angle", "weight", "flag")},
    }


def read(path):
    if path.endswith(".arrow"):
        with pa.memory_map(path) as source:
            reader = pa.ipc.open_file(source)
            allocated = pa.total_allocated_bytes()
            table = reader.read_all()
            result = {"zero_copy": pa.total_allocated_bytes() == allocated}
            return result | described(table)
    return described(pq.read_table(path))


def load(path):
    from datasets import load_dataset

    kind = "arrow" if path.endswith(".arrow") else "parquet"
    files = sorted(os.path.join(path, f) for f in os.listdir(path)) if os.path.isdir(path) else path
    rows = load_dataset(kind, data_files=files, split="train", cache_dir=f"{path}.cache")
    label = rows.features["label"]
    return {
        "pixels": [np.asarray(row["image"], dtype=np.uint8).tobytes().hex() for row in rows],
        "labels": list(rows["label"]),
        "names": getattr(label, "names", None),
        "image": type(rows.features["image"]).__name__,
        "columns": rows.column_names,
    }


def long_texts(path):
    n = 700
    image = png(pixels()[0])
    table = pa.table({"image": pa.array([image] * n), "label": [0] * n, "long": ["a" * (1 << 20)] * n})
    pq.write_table(table, path, compression="zstd")
    shared = pa.DictionaryArray.from_arrays(pa.array([0] * n, pa.int32()), pa.array(["a" * (1 << 20)]))
    pyarrow.feather.write_feather(table.set_column(2, "long", shared), f"{path}.arrow", compression="zstd")


def long_batch(path):
    n = 200
    table = pa.table({"image": pa.array([png(pixels()[0])] * n), "label": [0] * n, "long": ["a" * (1 << 20)] * n})
    pyarrow.feather.write_feather(table, path, compression="zstd", chunksize=n)


if __name__ == "__main__":
    jobs = {"write": write, "read": read, "load": load, "long_texts": long_texts, "long_batch": long_batch}
    print(json.dumps(jobs[sys.argv[1]](sys.argv[2])))
