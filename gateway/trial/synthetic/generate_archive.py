"""Writes a synthetic day as sealed segments, as gateways would, and the list of its faults."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gateway.archive.layout import JournalName, day_folder, writer_name
from gateway.archive.signed_json import Previous
from gateway.archive.storage import LocalStorage
from gateway.errors import ArchiveError
from gateway.night.archive.seals.seal import End
from gateway.night.archive.segments.tables import SCHEMA, sort_rows
from gateway.trial.synthetic.fault_manifest import manifest_rows, write_manifest
from gateway.trial.synthetic.faults import Fault, Ranges, plan
from gateway.trial.synthetic.inject_faults import (
    FaultAssignment,
    assign_faults,
    gateway_start,
)
from gateway.trial.synthetic.sealed_rows import write_sealed
from gateway.trial.synthetic.traffic import BATCH, LATENCY_BATCHES, Traffic, Window, windows
from gateway.trial.synthetic.window_rows import window_rows

_MINUTE: Final = 60_000_000  # microseconds
_DAY: Final = 24 * 60 * _MINUTE
_MINUTES: Final = 24 * 60


def generate(  # noqa: PLR0913  # traffic, faults, segment size and progress
    root: Path,
    traffic: Traffic,
    counts: Mapping[Fault, int],
    *,
    fault_minutes: int = 0,
    segment: int = 100_000,
    key: bytes | None = None,
    show_step: Callable[[str, float], object] = lambda _text, _share: None,
) -> list[dict[str, str]]:
    """Write the day into `root`, with `segment` messages of a gateway in each journal.

    With `fault_minutes` all faults lie in that many minutes of the day. The chain of each gateway
    covers the day, and ends with a stop; `key` signs its seals. `show_step` gets the share
    that is written. Returns the faults as the manifest lists them.

    Raises:
        ArchiveError: the folder has rows of that day, or a fault cannot be placed.
        OSError: the folder cannot be written.
    """
    if any(day_folder(root, traffic.day).glob("hour=*")):
        raise ArchiveError(f"{root}: has rows of {traffic.day} already; name a new folder")
    rng = np.random.default_rng(traffic.seed)
    faults = plan(counts, traffic.messages, _minutes(traffic, fault_minutes, rng), rng)
    injected: list[dict[str, str]] = []
    chains = [_Chain(root, traffic, gateway, key) for gateway in range(traffic.gateways)]
    step = max(segment // (LATENCY_BATCHES * BATCH), 1) * LATENCY_BATCHES * BATCH * traffic.gateways
    for first in range(0, traffic.messages, step):
        after = min(first + step, traffic.messages)
        here = {at: fault for at, fault in faults.items() if first <= at < after}
        for window in windows(traffic, first, after):
            assigned = assign_faults(traffic, window, here)
            chains[window.gateway].write(window, assigned)
            injected += manifest_rows(traffic, window, assigned)
        show_step(f"generating {traffic.messages:,} messages", after / traffic.messages)
    for chain in chains:
        chain.stop()
    write_manifest(root, traffic, injected)
    return injected


def _minutes(traffic: Traffic, wanted: int, rng: np.random.Generator) -> Ranges | None:
    """Return the message range of each minute with faults; None when any minute may have some."""
    if not wanted:
        return None
    chosen = np.sort(rng.choice(_MINUTES, min(wanted, _MINUTES), replace=False))
    starts = (chosen * _MINUTE + traffic.midnight).tolist()
    return [(traffic.number_at(at), traffic.number_at(at + _MINUTE)) for at in starts]


class _Chain:
    """The journals of one gateway, each sealed with the one before.

    Mutable: owned by `generate`.
    """

    def __init__(self, root: Path, traffic: Traffic, gateway: int, key: bytes | None) -> None:
        self._storage, self._traffic, self._key = LocalStorage(root), traffic, key
        self._name = traffic.gateway(gateway)
        self._start = self._closed = gateway_start(traffic, gateway)
        self._previous: Previous | None = None
        self._number = 0

    def write(self, window: Window, faults: FaultAssignment) -> None:
        """Write a journal with the rows of `window`."""
        if not len(window.number):
            return
        rows = sort_rows(pa.concat_tables(window_rows(self._traffic, window, faults)))
        self._seal(rows, int(pc.max(rows["time"].cast(pa.int64())).as_py()), End.CLOSED)

    def stop(self) -> None:
        """Write the last journal, which has no rows and is closed when the day has ended."""
        self._seal(SCHEMA.empty_table(), self._traffic.midnight + _DAY, End.STOPPED)

    def _seal(self, rows: pa.Table, closed: int, end: End) -> None:
        opened, self._closed = self._closed, max(closed, self._closed)
        name = JournalName(writer_name(self._name), self._start, self._number)
        seal = write_sealed(
            self._storage,
            str(name),
            rows,
            gateway=self._name,
            previous=self._previous,
            opened=opened,
            closed=self._closed,
            end=end,
            key=self._key,
        )
        self._previous, self._number = seal.link, self._number + 1
