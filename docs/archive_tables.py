"""The tables of the archive's columns: name, type and meaning, from `gateway/archive/schema.py`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from gateway.archive import schema

DECLARED: Mapping[str, Mapping[str, str]] = {
    "COLUMNS": schema.COLUMNS,
    "SETS": schema.SETS,
    "PAIRS": schema.PAIRS,
    "DICTIONARY": schema.DICTIONARY,
}
TYPES: Mapping[str, str] = {
    "timestamp": "timestamp (microseconds, UTC)",
    "list": "list of string",
    "counts": "list of int64",
    "map": "map of string to string",
}
LINE = re.compile(r'^ {4}"(?P<name>\w+)": "\w+",(?:  # (?P<text>.+))?$', re.MULTILINE)
VALUE = re.compile(r'^    (?P<name>[A-Z]+) = "\w+"  # (?P<text>.+)$', re.MULTILINE)


def columns(arguments: Sequence[str], lines: Sequence[str]) -> list[str]:
    """One row for each column of the table that is the argument; the meaning is its comment."""
    del lines
    (name,) = arguments
    meanings = _meanings(name)
    rows = ["| column | type | meaning |", "| --- | --- | --- |"]
    for column, kind in DECLARED[name].items():
        required = ", never null" if name == "COLUMNS" and column in schema.REQUIRED else ""
        rows.append(f"| `{column}` | {TYPES.get(kind, kind)}{required} | {meanings[column]} |")
    return rows


def values(arguments: Sequence[str], lines: Sequence[str]) -> list[str]:
    """One row for each value of the enum that is the argument; the meaning is its comment."""
    del lines
    (name,) = arguments
    body = Path(schema.__file__).read_text(encoding="utf-8").partition(f"class {name}(Enum)")[2]
    texts = {each["name"]: each["text"] for each in VALUE.finditer(body.partition("\n\n\n")[0])}
    rows = ["| value | meaning |", "| --- | --- |"]
    kind: type[schema.Leg | schema.RowOutcome] = getattr(schema, name)
    return [*rows, *(f"| `{each.value}` | {texts[each.name]} |" for each in kind)]


def _meanings(name: str) -> dict[str, str]:
    """Return the comment of each column in the declaration `name`."""
    source = Path(schema.__file__).read_text(encoding="utf-8")
    start = source.index(f"\n{name}: Final")
    body = source[start : source.index("\n}", start)]
    return {each["name"]: (each["text"] or "").replace("|", "\\|") for each in LINE.finditer(body)}
