"""The peers: names, modules, and limitations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version

SHARD_BYTES = 64_000_000


@dataclass(frozen=True)
class Peer:
    """A row of the report."""

    format: str
    title: str
    module: str  # the module's name in python.peers
    packages: tuple[str, ...]  # required packages, `A|B` for alternatives; their versions are reported
    variant: str = ""
    input: str = ""  # the module that writes its files, if not `module`
    chunk: str = ""  # "batch": as many samples as a batch; "shard": shards of SHARD_BYTES
    refused: Mapping[str, str] = field(default_factory=dict)  # orders that it does not support, and why
    notes: tuple[str, ...] = ()

    @property
    def writer(self) -> str:
        return self.input or self.module

    def n_chunk(self, batch: int, image_bytes: int) -> int | None:
        return {"batch": batch, "shard": max(SHARD_BYTES // image_bytes, 1)}.get(self.chunk)

    def missing(self) -> str | None:
        """The first missing package."""
        return next((name.replace("|", " or ") for name in self.packages if not installed(name)), None)

    def versions(self) -> dict[str, str]:
        return dict(found for name in self.packages if (found := installed(name)))


def installed(names: str) -> tuple[str, str] | None:
    """The first installed package, and its version."""
    for name in names.split("|"):
        try:
            return name, version(name)
        except PackageNotFoundError:
            continue
    return None


NO_RANDOM = "reads files sequentially: no access to single samples"
NO_CHUNKS = "every image is a file, so there are no chunks"
WORKERS = "threads are worker processes"
RING = "copied into reused buffers"
TENSORFLOW = "tensorflow|tensorflow-cpu"
DALI = "nvidia-dali-cuda120|nvidia-dali-cuda130"
TORCH = ("torch", "numpy")


def torch(name: str, title: str, variant: str, package: str, chunk: str = "") -> Peer:
    notes = (WORKERS, "per-sample: items one by one, collated; else: slices of a batch")
    packages = (package, *TORCH) if package != "numpy" else TORCH
    return Peer(f"torch-{name}", f"DataLoader, {title}", "torch_loader", packages, variant, variant, chunk, {}, notes)


PEERS = (
    Peer("python-npy", "NumPy, mapped .npy", "npy", ("numpy",), notes=(RING,)),
    Peer("python-lmdb", "LMDB (py-lmdb)", "lmdb", ("lmdb",), notes=(RING, "no locks, one value for each image")),
    Peer("python-arrow", "Arrow IPC, mapped", "arrow", ("pyarrow",), notes=("fixed-size binary, take",)),
    Peer(
        "python-parquet",
        "Parquet (pyarrow)",
        "parquet",
        ("pyarrow",),
        chunk="batch",
        notes=("row groups of a batch, no compression; a row group is read whole",),
    ),
    Peer(
        "python-h5py",
        "HDF5 (h5py)",
        "hdf5",
        ("h5py",),
        chunk="batch",
        notes=(RING, "h5py allows only one thread at a time"),
    ),
    Peer("python-zarr", "Zarr 3 (zarr-python)", "zarr", ("zarr",), chunk="batch", notes=("no compression",)),
    Peer(
        "torch-images",
        "DataLoader, image folder (PNG)",
        "torch_loader",
        ("torchvision", "torch", "pillow"),
        "images",
        "images",
        refused={"chunk": NO_CHUNKS},
        notes=(WORKERS, "torchvision's ImageFolder, Pillow decodes"),
    ),
    torch("npy", "mapped .npy", "npy", "numpy"),
    torch("h5py", "HDF5", "hdf5", "h5py", "batch"),
    torch("zarr", "Zarr 3", "zarr", "zarr", "batch"),
    torch("lmdb", "LMDB", "lmdb", "lmdb"),
    Peer(
        "ffcv",
        "FFCV, raw .beton",
        "ffcv",
        ("ffcv", "torch", "numba"),
        notes=("os_cache=True; per-sample: RANDOM, chunk: QUASI_RANDOM (pages of 8 MiB)",),
    ),
    Peer(
        "dali-images",
        "DALI (CPU), image folder (PNG)",
        "dali",
        (DALI,),
        "images",
        "images",
        refused={"chunk": NO_CHUNKS},
    ),
    Peer(
        "dali-numpy",
        "DALI on the CPU, .npy files",
        "dali",
        (DALI,),
        refused={"chunk": NO_CHUNKS},
        notes=("one file for each image",),
    ),
    Peer(
        "litdata",
        "LitData",
        "litdata",
        ("litdata", "torch"),
        chunk="shard",
        refused={"per-sample": "shuffles chunks, and samples within a chunk"},
        notes=(WORKERS,),
    ),
    Peer(
        "mosaicml-streaming",
        "MosaicML Streaming",
        "mds",
        ("mosaicml-streaming", "torch"),
        chunk="shard",
        notes=(WORKERS, "per-sample: shuffle_algo naive, chunk: py1e"),
    ),
    Peer(
        "webdataset-npy",
        "WebDataset, .npy in tar",
        "webdataset",
        ("webdataset", "torch"),
        chunk="batch",
        refused={"per-sample": NO_RANDOM},
        notes=(WORKERS,),
    ),
    Peer(
        "tfrecord-tfdata",
        "TFRecord, tf.data",
        "tfrecord",
        (TENSORFLOW,),
        chunk="batch",
        refused={"per-sample": NO_RANDOM},
        notes=("raw pixels; chunk: files in random order, interleaved",),
    ),
)
