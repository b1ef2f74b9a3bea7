"""Python functions that Spark executors run to decode shortened names."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath
from typing import Any, Final

from gateway.dialects.base import parse_subject
from gateway.dialects.registry import DIALECTS, find_dialect
from gateway.errors import GatewayError
from gateway.reconcile.input.executors import Record
from gateway.translate.shorten import digest_of

# File and line, file name of the gateway, digest, levels, microseconds, rule and text of a finding.
LINE: Final = {
    "place": "string",
    "gateway": "string",
    "digest": "string",
    "levels": "list",
    "noted": "int64",
    "rule": "string",
    "text": "string",
}
# The sent name, levels and spelling of the whole name, rule and text of a finding.
DECODED: Final = {
    "system": "string",
    "name": "string",
    "digest": "string",
    "source_name": "string",
    "levels": "list",
    "whole": "string",
    "rule": "string",
    "text": "string",
}
_MAX_TIME: Final = 4_102_444_800_000_000  # 2100-01-01; a later time is invalid
TORN: Final = "torn-line"
BAD: Final = "bad-line"
UNKNOWN: Final = "unknown-name"
CONTRARY: Final = "contrary-name"


def lines(files: Iterable[tuple[str, bytes | bytearray]]) -> Iterator[Record]:
    """Parse the name files of gateways, given as path and content; bad lines have a rule."""
    for path, content in files:
        file = PurePosixPath(path)
        for number, line in enumerate(bytes(content).split(b"\n"), start=1):
            if line.strip():
                yield f"{file.parent.name}/{file.name}:{number}", file.stem, *_line(line)


def _line(line: bytes) -> tuple[str | None, list[str] | None, int | None, str, str]:
    try:
        digest, levels, noted = _parse(line)
        expected = digest_of(levels)
    except (ValueError, KeyError, TypeError, RecursionError):
        if line.startswith(b"{") and not line.endswith(b"}"):
            return None, None, None, TORN, "is cut by a crash, before the name was used"
        return None, None, None, BAD, "is no object with a digest and the levels of a name"
    if digest != expected:
        text = f"gives {digest!r} to a name whose digest is {expected!r}; it is left out"
        return None, None, None, CONTRARY, text
    return digest, levels, noted, "", ""


def _parse(line: bytes) -> tuple[str, list[str], int | None]:
    """Return digest, levels and time of a line.

    Raises:
        ValueError, KeyError, TypeError: the line is no such object.
    """
    entry: Any = json.loads(line)
    digest, levels, noted = entry["digest"], entry["levels"], entry.get("time")
    if not (isinstance(levels, list) and levels and isinstance(digest, str)):
        raise TypeError(line)
    if not all(isinstance(level, str) for level in levels):
        raise TypeError(line)
    is_valid = isinstance(noted, int) and 0 <= noted < _MAX_TIME
    return digest, levels, noted if is_valid else None


def decode(rows: Iterable[Record]) -> Iterator[Record]:
    """Find the whole names, given system, name, digest, source name and the recorded levels.

    An unrecorded digest is compared with that of the source name. An unknown digest that the source
    name already contains may be part of an ordinary name, and is left out.
    """
    for system, name, digest, source, recorded in rows:
        in_source = any(tag.endswith(digest) for tag in (source or "").split(","))
        levels = recorded if recorded is not None else _recovered(source or "", digest)
        rule, text = "", ""
        if levels is None and in_source:
            continue
        if levels is None:
            rule, text = UNKNOWN, f"{name!r} was sent for {source!r} and is in no name file"
        elif not in_source and not _is_beginning(system, name, levels):
            text = f"{name!r} was sent for {source!r}, and {digest!r} stands for {levels!r}"
            rule = CONTRARY
        yield system, name, digest, source, levels, _spelled(system, levels), rule, text


def _recovered(source: str, digest: str) -> list[str] | None:
    """Return the levels of `source` in the first system in which its digest is `digest`."""
    for dialect in DIALECTS.values():
        for tag in source.split(",") if dialect.tag_lists else (source,):
            try:
                levels = parse_subject(tag, dialect).levels
            except GatewayError:
                continue
            if digest_of(levels) == digest:
                return list(levels)
    return None


def _is_beginning(system: str, name: str, levels: list[str]) -> bool:
    """Return whether `name` is a beginning of `levels` and a digest, as far as can be decided."""
    dialect = find_dialect(system)
    try:
        kept = parse_subject(name, dialect).levels[:-1]
    except GatewayError:
        return False
    replaced = dialect.codec.unspellable(levels)  # a route may replace these characters
    return bool(replaced) or list(kept) == levels[: len(kept)]


def _spelled(system: str, levels: list[str] | None) -> str | None:
    if levels is None:
        return None
    dialect = find_dialect(system)
    return dialect.leading + dialect.separator.join(dialect.codec.encode(levels))
