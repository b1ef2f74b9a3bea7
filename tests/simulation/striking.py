"""The faults of a plan, as they strike a broker, a gateway or its disk."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

from gateway.errors import EndpointError
from tests.simulation.books import DAMAGED
from tests.simulation.brokers import Broker
from tests.simulation.plan import NOT_TAKEN, Fault
from tests.simulation.sessions import is_tap

if TYPE_CHECKING:  # the world imports this module
    from tests.simulation.gateways import RunningGateway
    from tests.simulation.world import World

AtBroker: TypeAlias = "Callable[[World, Fault, Broker], None]"
AtGateway: TypeAlias = "Callable[[World, Fault, RunningGateway], None]"

SLOW: Final = 1.5  # seconds of the longest latency, or flush, while something is slow
BACKWARD: Final = 3_600_000_000  # microseconds that a jump of the clock goes back at most
HOUR: Final = 3_600_000_000  # microseconds


def strike(world: World, fault: Fault) -> None:
    """Begin a fault now, and plan its end."""
    world.log.coverage[f"fault-{fault.kind}"] += 1
    world.log("fault", f"{fault.kind} at {fault.where} for {fault.seconds:.2f} s")
    if fault.where in world.brokers:
        _AT_BROKER[fault.kind](world, fault, world.brokers[fault.where])
    else:
        _AT_GATEWAY[fault.kind](world, fault, world.gateways[fault.where])


def _set(name: str, value: object, healed: object) -> AtBroker:
    """A fault that sets a field of the broker until it ends."""

    def begin(world: World, fault: Fault, broker: Broker) -> None:
        setattr(broker, name, value)
        world.later(fault, partial(setattr, broker, name, healed))

    return begin


def _leave(world: World, fault: Fault, broker: Broker) -> None:
    broker.leave()
    world.later(fault, partial(setattr, broker, "away", False))


def _only_accept(world: World, fault: Fault, broker: Broker) -> None:
    broker.leave_load_balancer()
    world.later(fault, partial(setattr, broker, "only_accepts", False))


def _refuse(world: World, fault: Fault, broker: Broker) -> None:
    broker.refusing = EndpointError(f"{broker.name}: bad credentials")
    broker.cut("refused")
    world.later(fault, partial(setattr, broker, "refusing", None))


def _lose_sessions(world: World, fault: Fault, broker: Broker) -> None:
    del fault  # it has no end
    if world.plan.brokers[broker.name] != "yami4":  # it keeps none
        world.sessions_lost |= {each for each in broker.sessions if not is_tap(each)}
    broker.lose_sessions()


def _delete_consumer(world: World, fault: Fault, broker: Broker) -> None:
    del fault  # it has no end
    world.sessions_lost |= {each for each in broker.sessions if not is_tap(each)}
    broker.delete_consumers()


def _lend(world: World, fault: Fault, broker: Broker) -> None:
    random = world.scheduler.random
    broker.lend(random.randrange(broker.semantics.partitions), random.random())
    world.later(fault, broker.give_back)


def _slow(world: World, fault: Fault, broker: Broker) -> None:
    broker.latency = lambda: world.scheduler.random.random() * SLOW
    world.later(fault, partial(setattr, broker, "latency", world.latency))


def _slow_disk(world: World, fault: Fault, each: RunningGateway) -> None:
    fast, each.disk.delay = each.disk.delay, lambda: world.scheduler.random.random() * SLOW
    world.later(fault, partial(setattr, each.disk, "delay", fast))


def _freeze(world: World, fault: Fault, each: RunningGateway) -> None:
    if each.process is not None:
        each.process.frozen_until = world.scheduler.now + fault.seconds


def _cut_off_lease(world: World, fault: Fault, each: RunningGateway) -> None:
    cut_off = world.processes.shared.cut_off
    cut_off.add(each.name)
    world.later(fault, partial(cut_off.discard, each.name))


def _fill_spool(world: World, fault: Fault, each: RunningGateway) -> None:
    if world.plan.spool:
        each.disk.small.room = each.disk.small.used()
        world.later(fault, partial(setattr, each.disk.small, "room", world.plan.disk))


def _make_read_only(world: World, fault: Fault, each: RunningGateway) -> None:
    each.disk.small.read_only = True
    world.later(fault, partial(setattr, each.disk.small, "read_only", False))


def _fail_thread(world: World, fault: Fault, each: RunningGateway) -> None:
    del fault  # it ends with the process
    if world.plan.spool and world.scheduler.random.random() < 0.5:  # half of them
        each.disk.spool_fails = 1
    elif world.plan.archive:
        each.disk.archive_fails = 1


def _fill_archive(world: World, fault: Fault, each: RunningGateway) -> None:
    each.disk.archive_full = True
    world.later(fault, partial(setattr, each.disk, "archive_full", False))


def _jump(world: World, fault: Fault, each: RunningGateway) -> None:
    del each  # all gateways share the clock
    world.scheduler.clock_offset += int(fault.seconds * HOUR) - BACKWARD


def _change_journal(world: World, fault: Fault, each: RunningGateway) -> None:
    world.processes.change_bit(each, fault.seconds, journal=True)
    for payload in world.books.keys:  # a lost `cut` row lets an equal message look like the echo
        if len(world.books.origins(payload)) > 1:
            world.books.excuse(payload, DAMAGED)


def _change_spool(world: World, fault: Fault, each: RunningGateway) -> None:
    for body in world.processes.change_bit(each, fault.seconds, journal=False):
        for payload in world.books.keys:
            if payload in body:
                world.books.excuse(payload, DAMAGED)


def _reload(variant: str) -> AtGateway:
    return lambda world, _fault, each: world.processes.reload(each, variant)


_AT_BROKER: Final[Mapping[str, AtBroker]] = {
    "cut": lambda _world, _fault, broker: broker.cut("cut"),
    "away": _leave,
    "only-accept": _only_accept,
    "silent-up": lambda _world, _fault, broker: broker.cut_silently(up=True, down=False),
    "silent-down": lambda _world, _fault, broker: broker.cut_silently(up=False, down=True),
    "silent-both": lambda _world, _fault, broker: broker.cut_silently(up=True, down=True),
    "lose-sessions": _lose_sessions,
    "refuse": _refuse,
    "driver-fault": lambda _world, _fault, broker: setattr(broker, "failing", 2),
    "block": _set("blocked", value=True, healed=False),
    "retry": _set("retrying", value=True, healed=False),
    "older-sessions": lambda _world, _fault, broker: broker.forget_releases(),
    "repeat": lambda world, _fault, broker: broker.repeat(world.scheduler.random.random),
    "delete-consumer": _delete_consumer,
    "delete-group": lambda _world, _fault, broker: broker.delete_groups(),
    "retain": lambda world, _fault, broker: broker.retain(world.scheduler.random.random()),
    "other-member": _lend,
    "purge": lambda _world, _fault, broker: broker.purge(),
    "lose-acks": lambda _world, fault, broker: broker.lose_acks(fault.seconds),
    "unbind": _set("unbound", value=True, healed=False),
    "expire": lambda _world, _fault, broker: broker.expire(),
    "slow": _slow,
    "poison": lambda _world, fault, broker: broker.poison.add(fault.payload),
    "hang-up": lambda _world, _fault, broker: setattr(broker, "hangs_up_for", NOT_TAKEN),
    "unwritable": lambda _world, _fault, _broker: None,  # it fails in the encoder
    "deny": lambda _world, fault, broker: broker.denied.add(fault.payload),
}
_AT_GATEWAY: Final[Mapping[str, AtGateway]] = {
    "kill": lambda world, fault, each: world.processes.kill(each, fault.seconds),
    "power": lambda world, fault, each: world.processes.kill(each, fault.seconds, power=True),
    "change-journal": _change_journal,
    "change-spool": _change_spool,
    "stop": lambda world, fault, each: world.processes.stop(each, fault.seconds),
    "freeze": _freeze,
    "cut-off-lease": _cut_off_lease,
    "slow-disk": _slow_disk,
    "full-spool": _fill_spool,
    "full-archive": _fill_archive,
    "read-only": _make_read_only,
    "thread": _fail_thread,
    "clock": _jump,
    "reload-same": lambda world, _fault, each: world.processes.reload(each, each.variant),
    "reload-remove": _reload("remove"),
    "reload-sink": _reload("sink"),
    "reload-thin": _reload("thin"),
    "reload-source": _reload("source"),
    "reload-rename": _reload("rename"),
}
