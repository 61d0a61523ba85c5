"""Reads an exported folder with torchvision's ImageFolder."""

import json
import sys

import numpy as np
from torchvision.datasets import ImageFolder

dataset = ImageFolder(sys.argv[2])
rows = [{"path": path, "label": label, "sum": int(np.asarray(dataset[i][0]).astype(np.int64).sum())}
        for i, (path, label) in enumerate(dataset.samples)]
print(json.dumps({"classes": dataset.classes, "rows": rows}))
