"""Builds the dictionary of shortened names, ARCHIVE/_dictionary/.

It joins the names that gateways recorded in `_names` with the name pairs of all days, replaces the
dictionary as a whole, and reports what is wrong. An unrecorded name is recovered from a pair when
its route changed none of its levels. `gateway.archive.schema` has the columns.

Beside the dictionary lies its report, with the digest of the list of files that it was built from:
name files only grow, and a segment never changes. While the list is the same, so is the dictionary.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import date
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa

from gateway.archive.findings import Finding, error, warning
from gateway.archive.layout import DICTIONARY, NAMES, day_start, days_in, parse_day
from gateway.archive.location import ArchiveLocation
from gateway.archive.schema import DICTIONARY as COLUMNS
from gateway.archive.signed_json import document_of, parse
from gateway.archive.storage import Storage, open_storage
from gateway.archive.threads import in_threads
from gateway.errors import ArchiveError, ReconcileError, first_line
from gateway.night.archive.archive_lock import archive_lock
from gateway.night.archive.compaction.current import CurrentFile, current_files
from gateway.night.archive.parquet import encoded
from gateway.night.archive.remote_lock import CheckHeld
from gateway.night.archive.segments.tables import schema_of
from gateway.night.reconcile.by_key import by_key
from gateway.night.reconcile.input.row_reader import read_pairs
from gateway.night.reconcile.input.short_names import TORN, Row, lines, shortened, unused, used
from gateway.terminal.progress import ShowStep
from gateway.terminal.units import counted

_NEW: Final = Path("_dictionary.new")
_REPORT: Final = "_built.json"  # readers of a folder of Parquet pass over names with this begin
_VERSION: Final = 1
_VANISHED: Final = "vanished-file"
_AT_ONCE: Final = 64  # segments whose short names are in memory as rows
_PART_ROWS: Final = 50_000  # of one file of the dictionary
_MAX_FINDINGS: Final = 100  # of one rule; the others are counted
_MAX_SOURCES: Final = 10  # source names in an entry
_KEYS: Final = ("target", "system", "name", "digest")
_SENT: Final = (*_KEYS, "source_name")


@dataclass(frozen=True, slots=True)
class ShortNameReport:
    """Numbers of shortened names, of sent ones among them, and of targets; with findings."""

    names: int
    sent: int
    targets: int
    findings: tuple[Finding, ...] = ()


class _Sources(NamedTuple):
    """The name files and the segments of a dictionary, and the digest of their list."""

    names: Sequence[Path]
    segments: Sequence[CurrentFile]
    digest: str


def report_of_current(location: ArchiveLocation, oldest: date | None) -> ShortNameReport | None:
    """Return the report of the dictionary; None when it is absent, or other files are there now.

    Raises:
        ReconcileError: the archive cannot be reached.
    """
    storage = open_storage(location)
    try:
        content = storage.read(Path(DICTIONARY, _REPORT))
        if content is None:
            return None
        with suppress(ValueError):
            found = document_of(content, _VERSION)
            if found.pop("sources", None) == _sources(storage, oldest).digest:
                report: ShortNameReport = parse(ShortNameReport, found, _REPORT)
                return report
    except OSError as fault:
        raise ReconcileError(f"archive {location}: {fault}") from fault
    return None


def build_dictionary(
    location: ArchiveLocation, oldest: date | None, show_step: ShowStep
) -> ShortNameReport:
    """Build the dictionary of the archive; the old one stays until the new one is complete.

    With `oldest`, a name that no day uses is left out when it was recorded before that day.

    Raises:
        ReconcileError: the archive cannot be reached; the old dictionary stays.
    """
    try:
        with archive_lock(location) as check_held:
            return _build(open_storage(location), oldest, show_step, check_held)
    except OSError as fault:
        reason = first_line(fault)
        text = f"archive {location}: the dictionary of shortened names was not built: {reason}"
        raise ReconcileError(text) from fault


def _build(
    storage: Storage, oldest: date | None, show_step: ShowStep, check_held: CheckHeld
) -> ShortNameReport:
    sources = _sources(storage, oldest)
    show_step("reading the shortened names")
    recorded, sent = _recorded(storage, sources.names), _sent(storage, sources.segments)
    whole = list(_whole(sent, recorded, oldest))
    show_step("writing the dictionary")
    listed = sorted(_entries(whole), key=lambda row: (row["target"] or "", row["name"]))
    storage.remove(_NEW)
    for number, begin in enumerate(range(0, len(listed) or 1, _PART_ROWS)):
        rows = pa.Table.from_pylist(listed[begin : begin + _PART_ROWS], schema_of(COLUMNS))
        storage.put(_NEW / f"part-{number:05}.parquet", encoded(rows))
    findings = [*_shown(recorded.bad), *_shown(row for row in whole if "rule" in row)]
    findings += [*_shown(sent.bad), *_vanished(sent.gone, oldest, show_step)]
    used_rows = [row for row in listed if row["target"]]
    report = ShortNameReport(
        names=len({row["digest"] for row in listed}),
        sent=len({row["digest"] for row in used_rows}),
        targets=len({row["target"] for row in used_rows}),
        findings=tuple(findings),
    )
    if all(each.rule != _VANISHED for each in findings):
        facts = {"version": _VERSION, "sources": sources.digest, **asdict(report)}
        storage.put(_NEW / _REPORT, json.dumps(facts).encode())
    check_held()
    storage.replace(Path(DICTIONARY), _NEW)
    return report


def _sources(storage: Storage, oldest: date | None) -> _Sources:
    names = sorted(each for each in storage.files(Path(NAMES)) if each[0].suffix == ".jsonl")
    days = days_in(storage.names(Path()))
    segments = [each for day in days for each in current_files(storage, day)]
    listed = [(path.as_posix(), size) for path, size in names]
    listed += [(each.path.as_posix(), each.size) for each in segments]
    digest = hashlib.sha256(json.dumps([str(oldest), listed]).encode()).hexdigest()
    return _Sources([path for path, _ in names], segments, digest)


@dataclass(slots=True)
class _Noted:
    """The facts in the lines of a digest; `at` is the newest time, None where a line has none.

    Mutable: it collects while the name files are read.
    """

    levels: list[str]
    at: int | None
    gateways: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class _Recorded:
    """The recorded names by digest, and the bad lines."""

    names: Mapping[str, _Noted]
    bad: Sequence[Row]


def _recorded(storage: Storage, paths: Sequence[Path]) -> _Recorded:
    """Read the name files; one that is absent by now has no name."""
    names: dict[str, _Noted] = {}
    bad: list[Row] = []
    for path in paths:
        for line in lines(path.as_posix(), storage.read(path) or b""):
            if "rule" in line:
                bad.append(line)
                continue
            at = line["noted"]
            noted = names.setdefault(line["digest"], _Noted(line["levels"], at))
            noted.at = None if noted.at is None or at is None else max(noted.at, at)
            noted.gateways.add(line["gateway"])
    return _Recorded(names, bad)


@dataclass(frozen=True, slots=True)
class _Sent:
    """The deliveries of short names by `_SENT`, damaged segments, and those gone by now."""

    names: Mapping[tuple[Any, ...], Row]
    bad: Sequence[Row]
    gone: Sequence[Path]


def _sent(storage: Storage, segments: Sequence[CurrentFile]) -> _Sent:
    """Read the name pairs of all segments; names count once, whatever file they are in."""
    names: dict[tuple[Any, ...], dict[str, Any]] = {}
    bad: list[Row] = []
    gone: list[Path] = []

    def read(each: CurrentFile) -> list[Row] | ArchiveError:
        try:
            return list(shortened(read_pairs(storage, each.at)))
        except ArchiveError as fault:
            return fault

    for begin in range(0, len(segments), _AT_ONCE):
        some = segments[begin : begin + _AT_ONCE]
        for each, rows in zip(some, in_threads(read, some), strict=True):
            if not isinstance(rows, ArchiveError):
                for row in rows:
                    _add(names, row)
            elif isinstance(rows.__cause__, FileNotFoundError):
                gone.append(each.path)
            else:
                text = str(rows).removeprefix(f"{each.at}: ")
                place = each.path.as_posix()
                bad.append({"place": place, "rule": "unreadable-file", "text": text})
    return _Sent(names, bad, gone)


def _add(names: dict[tuple[Any, ...], dict[str, Any]], row: Row) -> None:
    """Add the deliveries of a name pair to those of the same names."""
    key = tuple(row[name] for name in _SENT)
    facts = {
        "gateways": {row["gateway"]},
        "count": row["count"],
        "first_time": row["first_time"],
        "last_time": row["last_time"],
    }
    if (known := names.get(key)) is None:
        names[key] = dict(zip(_SENT, key, strict=True)) | facts
    else:
        known["gateways"] |= facts["gateways"]
        known["count"] += facts["count"]
        known["first_time"] = min(known["first_time"], facts["first_time"])
        known["last_time"] = max(known["last_time"], facts["last_time"])


def _whole(sent: _Sent, recorded: _Recorded, oldest: date | None) -> Iterator[Row]:
    """Yield the sent names by source name, and the recorded ones that no delivery uses.

    With `oldest`, the first kept day, those recorded before it are left out: the days that used
    them were removed. A digest with a line without a time stays.
    """
    for row in sent.names.values():
        noted = recorded.names.get(row["digest"])
        if found := used(row, noted.levels if noted else None):
            yield found
    known = {row["digest"] for row in sent.names.values()}
    since = 0 if oldest is None else day_start(oldest)
    for digest, noted in recorded.names.items():
        if digest not in known and (noted.at is None or noted.at >= since):
            yield unused(digest, noted.levels, noted.gateways)


def _entries(whole: Iterable[Row]) -> Iterator[dict[str, Any]]:
    """Yield the rows of the dictionary, each with its first source names."""
    groups = by_key((tuple(row.get(name) for name in _KEYS), row) for row in whole)
    for key, rows in groups.items():
        rows.sort(key=lambda row: row.get("source_name", ""))
        times = [row[name] for row in rows for name in ("first_time", "last_time") if name in row]
        yield {
            **dict(zip(_KEYS, key, strict=True)),
            "levels": next((row["levels"] for row in rows if row["levels"] is not None), None),
            "whole": next((row["whole"] for row in rows if "whole" in row), None),
            "sources": [row["source_name"] for row in rows if "source_name" in row][:_MAX_SOURCES],
            "gateways": sorted({name for row in rows for name in row["gateways"]}),
            "first_time": min(times, default=None),
            "last_time": max(times, default=None),
            "count": sum(row["count"] for row in rows),
        }


def _vanished(gone: Iterable[Path], oldest: date | None, show_step: ShowStep) -> Iterator[Finding]:
    """Report files that another process removed: an error, except in a day before `oldest`."""
    for folder, count in sorted(Counter(path.parts[0] for path in gone).items()):
        day = parse_day(folder)
        if oldest is not None and day is not None and day < oldest:
            show_step(f"removed meanwhile: {counted(count, 'file')} of {day}; no longer kept")
        else:
            yield error(
                _VANISHED, folder, f"vanished while they were read: {counted(count, 'file')}"
            )


def _shown(wrong: Iterable[Row]) -> Iterator[Finding]:
    """Yield the findings of `place`, `rule` and `text`; of each rule the first."""
    found = defaultdict[str, set[tuple[str, str]]](set)
    for row in wrong:
        found[row["rule"]].add((row["place"], row["text"]))
    for rule, places in sorted(found.items()):
        finding = warning if rule == TORN else error
        first = sorted(places)[:_MAX_FINDINGS]
        yield from (finding(rule, place, text) for place, text in first)
        if more := len(places) - len(first):
            yield finding(rule, first[-1][0], f"{counted(more, 'more finding')} of this rule")
