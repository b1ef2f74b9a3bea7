"""The states of a gateway's sources: the last sign of each broker, and the open outage.

    ARCHIVE/_sources/<gateway>.json     the states by endpoint

The gateway writes them while it runs and when it stops (`runtime/record/connection_log.py`). The
reconciliation reads from them the gaps that have not ended.
"""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gateway.archive.gaps import SourceGap
from gateway.archive.layout import SOURCES, listed, safe_name

log = logging.getLogger(__name__)

_OPEN: Final = 1 << 62  # microseconds: after every date


@dataclass(frozen=True, slots=True)
class Outage:
    """A time without a connection, or in dispute with another client.

    Units: microseconds since 1970-01-01 UTC.
    """

    begin: int
    rule: str  # a value of `gateway.archive.gaps.GapRule`
    reason: str


@dataclass(frozen=True, slots=True)
class SourceConnection:
    """The state of one source: the last sign of its broker, and the outage that has not ended.

    `known` is true once the source was connected, `keeps` while its broker keeps messages for it.
    `dropped` is the broker's own count of dropped messages, where the source reads one. `tap` says
    that the source is a tap.
    Units: microseconds.
    """

    heard: int
    known: bool
    outage: Outage | None = None
    keeps: bool = True
    dropped: int | None = None
    tap: bool = False


def states_path(root: Path, gateway: str) -> Path:
    """Return the path of the states of a gateway's sources."""
    return root / SOURCES / f"{safe_name(gateway)}.json"


def read_states(path: Path) -> dict[str, SourceConnection]:
    """Return the states by endpoint; none, with a warning in the log, when the file is damaged.

    Raises:
        OSError: the file cannot be read.
    """
    try:
        entries = json.loads(path.read_bytes())
        return {
            str(name): SourceConnection(
                int(entry["heard"]),
                bool(entry["known"]),
                Outage(**entry["outage"]) if entry["outage"] else None,
                bool(entry["keeps"]),
                entry.get("dropped"),
                entry.get("tap", False) is True,
            )
            for name, entry in entries.items()
        }
    except FileNotFoundError:
        return {}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        log.warning("%s: is damaged: %s; its open gaps are unknown", path, error)
        return {}


def open_gaps(root: Path) -> list[SourceGap]:
    """Return the gaps of all sources but taps that have not ended, without route and pattern.

    The gateway is named as in the file's name (`safe_name`). The folder of an archive that lies
    elsewhere may be out of reach; then there are none.

    Raises:
        OSError: a file cannot be read.
    """
    return [
        SourceGap(path.stem, "", name, "", each.outage.rule, each.outage.reason,
                  each.outage.begin, _OPEN, None)
        for path in listed(root / SOURCES, ".json")
        if not path.name.startswith(".")
        for name, each in read_states(path).items()
        if each.outage is not None and not each.tap
    ]  # fmt: skip
