"""The archive of simulated runs: the product converts it, and its night judges it.

The gateways of all runs have names of their own, so that one night compares many runs with the
books of their brokers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from gateway.archive.findings import Weight
from gateway.archive.heads import WriterHead, write_head
from gateway.errors import ArchiveError
from gateway.night.archive.segments.convert import convert
from gateway.night.reconcile.report.report import Report
from gateway.night.reconcile.report.rows import Row, count
from tests.simulation.books import Finding
from tests.simulation.faults import make_plan
from tests.simulation.gateways import RunningGateway
from tests.simulation.scheduler import START
from tests.simulation.simulate import simulate
from tests.simulation.world import World

DAY: Final = datetime.fromtimestamp(START / 1e6, UTC).date()
LATER: Final = START + 30 * 86_400_000_000  # microseconds; no copy of `DAY` is in the spool then
_ARRIVED: Final = ("delivered", "delivered late", "out of order", "duplicated")
_DEAD: Final = ("refused", "dead-lettered")
_FALSE: Final = ("altered", "lost in target", "recovered")


@dataclass(slots=True)
class ArchivedRun:
    """The truth about one gateway of a run, as its targets and its disk know it.

    Units: copies, a message for one target. Mutable: `SimulatedNight` fills it.
    """

    arrived: int = 0  # without copies in the spool, and those lost before they were settled
    arrivals: int = 0  # a copy may arrive more than once
    unrecorded: int = 0  # at most: arrivals that a killed gateway recorded nowhere
    lost: int = 0  # by a changed bit of the spool
    left: int = 0  # batches in the spool, of a target that a reload removed
    lost_rows: bool = False  # of the journals
    changed_spool: bool = False
    stays_down: bool = False  # because the file of a spool is damaged: nothing is drained
    has_heartbeats: bool = False  # which the books do not count
    session_lost: bool = False


@dataclass(slots=True)
class SimulatedNight:
    """The archive of the runs of many seeds, and their findings by seed.

    Mutable: `add` fills it.
    """

    root: Path
    runs: dict[str, ArchivedRun] = field(default_factory=dict)  # by gateway
    findings: dict[int, list[Finding]] = field(default_factory=dict)

    def add(self, seeds: Iterable[int]) -> None:
        """Simulate the seeds, and convert the journals that their gateways left."""
        for seed in seeds:
            plan = replace(make_plan(seed), prefix=f"s{seed}-")
            if plan.archive and (found := simulate(plan, at_end=self._archive).findings):
                self.findings[seed] = found

    def _archive(self, world: World) -> None:
        for each in world.gateways.values():
            _write_head(self.root, each)
            for journal in each.disk.journals:
                with suppress(ArchiveError):  # its first bytes changed: it is set aside
                    convert(self.root, journal.write(self.root))
            self.runs[world.plan.prefix + each.name] = _truth(world, each)


def _write_head(root: Path, each: RunningGateway) -> None:
    """Write the head that names the last journal of `each`; the converter notes how it ended."""
    if each.disk.journals:
        last = each.disk.journals[-1].name
        write_head(root, WriterHead(last.writer, last.writer, START, open=str(last)))


def _truth(world: World, each: RunningGateway) -> ArchivedRun:
    """The books of the brokers that `each` sends to; no other gateway of the plan does."""
    books, run = world.books, ArchivedRun()
    targets = {place for places in each.targets.values() for place in places}
    left = each.disk.stored("batches")  # perhaps with copies whose answers were lost
    for (payload, broker), times in books.arrivals.items():
        if broker in targets and times:
            is_left = any(place == broker and payload in body for place, body in left)
            run.arrived += payload not in books.excused and not is_left
            run.arrivals += len(times)
            run.unrecorded += len(times) * (payload in books.excused)
            run.lost -= books.is_damaged(payload)
    run.lost += sum(map(books.is_damaged, books.keys)) * len(targets)
    run.left = len(left)
    run.changed_spool, run.stays_down = each.disk.changed, world.has_damaged_spool()
    run.has_heartbeats = world.plan.heartbeat
    run.lost_rows = any(
        len(journal.data) < journal.acknowledged  # since a power cut
        or (journal.changed is not None and journal.changed < journal.acknowledged)
        for journal in each.disk.journals
    )
    run.session_lost = any(client.partition("/")[0] == each.name for client in world.sessions_lost)
    return run


def contradictions(night: SimulatedNight, report: Report) -> Iterator[str]:
    """Yield each gateway whose rows in the report contradict its books."""
    rows = {str(row["gateway"]): row for row in report.gateways}
    errors = "\n".join(str(each) for each in report.findings if each.weight is Weight.ERROR)
    for name, run in night.runs.items():
        row, is_bad = rows.get(name, {}), f"{name}-" in errors
        wrong = [*_wrong_counts(run, row)]
        if run.lost_rows is not is_bad and not (run.stays_down and is_bad):
            wrong = [f"its journals are {'called' if is_bad else 'not called'} damaged"]
        elif run.lost_rows:
            wrong = []  # its counts may be wrong, and the finding says so
        if wrong:
            counts = {key: value for key, value in row.items() if value}
            yield f"{name}: {'; '.join(wrong)}: {run}: {counts}"


def _wrong_counts(run: ArchivedRun, row: Row) -> Iterator[str]:
    def total(*columns: str) -> int:
        return sum(count(row, column) for column in columns)

    arrived, dead = total(*_ARRIVED), total(*_DEAD)  # a dead letter may have arrived unanswered
    missing = total("missing")
    if arrived > run.arrivals and not run.has_heartbeats:
        yield f"{arrived} arrived"
    if run.changed_spool:
        if missing + dead < run.lost:
            yield f"{missing + dead} lost"
    elif arrived + dead < run.arrived:
        yield f"{arrived} arrived"
    elif total("unexpected") > run.unrecorded or total(*_FALSE) or (missing and not run.left):
        yield "a message is lost or false"
    elif total("duplicated") > total("marked"):
        yield "a double is not marked"
