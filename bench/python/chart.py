"""Bar charts as SVG, without a library. They look like the charts of `packds bench` (crates/report/src/palette.rs)."""

from __future__ import annotations

import math
from html import escape

SIZE, ROW, BAR, HEAD = 760, 26, 18, 70
LEFT, RIGHT = 304, 610
# Colours, and the colours that replace them on dark pages.
PAPER, PANEL, INK, DIM, GRID = "#ffffff", "#f6f7f9", "#1c1e22", "#5c6068", "#d9dce1"
OURS, OTHER = "#0062a8", "#6e727a"
DARK = {PAPER: "#181a1e", PANEL: "#202328", INK: "#eceef2", DIM: "#a8adb6", GRID: "#3e434b", OURS: "#62b4f0", OTHER: "#969ba4"}


def ticks(most: float) -> list[float]:
    """The positions of the grid lines: zero and round numbers up to `most`, at most six in all."""
    unit = 10.0 ** math.floor(math.log10(most))
    step = next(part * unit for part in (0.2, 0.5, 1, 2) if most / (part * unit) <= 5)
    return [n * step for n in range(int(most / step + 1e-9) + 1)]


def bars(title: str, subtitle: str, unit: str, rows: list[tuple[str, float, float, float, bool]]) -> str:
    """Draws rows of (name, median, smallest, largest, whether it is packds), in order, from zero."""
    most = max((high for _, _, _, high, _ in rows), default=0.0) or 1.0
    bottom = HEAD + ROW * len(rows)

    def at(value: float) -> str:
        return f"{LEFT + (RIGHT - LEFT) * value / most:.1f}"

    def text(x: object, y: float, words: str, color: str, more: str = "") -> str:
        return f'<text x="{x}" y="{y}" fill="{color}"{more}>{escape(words)}</text>'

    rules = "".join(f'[{kind}="{light}"]{{{kind}:{dark}}}' for light, dark in DARK.items() for kind in ("fill", "stroke"))
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{SIZE}" height="{bottom + 30}" viewBox="0 0 {SIZE} {bottom + 30}" '
        'role="img" font-family="sans-serif" font-size="12">',
        f"<title>{escape(title)}</title>",
        f"<style>@media (prefers-color-scheme: dark) {{{rules}}}</style>",
        f'<path fill="{PAPER}" d="M0 0h{SIZE}v{bottom + 30}h-{SIZE}z"/>',
        text(16, 28, title, INK, ' font-size="16" font-weight="bold"'),
        text(16, 49, subtitle, DIM),
        f'<path fill="{PANEL}" d="M{LEFT} {HEAD}h{RIGHT - LEFT}v{ROW * len(rows)}h{LEFT - RIGHT}z"/>',
    ]
    for tick in ticks(most):
        lines.append(f'<path stroke="{GRID}" d="M{at(tick)} {HEAD}V{bottom}"/>')
        lines.append(text(at(tick), bottom + 17, f"{tick:,.10g}", DIM, ' font-size="11" text-anchor="middle"'))
    lines.append(text(LEFT - 36, bottom + 17, unit, DIM, ' font-size="11" text-anchor="end"'))
    for number, (name, middle, low, high, ours) in enumerate(rows):
        top = HEAD + ROW * number + (ROW - BAR) // 2
        color, bold = (OURS, ' font-weight="bold"') if ours else (OTHER, "")
        lines += [
            text(LEFT - 12, top + 13, name, OURS if ours else INK, f' text-anchor="end"{bold}'),
            f'<path fill="{color}" d="M{LEFT} {top}H{at(middle)}v{BAR}H{LEFT}z"/>',
            # This rectangle hides the grid lines that would cross the number.
            f'<path fill="{PANEL}" d="M{float(at(high)) + 2:.1f} {top}H{RIGHT}v{BAR}H{float(at(high)) + 2:.1f}z"/>'
            if float(at(high)) + 2 < RIGHT
            else "",
            f'<path stroke="{INK}" d="M{at(low)} {top + BAR / 2}H{at(high)}"/>',
            text(f"{float(at(high)) + 8:.1f}", top + 13, f"{middle:,.0f} {unit}", OURS if ours else INK, bold),
        ]
    return "\n".join(line for line in [*lines, "</svg>"] if line) + "\n"
