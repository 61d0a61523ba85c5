"""How packs and loaders look in a notebook."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

_BAR_HEIGHT = 40
_MAX_BARS = 64


def counted(n: int, noun: str) -> str:
    """A number with its noun, such as `1 sample` or `3 batches`."""
    return f"{n} {noun}{'' if n == 1 else 'es' if noun.endswith(('s', 'ch')) else 's'}"


def table(rows: Iterable[tuple[str, str]]) -> str:
    """A table of names and values."""
    style = "style='text-align:left'"
    cells = (f"<tr><th {style}>{html.escape(name)}</th><td {style}>{html.escape(value)}</td></tr>" for name, value in rows)
    return f"<table>{''.join(cells)}</table>"


def bars(counts: Sequence[int], title: str) -> str:
    """A small bar chart. Neighbouring counts share a bar if there are many."""
    each = -(-len(counts) // _MAX_BARS)
    sums = [sum(counts[start : start + each]) for start in range(0, len(counts), each)]
    most = max(sums, default=0)
    if not most:
        return ""
    width = 256 / len(sums)
    rects = "".join(
        f"<rect x='{i * width:.1f}' y='{_BAR_HEIGHT * (1 - n / most):.1f}' width='{width * 0.9:.1f}' "
        f"height='{_BAR_HEIGHT * n / most:.1f}' fill='currentColor' fill-opacity='0.6'/>"
        for i, n in enumerate(sums)
    )
    svg = f"<svg width='256' height='{_BAR_HEIGHT}' role='img'><title>{html.escape(title)}</title>{rects}</svg>"
    return f"<figure style='display:inline-block;margin:4px 16px 4px 0'>{svg}<figcaption>{html.escape(title)}</figcaption></figure>"
