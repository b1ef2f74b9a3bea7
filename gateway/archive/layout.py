"""Paths and names of the files of an archive.

ARCHIVE/.journal/<gateway>-<start>-<n>.open             rows not yet in a segment
ARCHIVE/.journal/<gateway>-<start>-<n>.done             converted, being removed
ARCHIVE/.journal/<gateway>-<start>-<n>.damaged          kept for inspection
ARCHIVE/date=YYYY-MM-DD/hour=HH/<gateway>-<start>-<n>-<k>.parquet   segments
ARCHIVE/_digests/date=.../hour=.../<segment>            sums over the rows of the segment
ARCHIVE/_pairs/date=.../hour=.../<segment>              source and target names of its deliveries
ARCHIVE/_names/<gateway>.jsonl                          whole names behind shortened ones
ARCHIVE/_dictionary/                                    the shortened names of all gateways
ARCHIVE/_reconciled/date=YYYY-MM-DD/                    results of the nightly reconciliation
ARCHIVE/_reconciled/follow/                             results of `reconcile --follow`
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from hashlib import blake2s
from pathlib import Path
from typing import Final

OPEN: Final = ".open"
DONE: Final = ".done"
DAMAGED: Final = ".damaged"
DIGESTS: Final = "_digests"
PAIRS: Final = "_pairs"
NAMES: Final = "_names"
DICTIONARY: Final = "_dictionary"
HOUR: Final = 3_600_000_000  # microseconds

_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]+")
_MAX_NAME = 48  # characters of a gateway's name in a file name
_JOURNAL_STEM = re.compile(r"(?P<gateway>.+)-(?P<start>\d+)-(?P<number>\d+)")
_DAY_FOLDER = re.compile(r"date=(\d{4}-\d{2}-\d{2})")


def safe_name(gateway: str) -> str:
    """Return `gateway` as part of a file name; different gateways get different names."""
    safe = _UNSAFE.sub("_", gateway).lstrip(".")[:_MAX_NAME]
    if safe and safe == gateway:
        return safe
    return f"{safe}~{blake2s(gateway.encode(errors='backslashreplace')).hexdigest()[:8]}"


def journal_folder(root: Path) -> Path:
    return root / ".journal"


def journal_path(root: Path, gateway: str, start: int, number: int) -> Path:
    """Return the path of journal `number` of the gateway started at `start` microseconds."""
    return journal_folder(root) / f"{safe_name(gateway)}-{start}-{number:06}{OPEN}"


def journals(root: Path, gateway: str | None = None) -> list[Path]:
    """Return the journals not yet converted, oldest first; of one gateway, or of all."""
    wanted = None if gateway is None else safe_name(gateway)
    return sorted(
        path
        for path in journal_folder(root).glob(f"*{OPEN}")
        if (stem := _JOURNAL_STEM.fullmatch(path.stem)) and wanted in (None, stem["gateway"])
    )


def converted_journals(root: Path) -> list[Path]:
    """Return the converted journals that an earlier converter did not remove."""
    return sorted(journal_folder(root).glob(f"*{DONE}"))


def damaged_journals(root: Path) -> list[Path]:
    return sorted(journal_folder(root).glob(f"*{DAMAGED}"))


def gateway_start(path: Path) -> int:
    """Return the start of the gateway that wrote `path`, in microseconds; 0 when unknown."""
    match = _JOURNAL_STEM.match(path.stem)
    return int(match["start"]) if match else 0


def day_folder(root: Path, day: date) -> Path:
    return root / f"date={day.isoformat()}"


def hour_folder(root: Path, time: int) -> Path:
    """Return the folder of the rows recorded in the hour of `time`, microseconds UTC."""
    hour = datetime.fromtimestamp(time // HOUR * 3600, tz=UTC)
    return day_folder(root, hour.date()) / f"hour={hour:%H}"


def digest_path(root: Path, segment: Path) -> Path:
    """Return the path of a segment's digest, which is written after the segment and its pairs."""
    return root / DIGESTS / segment.relative_to(root)


def pairs_path(root: Path, segment: Path) -> Path:
    """Return the path of a segment's name pairs, which are not kept when they are too many."""
    return root / PAIRS / segment.relative_to(root)


def segments(root: Path, day: date, hours: range = range(24)) -> list[Path]:
    """Return the segments of `day`, by hour and name; names with a leading dot or `_` are none."""
    return [
        path
        for hour in hours
        for path in sorted((day_folder(root, day) / f"hour={hour:02}").glob("*"))
        if not path.name.startswith((".", "_"))
    ]


def days(root: Path) -> list[date]:
    """Return the days with a folder in the archive, oldest first."""
    found = (parse_day(path.name) for path in root.glob("date=*"))
    return sorted(day for day in found if day is not None)


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
    return root / "_reconciled" / f"date={day.isoformat()}"


def followed_folder(root: Path) -> Path:
    """Return the folder of the results of `reconcile --follow`."""
    return root / "_reconciled" / "follow"
