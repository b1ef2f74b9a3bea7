"""Old days leave the archive, with all that belongs to them; never the current one."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Final

from gateway.archive.layout import DIGESTS, PAIRS, oldest_kept, parse_day
from gateway.archive.storage import Store

# Digests first: rows without their digest are still read, a digest without its rows is an alarm.
_PLACES: Final = (Path(DIGESTS), Path(PAIRS), Path())


def forget(store: Store, keep_days: int, today: date) -> list[date]:
    """Remove the days before the last `keep_days` whole ones; which had segments.

    Raises:
        OSError: the archive cannot be reached; what is left is removed the next time.
    """
    oldest = oldest_kept(keep_days, today)
    gone: list[date] = []
    for place in _PLACES:
        for name in store.names(place):
            day = parse_day(name)
            if day is not None and day < oldest:
                store.remove(place / name)
                gone += [] if place.parts else [day]
    return gone
