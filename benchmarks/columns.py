"""The measured rows of a benchmark: each is printed as it comes, and all as a Markdown table."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

INTERRUPTED: Final = 130  # the status of a benchmark that Ctrl-C ends


@contextmanager
def printed_rows() -> Iterator[Callable[[Mapping[str, object]], None]]:
    """Yield a function that prints a row; print the table of all at the end.

    Raises:
        SystemExit: Ctrl-C ended the benchmark; the rows until then are printed.
    """
    rows: list[Mapping[str, object]] = []

    def add(row: Mapping[str, object]) -> None:
        rows.append(row)
        print(json.dumps(row), flush=True)

    try:
        yield add
    except KeyboardInterrupt:
        print("ended by Ctrl-C", flush=True)
        raise SystemExit(INTERRUPTED) from None
    finally:
        if rows:
            print(table(rows), flush=True)


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
