"""Lines of a foreign file with their places and comments; it knows no option by name.

It never fails: a line it cannot read becomes a `Left`, and the next line is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import Enum

COMMENT = "#"


class Fate(Enum):
    """What becomes of a line that is not in the mapping."""

    LOST = "not carried over"  # it did something, and the mapping does not
    STAYS = "stays where it is"  # the server or broker goes on doing it


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A line of a file; `line` counts from 1."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class Left:
    """A line, or a part of one, that the mapping does not say; `what` repeats no values."""

    place: Place
    what: str
    reason: str
    fate: Fate = Fate.LOST

    def __str__(self) -> str:
        return f"{self.place}: {self.what}: {self.fate.value}; {self.reason}"


@dataclass(frozen=True, slots=True)
class Line:
    """A line that says something, with the comment lines right above it."""

    place: Place
    text: str
    above: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reading:
    """All of a file: what says something, and what could not be read."""

    lines: tuple[Line, ...]
    left: tuple[Left, ...] = ()


def read_ems(file: str, data: bytes, *, comma_joins: bool = False) -> Reading:
    """Lines as the EMS server writes them: `#` begins a comment wherever a word may begin.

    A blank and a backslash at the end join the next line, and so does a comma where
    `comma_joins` (EMS User's Guide, topics.conf: a property list goes on in the next line).
    """
    joined: list[Line] = []
    reading = _read(file, data, _without_comment)
    for line in reading.lines:
        if joined and _goes_on(joined[-1].text, comma_joins=comma_joins):
            last = joined.pop()
            head = last.text.removesuffix("\\")
            joined.append(replace(last, text=f"{head.rstrip()} {line.text}"))
        else:
            joined.append(line)
    return replace(reading, lines=tuple(joined))


def read_mosquitto(file: str, data: bytes) -> Reading:
    """Lines as mosquitto reads them: a comment has its `#` in the first column, nothing joins."""
    return _read(file, data, _without_full_comment)


def _goes_on(text: str, *, comma_joins: bool) -> bool:
    return text.endswith((" \\", "\t\\")) or (comma_joins and text.endswith(","))


def _read(file: str, data: bytes, meaning: Callable[[str], str]) -> Reading:
    lines: list[Line] = []
    left: list[Left] = []
    above: list[str] = []
    for place, raw in _numbered(file, data):
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError:
            left.append(Left(place, "this line", "it is not UTF-8; save the file as UTF-8"))
            continue
        if said := meaning(text):
            lines.append(Line(place, said, tuple(above)))
            above = []
        elif text.lstrip().startswith(COMMENT):
            above.append(text.strip().lstrip(COMMENT).strip())
        else:
            above = []
    return Reading(tuple(lines), tuple(left))


def _numbered(file: str, data: bytes) -> Iterator[tuple[Place, bytes]]:
    data = data.removeprefix(b"\xef\xbb\xbf")
    for number, raw in enumerate(data.split(b"\n"), 1):
        yield Place(file, number), raw.removesuffix(b"\r")


def _without_full_comment(text: str) -> str:
    return "" if text.startswith(COMMENT) or not text.strip() else text.strip(" ")


def _without_comment(text: str) -> str:
    """The text before a `#` that begins a word outside quotes."""
    quoted = False
    for at, char in enumerate(text):
        if char == '"':
            quoted = not quoted
        elif char == COMMENT and not quoted and (at == 0 or text[at - 1].isspace()):
            return text[:at].strip()
    return text.strip()
