"""Tables with complete names: a line for each row where it fits, else a block of lines.

A console without a limit of width has one line for each row. Columns without content are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from rich.console import Console
from rich.text import Text

from gateway.terminal.text import visible

Row: TypeAlias = Sequence[Text]  # a cell for each column

GAP: Final = "  "  # between two cells
HEAD_STYLE: Final = "dim"
_INDENT: Final = "    "  # of the lines below the first of a row


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    A key names the row. A note is free text, the first to leave the line of a row that is too long.
    `always` shows a column or a cell that is empty or zero.
    """

    head: str
    key: bool = False
    note: bool = False
    right: bool = False
    always: bool = False

    def shows(self, cell: Text) -> bool:
        """Return whether the cell has content."""
        return self.always or (bool(cell) and (self.key or cell.plain != "0"))

    def named(self, cell: Text) -> Text:
        """Return the cell behind the head of its column."""
        return Text.assemble((self.head, HEAD_STYLE), " ", cell)


@dataclass(frozen=True, slots=True)
class Lines:
    """Each row is a line of cells with fixed widths; `notes` are columns on lines below it.

    With `keys` the names of a row stand on a line of their own, above the others.
    """

    columns: Sequence[Column]
    keys: Sequence[int]
    places: Sequence[int]  # of the columns on the line
    notes: Sequence[int]
    heads: Sequence[Sequence[str]]  # of the columns on the line, each in lines
    widths: Sequence[int]
    joint: str

    @property
    def width(self) -> int:
        gaps = len(GAP) * max(len(self.widths) - 1, 0)
        return sum(self.widths) + gaps + len(self._indent)

    def head(self, console: Console) -> list[Text]:
        """Return the lines of the heads; a head with fewer lines stands at the bottom."""
        height = max(map(len, self.heads), default=0)
        stacks = [[""] * (height - len(head)) + list(head) for head in self.heads]
        names = [Text(self.columns[place].head, HEAD_STYLE) for place in self.keys]
        levels = ([Text(word, HEAD_STYLE) for word in level] for level in zip(*stacks, strict=True))
        return [*_keys(names, self.joint, console), *map(self._line, levels)]

    def row(self, row: Row, console: Console) -> Iterator[Text]:
        yield from _keys([row[place] for place in self.keys], self.joint, console)
        yield from self.figures(row, console)
        for column, cell in ((self.columns[place], row[place]) for place in self.notes):
            if column.shows(cell):
                yield from indented(column.named(cell), console)

    def figures(self, row: Row, _console: Console) -> Iterator[Text]:
        if self.places:
            yield self._line([row[place] for place in self.places])

    @property
    def _indent(self) -> str:
        return _INDENT if self.keys else ""

    def _line(self, cells: Row) -> Text:
        padded = []
        for place, cell, width in zip(self.places, cells, self.widths, strict=True):
            space = Text(" " * (width - cell.cell_len))
            padded.append(space + cell if self.columns[place].right else cell + space)
        line = Text.assemble(self._indent, Text(GAP).join(padded))
        line.rstrip()
        return line


class Blocks(Lines):
    """Each row is a block: its names, its other cells behind their heads, and its notes."""

    def head(self, _console: Console) -> list[Text]:
        return []

    def figures(self, row: Row, console: Console) -> Iterator[Text]:
        cells = [(self.columns[place], row[place]) for place in self.places]
        shown = [column.named(cell) for column, cell in cells if column.shows(cell)]
        yield from _filled(shown, console.width)


def _keys(keys: Row, joint: str, console: Console) -> Iterator[Text]:
    """Yield the names of a row on one line, or on one line each when it is too long."""
    keys = [key for key in keys if key]
    line = Text(joint).join(keys)
    if line.cell_len <= console.width:
        yield from [line] if line else []
        return
    yield from keys[:1]
    for key in keys[1:]:
        yield Text.assemble("  ", joint.lstrip(), key)


def indented(text: Text, console: Console) -> Iterator[Text]:
    """Yield the text in indented lines, wrapped at words."""
    width = max(console.width - len(_INDENT), 1)
    for line in text.wrap(console, width, overflow="fold"):
        line.rstrip()
        yield Text.assemble(_INDENT, line)


def _filled(cells: Iterable[Text], width: int) -> Iterator[Text]:
    """Yield indented lines of cells, none of them split."""
    line = Text()
    for cell in cells:
        if line and len(_INDENT) + line.cell_len + len(GAP) + cell.cell_len > width:
            yield Text.assemble(_INDENT, line)
            line = Text()
        line = Text.assemble(line, GAP, cell) if line else cell
    if line:
        yield Text.assemble(_INDENT, line)


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

    def _layout(self, rows: Sequence[Row], width: int) -> Lines:
        """Return the first layout that fits `width`.

        All columns on one line; notes below it; also names above it; blocks.
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
        return Blocks(self._columns, keys, figures, notes, (), (), self._joint)

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
