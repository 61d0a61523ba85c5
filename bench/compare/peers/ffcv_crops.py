"""FFCV with its files in the page cache, RandomResizedCrop(224) and flip."""

from __future__ import annotations

# Must be imported before ffcv, because it sets variables that ffcv reads when imported.
from python.peers.ffcv import Batches, ToTensor  # isort: skip

from ffcv.fields.decoders import RandomResizedCropRGBImageDecoder
from ffcv.transforms import RandomHorizontalFlip

from python.peers import Request


def open(request: Request) -> Batches:
    image = [RandomResizedCropRGBImageDecoder((224, 224)), RandomHorizontalFlip(), ToTensor()]
    return Batches(request.folder, request, image)
