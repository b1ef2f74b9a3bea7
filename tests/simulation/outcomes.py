"""The fate of a message, as the brokers, the disks and the archives of a run show it."""

from __future__ import annotations

from collections.abc import Mapping

from xxhash import xxh3_128_digest

from tests.simulation.books import Books
from tests.simulation.faults import BROKER_FAULTS
from tests.simulation.gateways import RunningGateway
from tests.simulation.plan import Plan


class Outcomes:
    """Looks for the copies of a payload."""

    def __init__(self, plan: Plan, books: Books, gateways: Mapping[str, RunningGateway]) -> None:
        self.plan, self.books, self.gateways = plan, books, gateways

    def missing(self) -> list[tuple[bytes, str]]:
        """The copies of which no broker, disk or archive knows what became of them."""
        is_finished = (
            self._is_dead_or_cut if self.plan.applications else self._is_finished_somewhere
        )
        return [
            (payload, target)
            for payload, target, count in self.books.missing()
            if not is_finished(target, payload, count)
        ]

    def _is_dead_or_cut(self, target: str, payload: bytes, count: int) -> bool:
        """Whether rows say it of `count` copies: applications publish one message several times."""
        digest = xxh3_128_digest(payload)
        rows = [row for each in self.gateways.values() for row in each.disk.rows()
                if row["hash"] == digest]  # fmt: skip
        found = {(row["id"], row["target"]) for row in rows if row["leg"] == "dead"}
        if payload in self.books.forged:
            found |= {(row["id"], row["target"]) for row in rows
                      if row["leg"] == "cut" and row["target"] == target}  # fmt: skip
        return len(found) >= count

    def _is_finished_somewhere(self, target: str, payload: bytes, _count: int) -> bool:
        return any(self._is_finished(each, target, payload) for each in self.gateways.values())

    def _is_finished(self, each: RunningGateway, target: str, payload: bytes) -> bool:
        """Whether the copy for `target`, or the one it would come from, is a dead letter."""
        if target in each.removed:
            return True
        places = {place for targets in each.targets.values() for place in targets}
        return any(self.is_dead_letter(each, place, payload) for place in places)

    def is_dead_letter(self, each: RunningGateway, target: str, payload: bytes) -> bool:
        if self.plan.spool and any(
            endpoint == target and payload in body for endpoint, body in each.disk.stored("letters")
        ):
            return True
        return self._is_dead(each, target, payload)

    def is_on_disk(self, each: RunningGateway, target: str, payload: bytes) -> bool:
        for table in ("batches", "letters"):
            for endpoint, body in each.disk.stored(table):
                if endpoint == target and payload in body:
                    return True
        return self._is_dead(each, target, payload)

    def _is_dead(self, each: RunningGateway, target: str, payload: bytes) -> bool:
        digest = xxh3_128_digest(payload)
        if self.plan.archive and any(
            row["leg"] == "dead" and row["hash"] == digest and row["target"] == target
            for row in each.disk.rows()
        ):
            return True
        # without a spool, a rejected message has its row, or is only counted
        is_counted = not self.plan.spool and (not self.plan.archive or self.plan.loses_rows)
        return is_counted and self._may_be_rejected()

    def _may_be_rejected(self) -> bool:
        """Whether a fault may have made a message break connections alone, or left it no queue."""
        return any(each.kind in {*BROKER_FAULTS, "unbind"} for each in self.plan.faults)

    # The gateways.
