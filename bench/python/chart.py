"""Bar charts as SVG, without a library."""

from __future__ import annotations

from html import escape

ROW, LEFT, WIDTH, RIGHT = 24, 330, 420, 130


def bars(title: str, rows: list[tuple[str, float, float, float, bool]]) -> str:
    """Draws rows of (name, median, smallest, largest, whether it is packds), in order."""
    most = max((high for _, _, _, high, _ in rows), default=1.0) or 1.0
    height = ROW * (len(rows) + 2)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + RIGHT}" height="{height}" '
        'font-family="sans-serif" font-size="13"><rect width="100%" height="100%" fill="white"/>',
        f'<text x="12" y="{ROW - 6}" font-weight="bold">{escape(title)}</text>',
    ]
    for number, (name, middle, low, high, ours) in enumerate(rows):
        top = ROW * (number + 1) + 6
        length, ends = WIDTH * middle / most, [LEFT + WIDTH * end / most for end in (low, high)]
        center, color = top + ROW / 2 - 3, "#2a6f97" if ours else "#b8c4cc"
        lines += [
            f'<text x="{LEFT - 8}" y="{top + 14}" text-anchor="end">{escape(name)}</text>',
            f'<rect x="{LEFT}" y="{top}" width="{length:.1f}" height="{ROW - 6}" fill="{color}"/>',
            f'<path d="M{ends[0]:.1f} {center}H{ends[1]:.1f}" stroke="black"/>',
            f'<text x="{LEFT + WIDTH + 8}" y="{top + 14}">{middle:,.0f}</text>',
        ]
    return "\n".join([*lines, "</svg>"]) + "\n"
