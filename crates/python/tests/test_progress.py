"""Progress of long calls."""

import sys
import types

import packds
from packds import _progress


class Bar:
    """Records calls of tqdm."""

    made: list["Bar"] = []

    def __init__(self, **options):
        self.options, self.n, self.total, self.is_open = options, 0, None, True
        self.made.append(self)

    def set_description_str(self, text, refresh):
        self.options["desc"] = text

    def update(self, n):
        self.n += n

    def close(self):
        self.is_open = False


def test_a_conversion_fills_a_bar_of_tqdm(photos, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm", types.ModuleType("tqdm"))
    monkeypatch.setitem(sys.modules, "tqdm.auto", types.SimpleNamespace(tqdm=Bar))
    report = packds.convert(photos, tmp_path / "a.pack")
    [bar] = Bar.made
    assert bar.n == bar.total == report["n_samples"] and not bar.is_open


def test_without_tqdm_there_is_a_line_now_and_then(photos, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    packds.convert(photos, tmp_path / "a.pack")
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(_progress, "_LINE_EVERY", 0.0)
    report = packds.convert(photos, tmp_path / "b.pack")
    n = report["n_samples"]
    assert capsys.readouterr().err.endswith(f": {n} of {n} images\n")
    packds.convert(photos, tmp_path / "c.pack", progress=False)
    assert capsys.readouterr().err == ""
