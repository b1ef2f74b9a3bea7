"""The lease of a simulated pair: one record, and a way to it that may be slow or cut."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final, TypeVar

from gateway.lease.lease import NO_RECORD, LeaseError, Record
from tests.simulation.scheduler import Scheduler

T = TypeVar("T")

PATIENCE: Final = 0.5  # seconds until a call of a store that is away fails


class SharedRecord:
    """The record in the store, and the instances that do not reach it. Mutable."""

    def __init__(self) -> None:
        self.record = NO_RECORD
        self.cut_off: set[str] = set()
        self.renewals = 0
        self.memory: str | None = None

    def change(self, **facts: object) -> Record:
        self.renewals += 1
        self.record = replace(self.record, renewal=str(self.renewals), **facts)  # type: ignore[arg-type]
        return self.record


class SimulatedLeaseStore:
    """The store as one instance reaches it: each call takes time before and after its moment."""

    look_every = 0.2

    def __init__(self, shared: SharedRecord, run: Scheduler, latency: Callable[[], float]) -> None:
        self._shared, self._run, self._latency = shared, run, latency

    def look(self, instance: str = "") -> Record:
        return self._call(instance, lambda: self._shared.record)

    def take(self, seen: Record, instance: str) -> Record | None:
        def take() -> Record | None:
            if self._shared.record != seen:
                return None
            number = self._shared.record.number + 1
            return self._shared.change(number=number, holder=instance, given=False)

        return self._call(instance, take)

    def renew(self, number: int, instance: str) -> Record:
        return self._call(instance, lambda: self._if_last(number, given=False))

    def give(self, number: int, instance: str) -> None:
        self._call(instance, lambda: self._if_last(number, given=True))

    def want(self, number: int) -> None:
        raise NotImplementedError

    def read_memory(self) -> str | None:
        return self._call("", lambda: self._shared.memory)

    def write_memory(self, number: int, instance: str, text: str) -> None:
        def write() -> None:
            if self._shared.record.number == number:
                self._shared.memory = text

        self._call(instance, write)

    def _if_last(self, number: int, *, given: bool) -> Record:
        shared = self._shared
        return shared.change(given=given) if shared.record.number == number else shared.record

    def _call(self, instance: str, work: Callable[[], T]) -> T:
        self._run.sleep(self._latency())
        if instance in self._shared.cut_off:
            self._run.sleep(PATIENCE)
            raise LeaseError("the store is away")
        found = work()
        self._run.sleep(self._latency())
        return found
