"""How packs and loaders look in a notebook."""

from __future__ import annotations

import base64
import html
from collections.abc import Iterable, Sequence

_BAR_HEIGHT = 40
_MAX_BARS = 64
_NAMED_BARS = 12
# Width of a caption for each picture, in pixels.
_CAPTION = 100


def counted(n: int, noun: str) -> str:
    """A number with its noun, such as `1 sample` or `3 batches`."""
    return f"{n} {noun}{'' if n == 1 else 'es' if noun.endswith(('s', 'ch')) else 's'}"


def table(rows: Iterable[tuple[str, str]]) -> str:
    """A table of names and values."""
    style = "style='text-align:left'"
    cells = (f"<tr><th {style}>{html.escape(name)}</th><td {style}>{html.escape(value)}</td></tr>" for name, value in rows)
    return f"<table>{''.join(cells)}</table>"


def picture(pngs: Sequence[bytes], number: int, caption: str) -> str:
    """The images of a sample side by side, with its number and a caption."""
    name = html.escape(f"#{number} {caption}".strip(), quote=True)
    sources = (f"data:image/png;base64,{base64.b64encode(png).decode()}" for png in pngs)
    images = "".join(f"<img src='{source}' alt='{name}' title='{name}' style='margin:2px'>" for source in sources)
    text = f"<figcaption style='max-width:{_CAPTION * len(pngs)}px;overflow-wrap:anywhere'>{name}</figcaption>"
    return f"<figure style='display:inline-block;vertical-align:top;margin:2px'>{images}{text}</figure>"


def bars(counts: Sequence[int], title: str, names: Sequence[str] = ()) -> str:
    """A small bar chart. Neighbouring counts share a bar if there are many. A few bars are named in the caption."""
    each = -(-len(counts) // _MAX_BARS)
    sums = [sum(counts[start : start + each]) for start in range(0, len(counts), each)]
    most = max(sums, default=0)
    if not most:
        return ""
    width = 256 / len(sums)
    rects = "".join(
        f"<rect x='{i * width:.1f}' y='{_BAR_HEIGHT * (1 - n / most):.1f}' width='{width * 0.9:.1f}' "
        f"height='{_BAR_HEIGHT * n / most:.1f}' fill='currentColor' fill-opacity='0.6'>{_name_of_bar(names, i, each, n)}</rect>"
        for i, n in enumerate(sums)
    )
    legend = ", ".join(f"{name} {n}" for name, n in zip(names, counts)) if len(names) <= _NAMED_BARS else ""
    svg = f"<svg width='256' height='{_BAR_HEIGHT}' role='img'><title>{html.escape(title)}</title>{rects}</svg>"
    text = f"<figcaption style='max-width:256px'>{html.escape(f'{title}: {legend}' if legend else title)}</figcaption>"
    return f"<figure style='display:inline-block;vertical-align:top;margin:4px 16px 4px 0'>{svg}{text}</figure>"


def _name_of_bar(names: Sequence[str], bar: int, each: int, n: int) -> str:
    """The classes of a bar and their samples, for a pointer on the bar."""
    named = names[bar * each : (bar + 1) * each]
    if not named:
        return ""
    name = named[0] if len(named) == 1 else f"{named[0]} to {named[-1]}"
    return f"<title>{html.escape(f'{name}: {n}')}</title>"
