"""The gateways of a run: their disks, and the processes that start, stop, die and reload."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final, cast

from gateway.cli.live import run
from gateway.cli.live.lease import is_over
from gateway.cli.live.signals import SignalQueue
from gateway.errors import GatewayError
from gateway.lease.holder import LeaseHolder
from gateway.runtime.gateway import Gateway
from tests.simulation.brokers import Broker
from tests.simulation.configurations import LEASE_SECONDS, configuration
from tests.simulation.disk import Disk
from tests.simulation.leases import SharedRecord, SimulatedLeaseStore
from tests.simulation.plan import Plan
from tests.simulation.run_log import RunLog
from tests.simulation.scheduler import Process, Scheduler

STOP_SECONDS: Final = 4.0
LOOK: Final = 0.1  # seconds between two looks of a process at its lease
RESTART: Final = 0.5  # seconds until a process that ended itself runs again
RELOAD_INTERVAL: Final = 0.1  # seconds until a gateway that does not run is reloaded again


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
    reloading: Process | None = None  # one thread reloads, one change after the other
    removed: set[str] = field(default_factory=set)
    lease: LeaseHolder | None = None  # of the process, in a pair

    @property
    def owner(self) -> str:
        """The gateway by name, without the instance: its sessions have this name."""
        return self.name.partition(".")[0]


class _StopSignal:
    """The part of `SignalQueue` that ends a process, as soon as it has started."""

    def __init__(self, processes: Processes, each: RunningGateway, process: Process) -> None:
        self._processes, self._each, self._process = processes, each, process

    def stop(self) -> None:
        run = self._processes.scheduler
        run.at(run.now, self._stop)

    def _stop(self) -> None:
        each, run = self._each, self._processes.scheduler
        if each.process is not self._process:
            return
        if each.gateway is None:
            run.at(run.now + RELOAD_INTERVAL, self._stop)
        else:
            self._processes.stop(each, RESTART)


class Processes:
    """Starts, stops, kills and reloads gateways.

    Mutable: called in the hub.
    """

    def __init__(
        self, plan: Plan, scheduler: Scheduler, brokers: Mapping[str, Broker], log: RunLog
    ) -> None:
        self.plan, self.scheduler, self.brokers, self.log = plan, scheduler, brokers, log
        self.stops: list[tuple[str, float]] = []  # processes, and the seconds that they took
        self.killed_while_connecting: set[str] = set()  # they could not record the answer
        self.shared = SharedRecord()  # the lease of a pair

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
        lease = each.lease = self._lease(each) if self.plan.is_pair else None
        if lease is not None:
            lease.start()
            while not lease.holds():
                if lease.ended:  # it was held between two looks
                    self.scheduler.at(self.scheduler.now, partial(self.stop, each, RESTART))
                    return
                self.scheduler.sleep(LOOK)
        try:
            gateway = Gateway(wanted, lease)
            process.thread_ended = partial(self._thread_ended, each, process, gateway)
            gateway.start()
        except GatewayError as error:
            self.log("refused", f"{process.name}: {error}")
            self.scheduler.at(self.scheduler.now, lambda: self._ended(each, process, restart=1.0))
            return
        each.gateway = gateway
        self.log("started", process.name)
        if lease is not None:
            self._watch_lease(each, lease)

    def _lease(self, each: RunningGateway) -> LeaseHolder:
        store = SimulatedLeaseStore(self.shared, self.scheduler, self._lease_latency)
        return LeaseHolder(store, each.name, LEASE_SECONDS)

    def _lease_latency(self) -> float:
        return self.scheduler.random.random() ** 6 * 1.5

    def _watch_lease(self, each: RunningGateway, lease: LeaseHolder) -> None:
        """Do what `gateway run` does while it holds the lease."""
        while not each.stopping:
            if is_over(lease):
                self.log("lost", f"the lease of {each.name}")
                self.scheduler.at(self.scheduler.now, partial(self.stop, each, RESTART))
                return
            self.scheduler.sleep(LOOK)

    def _thread_ended(
        self, each: RunningGateway, process: Process, gateway: Gateway, failure: str
    ) -> None:
        """Do what `gateway run` does when an error ends a thread; called in that thread."""
        signals = cast(SignalQueue, _StopSignal(self, each, process))
        self.log("thread", f"{process.name}: {failure}")
        run.end_without_thread(gateway, signals, failure)

    def _ended(
        self, each: RunningGateway, process: Process, *, restart: float, power: bool = False
    ) -> None:
        if each.process is not process:
            return
        self.scheduler.kill(process)
        each.disk.crash(self.scheduler.random.random)
        if power:
            each.disk.lose_power(self.scheduler.random.random)
        for broker in self.brokers.values():
            for connection in list(broker.connections.values()):
                if connection.process is process:
                    connection.leave()
        each.process = each.gateway = each.lease = None
        self.scheduler.at(self.scheduler.now + restart, lambda: self.start(each))

    def kill(self, each: RunningGateway, restart: float, *, power: bool = False) -> None:
        """End the process at once; with `power`, its disk loses what was not synchronised."""
        if each.process is not None:
            self.log("kill", each.process.name)
            if any(" connected " in line for line in self.log.lines[-3:]):
                self.killed_while_connecting.add(each.name)
            self._ended(each, each.process, restart=restart, power=power)

    def change_bit(self, each: RunningGateway, restart: float, *, journal: bool) -> list[bytes]:
        """End the process and change a bit on its disk; return the bodies that it may cost."""
        self.kill(each, restart)
        random = self.scheduler.random.random
        if journal:
            each.disk.change_journal(random)
            return []
        return each.disk.change_spool(random)

    def stop(self, each: RunningGateway, restart: float) -> None:
        process, gateway = each.process, each.gateway
        if process is None or each.stopping:
            return
        if gateway is None:
            if each.lease is not None:  # a standby
                self._ended(each, process, restart=restart)
            return
        each.stopping = True
        self.log("stop", process.name)

        def stop() -> None:
            begun = self.scheduler.now
            settled = gateway.stop(STOP_SECONDS)
            self.stops.append((process.name, self.scheduler.now - begun))
            self.log("stopped", f"{process.name}: {'settled' if settled else 'unsettled'}")
            if each.lease is not None:
                each.lease.give()
            left = [task.name for task in process.tasks if task.name != "stop"
                    and not task.name.startswith(("up-", "down-"))]  # fmt: skip
            if left:
                self.log.coverage["threads-left"] += 1
            self.scheduler.at(
                self.scheduler.now, lambda: self._ended(each, process, restart=restart)
            )

        self.scheduler.spawn("stop", process, stop)

    def reload(self, each: RunningGateway, variant: str) -> None:
        process, gateway = each.process, each.gateway
        busy = each.stopping or each.reloading is process
        if process is None or gateway is None or busy:  # an operator tries again
            again = partial(self.reload, each, variant)
            self.scheduler.at(self.scheduler.now + RELOAD_INTERVAL, again)
            return

        def apply(wanted: str) -> None:
            each.variant = wanted
            gateway.reload(configuration(self.plan, each.name, each.disk.folder, wanted))
            each.reloading = None
            self.log("reloaded", f"{process.name} {wanted}")

        if variant == "remove":
            if self.plan.shape != "fan":
                return
            each.removed.add("c")
        self.log("reload", f"{process.name} {variant}")
        each.reloading = process
        self.scheduler.spawn("reload", process, partial(apply, variant))
