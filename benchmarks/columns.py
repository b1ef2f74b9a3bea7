"""Measured rows as a table, for a person and for `docs/benchmarks.md`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def table(rows: Sequence[Mapping[str, object]]) -> str:
    """Markdown with aligned columns, one for each key in the order of its first row.

    A row that lacks a key has an empty cell.
    """
    names = list(dict.fromkeys(name for row in rows for name in row))
    cells = [names, *([_shown(row.get(name, "")) for name in names] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = [" | ".join(map(str.ljust, line, widths)) for line in cells]
    lines.insert(1, " | ".join("-" * width for width in widths))
    return "\n".join(f"| {line} |" for line in lines)


def _shown(value: object) -> str:
    if isinstance(value, float) and not value.is_integer():
        return f"{value:,}"
    return f"{value:,.0f}" if isinstance(value, int | float) else str(value)
