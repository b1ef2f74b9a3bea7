"""Writes a synthetic day as segments with digests and pairs, and the list of its faults.

ARCHIVE/_generated/faults.json lists the faults, for comparison with a reconciliation.
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
from gateway.archive.storage import LocalStorage
from gateway.errors import ArchiveError
from gateway.synthetic.faults import Fault, InjectedFault, Ranges, plan
from gateway.synthetic.inject_faults import assign_faults, gateway_start, injected_faults
from gateway.synthetic.traffic import BATCH, LATENCY_BATCHES, Traffic, Window, windows
from gateway.synthetic.window_rows import window_rows

MANIFEST: Final = Path("_generated") / "faults.json"
_MINUTE: Final = 60_000_000  # microseconds
_MINUTES: Final = 24 * 60


def no_progress(_: str) -> None:
    """Ignore the progress of `generate`."""


def generate(  # noqa: PLR0913  # traffic, faults, segment size and progress
    root: Path,
    traffic: Traffic,
    counts: Mapping[Fault, int],
    *,
    fault_minutes: int = 0,
    segment: int = 100_000,
    show_step: Callable[[str], None] = no_progress,
) -> list[InjectedFault]:
    """Write the day into `root`, with `segment` messages of a gateway in each segment.

    With `fault_minutes` all faults lie in that many minutes of the day.

    Raises:
        ArchiveError: the folder has rows of that day, or a fault cannot be placed.
        OSError: the folder cannot be written.
    """
    if any(day_folder(root, traffic.day).glob("hour=*")):
        raise ArchiveError(f"{root}: has rows of {traffic.day} already; name a new folder")
    rng = np.random.default_rng(traffic.seed)
    faults = plan(counts, traffic.messages, _minutes(traffic, fault_minutes, rng), rng)
    injected: list[InjectedFault] = []
    written = 0
    step = max(segment // (LATENCY_BATCHES * BATCH), 1) * LATENCY_BATCHES * BATCH * traffic.gateways
    for number, first in enumerate(range(0, traffic.messages, step)):
        after = min(first + step, traffic.messages)
        here = {at: fault for at, fault in faults.items() if first <= at < after}
        for window in windows(traffic, first, after):
            found, size = _write(root, traffic, window, number, here)
            injected += found
            written += size
        show_step(f"{after:,} of {traffic.messages:,} messages, {written / 1e6:,.0f} MB")
    _write_manifest(root, traffic, injected)
    return injected


def _minutes(traffic: Traffic, wanted: int, rng: np.random.Generator) -> Ranges | None:
    """Return the message range of each minute with faults; None when any minute may have some."""
    if not wanted:
        return None
    chosen = np.sort(rng.choice(_MINUTES, min(wanted, _MINUTES), replace=False))
    starts = (chosen * _MINUTE + traffic.midnight).tolist()
    return [(traffic.number_at(at), traffic.number_at(at + _MINUTE)) for at in starts]


def _write(
    root: Path, traffic: Traffic, window: Window, number: int, planned: Mapping[int, Fault]
) -> tuple[list[InjectedFault], int]:
    """Write one window; return its faults, and the bytes on disk."""
    if not len(window.number):
        return [], 0
    faults = assign_faults(traffic, window, planned)
    table = sort_rows(pa.concat_tables(window_rows(traffic, window, faults)))
    start = gateway_start(traffic, window.gateway)
    stem = f"{safe_name(traffic.gateway(window.gateway))}-{start}-{number:06}-0000"
    size = write_rows(LocalStorage(root), table, stem, start)
    return injected_faults(traffic, window, faults), size


def _write_manifest(root: Path, traffic: Traffic, injected: list[InjectedFault]) -> None:
    content = {
        "messages": traffic.messages,
        "date": traffic.day.isoformat(),
        "seed": traffic.seed,
        "routes": traffic.routes,
        "names": traffic.names,
        "gateways": traffic.gateways,
        "observed": traffic.observed,
        "clock_skew": traffic.clock_skew,
        "faults": [each.as_dict() for each in injected],
    }
    path = root / MANIFEST
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
