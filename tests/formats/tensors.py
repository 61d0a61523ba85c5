"""Writes files like those that people publish, with torch.save: tensors.py DIR. Prints the pixels and labels."""

import json
import sys
from collections import OrderedDict

import numpy as np
import torch
from torch.utils.data import TensorDataset

folder = sys.argv[1]
N = 12
NAMES = ["cat", "dog", "owl"]
PIXELS = np.random.default_rng(8).integers(0, 256, (N, 3, 8, 9), dtype=np.uint8)
LABELS = [i % 3 for i in range(N)]
images, labels = torch.from_numpy(PIXELS), torch.tensor(LABELS)


def save(name, value):
    torch.save(value, f"{folder}/{name}.pt")


class Marked:
    """A view as newer versions save it: the original numbers, and a flag."""

    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        t = images.float()
        args = (t.storage(), 0, tuple(t.shape), t.stride(), False, OrderedDict(), {self.mark: True})
        return torch._utils._rebuild_tensor_v2, args


save("neg", {"image": Marked("neg"), "label": labels})
save("conj", {"image": Marked("conj"), "label": labels})
save("dicts", [{"image": images[i].clone(), "label": LABELS[i]} for i in range(N)])
save("views", [{"image": images[i], "label": labels[i], "name": NAMES[i % 3], "box": [1, i]} for i in range(N)])
save("pairs", [(images[i], labels[i]) for i in range(N)])
save("named", {"samples": [{"image": images[i], "label": LABELS[i]} for i in range(N)], "classes": NAMES})
save("sizes", [{"image": images[i, :, : 4 + i % 4], "label": LABELS[i]} for i in range(N)])
save("contiguous_sizes", [{"image": images[i, :, : 4 + i % 4].contiguous(), "label": LABELS[i]} for i in range(N)])
save("missing", [{"image": images[i], **({"label": 1} if i != 5 else {})} for i in range(N)])
save("numpy", [{"image": PIXELS[i], "label": LABELS[i]} for i in range(N)])
save("nested", [{"image": images[i], "label": i % 3, "meta": {"boxes": images[i]}} for i in range(N)])
save("boxes", [{"image": images[i], "label": i % 3, "boxes": torch.zeros(i + 2, 4)} for i in range(N)])
save("batches", [(images[i : i + 4], labels[i : i + 4]) for i in range(0, N, 4)])
save("splits", {"train": (images[:8], labels[:8]), "test": [images[8:], labels[8:]], "classes": NAMES})
save("sets", {"train": TensorDataset(images[:8], labels[:8]), "test": TensorDataset(images[8:], labels[8:])})
samples = [{"image": images[i], "label": LABELS[i]} for i in range(N)]
save("split_samples", {"train": samples[:8], "test": samples[8:], "class_to_idx": {"owl": 2, "cat": 0, "dog": 1}})
whole = {"images": images, "labels": labels}
save("ids", {**whole, "class_to_idx": {"owl": 2, "cat": 0, "dog": 1}, "classes": NAMES})
save("contrary", {**whole, "class_to_idx": {"owl": 0, "cat": 1, "dog": 2}, "classes": NAMES})
save("tuple", TensorDataset(images, labels).tensors)
print(json.dumps({"pixels": PIXELS.tobytes().hex(), "labels": LABELS}))
