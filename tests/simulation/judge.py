"""The judgement of a run that is over: order, echoes and archives beside the books."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Any

from gateway.model.message import Payload
from tests.simulation.books import (
    ArchiveView,
    compare_archive,
    compare_gaps,
    compare_holes,
    compare_taps,
    short,
)
from tests.simulation.faults import HARMLESS, KILLS
from tests.simulation.gateways import RunningGateway
from tests.simulation.neighbours import judge_neighbours
from tests.simulation.outcomes import Outcomes
from tests.simulation.run_log import RunLog


class Judge:
    """Reports every contradiction to the books."""

    def __init__(self, outcomes: Outcomes, log: RunLog) -> None:
        self.outcomes, self.log = outcomes, log

    def judge(
        self,
        *,
        settled: bool,
        sessions_lost: Collection[str],
        killed_while_connecting: Collection[str],
        unordered: Collection[Payload] = (),
        holes: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        """Compare the order, the echoes and the archives with the books.

        `settled` says that every clean stop settled all. `sessions_lost` are clients whose broker
        lost a session, and `killed_while_connecting` gateways that could not record the answer.
        `holes` are the removed messages that a gateway must have missed in its streams, and
        `unordered` messages that a full target refused while it accepted later ones.
        """
        plan, books = self.outcomes.plan, self.outcomes.books
        kinds = {each.kind for each in plan.faults}
        # late heartbeats replace connections
        gentle = not (plan.heartbeat or plan.is_pair) and kinds <= HARMLESS
        gentle = gentle and plan.copies is None
        for payload, broker in books.overtaken:
            may_be = self._may_be_overtaken(payload) or payload in unordered
            if not may_be and plan.copies is None and not (plan.thin or plan.on_change):
                books.report("order", f"{short(payload)} arrived at {broker} after a newer one")
        for payload, broker in books.stale():
            books.report("stale", f"an older message came to {broker} after {short(payload)}")
        calm = settled and not plan.heartbeat and kinds <= HARMLESS | {"stop"}
        calm = calm and (plan.archive or "stop" not in kinds)  # it keeps what is on its way
        if plan.copies is None and (calm or "mqtt311" not in plan.brokers.values()):
            for payload, broker in books.echoes():
                books.report("echo", f"{short(payload)} came back to {broker}")
        judge_neighbours(self.outcomes)
        comparable = plan.archive and not plan.loses_rows
        for each in self.outcomes.gateways.values() if comparable else ():
            self._judge_journals(each)
            if each.disk.damaged or any(journal.changed for journal in each.disk.journals):
                continue  # the night's verdict is bad
            rows = self._rows_of(each)
            left, removed = each.disk.stored("batches"), frozenset(each.removed)
            changed, repeats = each.disk.changed, "repeat" in kinds
            view = ArchiveView(each.name, rows, left, each.targets, removed, changed, repeats)
            compare_archive(books, view, gentle=gentle)
            compare_taps(books, view)
            exact = not kinds & {*KILLS, "stop", "reload-source", "delete-consumer"}
            compare_holes(books, view, holes.get(each.name, 0), exact=exact)
            lost = any(
                map(
                    self._knows_of_loss,
                    [client for client in sessions_lost if client.partition("/")[0] == each.name],
                )
            )
            if lost and each.name not in killed_while_connecting:
                compare_gaps(books, view)

    def _rows_of(self, gateway: RunningGateway) -> list[dict[str, Any]]:
        """The rows of all instances of a gateway."""
        instances = self.outcomes.gateways.values()
        return [
            row for each in instances if each.owner == gateway.owner for row in each.disk.rows()
        ]

    def _judge_journals(self, each: RunningGateway) -> None:
        """Check that the archive says which of its journals are damaged, and no others."""
        for journal in each.disk.journals:
            # a bit of the unfinished write at the end costs nothing
            changed = journal.changed is not None and journal.changed < journal.acknowledged
            if changed and not journal.is_damaged():
                text = f"{journal.name}: byte {journal.changed} changed"
                self.outcomes.books.report("change-unseen", text)
            if journal.changed is None and journal.is_damaged():
                self.outcomes.books.report("journal-damaged", str(journal.name))

    def _knows_of_loss(self, client: str) -> bool:
        """Whether the client connected after its session was lost: then it was told."""
        lines = self.log.lines
        lost = max((at for at, line in enumerate(lines) if " lose-sessions " in line), default=0)
        return any(f" connected  {client} to " in line for line in lines[lost:])

    def _may_be_overtaken(self, payload: bytes) -> bool:
        """Whether it was a dead letter on its way, perhaps of a run that died before its row.

        A message that breaks connections becomes one, and one whose row on the disk changed comes
        again from its source.
        """
        plan = self.outcomes.plan
        kinds = {each.kind for each in plan.faults}
        limited = plan.spool and (plan.spool_seconds or plan.when_full != "slow")
        if kinds & KILLS and (limited or {"poison", "driver-fault"} & kinds):
            return True
        if self.outcomes.books.is_damaged(payload):
            return True
        return any(
            self.outcomes.is_dead_letter(each, target, payload)
            for each in self.outcomes.gateways.values()
            for target in plan.brokers
        )

    # Replacements.
