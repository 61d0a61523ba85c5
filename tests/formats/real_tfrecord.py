"""Imports the library tfrecord instead of the script tfrecord.py next to this file. From then on, libraries take precedence over scripts."""

import os
import sys
import types

here = os.path.dirname(os.path.abspath(__file__))
sys.path = [p for p in sys.path if os.path.abspath(p or ".") != here]
# The library's messages were generated for an older protobuf. Its loader imports torch, which is not needed here.
os.environ["PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION"] = "python"
for name in ["torch", "torch.utils", "torch.utils.data"]:
    sys.modules[name] = types.ModuleType(name)
sys.modules["torch"].utils = sys.modules["torch.utils"]
sys.modules["torch.utils"].data = sys.modules["torch.utils.data"]
sys.modules["torch.utils.data"].IterableDataset = object
import tfrecord as tfrecord

sys.path.append(here)
