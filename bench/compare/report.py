"""The report as text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

MIB = 1 << 20


def table(rows: list[list[str]]) -> Iterator[str]:
    """Aligned columns: the first is left-aligned, the others are right-aligned."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        cells = [row[0].ljust(widths[0])] + [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        yield "  ".join(cells).rstrip()


def number(value: Any, form: str = ",.0f", scale: int = 1) -> str:
    return "-" if value is None else format(value / scale if scale != 1 else value, form)


def span(values: list[float] | None, form: str) -> str:
    return "-" if not values else f"{values[0]:{form}} to {values[1]:{form}}"


def peer_rows(result: dict[str, Any]) -> Iterator[list[str]]:
    packs = list(result["packds"])
    titles = ["images/s", "range", "with starts", "import s", "compile s", "first ms", "p99 ms"]
    titles += ["anon MiB", "CPU s/1000"]
    yield ["peer", *titles, *(title for pack in packs for title in (f"{pack} / peer", "range"))]
    for peer in result["peers"]:
        row = [peer["name"], number(peer["images_per_s"]), span(peer["range"], ",.0f")]
        row += [number(peer["images_per_s_with_starts"]), number(peer["import_s"], ".1f")]
        row += [number(peer["compile_s"], ".1f")]
        row += [number(peer["first_batch_ms"], ".0f"), number(peer["p99_batch_ms"], ".1f")]
        row += [number(peer["anon_bytes"], ",.0f", MIB), number(peer["cpu_s_per_1000"], ".3f")]
        for pack in packs:
            middle, *ends = peer["packds_over_peer"].get(pack, [None])
            row += [number(middle, ".2f"), span(ends, ".2f")]
        yield row


def packds_rows(result: dict[str, Any]) -> Iterator[list[str]]:
    titles = ["images/s", "range", "limit", "images/s", "ratio", "first ms", "p99 ms", "anon MiB", "CPU s/1000"]
    yield ["packds", *titles]
    for name, figures in result["packds"].items():
        get = figures.get
        row = [name, number(get("images_per_s")), span(get("range"), ",.0f"), str(get("limit", "-"))]
        row += [number(get("limit_images_per_s")), number(get("ratio"), ".2f"), number(get("first_batch_ms"), ".0f")]
        row += [number(get("p99_batch_ms"), ".1f"), number(get("peak_anon_bytes"), ",.0f", MIB)]
        yield [*row, number(get("cpu_s_per_1000"), ".3f")]


def check_rows(comparison: dict[str, Any]) -> Iterator[list[str]]:
    yield ["delivers in an epoch", "images", "each", "mean", "sum of CRC-32"]
    for name, check in comparison["checks"].items():
        each = ", ".join(f"{dtype} {'x'.join(map(str, shape))}" for dtype, *shape in check.get("images", []))
        checksum = check.get("checksum") if comparison["lossless"] else None
        yield [name, number(check["n_images"]), each or "-", number(check.get("mean"), ".2f"), number(checksum, "d")]


def comparison_lines(comparison: dict[str, Any]) -> Iterator[str]:
    yield f"{comparison['name']}: {comparison['what']}"
    versions = ", ".join(f"{name} {version}" for name, version in comparison["versions"].items())
    yield f"{comparison['n_images']:,} images, batch {comparison['batch']}; versions: {versions or '-'}"
    for name, reason in comparison["left_out"].items():
        yield f"left out: {name}: {reason}"
    if comparison["checks"]:
        yield ""
        yield from table(list(check_rows(comparison)))
    for result in comparison["results"]:
        yield ""
        inputs = result["inputs"].values()
        cached = min((entry["resident"] for entry in inputs), default=0.0)
        yield (
            f"{result['threads']} thread{'s' if result['threads'] > 1 else ''}; "
            f"inputs of {sum(entry['bytes'] for entry in inputs) / 1e9:.2f} GB, "
            f"each at least {cached:.0%} in the page cache; other work before: {result['other_work_cores']:.2f} cores"
        )
        yield from table(list(peer_rows(result)))
        if result["packds"]:
            yield ""
            yield from table(list(packds_rows(result)))
    yield ""


def lines(report: dict[str, Any]) -> Iterator[str]:
    machine, settings = report["machine"], report["settings"]
    yield (
        f"machine  {machine['cpu']}, {machine['cores']} cores, {machine['memory_bytes'] / (1 << 30):.1f} GiB, "
        f"{machine['system']}, Python {machine['python']}"
    )
    yield (
        f"data     {report['n_files']} files, repeated to the number of images shown; cache warm, "
        f"{settings['rounds']} rounds of {settings['seconds']:g} s, seed {settings['seed']}; {report['packds']}"
    )
    yield ""
    for comparison in report["comparisons"]:
        yield from comparison_lines(comparison)
