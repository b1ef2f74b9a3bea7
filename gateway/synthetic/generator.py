"""Writes a generated day as a gateway would have: segments, digests, and what was done to them.

The faults are listed in ARCHIVE/_generated/faults.json, to compare a reconciliation with.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa

from gateway.archive.layout import day_folder, safe_name
from gateway.archive.segments.convert import write_rows
from gateway.archive.segments.parquet import sort_rows
from gateway.archive.storage import Here
from gateway.errors import ArchiveError
from gateway.synthetic.faults import Fault, Injected, Ranges, plan
from gateway.synthetic.generated import window_rows
from gateway.synthetic.injection import befallen, start_of, told
from gateway.synthetic.traffic import BATCH, STRETCH, Traffic, Window, windows

MANIFEST: Final = Path("_generated") / "faults.json"
_MINUTE: Final = 60_000_000  # microseconds
_MINUTES: Final = 24 * 60

Say = Callable[[str], None]


def silent(_: str) -> None:
    """For callers that want no progress."""


def generate(  # noqa: PLR0913  # what, how broken, in pieces of what size, and who hears of it
    root: Path,
    traffic: Traffic,
    counts: Mapping[Fault, int],
    *,
    fault_minutes: int = 0,
    segment: int = 100_000,
    say: Say = silent,
) -> list[Injected]:
    """Write the day into `root`; `segment` is how many messages a gateway puts in one.

    With `fault_minutes` all faults fall into that many minutes of the day.

    Raises:
        ArchiveError: the folder has rows of that day, or a fault has no place.
        OSError: the folder cannot be written.
    """
    if any(day_folder(root, traffic.day).glob("hour=*")):
        raise ArchiveError(f"{root}: has rows of {traffic.day} already; name a new folder")
    rng = np.random.default_rng(traffic.seed)
    faults = plan(counts, traffic.messages, _minutes(traffic, fault_minutes, rng), rng)
    injected: list[Injected] = []
    written = 0
    step = max(segment // (STRETCH * BATCH), 1) * STRETCH * BATCH * traffic.gateways
    for number, first in enumerate(range(0, traffic.messages, step)):
        after = min(first + step, traffic.messages)
        here = {at: fault for at, fault in faults.items() if first <= at < after}
        for window in windows(traffic, first, after):
            told_, size = _write(root, traffic, window, number, here)
            injected += told_
            written += size
        say(f"{after:,} of {traffic.messages:,} messages, {written / 1e6:,.0f} MB")
    _list(root, traffic, injected)
    return injected


def _minutes(traffic: Traffic, wanted: int, rng: np.random.Generator) -> Ranges | None:
    """First message of each minute that has faults, and the first after it; None for any."""
    if not wanted:
        return None
    chosen = np.sort(rng.choice(_MINUTES, min(wanted, _MINUTES), replace=False))
    starts = (chosen * _MINUTE + traffic.midnight).tolist()
    return [(traffic.number_at(at), traffic.number_at(at + _MINUTE)) for at in starts]


def _write(
    root: Path, traffic: Traffic, window: Window, number: int, plan_: Mapping[int, Fault]
) -> tuple[list[Injected], int]:
    """Write one window; its faults, and the bytes on disk."""
    if not len(window.number):
        return [], 0
    faults = befallen(traffic, window, plan_)
    table = sort_rows(pa.concat_tables(window_rows(traffic, window, faults)))
    start = start_of(traffic, window.gateway)
    stem = f"{safe_name(traffic.gateway(window.gateway))}-{start}-{number:06}-0000"
    return told(traffic, window, faults), write_rows(Here(root), table, stem, start)


def _list(root: Path, traffic: Traffic, injected: list[Injected]) -> None:
    described = {
        "messages": traffic.messages,
        "date": traffic.day.isoformat(),
        "seed": traffic.seed,
        "routes": traffic.routes,
        "names": traffic.names,
        "gateways": traffic.gateways,
        "observed": traffic.observed,
        "clock_skew": traffic.ahead,
        "faults": [each.as_dict() for each in injected],
    }
    path = root / MANIFEST
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(described, indent=1) + "\n", encoding="utf-8")
