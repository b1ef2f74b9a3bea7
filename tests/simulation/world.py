"""One run: brokers, gateways on their disks, and the faults of a plan, until all is drained."""

from __future__ import annotations

import logging
import os
import shutil
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from xxhash import xxh3_128_digest

import gateway.runtime.gateway  # noqa: F401  # its modules must be loaded before they are patched
from gateway.archive import layout
from gateway.archive.journal.rolling import RollingJournal
from gateway.endpoints import registry
from gateway.endpoints.base import Subscription
from gateway.endpoints.settings.base import EndpointSettings
from gateway.errors import GatewayError
from gateway.file_lock import FileLock
from gateway.model.message import DeliveryMode, Headers, Message
from gateway.runtime.gateway import Gateway
from tests.simulation import stand_ins
from tests.simulation.books import (
    ArchiveView,
    Books,
    Finding,
    compare_archive,
    compare_gaps,
    each_row,
    short,
)
from tests.simulation.brokers import Broker, Entry, Flavour, SimulatedSink, SimulatedSource
from tests.simulation.configurations import DEAD_LETTERS, DIALECTS, configuration, hops, name_of
from tests.simulation.disk import (
    SQLITE,
    Disk,
    SimulatedFileLock,
    SimulatedRollingJournal,
    simulated_journals,
)
from tests.simulation.faults import BROKER_FAULTS, FOREVER, HARMLESS, Fault, Plan
from tests.simulation.scheduler import Process, Scheduler
from tests.simulation.striking import strike

START: Final = 1.0  # seconds; the first message, when all sources have a session
DRAIN: Final = 120.0  # seconds after the last fault in which everything must arrive
CHECK: Final = 0.5  # seconds between two looks at the books
SMALL: Final = {
    "MAX_QUEUED_BYTES": 3_000, "MAX_HELD_BYTES": 6_000, "READ_BYTES": 1_500, "MAX_JOINED": 4,
    "SEND_INTERVAL": 0.5, "RECEIVE_TIMEOUT": 0.5, "CHECK_INTERVAL": 0.5, "POLL_INTERVAL": 0.05,
}  # fmt: skip  # limits of the product, scaled down
_FLAVOURS: Final = {
    "mqtt5": {}, "mqtt311": {}, "jms": {"identified": "header"},
    "solace": {"identified": "header"}, "yami4": {"kept": False},
}  # fmt: skip


@dataclass(slots=True)
class Result:
    """The findings of a run, its log, and how often each kind of event occurred."""

    plan: Plan
    findings: list[Finding]
    log: list[str]
    coverage: Counter[str]
    seconds: float  # simulated
    steps: int

    @property
    def rules(self) -> set[str]:
        return {each.rule for each in self.findings}


@dataclass(slots=True)
class RunningGateway:
    """A gateway by name: its disk, and the process that runs it now, if any."""

    name: str
    disk: Disk
    targets: dict[str, list[str]]
    process: Process | None = None
    gateway: Gateway | None = None
    starts: int = 0
    variant: str = ""
    wanted: bool = True  # whether it is started again
    stopping: bool = False
    removed: set[str] = field(default_factory=set)


