"""Tables with complete names: a line for each row where it fits, else a block of lines.

A console without a limit of width has one line for each row. Columns without content are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from rich.console import Console
from rich.text import Text

from gateway.terminal.row_layout import GAP, HEAD_STYLE, Blocks, Column, Lines, Row
from gateway.terminal.safe_text import visible

Cell: TypeAlias = str | Text  # a str is made visible; a Text is visible, and may have a style


class Table:
    """Rows of cells; `lines` lays them out.

    `joint` stands between two keys. `more` ends the line that counts hidden rows.
    Mutable: owned by the command.
    """

    def __init__(self, *columns: Column, joint: str = GAP, more: str = "more") -> None:
        self._columns, self._joint, self._more = columns, joint, more
        self._rows: list[Row] = []

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self._rows)

    def add_row(self, *cells: Cell) -> None:
        """Add a row with a cell for each column."""
        self._rows.append(
            [
                cell if isinstance(cell, Text) else Text(visible(cell))
                for _, cell in zip(self._columns, cells, strict=True)
            ]
        )

    def lines(
        self, console: Console, *, max_rows: int | None = None, max_lines: int | None = None
    ) -> list[Text]:
        """Return the lines for the width of `console`: the first rows, within both limits.

        At least one row is shown, and a line counts the others.
        """
        rows = self._rows[:max_rows][:max_lines] or self._rows[:1]
        layout = self._layout(rows, console.width)
        lines, shown = layout.head(console), 0
        for row in rows:
            added = list(layout.row(row, console))
            rest = 0 if shown + 1 == len(self._rows) else 1  # the line that counts the others
            if shown and max_lines is not None and len(lines) + len(added) + rest > max_lines:
                break
            lines += added
            shown += 1
        if hidden := len(self._rows) - shown:
            lines.append(Text(f"... and {hidden:,} {self._more}", style=HEAD_STYLE))
        return lines

    def _layout(self, rows: Sequence[Row], width: int) -> Lines | Blocks:
        """Return the first layout that fits `width`.

        All columns on one line; notes below it; names above it, too; blocks.
        """
        shown = [
            place
            for place, column in enumerate(self._columns)
            if column.always or any(column.shows(row[place]) for row in rows)
        ]
        keys = [place for place in shown if self._columns[place].key]
        notes = [place for place in shown if self._columns[place].note]
        short = [place for place in shown if place not in notes]
        figures = [place for place in short if place not in keys]
        for above, places, below in (([], shown, []), ([], short, notes), (keys, figures, notes)):
            for split in (False, True):
                layout = self._lines(rows, above, places, below, split=split)
                if layout.width <= width:
                    return layout
        return Blocks(self._columns, self._joint)

    def _lines(
        self,
        rows: Sequence[Row],
        keys: Sequence[int],
        places: Sequence[int],
        notes: Sequence[int],
        *,
        split: bool,
    ) -> Lines:
        """Return the layout without cuts; in a `split` head each word has its own line."""
        texts = [self._columns[place].head for place in places]
        heads = [text.split() if split else [text] for text in texts]
        widths = [
            max(*map(len, head), *(row[place].cell_len for row in rows), 0)
            for place, head in zip(places, heads, strict=True)
        ]
        return Lines(self._columns, keys, places, notes, heads, widths, self._joint)
