"""Pack an image dataset into one checksummed file, and train from it.

>>> import packds
>>> report = packds.convert("photos", "photos.pack", progress=False)
>>> ds = packds.open("photos.pack")
>>> len(ds) == report["n_samples"]
True
>>> ds[0]["image"].shape
(224, 224, 3)
>>> for images, labels in packds.Loader(ds, batch_size=4, seed=1):
...     assert images.shape == (4, 224, 224, 3) and labels.shape == (4,)

In the examples of this package, `photos` is a folder of class folders, and `train.pack` is a pack of 64 x 64 images made from it.

`packds.torch` has datasets for PyTorch's own DataLoader. `packds.jax` converts batches to JAX arrays. The reference is
docs/reference/python.md.
"""

from ._batch import Batch, NamedBatch
from ._convert import convert, export, formats
from ._dataset import Dataset, Field, open
from ._distributed import build, commit, plan
from ._diff import diff
from ._doctor import DoctorReport, doctor
from ._edit import add_field, append, compact, drop_field, merge, relabel, reorder, split, subset
from ._errors import ConvertError, Error, FormatError, NotFoundError, OptionError, ReadError, SourceNotFoundError
from ._loader import Loader
from ._packds import __version__
from ._ragged import Flat, Padded
from ._subset import Subset
from ._write import Writer, from_dataset, write

__all__ = [
    "Batch",
    "ConvertError",
    "Dataset",
    "DoctorReport",
    "Error",
    "Field",
    "Flat",
    "FormatError",
    "Loader",
    "NamedBatch",
    "NotFoundError",
    "OptionError",
    "Padded",
    "ReadError",
    "SourceNotFoundError",
    "Subset",
    "Writer",
    "__version__",
    "add_field",
    "append",
    "build",
    "commit",
    "compact",
    "convert",
    "diff",
    "doctor",
    "drop_field",
    "export",
    "formats",
    "from_dataset",
    "merge",
    "open",
    "plan",
    "relabel",
    "reorder",
    "split",
    "subset",
    "write",
]
