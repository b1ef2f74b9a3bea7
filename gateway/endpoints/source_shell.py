"""A source over all its connections.

    shell     lives as long as the source: its name, its memory, its continuity
    intake    lives as long as one connection: made by `open`, ended by a loss or by `close`

An intake is never opened again. It stays with the shell after its end until the next `open`: of a
broker that keeps nothing, what had arrived can still be received.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, Protocol

from gateway.endpoints.base import Batch
from gateway.endpoints.continuity import Continuity
from gateway.endpoints.second_reading import SecondReading
from gateway.endpoints.source_memory import SourceMemory
from gateway.endpoints.untold_gap import UntoldGap
from gateway.errors import NotConnectedError

NO_COUNTS: Final[Mapping[str, int]] = MappingProxyType({})


class Intake(Protocol):
    """One connection of a source, from the first subscription to its end. Never opened again."""

    @property
    def address(self) -> str:
        """HOST:PORT of the server; empty where the driver does not tell."""

    @property
    def ended(self) -> bool:
        """Whether nothing more is added: the answer to `end` has come; or `end` does nothing."""

    def receive(self, timeout: float) -> Batch | None:
        """Return what arrived, as `Source.receive` does."""

    def end(self) -> None:
        """Take in only what was sent before, where the broker keeps nothing; else do nothing."""

    def close(self) -> None:
        """Release everything; never raises. From any thread, also twice.

        A settlement has no effect from now on. `receive` raises `not_open` at the end of what can
        still be received.
        """


def not_open(name: str) -> NotConnectedError:
    """Return the error of an endpoint `name` that has no connection."""
    return NotConnectedError(f"{name}: is closed; open it first")


class OpensLater(Intake, Protocol):
    """An intake that can be closed while it opens."""

    def open(self) -> None:
        """Connect and subscribe, once. Raises as `Source.open` does."""


class Opening:
    """Makes intakes and opens them. Thread-safe: one thread connects; any interrupts."""

    def __init__(self, make: Callable[[], OpensLater]) -> None:
        self._make = make
        self._intake: OpensLater | None = None

    def connect(self) -> Intake:
        """Return an intake that is open. Raises as `Source.open` does."""
        intake = self._intake = self._make()
        try:
            intake.open()
        except BaseException:
            intake.close()
            raise
        finally:
            self._intake = None
        return intake

    def interrupt(self) -> None:
        """End a `connect` that still runs."""
        if (intake := self._intake) is not None:
            intake.close()


class SourceShell:
    """A source (`endpoints.base`) whose connections are intakes.

    `connect` returns an open intake, or raises as `Source.open` does; it uses the memory, and sets
    the retention of the continuity. `interrupt` ends a `connect` that still runs, and else does
    nothing. `removes` is that of `endpoints.base.Removes`; `counts` are for metrics, by event.
    `backlog` is that of `endpoints.base.CountsBacklog`.
    Thread-safe: one thread opens and receives; any closes.
    """

    def __init__(  # noqa: PLR0913, PLR0917  # what a kind brings
        self,
        name: str,
        connect: Callable[[], Intake],
        memory: SourceMemory,
        continuity: Continuity,
        removes: Callable[[str], bool],
        counts: Mapping[str, int] = NO_COUNTS,
        interrupt: Callable[[], None] = lambda: None,
        backlog: Callable[[], int | None] = lambda: None,
    ) -> None:
        self.name, self.memory, self.continuity = name, memory, continuity
        self.removes, self.counts = removes, counts
        self._connect, self._interrupt, self._backlog = connect, interrupt, backlog
        self._intake: Intake | None = None
        self._is_open = False
        self._again = SecondReading(memory)
        self._untold = UntoldGap(memory, continuity)

    @property
    def address(self) -> str:
        """HOST:PORT of the server; empty without a connection."""
        return self._intake.address if self._intake is not None and self._is_open else ""

    @property
    def backlog(self) -> int | None:
        """Messages that wait at the broker, or here and are not settled; None if not known."""
        return self._backlog()

    def open(self) -> None:
        self.close()
        self._intake = None
        self._intake = self._connect()
        self._untold.connected()
        self._again = SecondReading(self.memory)
        self._is_open = True

    def receive(self, timeout: float) -> Batch | None:
        if self._intake is None:
            raise not_open(self.name)
        batch = self._intake.receive(timeout)
        self.memory.write_late(quiet=batch is None)
        return self._again.marked(batch)

    def end_intake(self) -> None:
        if self._intake is not None and self._is_open:
            self._intake.end()

    @property
    def intake_ended(self) -> bool:
        return self._intake is None or not self._is_open or self._intake.ended

    def close(self) -> None:
        self._interrupt()
        was_open, self._is_open = self._is_open, False
        if self._intake is not None and was_open:
            self._intake.close()
            self.memory.write_exactly()
