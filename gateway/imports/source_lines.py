"""Lines of an imported file, each with its location and the comment lines above it.

An unreadable line becomes an `OmittedLine`; reading continues with the next line.
"""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum

COMMENT = "#"


class LineStatus(Enum):
    """Reason why a line is not in the mapping."""

    NOT_CARRIED_OVER = "not carried over"  # it had an effect that the mapping does not have
    STAYS_AT_BROKER = "stays where it is"  # the server or broker still applies it


@dataclass(frozen=True, slots=True, order=True)
class SourceLine:
    """Location of a line in a file; `line` counts from 1."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class OmittedLine:
    """A line, or a part of it, that is not in the mapping; `item` contains no values."""

    location: SourceLine
    item: str
    reason: str
    status: LineStatus = LineStatus.NOT_CARRIED_OVER

    def __str__(self) -> str:
        return f"{self.location}: {self.item}: {self.status.value}; {self.reason}"


class LineError(ValueError):
    """A line, or a part of it, that cannot be in the mapping: what it is, and the reason."""

    def __init__(self, item: str, reason: str) -> None:
        super().__init__(f"{item}: {reason}")
        self.item, self.reason = item, reason


def grouped(omitted: Sequence[OmittedLine]) -> Iterator[OmittedLine]:
    """Yield each line; lines of one file that stay there for one reason become one."""
    groups: dict[object, list[OmittedLine]] = {}
    for number, each in enumerate(omitted):
        stays = each.status is LineStatus.STAYS_AT_BROKER
        key = (each.location.file, each.reason) if stays else number
        groups.setdefault(key, []).append(each)
    for first, *others in groups.values():
        items = [first.item, *(f"{each.item} (line {each.location.line})" for each in others)]
        yield replace(first, item=", ".join(items))


@dataclass(frozen=True, slots=True)
class ContentLine:
    """A line with content, and the comment lines directly above it."""

    location: SourceLine
    text: str
    comments: tuple[str, ...] = ()

    def omitted(self, item: str, reason: str) -> OmittedLine:
        return OmittedLine(self.location, item, reason)


@dataclass(frozen=True, slots=True)
class ParsedFile:
    """Lines of one file with content, and its unreadable lines."""

    lines: tuple[ContentLine, ...]
    omitted: tuple[OmittedLine, ...] = ()


def read_ems(file: str, data: bytes, *, comma_joins: bool = False) -> ParsedFile:
    """Read lines in the syntax of EMS: `#` at the beginning of a word starts a comment.

    A blank and a backslash at the end join the next line; with `comma_joins` a comma does so too
    (EMS User's Guide, topics.conf: a property list continues on the next line).
    """
    joined: list[ContentLine] = []
    parsed = _read(file, data, _without_comment)
    ends = (" \\", "\t\\", ",") if comma_joins else (" \\", "\t\\")
    for line in parsed.lines:
        if joined and joined[-1].text.endswith(ends):
            head = joined[-1].text.removesuffix("\\")
            joined[-1] = replace(joined[-1], text=f"{head.rstrip()} {line.text}")
        else:
            joined.append(line)
    return replace(parsed, lines=tuple(joined))


def read_mosquitto(file: str, data: bytes) -> ParsedFile:
    """Read lines in the syntax of mosquitto: `#` in the first column starts a comment."""
    return _read(file, data, _without_full_comment)


def _read(file: str, data: bytes, strip_comment: Callable[[str], str]) -> ParsedFile:
    lines: list[ContentLine] = []
    omitted: list[OmittedLine] = []
    comments: list[str] = []
    for number, raw in enumerate(data.removeprefix(BOM_UTF8).split(b"\n"), 1):
        location = SourceLine(file, number)
        try:
            text = raw.removesuffix(b"\r").decode("utf-8")
        except UnicodeDecodeError:
            reason = "it is not UTF-8; save the file as UTF-8"
            omitted.append(OmittedLine(location, "this line", reason))
            continue
        if content := strip_comment(text):
            lines.append(ContentLine(location, content, tuple(comments)))
            comments = []
        elif text.lstrip().startswith(COMMENT):
            comments.append(text.strip().lstrip(COMMENT).strip())
        else:
            comments = []
    return ParsedFile(tuple(lines), tuple(omitted))


def _without_full_comment(text: str) -> str:
    return "" if text.startswith(COMMENT) or not text.strip() else text.strip(" ")


def _without_comment(text: str) -> str:
    """Return the text before a `#` that begins a word outside quotes."""
    quoted = False
    for at, char in enumerate(text if COMMENT in text else ""):
        if char == '"':
            quoted = not quoted
        elif char == COMMENT and not quoted and (at == 0 or text[at - 1].isspace()):
            return text[:at].strip()
    return text.strip()
