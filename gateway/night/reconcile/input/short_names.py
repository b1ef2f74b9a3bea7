"""The names that gateways shortened: recorded in name files, sent in name pairs, and whole."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from operator import itemgetter
from pathlib import Path, PurePosixPath
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from gateway.archive.layout import MAX_TIME, NAMES
from gateway.archive.schema import Leg
from gateway.archive.signed_json import parse
from gateway.archive.storage import Storage
from gateway.dialects.base import parse_subject
from gateway.dialects.dialect import Dialect
from gateway.dialects.registry import DIALECTS, find_dialect
from gateway.errors import GatewayError
from gateway.translate.shorten import DIGEST, digest_of

Row: TypeAlias = Mapping[str, Any]

TORN: Final = "torn-line"
CONTRARY: Final = "contrary-name"
UNKNOWN: Final = "unknown-name"
_LAST_LEVELS: Final = {
    name: re.compile(rf"(?:^|{re.escape(dialect.separator)})({DIGEST.pattern})\Z")
    for name, dialect in DIALECTS.items()
}


def lines(path: str, content: bytes) -> Iterator[Row]:
    """Yield digest, levels, time and gateway of the lines of a name file; a bad one has a rule."""
    for number, line in enumerate(content.split(b"\n"), start=1):
        if line.strip():
            yield {"place": f"{path}:{number}", "gateway": PurePosixPath(path).stem, **_line(line)}


def _line(line: bytes) -> Row:
    try:
        entry = _parsed(line)
        expected = digest_of(entry["levels"])
    except (ValueError, KeyError, TypeError, RecursionError):
        if line.startswith(b"{") and not line.endswith(b"}"):
            return {"rule": TORN, "text": "is cut by a crash, before the name was used"}
        return {"rule": "bad-line", "text": "is no object with a digest and the levels of a name"}
    if entry["digest"] != expected:
        text = f"gives {entry['digest']!r} to a name whose digest is {expected!r}; it is left out"
        return {"rule": CONTRARY, "text": text}
    return entry


def _parsed(line: bytes) -> Row:
    """Return digest, levels and time of a line.

    Raises:
        ValueError, KeyError, TypeError: the line is not such an object.
    """
    entry: Any = json.loads(line)
    digest, noted = parse(str, entry["digest"]), entry.get("time")
    levels = list(parse(Sequence[str], entry["levels"]))
    if not levels:
        raise ValueError(line)
    is_valid = isinstance(noted, int) and 0 <= noted < MAX_TIME
    return {"digest": digest, "levels": levels, "noted": noted if is_valid else None}


def shortened(pairs: pa.Table) -> Iterator[Row]:
    """Yield the deliveries whose name, or a tag of it, ends in a digest."""
    delivered = pc.equal(pairs["leg"], Leg.DELIVERED.value)
    chosen = pc.and_(delivered, pc.match_substring_regex(pairs["name"], DIGEST.pattern))
    for row in pairs.filter(chosen).to_pylist():
        dialect = DIALECTS.get(row["system"])
        if dialect is None:
            continue
        for name in row["name"].split(",") if dialect.tag_lists else [row["name"]]:
            if found := _LAST_LEVELS[row["system"]].search(name):
                source = row["source_name"] or ""
                yield {**row, "name": name, "digest": found[1], "source_name": source}


def unused(digest: str, levels: Sequence[str], gateways: Iterable[str]) -> Row:
    """Return the entry of a name that gateways recorded, and that no delivery uses."""
    return {
        "target": "",
        "name": digest,
        "digest": digest,
        "levels": levels,
        "count": 0,
        "gateways": gateways,
    }


def used(row: Row, noted: list[str] | None) -> Row | None:
    """Return the entry of a name that was sent for one source name, with its whole name.

    `noted` are its recorded levels. An unrecorded digest is compared with that of the source name.
    An unknown digest that the source name already contains may be part of an ordinary name, and is
    left out. A wrong entry has a rule.
    """
    system, name, digest, source = itemgetter("system", "name", "digest", "source_name")(row)
    in_source = any(tag.endswith(digest) for tag in source.split(","))
    levels = noted or _recovered(source, digest)
    found = {**row, "levels": levels, "place": "name pairs"}
    if levels is None:
        text = f"{name!r} was sent for {source!r} and is in no name file"
        return None if in_source else {**found, "rule": UNKNOWN, "text": text}
    dialect = find_dialect(system)
    found["whole"] = dialect.text_of(dialect.codec.encode(levels))
    if not in_source and not _is_beginning(dialect, name, levels):
        text = f"{name!r} was sent for {source!r}, and {digest!r} stands for {levels!r}"
        return {**found, "rule": CONTRARY, "text": text}
    return found


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


def _is_beginning(dialect: Dialect, name: str, levels: list[str]) -> bool:
    """Return whether `name` is a beginning of `levels` and a digest, as far as can be decided."""
    try:
        kept = parse_subject(name, dialect).levels[:-1]
    except GatewayError:
        return False
    replaced = dialect.codec.unspellable(levels)  # a route may replace these characters
    return bool(replaced) or list(kept) == levels[: len(kept)]


class ArchivedShortNames:
    """A dictionary of short names that reads the name files of all gateways.

    Mutable: reads them at the first short name.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def remember(self, digest: str, levels: tuple[str, ...]) -> None:
        """Do nothing: the gateway stored the name when it used it."""

    def recall(self, digest: str) -> tuple[str, ...] | None:
        """Return the canonical levels behind `digest`, or None.

        Raises:
            OSError: the archive cannot be read.
        """
        return self._names.get(digest)

    def commit(self) -> None:
        """Do nothing: the gateway stored every name."""

    @cached_property
    def _names(self) -> dict[str, tuple[str, ...]]:
        files = [Path(NAMES) / name for name in self._storage.names(Path(NAMES))]
        return {
            line["digest"]: tuple(line["levels"])
            for path in files
            if path.suffix == ".jsonl"
            for line in lines(path.name, self._storage.read(path) or b"")
            if "digest" in line
        }
