"""The date to reconcile and its files, verified by their seals before Spark reads them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import date, timedelta
from functools import partial
from os import fsdecode, fsencode
from pathlib import Path
from typing import Final, TypeAlias

import pyarrow as pa
from pyspark.sql import SparkSession

from gateway.archive.findings import Finding, Weight, error
from gateway.archive.layout import DAY, HOUR, day_start, days_in, parse_day
from gateway.archive.location import ArchiveLocation
from gateway.archive.signed_json import StoredDigest
from gateway.archive.storage import Storage, open_storage
from gateway.errors import ArchiveError
from gateway.night.archive.compaction.current import current_files
from gateway.night.archive.open_archive import OpenArchive
from gateway.night.archive.parquet import PAIRS_KEY, SETS_KEY
from gateway.night.archive.seals.store import HashFiles, digests_of
from gateway.night.archive.segments.tables import SCHEMA
from gateway.night.archive.verification.contents import VerifiedSegment
from gateway.night.archive.verification.verify import Verified, verify_day
from gateway.night.reconcile.input.executors import collect, divided, tables_of
from gateway.night.reconcile.input.row_reader import read_beside, row_groups

Segments: TypeAlias = Sequence[VerifiedSegment]

_HOURS_BEFORE: Final = 6  # of the day before that are read: a clock may be set back, a tap late
_DAY: Final = timedelta(days=1)
_OPEN_COST: Final = 256 << 10  # bytes that are hashed while a file is opened
_HASHED: Final = {"path": "binary", "sha256": "string", "size": "int64"}


@dataclass(frozen=True, slots=True)
class Scope:
    """The date to reconcile, and the limits of its classes.

    Units: seconds for `late`, else microseconds.
    """

    location: ArchiveLocation
    day: date
    late: int
    spooled_since: int  # receipt; a copy received before is not in the spool any more
    open_since: Mapping[str, int] = field(default_factory=dict)  # writer -> first recent receipt
    in_flight: int = 0  # before an open journal; a receipt there may have no outcome
    full: bool = False  # join all rows


@dataclass(frozen=True, slots=True)
class Inputs:
    """The segments with rows of a date, by the date of their recording.

    Those of `day` are as they were sealed. `around` are those of the last hours before it, and of
    all days after it: a spooled or replayed message may be delivered on any later day.
    """

    verify: Callable[[date], Verified]  # the files of another date, as those of this one
    verified: Verified  # those of this one
    day: Segments
    around: Segments = ()
    findings: Sequence[Finding] = ()

    @property
    def all(self) -> list[VerifiedSegment]:
        return [*self.day, *self.around]

    def without(self, paths: Container[str]) -> Inputs:
        """Return the inputs without the segments at `paths`."""
        day, around = (
            [each for each in group if str(each.path) not in paths]
            for group in (self.day, self.around)
        )
        return replace(self, day=day, around=around)

    @property
    def opened(self) -> dict[str, int]:
        """The openings of the journals that running writers have, in microseconds."""
        return {each.name.writer: each.opened for each in self.verified.journals if each.live}

    @property
    def rows(self) -> int:
        """Rows of the date."""
        return sum(each.rows for each in self.day)


def hashed_by(spark: SparkSession, location: ArchiveLocation) -> HashFiles:
    """Return a function with which the executors of `spark` hash files; this process opens none."""

    def hash_files(files: Mapping[Path, int]) -> dict[Path, StoredDigest]:
        costs = [size + _OPEN_COST for size in files.values()]
        tasks = divided(spark, list(files), costs)
        rows = collect(spark, _HASHED, tasks, partial(run_hashes, location))
        return {
            Path(fsdecode(row["path"])): StoredDigest(row["sha256"], row["size"])
            for row in rows.to_pylist()
        }

    return hash_files


def run_hashes(location: ArchiveLocation, files: Sequence[Path]) -> Iterator[pa.Table]:
    """Yield the hash and the size of each of the `files` that is present."""
    found = digests_of(open_storage(location), files)
    rows = ({"path": fsencode(path), **asdict(each)} for path, each in found.items())
    yield from tables_of(_HASHED, rows)


def find_inputs(archive: OpenArchive, day: date, hash_files: HashFiles | None = None) -> Inputs:
    """Verify the segments of `day` by their seals, and list those around it.

    A segment that is not as it was sealed is left out. `hash_files` hashes the segments, by default
    in threads of this process.

    Raises:
        OSError: the archive cannot be read.
    """
    local = archive.location.local
    verify = partial(
        verify_day,
        archive.storage,
        key=archive.key,
        journals=local if local.is_dir() else None,  # where this machine has them
        hash_files=hash_files,
        read=archive.read_seal,
    )
    verified = verify(day)
    around = _around(archive.storage, day)
    return Inputs(verify, verified, _sealed(verified), around, verified.findings)


def verify_around(inputs: Inputs, near: Collection[Path]) -> Inputs:
    """Verify the segments around the date on the days of those in `near`.

    `near` are segments of other dates, with rows of messages that were received on this one. A
    segment that is not as it was sealed is left out; its messages may be missing, so the finding is
    a warning here.

    Raises:
        OSError: the archive cannot be read.
    """
    days = {day for path in near if (day := parse_day(path.parts[-3])) is not None}
    around = [each for each in inputs.around if parse_day(each.path.parts[-3]) not in days]
    findings = list(inputs.findings)
    for day in sorted(days):
        verified = inputs.verify(day)
        around += _sealed(verified)
        left_out = {str(each.path) for each in verified.segments if not each.sealed}
        findings += [
            replace(each, weight=Weight.WARNING)
            for each in verified.findings
            if each.place in left_out
        ]
    return replace(inputs, around=around, findings=findings)


def list_inputs(storage: Storage, day: date) -> Inputs:
    """List the segments of `day` and around it without verifying them."""
    own = [replace(each, sealed=True) for each in _listed(storage, day)]
    return Inputs(partial(verify_day, storage), Verified(()), own, _around(storage, day))


def unreadable_segments(storage: Storage, inputs: Inputs) -> tuple[set[str], list[Finding]]:
    """Read all segments; return those that are absent, and a finding for each damaged one."""
    absent: set[str] = set()  # removed since they were listed
    findings: list[Finding] = []
    for path in (each.path for each in inputs.all):
        try:
            for _ in row_groups(storage, path, SCHEMA.names):
                pass
            for key in (SETS_KEY, PAIRS_KEY):
                read_beside(storage, path, key)
        except ArchiveError as fault:
            if isinstance(fault.__cause__, FileNotFoundError):
                absent.add(str(path))
                continue
            text = str(fault).removeprefix(f"{path}: ")
            findings.append(error("unreadable-file", str(path), text))
    return absent, findings


def _sealed(verified: Verified) -> list[VerifiedSegment]:
    return [each for each in verified.segments if each.sealed]


def _around(storage: Storage, day: date) -> list[VerifiedSegment]:
    before = _listed(storage, day - _DAY) if day > date.min else []
    later = [each for each in days_in(storage.names(Path())) if each > day]
    after = [segment for each in later for segment in _listed(storage, each)]
    hours = {f"hour={hour:02}" for hour in range(24 - _HOURS_BEFORE, 24)}
    return [*(each for each in before if each.path.parent.name in hours), *after]


def _listed(storage: Storage, day: date) -> list[VerifiedSegment]:
    files = current_files(storage, day)
    return [VerifiedSegment(each.at, sealed=False, size=each.size) for each in files]


def day_range(day: date) -> tuple[int, int]:
    """Return the beginning of `day` and that of the next one, in microseconds."""
    return day_start(day), day_start(day) + DAY


def hours_around(day: date) -> tuple[int, int]:
    """Return the range of times, in microseconds, in which a tap sees the messages of `day`."""
    begin, end = day_range(day)
    return begin - _HOURS_BEFORE * HOUR, end + _HOURS_BEFORE * HOUR


def hours_near(hours: Iterable[int]) -> frozenset[int]:
    """Return the hours, since 1970, in which a tap sees what targets took in `hours`."""
    shifts = range(-_HOURS_BEFORE, _HOURS_BEFORE + 1)
    return frozenset(hour + shift for hour in hours for shift in shifts)
