"""A lane to a memory broker with a spool, which a test restarts, fills and breaks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from gateway.archive.journal.records import Cell, Rows
from gateway.model.message import Message
from gateway.model.outcome import Outcome, Settlement
from gateway.routing.route import WhenFull
from gateway.runtime.delivery.backlog import SpoolLimits
from gateway.runtime.delivery.dead_letter import DeadLetter
from gateway.runtime.delivery.lane_limits import MAX_HELD_BYTES, LaneLimits
from gateway.runtime.delivery.outbound_batch import PendingRow
from gateway.runtime.delivery.rows import fingerprint
from gateway.runtime.outbound.dead_letters import DeadLetters, from_row
from gateway.runtime.outbound.lane import Lane
from gateway.runtime.outbound.sink_binding import SinkBinding
from gateway.runtime.outbound.spool import Spool
from gateway.runtime.outbound.spool_db import SpoolDatabase
from gateway.runtime.record.batch_recorder import BatchRecorder
from gateway.runtime.record.counters import EndpointState, RouteCounters
from tests.runtime.outbound_batches import batch_of
from tests.runtime.targets import ScriptedSink
from tests.waiting import PATIENCE

BACKOFF = (0.01, 0.02)
LIMITS = SpoolLimits(1 << 30)


class SpoolRig:
    """A lane with a spool that records settlements and rows."""

    def __init__(
        self, folder: Path, limits: SpoolLimits, letters: int, capacity: int, names: Sequence[str]
    ) -> None:
        self.sink = ScriptedSink()
        self.sink.up = False
        self.settled: dict[str, Outcome] = {}  # as the source sees it
        self.outcome = "accepted"  # of the pending rows
        self.rows: list[Rows] = []
        self.counters = RouteCounters()
        self.database = SpoolDatabase(folder)
        self.letters = DeadLetters(self.database, letters)
        ticks = count(1)
        self.recorder = BatchRecorder(
            {"relay": self.counters}, self._archive, self.letters.put, clock=lambda: next(ticks),
            keeps_letters=True,
        )  # fmt: skip
        name, *first = names
        self.spool = Spool(name, self.database, self.recorder, limits, *first)
        binding = SinkBinding(self.sink, "mqtt", frozenset(), LaneLimits(BACKOFF, capacity))
        self.lane = Lane(binding, EndpointState(name, "sink"), self.spool)
        self.lane.start()

    def deliver(self, *names: str, payload: bytes = b"x", when: WhenFull = WhenFull.SLOW) -> None:
        messages = [Message(name, payload) for name in names]

        def done(settlements: Sequence[Settlement], _: int) -> None:
            for name, settled in zip(names, settlements, strict=True):
                assert name not in self.settled, "settled twice"
                self.settled[name] = settled.outcome

        size = sum(len(message.payload) for message in messages)
        pending = _pending(names, payload, self.outcome)
        self.lane.deliver(batch_of(messages, done, pending, size=size, when=when))

    def delivered(self) -> list[str]:
        """The names in delivered rows, in their order."""
        rows = [rows for rows in self.rows if rows.common["leg"] == "delivered"]
        return [str(name) for each in rows for name in each.columns["name"]]

    def spooled(self) -> list[str]:
        """The names in spooled rows."""
        rows = [rows for rows in self.rows if rows.common["leg"] == "spooled"]
        return [str(name) for each in rows for name in each.columns["name"]]

    def attempts(self) -> set[object]:
        return {rows.common["attempt"] for rows in self.rows if rows.common["leg"] == "delivered"}

    def kept_letters(self) -> list[DeadLetter]:
        self.database.flush(10)
        return [
            from_row(row) for row in self.database.rows("SELECT * FROM letters ORDER BY number")
        ]

    def waiting(self) -> int:
        """The rows on disk; their changes have been called back."""
        self.database.flush(10)
        rows = int(str(self.database.rows("SELECT COUNT(*) FROM batches")[0][0]))
        self.database.flush(10)
        return rows

    def close(self) -> None:
        self.lane.stop()
        self.database.close(PATIENCE)

    def _archive(self, rows: Sequence[Rows], durable: Callable[[], None]) -> None:
        self.rows += rows
        durable()


def _pending(
    names: Sequence[str], payload: bytes = b"x", outcome: str = "accepted"
) -> list[PendingRow]:
    common: dict[str, Cell] = {
        "gateway": "g", "route": "relay", "leg": "delivered", "outcome": outcome, "time": 0,
        "endpoint": "target", "system": "mqtt", "target": "target", "attempt": 0,
    }  # fmt: skip
    columns: dict[str, list[Cell]] = {
        "name": list(names),
        "id": [name.encode().ljust(16) for name in names],
    }
    columns["source_name"] = [f"src/{each}" for each in names]
    columns["hash"] = [fingerprint(payload)[1]] * len(names)
    rows = Rows(len(names), common, columns)
    return [PendingRow(tuple(range(len(names))), rows, "source")]


@contextmanager
def spool_rig(
    folder: Path,
    limits: SpoolLimits = LIMITS,
    letters: int = 1 << 20,
    capacity: int = MAX_HELD_BYTES,
    names: Sequence[str] = ("target",),
) -> Iterator[SpoolRig]:
    """`names` of the endpoint: the present one, and the first one where that is another."""
    rig = SpoolRig(folder, limits, letters, capacity, names)
    try:
        yield rig
    finally:
        rig.close()
