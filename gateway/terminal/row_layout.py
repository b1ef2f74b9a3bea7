"""Layouts of a table's rows: one line, one line with notes below, or a block of lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from rich.console import Console
from rich.text import Text

Row: TypeAlias = Sequence[Text]  # a cell for each column

GAP: Final = "  "  # between two cells
HEAD_STYLE: Final = "dim"
_INDENT: Final = "    "  # of the lines below the first of a row
_EMPTY: Final = ("", "0")


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
        return self.always or cell.plain not in _EMPTY

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
        return [
            *_keys(names, self.joint, console),
            *(
                self._line([Text(stack[level], HEAD_STYLE) for stack in stacks])
                for level in range(height)
            ),
        ]

    def row(self, row: Row, console: Console) -> Iterator[Text]:
        yield from _keys([row[place] for place in self.keys], self.joint, console)
        if self.places:
            yield self._line([row[place] for place in self.places])
        for place in self.notes:
            yield from _note(self.columns[place], row[place], console)

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


@dataclass(frozen=True, slots=True)
class Blocks:
    """Each row is a block: its names, its other cells behind their heads, and its notes."""

    columns: Sequence[Column]
    joint: str

    def head(self, _console: Console) -> list[Text]:
        return []

    def row(self, row: Row, console: Console) -> Iterator[Text]:
        cells = list(zip(self.columns, row, strict=True))
        yield from _keys([cell for column, cell in cells if column.key], self.joint, console)
        shown = [
            column.named(cell)
            for column, cell in cells
            if not column.key and not column.note and column.shows(cell)
        ]
        yield from _filled(shown, console.width)
        for column, cell in cells:
            if column.note:
                yield from _note(column, cell, console)


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


def _note(column: Column, cell: Text, console: Console) -> Iterator[Text]:
    """Yield a note behind its head, wrapped at words; nothing when it is empty."""
    if column.shows(cell):
        yield from indented(column.named(cell), console)


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
