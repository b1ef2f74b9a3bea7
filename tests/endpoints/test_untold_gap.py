"""A gap that the broker says once is in a row of a later run where this one ends before its row."""

from __future__ import annotations

from pathlib import Path

from gateway.endpoints.base import Batch
from gateway.endpoints.continuity import Continuity, Retention
from gateway.endpoints.source_memory import SourceMemory
from gateway.endpoints.source_shell import SourceShell
from gateway.runtime.inbound.source_memories import MemoryFile, SourceMemories
from tests.memories import ROLE


class QuietIntake:
    """A connection without messages."""

    address, ended = "", True

    def receive(self, timeout: float) -> Batch | None:
        del timeout
        return None

    def end(self) -> None:
        """Nothing is taken in."""

    def close(self) -> None:
        """Nothing is held."""


class Broker:
    """A broker that has no session of its source until a connection makes it. Mutable."""

    keeps, has_session = True, False

    def run(self, file: Path) -> SourceShell:
        """Begin a run of the gateway, whose source connects once."""
        memory, continuity = SourceMemory(), Continuity(Retention.KEPT)
        memory.keep_in(SourceMemories(MemoryFile(file)), ROLE)

        def connect() -> QuietIntake:
            known, self.has_session = self.has_session, self.keeps
            new = Retention.NEW if self.keeps else Retention.NOTHING
            continuity.retention = Retention.KEPT if known else new
            return QuietIntake()

        source = SourceShell("here", connect, memory, continuity, lambda _: False)
        source.open()
        return source


def test_a_gap_without_a_row_is_said_again_by_the_next_run(tmp_path: Path) -> None:
    broker = Broker()
    assert broker.run(tmp_path / "m").continuity.retention is Retention.NEW

    assert broker.run(tmp_path / "m").continuity.retention is Retention.NEW


def test_a_gap_with_a_row_is_said_once(tmp_path: Path) -> None:
    broker = Broker()
    broker.run(tmp_path / "m").continuity.on_told()

    assert broker.run(tmp_path / "m").continuity.retention is Retention.KEPT


def test_a_run_says_a_gap_at_one_connection(tmp_path: Path) -> None:
    """Its recorder has the gap from then on; the disk may be slow."""
    source = Broker().run(tmp_path / "m")

    source.open()

    assert source.continuity.retention is Retention.KEPT


def test_a_broker_that_keeps_nothing_has_no_session_to_lose(tmp_path: Path) -> None:
    broker = Broker()
    broker.run(tmp_path / "m")
    broker.keeps = broker.has_session = False

    assert broker.run(tmp_path / "m").continuity.retention is Retention.NOTHING
