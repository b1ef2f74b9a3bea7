"""Paths and names of the files of an archive; its layout and columns have `SCHEMA_VERSION`.

ARCHIVE/.journal/<writer>-<start>-<n>.open              rows not yet in a segment
ARCHIVE/.journal/<writer>-<start>-<n>.ack               its acknowledged bytes
ARCHIVE/.journal/<writer>-<start>-<n>.done              converted, being removed
ARCHIVE/.journal/<writer>-<start>-<n>.damaged           kept for inspection
ARCHIVE/.journal/<gateway>.echoes                       echoes that a clean stop waits for
ARCHIVE/.journal/<writer>.lock                          locked by the process that writes
ARCHIVE/.journal/<gateway>~replays.lock                 locked by the one command that replays
ARCHIVE/date=YYYY-MM-DD/hour=HH/<journal>-<k>.parquet   segments
ARCHIVE/_seals/date=YYYY-MM-DD/<journal>.json           seals, by the date on which it was closed
ARCHIVE/_seals/date=YYYY-MM-DD/merged-<n>.json          seals of the compactions of the date
ARCHIVE/_compacting/date=.../hour=.../<segment>         merged segments that have no final name yet
ARCHIVE/_names/<writer>.jsonl                           whole names behind shortened ones
ARCHIVE/_heads/<writer>.json                            the last and the open journal, and sources
ARCHIVE/_heads/<writer>.damaged                         one that a start found changed
ARCHIVE/_routes/<writer>-<since>.json                   routes of the writer from a time on
ARCHIVE/_nights/<n>.json                                records of the nights, a chain
ARCHIVE/_nights/forgotten-<date>.json                   removed dates with rows that no night judged
ARCHIVE/_removed/<date>.json                            the last removed journal of each writer
ARCHIVE/_dictionary/                                    the shortened names of all gateways
ARCHIVE/_reconciled/date=YYYY-MM-DD/                    results of the nightly reconciliation
ARCHIVE/_reconciled/follow/                             results of `reconcile --follow`

The writer is the gateway, with its instance if it has one (`<gateway>@<instance>`), or a command
that replays for it (`~replay`). A row's writer is in the name of its segment; a merged segment has
rows of all writers of its hour.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from hashlib import blake2s
from pathlib import Path, PurePath
from typing import Final, NamedTuple

SCHEMA_VERSION: Final = 5
OPEN: Final = ".open"
ACK: Final = ".ack"
DONE: Final = ".done"
DAMAGED: Final = ".damaged"
SEALS: Final = "_seals"
COMPACTING: Final = "_compacting"
NAMES: Final = "_names"
ROUTES: Final = "_routes"
HEADS: Final = "_heads"
OTHERS: Final = ".others"  # in the folders of heads and names of a buffer: copies
UPLOADED: Final = ".uploaded"  # in the folder of heads of a buffer: those that it uploaded last
NIGHTS: Final = Path("_nights")
RECONCILED: Final = Path("_reconciled")
DONE_DAYS: Final = Path("_done")
DICTIONARY: Final = "_dictionary"
SECOND: Final = 1_000_000  # microseconds
HOUR: Final = 3_600 * SECOND
DAY: Final = 24 * HOUR
SPOOLED_DAYS: Final = 7  # age of a spooled copy without an outcome, after which it is missing
NEVER_WRITTEN: Final = (
    "no gateway has written to it; check the path, and whether its volume is mounted"
)
MERGED: Final = "merged-"  # begin of the names of merged segments, and of their seals
MAX_TIME: Final = 4_102_444_800_000_000  # 2100-01-01; a later time is invalid

_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]+")
_MAX_NAME = 48  # characters of a gateway's name in a file name
_INSTANCE: Final = "@"  # `safe_name` has none
REPLAY: Final = "~replay"  # no suffix of `safe_name`, which has eight hexadecimal digits
_JOURNAL_STEM = re.compile(r"(?P<writer>.+)-(?P<start>\d+)-(?P<number>\d+)")
_DAY_FOLDER = re.compile(r"date=(\d{4}-\d{2}-\d{2})")


def safe_name(gateway: str) -> str:
    """Return `gateway` as part of a file name; different gateways get different names."""
    safe = _UNSAFE.sub("_", gateway).lstrip(".")[:_MAX_NAME]
    if safe and safe == gateway:
        return safe
    return f"{safe}~{blake2s(gateway.encode(errors='backslashreplace')).hexdigest()[:8]}"


def journal_folder(root: Path) -> Path:
    return root / ".journal"


def writer_name(gateway: str, instance: str = "", *, replay: bool = False) -> str:
    """Return the name of a writer of journals: an instance, or a command that replays for it."""
    own = f"{_INSTANCE}{safe_name(instance)}" if instance else ""
    return safe_name(gateway) + own + (REPLAY if replay else "")


def gateway_of(writer: str) -> str:
    """Return the `safe_name` of the gateway of `writer`."""
    return writer.removesuffix(REPLAY).partition(_INSTANCE)[0]


def is_instance(writer: str, gateway: str) -> bool:
    """Return whether `writer` is an instance of `gateway`, and no command that replays."""
    return gateway_of(writer) == safe_name(gateway) and not is_replay(writer)


def writer_of(segment: PurePath) -> str | None:
    """Return the writer in the name of a segment; None for a merged one."""
    journal = parse_journal_name(journal_of(segment))
    return None if journal is None else journal.writer


def journal_of(segment: PurePath) -> str:
    """Return the stem of the journal in the name of a segment."""
    return segment.stem.rpartition("-")[0]


def is_replay(writer: str) -> bool:
    """Return whether `writer` is a command that replays."""
    return writer.endswith(REPLAY)


def is_merged(path: Path) -> bool:
    """Return whether a compaction wrote the segment; its row groups are its parts."""
    return path.name.startswith(MERGED)


class JournalName(NamedTuple):
    """The parts of a journal's stem; `start` is the start of its process in microseconds."""

    writer: str
    start: int
    number: int

    def __str__(self) -> str:
        return f"{self.writer}-{self.start}-{self.number:06}"


