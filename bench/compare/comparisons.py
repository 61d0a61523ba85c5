"""The comparisons: packs, and the peers that read the same images."""

from __future__ import annotations

from dataclasses import dataclass

from compare.packds import Pack
from python.registry import DALI, TENSORFLOW


@dataclass(frozen=True)
class Entry:
    """A peer in a comparison."""

    name: str
    module: str
    variant: str
    input: str  # the name of a property of Inputs
    packages: tuple[str, ...]  # required packages, `A|B` for alternatives; their versions are reported
    order: str = "per-sample"


@dataclass(frozen=True)
class Comparison:
    name: str
    what: str
    batch: int
    augment: str | None
    lossless: bool  # whether all peers must deliver the same pixels
    packs: tuple[Pack, ...]
    entries: tuple[Entry, ...]

    @property
    def raw(self) -> bool:
        return self.augment is None


FFCV = ("ffcv", "torch", "numba")
RRC = "rrc224,flip"
IOU_CROP = "ioucrop224,flip"
KEPT = ("--mode", "encoded")


def ffcv_crops(name: str, source: str) -> Entry:
    # FFCV's QUASI_RANDOM
    return Entry(name, "compare.peers.ffcv_crops", "", source, FFCV, order="chunk")


def encoded(name: str, files: str) -> tuple[Pack, Pack]:
    return Pack(f"{name}-encoded", files, KEPT), Pack(f"{name}-seekable", files, KEPT, seekable=True)


COMPARISONS = (
    Comparison(
        name="raw224",
        what="raw u8 images of 224x224x3, random order",
        batch=256,
        augment=None,
        lossless=True,
        packs=(Pack("raw224", "raw224_files", ("--batch", "256")),),
        entries=(
            Entry("npy, ring of buffers", "python.peers.npy", "ring", "raw224", ("numpy",)),
            Entry("npy, new arrays", "python.peers.npy", "new", "raw224", ("numpy",)),
            Entry("LMDB", "python.peers.lmdb", "", "raw224_lmdb", ("lmdb",)),
            Entry("Arrow take", "python.peers.arrow", "", "raw224_arrow", ("pyarrow",)),
            Entry("FFCV quasi-random", "python.peers.ffcv", "", "raw224_beton", FFCV, order="chunk"),
            Entry("FFCV random", "python.peers.ffcv", "", "raw224_beton", FFCV),
            Entry("DataLoader + npy", "python.peers.torch_loader", "npy", "raw224", ("torch",)),
        ),
    ),
    Comparison(
        name="jpg500",
        what="RandomResizedCrop(224) + flip from the JPEG files that FFCV wrote, longest side at most 500, quality 90",
        batch=64,
        augment=RRC,
        lossless=False,
        packs=encoded("jpg500", "jpg500_files"),
        entries=(ffcv_crops("FFCV jpg 500", "jpg500_beton"),),
    ),
    Comparison(
        name="jpg256",
        what="RandomResizedCrop(224) + flip from the JPEG files that FFCV wrote, with a short side of 256, quality 90",
        batch=64,
        augment=RRC,
        lossless=False,
        packs=encoded("jpg256", "jpg256_files"),
        entries=(ffcv_crops("FFCV jpg 256", "jpg256_beton"),),
    ),
    Comparison(
        name="raw256",
        what="RandomResizedCrop(224) + flip from raw u8 images with a short side of 256",
        batch=64,
        augment=RRC,
        lossless=False,
        packs=(Pack("raw256", "short256_files", ("--resize", "none", "--crop", "none")),),
        entries=(ffcv_crops("FFCV raw 256", "raw256_beton"),),
    ),
    Comparison(
        name="originals",
        what="RandomResizedCrop(224) + flip from the original files",
        batch=64,
        augment=RRC,
        lossless=False,
        packs=encoded("originals", "originals"),
        entries=(
            Entry("tf.data decode_and_crop", "compare.peers.tfdata", "", "originals", (TENSORFLOW,)),
            Entry("ImageFolder + DataLoader", "compare.peers.image_folder", "", "originals", ("torchvision", "torch")),
        ),
    ),
    Comparison(
        name="detection",
        what="RandomIoUCrop, resize to 224x224 and flip of images with 7 boxes each, from the original files",
        batch=32,
        augment=IOU_CROP,
        lossless=False,
        packs=encoded("detection", "detection"),
        entries=(
            Entry("transforms.v2 + DataLoader", "compare.peers.detection", "", "detection", ("torchvision", "torch")),
            Entry("DALI", "compare.peers.dali_detection", "", "detection", (DALI,)),
        ),
    ),
)
