"""What shortened names stand for: work that executors do in Python; it needs no Spark itself."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath
from typing import Any, Final, TypeAlias

from gateway.dialects.base import parse_subject
from gateway.dialects.registry import DIALECTS
from gateway.errors import GatewayError
from gateway.translate.shorten import digest_of

Record: TypeAlias = tuple[Any, ...]  # a row of a table, as Spark takes it

# Line, its gateway's file name, digest, levels, microseconds, then rule and text of what is wrong.
LINE: Final = (
    "place string, gateway string, digest string, levels array<string>, noted long, rule string,"
    " text string"
)
# What was sent, then levels and spelling of the whole name, then rule and text of what is wrong.
MEANT: Final = (
    "system string, name string, digest string, source_name string, levels array<string>,"
    " whole string, rule string, text string"
)
_LATEST: Final = 4_102_444_800_000_000  # 2100-01-01; a later time is a mistake
TORN: Final = "torn-line"
BAD: Final = "bad-line"
UNKNOWN: Final = "unknown-name"
CONTRARY: Final = "contrary-name"


def lines(files: Iterable[tuple[str, bytes | bytearray]]) -> Iterator[Record]:
    """The names that gateways wrote down, given the content of their files; bad lines as well."""
    for path, content in files:
        file = PurePosixPath(path)
        for number, line in enumerate(bytes(content).split(b"\n"), start=1):
            if line.strip():
                yield f"{file.parent.name}/{file.name}:{number}", file.stem, *_line(line)


def _line(line: bytes) -> tuple[str | None, list[str] | None, int | None, str, str]:
    try:
        digest, levels, noted = _read(line)
        made = digest_of(levels)
    except (ValueError, KeyError, TypeError, RecursionError):
        if line.startswith(b"{") and not line.endswith(b"}"):
            return None, None, None, TORN, "is cut short; a crash does that before the name is used"
        return None, None, None, BAD, "is no object with a digest and the levels of a name"
    if digest != made:
        text = f"gives {digest!r} to a name whose digest is {made!r}; it is left out"
        return None, None, None, CONTRARY, text
    return digest, levels, noted, "", ""


def _read(line: bytes) -> tuple[str, list[str], int | None]:
    """Digest, levels and time of a line; ValueError, KeyError or TypeError when it is no such."""
    entry: Any = json.loads(line)
    digest, levels, noted = entry["digest"], entry["levels"], entry.get("time")
    if not (isinstance(levels, list) and levels and isinstance(digest, str)):
        raise TypeError(line)
    if not all(isinstance(level, str) for level in levels):
        raise TypeError(line)
    timed = isinstance(noted, int) and 0 <= noted < _LATEST
    return digest, levels, noted if timed else None


def meanings(rows: Iterable[Record]) -> Iterator[Record]:
    """What names stand for, given system, name, digest, source name and the levels written down.

    A digest that nobody wrote down is tried on the name as it came. One that came in already and is
    not known may be part of an ordinary name, and is left out.
    """
    for system, name, digest, source, noted in rows:
        came = any(tag.endswith(digest) for tag in (source or "").split(","))
        levels = noted if noted is not None else _recovered(source or "", digest)
        rule, text = "", ""
        if levels is None and came:
            continue
        if levels is None:
            rule, text = UNKNOWN, f"{name!r} was sent for {source!r}, and nobody wrote it down"
        elif not came and not _begins(system, name, levels):
            text = f"{name!r} was sent for {source!r}, and {digest!r} stands for {levels!r}"
            rule = CONTRARY
        yield system, name, digest, source, levels, _spelled(system, levels), rule, text


def _recovered(source: str, digest: str) -> list[str] | None:
    """The levels of `source`, in whatever system it is a name whose digest is `digest`."""
    for dialect in DIALECTS.values():
        for tag in source.split(",") if dialect.tag_lists else (source,):
            try:
                levels = parse_subject(tag, dialect).levels
            except GatewayError:
                continue
            if digest_of(levels) == digest:
                return list(levels)
    return None


def _begins(system: str, name: str, levels: list[str]) -> bool:
    """Whether `name` is a beginning of `levels` and a digest, or its spelling does not tell."""
    dialect = DIALECTS[system]
    try:
        kept = parse_subject(name, dialect).levels[:-1]
    except GatewayError:
        return False
    replaced = dialect.codec.lacking(levels)  # a route may put another character there
    return bool(replaced) or list(kept) == levels[: len(kept)]


def _spelled(system: str, levels: list[str] | None) -> str | None:
    if levels is None:
        return None
    dialect = DIALECTS[system]
    return dialect.leading + dialect.separator.join(dialect.codec.encode(levels))