class World:
    """The world of one plan. Mutable: used by one thread."""

    def __init__(self, plan: Plan, folder: Path) -> None:
        self.plan = plan
        self.scheduler: Scheduler = Scheduler(plan.seed, plan.policy)
        self.log_lines: list[str] = []
        self.coverage: Counter[str] = Counter()
        self.outside = Process("world")
        routes = hops(plan)
        self.books = Books(_reach(routes))
        self.brokers = {
            name: Broker(self.scheduler, name, DIALECTS[system], self.outside, self.log)
            for name, system in plan.brokers.items()
        }
        for broker in self.brokers.values():
            broker.latency = self.latency
            broker.on_accepted = partial(self._accepted, broker)
            broker.on_confirmed = partial(self._confirmed, broker)
            broker.on_lost = self._lost
        self.gateways = {
            name: RunningGateway(name, Disk(folder / name, self.log), targets)
            for name, targets in routes.items()
        }
        for each in self.gateways.values():
            layout.journal_folder(each.disk.archive).mkdir(parents=True)
            each.disk.delay = lambda: self.scheduler.random.random() * plan.flush
        self.kept = {name for name, system in plan.brokers.items() if system != "yami4"}
        self._drained = False
        self.sessions_lost: set[str] = set()  # clients whose broker lost a session that it had
        self.killed_while_connecting: set[str] = set()  # gateways that could not record the answer
        self._lasting: set[tuple[str, str]] = set()  # faults that never end

    # Reports of the brokers.

    def log(self, kind: str, text: str) -> None:
        self.coverage[kind] += 1
        self.log_lines.append(f"{self.scheduler.now:9.4f} {kind:10} {text}")

    def latency(self) -> float:
        return self.scheduler.random.random() * self.plan.latency

    def _accepted(self, broker: Broker, client: str, message: Message) -> None:
        if client and not self._has_receiver(broker):
            self.books.excuse(message.payload, "nobody receives it")
        if client:
            self.log("arrived", f"{short(message.payload)} at {broker.name} from {client}")
            if message.address != DEAD_LETTERS:
                self.books.arrive(broker.name, message, self.scheduler.now)
            if self.books.has_double(message.payload, broker.name):
                self.coverage["double"] += 1
        else:
            self.log("published", f"{short(message.payload)} at {broker.name}")

    def _has_receiver(self, broker: Broker) -> bool:
        """Whether each gateway that receives from `broker` has a session there."""
        receivers = [each for each in self.gateways.values() if broker.name in each.targets]
        clients = {f"{each.name}/{broker.name}" for each in receivers}
        return clients <= broker.sessions.keys()

    def _lost(self, client: str, entry: Entry) -> None:
        self.log("lost", f"{short(entry.message.payload)} by the broker of {client}")
        self.books.excuse(entry.message.payload, "lost by its broker")

    def _confirmed(self, broker: Broker, client: str, entry: Entry) -> None:
        """Check that a settled message is durable: at its targets, or on the disk."""
        payload = self.books.known(entry.message.payload)
        self.log("settled", f"{short(entry.message.payload)} by {client}")
        if payload is None or len(self.books.origins(payload)) > 1:
            return  # of equal messages nobody knows which one this is
        each = self.gateways[client.partition("/")[0]]
        expected = 0
        for target in each.targets[broker.name]:
            if target in self.books.origins(payload):
                continue
            expected += 1
            if target in each.removed:
                continue
            if self.books.arrivals.get((payload, target)):
                continue
            if not self._is_on_disk(each, target, payload):
                text = f"{short(payload)} of {client} is nowhere for {target}"
                self.books.report("settled-too-early", text)
        if expected and self.plan.archive and not each.disk.has_hash(xxh3_128_digest(payload)):
            self.books.report("settled-without-row", f"{short(payload)} of {client}")

    def _is_on_disk(self, each: RunningGateway, target: str, payload: bytes) -> bool:
        for table in ("parcels", "letters"):
            for endpoint, body in each.disk.stored(table):
                if endpoint == target and payload in body:
                    return True
        return self._is_dead(each, target, payload)

    def _is_dead(self, each: RunningGateway, target: str, payload: bytes) -> bool:
        if not self.plan.archive:  # without a spool as well, a rejected message is only counted
            return not self.plan.spool and self._may_be_rejected()
        digest = xxh3_128_digest(payload)
        return any(
            row["leg"] == "dead" and row["hash"] == digest and row["target"] == target
            for rows in each.disk.rows()
            for row in each_row(rows)
        )

    def _may_be_rejected(self) -> bool:
        """Whether a fault may have broken the connections of a message that was sent alone."""
        return any(each.kind in BROKER_FAULTS for each in self.plan.faults)

    # The gateways.

    def start(self, each: RunningGateway) -> None:
        """Start a process; called in the hub."""
        if each.process is not None or not each.wanted:
            return
        each.starts += 1
        process = Process(f"{each.name}.{each.starts}", disk=each.disk)
        each.process, each.stopping = process, False
        self.log("start", process.name)
        self.scheduler.spawn("main", process, partial(self._main, each, process))

    def _main(self, each: RunningGateway, process: Process) -> None:
        wanted = configuration(self.plan, each.name, each.disk.folder, each.variant)
        try:
            gateway = Gateway(wanted)
            gateway.start()
        except GatewayError as error:
            self.log("refused", f"{process.name}: {error}")
            self.scheduler.at(self.scheduler.now, lambda: self._ended(each, process, restart=1.0))
            return
        each.gateway = gateway
        self.log("started", process.name)

    def _ended(self, each: RunningGateway, process: Process, *, restart: float) -> None:
        if each.process is not process:
            return
        self.scheduler.kill(process)
        each.disk.crash(self.scheduler.random.random)
        for broker in self.brokers.values():
            for connection in list(broker.connections.values()):
                if connection.process is process:
                    connection.leave()
        each.process = each.gateway = None
        self.scheduler.at(self.scheduler.now + restart, lambda: self.start(each))

    def kill(self, each: RunningGateway, restart: float) -> None:
        if each.process is not None:
            self.log("kill", each.process.name)
            if any(" connected " in line for line in self.log_lines[-3:]):
                self.killed_while_connecting.add(each.name)
            self._ended(each, each.process, restart=restart)

    def stop(self, each: RunningGateway, restart: float) -> None:
        process, gateway = each.process, each.gateway
        if process is None or gateway is None or each.stopping:
            return
        each.stopping = True
        self.log("stop", process.name)

        def stop() -> None:
            settled = gateway.stop(4.0)
            self.log("stopped", f"{process.name}: {'settled' if settled else 'unsettled'}")
            left = [task.name for task in process.tasks if task.name != "stop"
                    and not task.name.startswith(("up-", "down-"))]  # fmt: skip
            if left:
                self.coverage["threads-left"] += 1
            self.scheduler.at(
                self.scheduler.now, lambda: self._ended(each, process, restart=restart)
            )

        self.scheduler.spawn("stop", process, stop)

    def reload(self, each: RunningGateway, variant: str) -> None:
        process, gateway = each.process, each.gateway
        if process is None or gateway is None or each.stopping:
            return

        def apply(wanted: str) -> None:
            each.variant = wanted
            gateway.reload(configuration(self.plan, each.name, each.disk.folder, wanted))
            self.log("reloaded", f"{process.name} {wanted}")

        if variant == "remove":
            if self.plan.shape != "fan":
                return
            each.removed.add("c")
        self.log("reload", f"{process.name} {variant}")
        self.scheduler.spawn("reload", process, partial(apply, variant))

    # The faults.

    def strike(self, fault: Fault) -> None:
        """Begin a fault; its end is planned as well."""
        if fault.steps:
            self.scheduler.after_steps(fault.steps, partial(strike, self, fault))
        else:
            strike(self, fault)

    def later(self, fault: Fault, heal: Callable[[], None]) -> None:
        """Plan the end of a fault, if it has one."""
        if fault.seconds >= FOREVER:
            self._lasting.add((fault.kind, fault.where))
        else:
            self.scheduler.at(self.scheduler.now + fault.seconds, heal)

    def heal(self) -> None:
        """End every fault that lasts."""
        for broker in self.brokers.values():
            broker.away = ("away", broker.name) in self._lasting
            broker.blocked = broker.retrying = False
            broker.refusing, broker.failing = None, 0
            broker.latency = self.latency
        for each in self.gateways.values():
            each.disk.archive_full = False
            if ("full-spool", each.name) not in self._lasting:
                each.disk.set_spool_full(full=False)
            each.disk.delay = lambda: self.scheduler.random.random() * self.plan.flush

    # The run.

    def publish(self, number: int) -> None:
        publication = self.plan.publications[number]
        broker = self.brokers[publication.broker]
        system = self.plan.brokers[publication.broker]
        self.books.publish(
            publication.broker, publication.key, publication.payload, self.scheduler.now
        )
        if not any(
            session.selects(name_of(system, publication.key))
            for session in broker.sessions.values()
        ):
            self.books.excuse(publication.payload, "no session")
        headers = Headers(mode=DeliveryMode.AT_LEAST_ONCE)
        broker.publish(Message(name_of(system, publication.key), publication.payload, headers))

    def check(self) -> None:
        """Look at the bounds of memory, and at whether all is drained."""
        self._check_bounds()
        self._drained = self.scheduler.now > self.plan.until + START and self._is_drained()
        self.scheduler.at(self.scheduler.now + CHECK, self.check)

    def _check_bounds(self) -> None:
        for each in self.gateways.values():
            if each.gateway is None or not self.plan.small:
                continue
            largest = min(self.plan.batch, 4 * self.plan.window) * 1_500  # bytes of a batch
            for name, lane in list(each.gateway.lanes.items()):
                held = getattr(lane, "held", 0)
                if not 0 <= held <= SMALL["MAX_HELD_BYTES"] + largest:
                    self.books.report("memory", f"{each.name}: {held} bytes in lane {name}")

    def _is_drained(self) -> bool:
        for broker in self.brokers.values():
            for session in broker.sessions.values():
                if session.pending or session.in_flight:
                    return False
        for each in self.gateways.values():
            if each.process is None or each.gateway is None or each.stopping:
                return False
            for endpoint, _ in each.disk.stored("parcels"):
                if endpoint not in each.removed:
                    return False
        return not self._missing()

    def _missing(self) -> list[tuple[bytes, str]]:
        return [
            (payload, target)
            for payload, target in self.books.missing()
            if not any(self._is_finished(each, target, payload) for each in self.gateways.values())
        ]

    def _is_finished(self, each: RunningGateway, target: str, payload: bytes) -> bool:
        """Whether the copy for `target`, or the one it would come from, is a dead letter."""
        if target in each.removed:
            return True
        places = {place for targets in each.targets.values() for place in targets}
        return any(self._is_dead_letter(each, place, payload) for place in places)

    def _is_dead_letter(self, each: RunningGateway, target: str, payload: bytes) -> bool:
        if self.plan.spool and any(
            endpoint == target and payload in body for endpoint, body in each.disk.stored("letters")
        ):
            return True
        return self._is_dead(each, target, payload)

    def run(self) -> Result:
        plan, run = self.plan, self.scheduler
        for each in self.gateways.values():
            run.at(0.0, partial(self.start, each))
        for number, publication in enumerate(plan.publications):
            run.at(publication.at, partial(self.publish, number))
        for fault in plan.faults:
            run.at(fault.at, partial(self.strike, fault))
        end = START + plan.until
        run.at(end, self.heal)
        run.at(CHECK, self.check)
        drained = run.run(lambda: self._drained or bool(self.books.findings), end + DRAIN)
        if not self.books.findings:
            if drained:
                self._finish()
            else:
                self._report_stuck()
        for failure in run.failures:
            self.books.report("thread-died", failure)
        return Result(plan, self.books.findings, self.log_lines, self.coverage, run.now, run.steps)

    def _report_stuck(self) -> None:
        missing = [f"{short(payload)} for {target}" for payload, target in self._missing()]
        sessions = [
            f"{session.client}: {len(session.pending)} pending, {len(session.in_flight)} in flight"
            for broker in self.brokers.values()
            for session in broker.sessions.values()
            if session.pending or session.in_flight
        ]
        spools = [
            f"{each.name}: {len(each.disk.stored('parcels'))} batches in the spool"
            for each in self.gateways.values()
        ]
        text = "; ".join([*missing[:5], *sessions, *spools])
        processes = [each.process for each in self.gateways.values() if each.process is not None]
        stacks = "\n    ".join(self.scheduler.stacks(processes))
        self.books.report("not-drained", f"{text}\n    {stacks}")

    def _finish(self) -> None:
        """Stop every gateway, and compare the archives with the books."""
        run, before = self.scheduler, len(self.log_lines)
        for each in self.gateways.values():
            each.wanted = False
            self.stop(each, 0.0)
        gateways = self.gateways.values()
        if not run.run(lambda: all(each.process is None for each in gateways), run.now + 30.0):
            self._report_stuck()
            return
        settled = not any(" stopped " in line and "unsettled" in line for line in self.log_lines)
        late = any("unsettled" in line for line in self.log_lines[before:])
        if late and not any("slow" in each.kind for each in self.plan.faults):
            self.books.report("unsettled-stop", self.log_lines[-1])
        self._judge(settled=settled)

    def _judge(self, *, settled: bool) -> None:
        """Compare the order, the echoes and the archives with the books.

        `settled` says that every clean stop settled all.
        """
        plan, books = self.plan, self.books
        kinds = {each.kind for each in plan.faults}
        gentle = not plan.heartbeat and kinds <= HARMLESS  # late heartbeats replace connections
        for payload, broker in books.overtaken:
            if not self._may_be_overtaken(payload, broker):
                books.report("order", f"{short(payload)} arrived at {broker} after a newer one")
        calm = settled and not plan.heartbeat and kinds <= HARMLESS | {"stop"}
        calm = calm and (
            plan.archive or "stop" not in kinds
        )  # the archive keeps what is on its way
        if calm or "mqtt311" not in plan.brokers.values():
            for payload, broker in books.echoes():
                books.report("echo", f"{short(payload)} came back to {broker}")
        for each in self.gateways.values() if plan.archive else ():
            rows = [row for found in each.disk.rows() for row in each_row(found)]
            left, removed = each.disk.stored("parcels"), frozenset(each.removed)
            view = ArchiveView(each.name, rows, left, each.targets, removed)
            compare_archive(books, view, gentle=gentle)
            lost = any(map(self._knows_of_loss, self._clients_that_lost(each.name)))
            if lost and each.name not in self.killed_while_connecting:
                compare_gaps(books, view)

    def _clients_that_lost(self, gateway: str) -> list[str]:
        return [each for each in self.sessions_lost if each.partition("/")[0] == gateway]

    def _knows_of_loss(self, client: str) -> bool:
        """Whether the client connected after its session was lost: then it was told."""
        lines = self.log_lines
        lost = max((at for at, line in enumerate(lines) if " lose-sessions " in line), default=0)
        return any(f" connected  {client} to " in line for line in lines[lost:])

    def _may_be_overtaken(self, payload: bytes, target: str) -> bool:
        """Whether it was a dead letter, perhaps of a run that died before it was recorded."""
        plan = self.plan
        kinds = {each.kind for each in plan.faults}
        limited = plan.spool and (plan.spool_seconds or plan.when_full != "slow")
        if "kill" in kinds and (limited or "poison" in kinds):
            return True
        return any(self._is_dead_letter(each, target, payload) for each in self.gateways.values())

    # Replacements.

    def make_source(
        self, settings: EndpointSettings, subscriptions: Sequence[Subscription], *,
        instance: str = "",
    ) -> SimulatedSource:  # fmt: skip
        task = self.scheduler.current
        assert task is not None
        gateway = task.process.name.partition(".")[0]
        system, plan = self.plan.brokers[settings.name], self.plan
        flavour = Flavour(window=plan.window, batch=plan.batch, capacity=plan.capacity,
                          **_FLAVOURS[system])  # type: ignore[arg-type]  # fmt: skip
        client = f"{gateway}/{settings.name}{instance}"
        return SimulatedSource(
            self.brokers[settings.name], settings, subscriptions, flavour, client
        )

    def make_sink(self, settings: EndpointSettings, *, instance: str = "") -> SimulatedSink:
        task = self.scheduler.current
        assert task is not None
        gateway = task.process.name.partition(".")[0]
        client = f"{gateway}/{settings.name}-sink{instance}"
        return SimulatedSink(self.brokers[settings.name], settings, client)


