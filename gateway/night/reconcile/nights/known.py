"""All that a night reads before it plans: the chain so far, and the archive as it finds it.

    read_known  ->  Known  ->  plan_night

The plan reads nothing: what it does not find here, a night does not know.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gateway.archive.findings import Finding
from gateway.night.archive.open_archive import OpenArchive
from gateway.night.archive.retention import forgotten_dates
from gateway.night.reconcile.nights.archive_state import ArchiveState, archive_state
from gateway.night.reconcile.nights.chain import Chain, read_chain
from gateway.night.reconcile.nights.marker import forged_markers
from gateway.night.reconcile.nights.witness import newest_stated


@dataclass(frozen=True, slots=True)
class Known:
    """The chain of nights, and the archive after it, at the time `at` of the night.

    `forgotten` has the removed dates with rows that no night judged, by the statement that says so.
    `forged` are the errors about markers of dates. Units: microseconds since 1970-01-01 UTC.
    """

    at: int
    chain: Chain
    state: ArchiveState
    forgotten: Mapping[Path, tuple[str, ...]]
    forged: tuple[Finding, ...]

    @property
    def never_written(self) -> bool:
        """Whether nothing shows that a gateway wrote to the archive, or a night judged it."""
        state = self.state
        return not (self.chain.last or state.there or state.heads or state.named)


def read_known(archive: OpenArchive, expect: str | None, *, at: int, in_flight: int) -> Known:
    """Read what the night at the time `at` plans with; see `read_chain` and `archive_state`.

    Raises:
        ReconcileError: no night of the chain has the digest `expect`.
        OSError: the archive cannot be read.
    """
    storage, key = archive.storage, archive.key
    chain = read_chain(storage, key, expect, stated=newest_stated(storage, key))
    forgotten = forgotten_dates(storage)
    removed = frozenset(day for dates in forgotten.values() for day in dates)
    state = archive_state(archive, chain.newest, removed, at=at, in_flight=in_flight)
    return Known(at, chain, state, forgotten, tuple(forged_markers(storage)))