def parse_journal_name(stem: str) -> JournalName | None:
    """Return the parts of a journal's stem; None when it is none."""
    match = _JOURNAL_STEM.fullmatch(stem)
    return JournalName(match[1], int(match[2]), int(match[3])) if match else None


def lock_path(root: Path, writer: str) -> Path:
    return journal_folder(root) / f"{writer}.lock"


def journals(root: Path, writer: str | None = None) -> list[Path]:
    """Return the journals not yet converted, oldest first; of one writer, or of all.

    Raises:
        OSError: the folder cannot be read.
    """
    found = [
        (name, path)
        for path in listed(journal_folder(root), OPEN)
        if (name := parse_journal_name(path.stem)) and writer in (None, name.writer)
        if path.is_file() and not path.is_symlink()
    ]
    return [path for _, path in sorted(found)]


def converted_journals(root: Path) -> list[Path]:
    """Return the converted journals that an earlier converter did not remove."""
    return listed(journal_folder(root), DONE)


def listed(folder: Path, suffix: str = "") -> list[Path]:
    """Return the paths in `folder` whose names end in `suffix`, sorted; an absent one has none.

    `Path.glob` finds nothing in a folder that it may not read.

    Raises:
        OSError: the folder cannot be read.
    """
    with suppress(FileNotFoundError, NotADirectoryError):
        return sorted(path for path in folder.iterdir() if path.name.endswith(suffix))
    return []


def day_folder(root: Path, day: date) -> Path:
    return root / f"date={day.isoformat()}"


def hour_folder(time: int) -> Path:
    """Return the folder of the rows recorded in the hour of `time`, microseconds UTC."""
    hour = datetime.fromtimestamp(time // HOUR * 3600, tz=UTC)
    return day_folder(Path(), hour.date()) / f"hour={hour:%H}"


def staged_path(segment: Path) -> Path:
    """Return the path of a merged segment between its seal and its renaming.

    From the seal on, its rows count, under either path, and the replaced segments do not.
    """
    return COMPACTING / segment


def seal_folder(day: date) -> Path:
    return day_folder(Path(SEALS), day)


def day_start(day: date) -> int:
    """Return the first microsecond of `day` in UTC."""
    return int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()) * 1_000_000


def day_of(time: int) -> date:
    """Return the UTC date of `time` microseconds; the first or last date for one out of range."""
    seconds = min(max(time // 1_000_000, 0), MAX_TIME // 1_000_000)
    return datetime.fromtimestamp(seconds, tz=UTC).date()


def days(root: Path) -> list[date]:
    """Return the days with a folder in the archive, oldest first."""
    return days_in(path.name for path in listed(root))


def days_in(names: Iterable[str]) -> list[date]:
    """Return the days of the folders among `names`, oldest first."""
    return sorted(filter(None, map(parse_day, names)))


def names_an_archive(names: Iterable[str]) -> bool:
    """Return whether `names`, of the files and folders in a folder, show that a gateway wrote it.

    Results and locks of a night are not a sign: a night in a wrong folder leaves them.
    """
    found = set(names)
    return bool(found & {".journal", SEALS, HEADS, ROUTES, NAMES} or days_in(found))


def parse_day(folder: str) -> date | None:
    """Return the day of the folder `date=YYYY-MM-DD`; None for any other folder."""
    try:
        return date.fromisoformat(match[1]) if (match := _DAY_FOLDER.fullmatch(folder)) else None
    except ValueError:
        return None


def oldest_kept(keep_days: int, today: date) -> date:
    """Return the first of the last `keep_days` whole days before `today`; at least one is kept."""
    return today - timedelta(days=max(keep_days, 1))


def reconciled_folder(root: Path, day: date) -> Path:
    """Return the folder of the nightly results of `day`."""
    return day_folder(root / RECONCILED, day)


def followed_folder(root: Path) -> Path:
    """Return the folder of the results of `reconcile --follow`."""
    return root / RECONCILED / "follow"