def _reach(routes: dict[str, dict[str, list[str]]]) -> dict[str, list[str]]:
    """The brokers that a message published at each broker must arrive at."""
    edges: dict[str, list[str]] = {}
    for sources in routes.values():
        for source, targets in sources.items():
            edges.setdefault(source, []).extend(targets)
    found: dict[str, list[str]] = {}
    for origin in sorted({*edges, *(t for each in edges.values() for t in each)}):
        seen, todo = [origin], [origin]
        while todo:
            for target in edges.get(todo.pop(0), ()):
                if target not in seen:
                    seen.append(target)
                    todo.append(target)
        found[origin] = seen[1:]
    return found


class _LogWatch(logging.Handler):
    """Reports faults that the product logs and survives, and traces its log."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self._world = world

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        self._world.log("log", f"{record.levelname.lower()}: {text}")
        if record.exc_info and "driver" not in text:
            self._world.books.report("internal-error", f"{text}: {record.exc_info[1]!r}")


def simulate(plan: Plan, *, trace: bool = False) -> Result:
    """Run a plan from an empty world and return what was found; `trace` logs the product's log."""
    memory = "/dev/shm"  # noqa: S108  # a folder in memory, where there is one
    folder = Path(tempfile.mkdtemp(dir=memory if os.access(memory, os.W_OK) else None))
    logger = logging.getLogger("gateway")
    level, propagate = logger.level, logger.propagate
    world = World(plan, folder)
    watch = _LogWatch(world)
    logger.setLevel(logging.INFO if trace else logging.ERROR)
    logger.propagate = False
    logger.addHandler(watch)
    try:
        replaced: dict[int, object] = {
            id(sqlite3): SQLITE,
            id(FileLock): SimulatedFileLock,
            id(RollingJournal): SimulatedRollingJournal,
            id(layout.journals): simulated_journals,
            id(registry.make_source): world.make_source,
            id(registry.make_sink): world.make_sink,
        }
        with stand_ins.installed(world.scheduler, replaced, SMALL if plan.small else {}):
            try:
                return world.run()
            finally:
                for each in world.gateways.values():
                    each.wanted = False
                    if each.process is not None:
                        world.scheduler.kill(each.process)
                        each.disk.crash(lambda: 0.0)
                world.scheduler.kill(world.outside)
    finally:
        logger.removeHandler(watch)
        logger.setLevel(level)
        logger.propagate = propagate
        shutil.rmtree(folder, ignore_errors=True)
