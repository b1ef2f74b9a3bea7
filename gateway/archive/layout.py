"""Where the files of an archive lie and what they are called; it opens none of them.

ARCHIVE/.journal/<gateway>-<start>-<n>.open             rows not yet in a segment
ARCHIVE/.journal/<gateway>-<start>-<n>.done             converted, and about to go
ARCHIVE/.journal/<gateway>-<start>-<n>.damaged          kept for a person to look at
ARCHIVE/date=YYYY-MM-DD/hour=HH/<gateway>-<start>-<n>-<k>.parquet
ARCHIVE/_digests/date=.../hour=.../<segment>            what the rows of the segment add up to
ARCHIVE/_pairs/date=.../hour=.../<segment>              the names they came and went under
ARCHIVE/_names/<gateway>.jsonl                          whole names behind shortened ones
ARCHIVE/_dictionary/                                    the same of all gateways, with their use
ARCHIVE/_reconciled/date=YYYY-MM-DD/                    what the reconciliation found
ARCHIVE/_reconciled/follow/                             the same, as it follows the day
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
_KEPT = 48  # characters of a gateway's name in a file name
_STEM = re.compile(r"(?P<gateway>.+)-(?P<start>\d+)-(?P<number>\d+)")


def safe_name(gateway: str) -> str:
    """`gateway` as part of a file name; two names never become one."""
    safe = _UNSAFE.sub("_", gateway).lstrip(".")[:_KEPT]
    if safe and safe == gateway:
        return safe
    return f"{safe}~{blake2s(gateway.encode(errors='backslashreplace')).hexdigest()[:8]}"


def journal_folder(root: Path) -> Path:
    return root / ".journal"


def journal_path(root: Path, gateway: str, start: int, number: int) -> Path:
    """The journal `number` of the gateway started at `start` microseconds."""
    return journal_folder(root) / f"{safe_name(gateway)}-{start}-{number:06}{OPEN}"


def journals(root: Path, gateway: str | None = None) -> list[Path]:
    """Journals not yet converted, oldest first; of one gateway, or of all."""
    found = [path for path in journal_folder(root).glob(f"*{OPEN}") if _STEM.fullmatch(path.stem)]
    wanted = None if gateway is None else safe_name(gateway)
    return sorted(path for path in found if wanted in (None, _gateway(path)))


def converted_journals(root: Path) -> list[Path]:
    """What a converter that died did not get to remove."""
    return sorted(journal_folder(root).glob(f"*{DONE}"))


def damaged_journals(root: Path) -> list[Path]:
    return sorted(journal_folder(root).glob(f"*{DAMAGED}"))


def _gateway(path: Path) -> str:
    match = _STEM.fullmatch(path.stem)
    return match["gateway"] if match else ""


def started(path: Path) -> int:
    """When the gateway that wrote `path` started, in microseconds; 0 when the name hides it."""
    match = _STEM.match(path.stem)
    return int(match["start"]) if match else 0


def day_folder(root: Path, day: date) -> Path:
    return root / f"date={day.isoformat()}"


def hour_folder(root: Path, time: int) -> Path:
    """The folder of the rows recorded in the hour of `time`, microseconds UTC."""
    hour = datetime.fromtimestamp(time // HOUR * 3600, tz=UTC)
    return day_folder(root, hour.date()) / f"hour={hour:%H}"


def digest_path(root: Path, segment: Path) -> Path:
    """The digest of a segment; written last, so that one without it is not quite finished."""
    return root / DIGESTS / segment.relative_to(root)


def pairs_path(root: Path, segment: Path) -> Path:
    """The name pairs of a segment; absent beside a digest when they were too many to keep."""
    return root / PAIRS / segment.relative_to(root)


def segments(root: Path, day: date, hours: range = range(24)) -> list[Path]:
    """The Parquet files of `day`, by hour and name; what starts with a dot or `_` is none."""
    return [
        path
        for hour in hours
        for path in sorted((day_folder(root, day) / f"hour={hour:02}").glob("*"))
        if not path.name.startswith((".", "_"))
    ]


def days(root: Path) -> list[date]:
    """The days the archive has folders for, oldest first."""
    found = (parse_day(path.name) for path in root.glob("date=*"))
    return sorted(day for day in found if day is not None)


def parse_day(folder: str) -> date | None:
    """The day of the folder `date=YYYY-MM-DD`, or None when it is another folder."""
    try:
        return date.fromisoformat(folder.removeprefix("date=")) if "=" in folder else None
    except ValueError:
        return None


def oldest_kept(keep_days: int, today: date) -> date:
    """The first of the last `keep_days` whole days before `today`; one is always kept."""
    return today - timedelta(days=max(keep_days, 1))


def reconciled_folder(root: Path, day: date) -> Path:
    return root / "_reconciled" / f"date={day.isoformat()}"


def followed_folder(root: Path) -> Path:
    return root / "_reconciled" / "follow"
