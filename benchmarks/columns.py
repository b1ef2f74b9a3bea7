"""Formats measured rows as a Markdown table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def table(rows: Sequence[Mapping[str, object]]) -> str:
    """Return Markdown with aligned columns, one per key in order of first appearance.

    The cell of a missing key is empty.
    """
    names = list(dict.fromkeys(name for row in rows for name in row))
    cells = [names, *([_cell(row.get(name, "")) for name in names] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = [" | ".join(map(str.ljust, line, widths)) for line in cells]
    lines.insert(1, " | ".join("-" * width for width in widths))
    return "\n".join(f"| {line} |" for line in lines)


def _cell(value: object) -> str:
    if isinstance(value, float) and not value.is_integer():
        return f"{value:,}"
    return f"{value:,.0f}" if isinstance(value, int | float) else str(value)
