"""One run: brokers, gateways on their disks, and the faults of a plan, until all is drained."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from xxhash import xxh3_128_digest

import gateway.runtime.gateway  # noqa: F401  # its modules must be loaded before they are patched
from gateway.archive import layout
from gateway.endpoints.base import Sink, Subscription
from gateway.endpoints.settings.base import EndpointSettings
from gateway.endpoints.settings.mqtt import MqttSettings
from gateway.model.message import DeliveryMode, Headers, Message
from tests.simulation import stand_ins
from tests.simulation.applications import Applications
from tests.simulation.books import Books, short
from tests.simulation.brokers import Broker
from tests.simulation.configurations import (
    DEAD_LETTERS,
    DEAD_QUEUE,
    DIALECTS,
    first_level,
    hops,
    key_of,
    name_of,
    place_of,
)
from tests.simulation.connections import Connection
from tests.simulation.disk import Disk
from tests.simulation.endpoints import Flavour, HoldersSink, SimulatedSink, SimulatedSource
from tests.simulation.exactly_once import ExactlyOnceSource, PacketSink
from tests.simulation.faults import KILLS
from tests.simulation.gateways import STOP_SECONDS, Processes, RunningGateway
from tests.simulation.judge import Judge
from tests.simulation.kafka import KafkaSource
from tests.simulation.outcomes import Outcomes
from tests.simulation.own_sinks import SINKS
from tests.simulation.plan import FOREVER, Fault, Plan
from tests.simulation.row_order import RowOrder
from tests.simulation.run_log import RunLog
from tests.simulation.scheduler import Process, Scheduler
from tests.simulation.semantics import PLAIN, SEMANTICS
from tests.simulation.sessions import Entry, is_tap
from tests.simulation.striking import strike

START: Final = 1.0  # seconds; the first message, when all sources have a session
DRAIN: Final = 120.0  # seconds after the last fault in which everything must arrive
STOP_MARGIN: Final = 1.0  # seconds that a stop may take longer than it was given
CHECK: Final = 0.5  # seconds between two looks at the books
MOST_COPIES: Final = 60  # of a message at a broker, and once more for each end of a process
SMALL: Final = {
    "MAX_HELD_BYTES": 6_000, "READ_BYTES": 1_500, "MAX_JOINED": 4,
    "SEND_INTERVAL": 0.5, "RECEIVE_TIMEOUT": 0.5, "CHECK_INTERVAL": 0.5, "POLL_INTERVAL": 0.05,
    "RESERVE_BYTES": 49_152,
    "MAX_COMMIT_BYTES": 2_500, "MAX_PART_BYTES": 2_500,
}  # fmt: skip  # limits of the product, scaled down
_WITH_IDS: Final = {"identified": "header"}
_FLAVOURS: Final = {
    "mqtt5": {}, "mqtt311": {}, "jms": _WITH_IDS, "solace": _WITH_IDS, "yami4": {"kept": False},
    "nats": _WITH_IDS, "rabbitmq": {}, "amqp": {}, "kafka": _WITH_IDS,
}  # fmt: skip


def limits(plan: Plan) -> dict[str, object]:
    """The limits of the product in a run of the plan."""
    return {**SMALL, "MAX_QUEUED_BYTES": plan.queued} if plan.small else {}


class World:
    """The world of one plan. Mutable: used by one thread."""

    def __init__(self, plan: Plan, folder: Path) -> None:
        self.plan = plan
        self.scheduler: Scheduler = Scheduler(plan.seed, plan.policy)
        self.log = RunLog(self.scheduler)
        self.outside = Process("world")
        routes = hops(plan)
        self.books = Books(_reach(plan, routes), thins=bool(plan.thin), on_change=plan.on_change)
        self.applications = Applications(self)
        self.brokers = {
            name: Broker(self.scheduler, name, DIALECTS[system], self.outside, self.log,
                         SEMANTICS.get(system, PLAIN))
            for name, system in plan.brokers.items()
        }  # fmt: skip
        for broker in self.brokers.values():
            broker.latency = self.latency
            broker.on_accepted = partial(self._accepted, broker)
            broker.on_confirmed = partial(self._confirmed, broker)
            broker.on_repeated = self._repeated
            broker.on_lost = self._lost
            broker.on_malformed = partial(self.books.report, "malformed")
        self.gateways = {
            name: RunningGateway(name, Disk(folder / name, self.log), targets)
            for name, targets in routes.items()
        }
        for each in self.gateways.values():
            layout.journal_folder(each.disk.archive).mkdir(parents=True)
            each.disk.small.room = plan.disk
            each.disk.delay = lambda: self.scheduler.random.random() * plan.flush
            order = RowOrder(each.disk, self.books.report, keeps_letters=plan.spool)
            each.disk.on_rows = order.check
        self.processes: Processes = Processes(plan, self.scheduler, self.brokers, self.log)
        self.outcomes = Outcomes(plan, self.books, self.gateways)
        self.kept = {name for name, system in plan.brokers.items() if system != "yami4"}
        self._drained = self._finishing = False
        self.sessions_lost: set[str] = set()  # clients whose broker lost a session that it had
        self._lasting: set[tuple[str, str]] = set()  # faults that never end

    # Reports of the brokers.

    def latency(self) -> float:
        return self.scheduler.random.random() * self.plan.latency

    def _accepted(self, broker: Broker, client: str, message: Message) -> None:
        if client and not broker.semantics.keeps and not self._has_receiver(broker):
            self._miss(broker, client, message)
        if client:
            self.log("arrived", f"{short(message.payload)} at {broker.name} from {client}")
            if message.address != DEAD_LETTERS:
                self._check_content(broker, message)
                self._arrived(broker, client, message)
            payload = self.books.known(message.payload)
            if payload is not None and broker.is_tapped(message.address):
                self.books.tapped[payload, broker.name] += 1
            if self.books.has_double(message.payload, broker.name):
                self.log.coverage["double"] += 1
        else:
            self.log("published", f"{short(message.payload)} at {broker.name}")

    def _arrived(self, broker: Broker, client: str, message: Message) -> None:
        books, payload = self.books, message.payload
        books.arrive(broker.name, message, self.scheduler.now, client.partition("/")[0])
        self._check_kept_once(broker, message)
        limit = self._most_copies if self.plan.copies is None else self.plan.copies
        if (
            isinstance(payload, bytes)
            and len(books.arrivals.get((payload, broker.name), ())) > limit
        ):
            books.report(
                "copies", f"{short(payload)} came to {broker.name} more than {limit} times"
            )
        if not self._finishing:
            self.applications.arrived(broker, message)

    def _check_content(self, broker: Broker, message: Message) -> None:
        """Check that an application published this message, for this broker."""
        books, system = self.books, self.plan.brokers[broker.name]
        payload = books.known(message.payload)
        if payload is None:
            if not message.address.endswith("beat"):
                books.report("altered", f"{short(message.payload)} at {broker.name}")
            return
        origins = books.origins(payload)
        places = {place for each in origins for place in (each, *books.reach[each])}
        if broker.name not in places or key_of(system, message.address) not in books.names[payload]:
            text = f"{short(payload)} as {message.address} at {broker.name}"
            books.report("altered", text)

    @property
    def _most_copies(self) -> int:
        """Unsettled messages come again after a crash, and a circle takes each of them round."""
        ends = sum(each.kind in {*KILLS, "stop"} for each in self.plan.faults)
        return MOST_COPIES * (1 + ends)

    def _check_kept_once(self, broker: Broker, message: Message) -> None:
        """Check that a stream keeps no repeat within its window, where its sources give ids."""
        payload = self.books.known(message.payload)
        times = self.books.arrivals.get((payload, broker.name), []) if payload else []
        if payload is None or len(times) < 2 or times[-1] - times[-2] >= broker.semantics.knows:
            return
        routes = hops(self.plan).values()
        sources = {name for each in routes for name in each if broker.name in each[name]}
        has_ids = all(_FLAVOURS[self.plan.brokers[each]] == _WITH_IDS for each in sources)
        if has_ids and sum(self.books.copies_at(payload, each) for each in sources) == 1:
            self.books.report("kept-twice", f"{short(payload)} at {broker.name}")

    def _miss(self, broker: Broker, client: str, message: Message) -> None:
        """Note a message that nobody receives; a gateway must not send it before it subscribes."""
        own = self.plan.shape == "relay" and broker.name in self.gateways["g1"].targets
        connection = broker.connections.get(client)
        if own and connection is not None and not connection.broken:
            self.books.report("to-nobody", f"{short(message.payload)} by {client}")
        self.books.excuse(message.payload, "nobody receives it")

    def _has_receiver(self, broker: Broker) -> bool:
        """Whether each gateway that receives from `broker` has a session there."""
        receivers = [each for each in self.gateways.values() if broker.name in each.targets]
        clients = {f"{each.owner}/{broker.name}" for each in receivers}
        return clients <= broker.sessions.keys()

    def _lost(self, client: str, entry: Entry) -> None:
        self.log("lost", f"{short(entry.message.payload)} by the broker of {client}")
        payload = self.books.known(entry.message.payload)
        if is_tap(client):
            if payload is not None:
                place = client.partition("/")[2].partition("tap-")[0]
                self.books.tapped[payload, place] -= 1
            return
        self.books.excuse(entry.message.payload, "lost by its broker")

    def _repeated(self, client: str, entry: Entry) -> None:
        """Report a message that came twice, at QoS 2 or without a mark from Kafka."""
        self.books.report("repeated", f"{short(entry.message.payload)} twice by {client}")

    def _confirmed(self, broker: Broker, client: str, entry: Entry) -> None:
        """Check that a settled message is durable: at its targets, or on the disk."""
        payload = self.books.known(entry.message.payload)
        kind = "observed" if is_tap(client) else "settled"
        self.log(kind, f"{short(entry.message.payload)} by {client}")
        if payload is None or is_tap(client):
            return
        owner = client.partition("/")[0]
        self.books.settled[owner, broker.name, payload] += 1
        is_cut = payload in self.books.forged or self.plan.copies is not None
        if is_cut or len(self.books.origins(payload)) > 1:
            return  # of equal messages nobody knows which one this is
        instances = [each for each in self.gateways.values() if each.owner == owner]
        expected = 0
        for target in instances[0].targets[broker.name]:
            if target in self.books.origins(payload):
                continue
            expected += 1
            if target in instances[0].removed:
                continue
            if self.books.arrivals.get((payload, target)) or self.books.is_damaged(payload):
                continue
            kept = any(self.outcomes.is_on_disk(each, target, payload) for each in instances)
            if not kept and not self._is_stood_for(payload, target, owner, broker.name):
                text = f"{short(payload)} of {client} is nowhere for {target}"
                self.books.report("settled-too-early", text)
        if self._has_changed_rows():
            return
        digest = xxh3_128_digest(payload)
        archived = any(each.disk.has_hash(digest) for each in instances)
        if expected and self.plan.archive and not archived:
            self.books.report("settled-without-row", f"{short(payload)} of {client}")

    def _is_stood_for(self, payload: bytes, target: str, owner: str, source: str) -> bool:
        """Whether a newer message of its name arrived, is on the disk, or still at its broker."""
        return any(
            self.books.arrivals.get((each, target))
            or not self.books.settled[owner, source, each]
            or any(self.outcomes.is_on_disk(one, target, each) for one in self.gateways.values())
            for each in self.books.newer(payload)
        )

    # The faults.

    def strike(self, fault: Fault) -> None:
        """Begin a fault; its end is planned as well."""
        if fault.steps:
            self.scheduler.after_steps(fault.steps, partial(self.strike, replace(fault, steps=0)))
        elif not self._finishing:
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
            broker.only_accepts = broker.blocked = broker.retrying = broker.unbound = False
            broker.refusing, broker.failing = None, 0
            broker.latency = self.latency
            broker.give_back()
        self.processes.shared.cut_off.clear()
        for each in self.gateways.values():
            if each.process is not None:
                each.process.frozen_until = 0.0
            each.disk.archive_full = False
            if ("full-spool", each.name) not in self._lasting:
                each.disk.small.room = self.plan.disk
            each.disk.small.read_only = False
            each.disk.delay = lambda: self.scheduler.random.random() * self.plan.flush

    # The run.

    def publish(self, number: int) -> None:
        publication = self.plan.publications[number]
        place, key = publication.broker, publication.key
        mode = DeliveryMode.AT_LEAST_ONCE if publication.once else DeliveryMode.AT_MOST_ONCE
        headers = Headers(mode=DeliveryMode.EXACTLY_ONCE if self.plan.exactly_once else mode)
        headers = replace(headers, properties={"key": key}) if self.plan.selector else headers
        headers = replace(headers, expiry=1) if publication.expired else headers
        name = name_of(self.plan.brokers[place], key, first_level(self.plan, place))
        if publication.expired:
            self.books.excuse(publication.payload, "expired")
        self.publish_at(place, key, Message(name, publication.payload, headers))

    def publish_at(self, place: str, key: str, message: Message) -> None:
        """Publish a message of an application at a broker, or in a queue there."""
        broker, payload = self.brokers[place.partition(".")[0]], message.payload
        assert isinstance(payload, bytes)
        self.books.publish(place, key, payload, self.scheduler.now)
        sessions = broker.sessions.values()
        if not broker.semantics.keeps and not any(e.selects(message.address) for e in sessions):
            self.books.excuse(payload, "no session")
        broker.publish(message)

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

        # a rejected batch makes room before its row is deleted
        rejects = self.plan.when_full == "dead-letter-oldest" or self.plan.spool_seconds
        limited = self.plan.spool_messages and not rejects
        for each in self.gateways.values() if limited else ():
            if each.disk.changed:
                continue  # its counts may be too large
            for endpoint in {place for targets in each.targets.values() for place in targets}:
                self._check_spool(each, endpoint, self.plan.spool_messages or 0)

    def _check_spool(self, each: RunningGateway, endpoint: str, limit: int) -> None:
        """Check the spool of a target that never had a message: nothing was put back there."""
        if f"{each.name}/{endpoint}-sink" not in self.brokers[endpoint].senders:
            waiting = each.disk.waiting(endpoint)
            if waiting >= limit + self.plan.batch:
                self.books.report("memory", f"{each.name}: {waiting} messages wait for {endpoint}")

    def _is_drained(self) -> bool:
        if self._has_unsettled() or self.applications.busy:
            return False
        if any(each.borrowed for each in self.brokers.values()):
            return False
        active = [each for each in self.gateways.values() if each.gateway is not None]
        if not active or (len(active) < len(self.gateways) and not self.plan.is_pair):
            return False
        for each in active:
            if each.process is None or each.stopping:
                return False
            places = {place for targets in each.targets.values() for place in targets}
            places -= each.removed  # a changed row may be for none: the log says so
            if not each.disk.damaged and any(e in places for e, _ in each.disk.stored("batches")):
                return False
        return self._has_changed_rows() or not self.outcomes.missing()

    def _has_changed_rows(self) -> bool:
        """Whether a journal has a changed bit: its rows do not show every dead letter then."""
        return any(
            journal.changed for each in self.gateways.values() for journal in each.disk.journals
        )

    def _has_unsettled(self) -> bool:
        """Whether a message of an application is unsettled; a heartbeat always is."""
        return any(
            self.books.known(entry.message.payload) is not None
            for broker in self.brokers.values()
            for session in broker.sessions.values()
            if not (
                is_tap(session.client) and session.connection is None and self._is_removed(broker)
            )
            for entry in (*session.pending, *session.in_flight.values())
        )

    def _is_removed(self, broker: Broker) -> bool:
        """Whether a reload removed the target; its broker still keeps the session of its tap."""
        return any(broker.name in each.removed for each in self.gateways.values())

    def run(self) -> None:
        """Run until all is drained or a finding is there, and judge."""
        plan, run = self.plan, self.scheduler
        for each in self.gateways.values():
            run.at(0.0, partial(self.processes.start, each))
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
            elif not self._is_damage_known():
                self._report_stuck()
        for name, seconds in [] if self._is_slow() else self.processes.stops:
            if seconds > STOP_SECONDS + STOP_MARGIN:
                self.books.report("slow-stop", f"{name} took {seconds:.1f} s")
        for failure in run.failures:
            self.books.report("thread-died", failure)

    def _is_slow(self) -> bool:
        return any("slow" in each.kind or each.kind == "freeze" for each in self.plan.faults)

    def has_damaged_spool(self) -> bool:
        return any(each.disk.damaged for each in self.gateways.values())

    def _is_damage_known(self) -> bool:
        """Whether the file of a spool is damaged, and its gateway says so."""
        lines = self.log.lines
        return any(
            any(f" {each.name}." in line and "refused" in line for line in lines)
            or any("error: " in line for line in lines)
            for each in self.gateways.values()
            if each.disk.damaged
        )

    def _report_stuck(self) -> None:
        missing = [f"{short(payload)} for {target}" for payload, target in self.outcomes.missing()]
        sessions = [
            f"{session.client}: {len(session.pending)} pending, {len(session.in_flight)} in flight"
            for broker in self.brokers.values()
            for session in broker.sessions.values()
            if session.pending or session.in_flight
        ]
        spools = [
            f"{each.name}: {len(each.disk.stored('batches'))} batches in the spool"
            for each in self.gateways.values()
        ]
        text = "; ".join([*missing[:5], *sessions, *spools])
        processes = [each.process for each in self.gateways.values() if each.process is not None]
        stacks = "\n    ".join(self.scheduler.stacks(processes))
        self.books.report("not-drained", f"{text}\n    {stacks}")

    def _finish(self) -> None:
        """Stop every gateway, and compare the archives with the books."""
        self._finishing = True
        self.heal()
        run, before = self.scheduler, len(self.log.lines)
        for each in self.gateways.values():
            each.wanted = False
            self.processes.stop(each, 0.0)
        gateways = self.gateways.values()
        if not run.run(lambda: all(each.process is None for each in gateways), run.now + 30.0):
            self._report_stuck()
            return
        settled = not any(" stopped " in line and "unsettled" in line for line in self.log.lines)
        late = any("unsettled" in line for line in self.log.lines[before:])
        if late and self._has_unsettled() and not self._is_slow():
            self.books.report("unsettled-stop", self.log.lines[-1])
        Judge(self.outcomes, self.log).judge(
            settled=settled,
            sessions_lost=self.sessions_lost,
            killed_while_connecting=self.processes.killed_while_connecting,
            holes={
                name: sum(self.brokers[each].holes(f"{name}/{each}") for each in targets)
                for name, targets in hops(self.plan).items()
            },
            unordered=set().union(*(each.unordered for each in self.brokers.values())),
        )

    def make_source(
        self, settings: EndpointSettings, subscriptions: Sequence[Subscription], *,
        instance: str = "",
    ) -> SimulatedSource | ExactlyOnceSource:  # fmt: skip
        gateway = stand_ins.running_process().name.partition(".")[0]
        settings = replace(settings, name=place_of(settings.name))  # type: ignore[call-arg]  # each kind has it
        system, plan = self.plan.brokers[settings.name], self.plan
        flavour = Flavour(window=plan.window, batch=plan.batch, capacity=plan.capacity,
                          **_FLAVOURS[system])  # type: ignore[arg-type]  # fmt: skip
        client = f"{gateway}/{settings.name}{instance}"
        if plan.exactly_once and system == "mqtt5":
            assert isinstance(settings, MqttSettings)
            return ExactlyOnceSource(
                self.brokers[settings.name], settings, subscriptions, client,
                plan.window, plan.batch,
            )  # fmt: skip
        if system == "kafka":
            return KafkaSource(
                self.brokers[settings.name], settings, subscriptions, flavour, client,
                remembers=plan.archive or plan.spool,
            )  # fmt: skip
        return SimulatedSource(
            self.brokers[settings.name], settings, subscriptions, flavour, client
        )

    def make_sink(self, settings: EndpointSettings, *, instance: str = "") -> Sink:
        settings = replace(settings, name=place_of(settings.name))  # type: ignore[call-arg]  # each kind has it
        system = self.plan.brokers[settings.name]
        if self.plan.own_sinks and system in SINKS:
            return SINKS[system](settings)
        client = self._sink_client(settings, instance)
        if self.plan.sink_qos is not None and system == "mqtt5":
            assert isinstance(settings, MqttSettings)
            return PacketSink(self.brokers[settings.name], settings, client)
        sink = SimulatedSink(self.brokers[settings.name], settings, client)
        return HoldersSink(sink, self._check_holder) if self.plan.is_pair else sink

    def _check_holder(self) -> None:
        """Check that the instance which sends holds the lease, and that no other one does."""
        process = stand_ins.running_process()
        for each in self.gateways.values():
            holds = each.lease is not None and each.lease.holds()
            if holds is not (each.process is process):
                text = f"{process.name} sends, and {each.name} {'holds' if holds else 'lost'} it"
                self.books.report("sent-without-lease", text)

    def _sink_client(self, settings: EndpointSettings, instance: str = "") -> str:
        return (
            f"{stand_ins.running_process().name.partition('.')[0]}/{settings.name}-sink{instance}"
        )

    def connect(
        self,
        settings: EndpointSettings,
        received: Callable[[object], None],
        lost: Callable[[], None],
        *,
        accepts: bool = False,
    ) -> Connection:
        """Connect one of the product's own sinks, as `own_sinks.Connect` says."""
        run, broker = self.scheduler, self.brokers[settings.name]
        client, process = self._sink_client(settings), stand_ins.running_process()
        run.sleep(broker.latency())
        broker.check(client, accepts=accepts)
        connection = Connection(broker, client, process, received, lost)
        if broker.only_accepts:
            connection.up.dropping = True
            run.at(run.now + broker.latency(), partial(connection.lose, "closed by its peer"))
        broker.senders.add(client)
        broker.log("connected", f"{client} to {broker.name}")
        return connection


def _reach(plan: Plan, routes: dict[str, dict[str, list[str]]]) -> dict[str, list[str]]:
    """The brokers that a message published at each place must arrive at."""
    if plan.shape == "redrive":
        return {"a": ["b"], DEAD_QUEUE: ["b"]}
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
