"""Applications that publish messages made from those that gateways send.

They copy headers, path and proof as flow engines, shovels and dead-letter queues do, or forge them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from xxhash import xxh3_128_digest

from gateway.model.copy_proof import HOPS, content_digest, parse_proof, render_proof
from gateway.model.message import Message
from gateway.routing.origin_path import BrokerName, GatewayIdentity, wire_name
from tests.simulation.brokers import Broker
from tests.simulation.configurations import (
    first_level,
    key_of,
    name_of,
)
from tests.simulation.plan import Application

if TYPE_CHECKING:  # the world imports this module
    from tests.simulation.world import World

_MADE: Final = b"+"  # in a payload that an application made
_BY: Final = {  # of each kind that makes a payload
    "derive": b"d", "invent-path": b"p", "hide": b"h", "garbage": b"g",
}  # fmt: skip
FORGED: Final = frozenset({"invent-path", "hide"})  # kinds whose path equals its digest


class Applications:
    """The applications of a plan. Mutable: counts what they take."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._taken = Counter[tuple[Application, bytes]]()
        self.busy = 0  # messages that will be published

    def arrived(self, broker: Broker, message: Message) -> None:
        """Let each application at `broker` take a message that a gateway sent."""
        world, payload = self._world, self._world.books.known(message.payload)
        for each in world.plan.applications:
            taken = each, payload or b""
            if payload is None or each.at != broker.name or self._taken[taken] >= each.times:
                continue
            if each.kind in _BY and _MADE in payload:
                continue  # it takes nothing of its own kind
            self._taken[taken] += 1
            self.busy += 1
            pause = world.latency() + 0.01
            world.scheduler.at(world.scheduler.now + pause, partial(self._act, each, message))

    def _act(self, application: Application, message: Message) -> None:
        self.busy -= 1
        world, to = self._world, application.to
        at = world.plan.brokers[application.at]
        system = world.plan.brokers[to.partition(".")[0]]
        name = name_of(system, key_of(at, message.address), first_level(world.plan, to))
        payload = message.payload
        assert isinstance(payload, bytes)
        if application.kind in _BY:
            made = _MADE + _BY[application.kind] + b">"
            payload = payload.replace(b">", made, 1)
        copied = _KINDS[application.kind](world, replace(message, address=name, payload=payload))
        if application.kind in FORGED:
            world.books.forged.add(payload)
        world.log.coverage[f"application-{application.kind}"] += 1
        world.publish_at(to, key_of(system, copied.address), copied)


def _as_it_is(_world: World, message: Message) -> Message:
    return message


def _rename(_world: World, message: Message) -> Message:
    return replace(message, address=f"{message.address}-derived")


def _garbage(_world: World, message: Message) -> Message:
    """Write a path and a proof that no gateway writes."""
    origin = ("@", "g1/", "@ffff:0", *message.headers.origin)
    return replace(message, headers=message.headers.with_origin(origin), proof="0" * 200)


def _with_digest(world: World, message: Message, place: str) -> Message:
    """Add the digest of the message to the proof that it copied."""
    found = parse_proof(message.proof)
    if found is None or not isinstance(message.payload, bytes):
        return message
    name = wire_name(message.address, world.brokers[place].dialect).encode()
    digest = content_digest(name + xxh3_128_digest(message.payload))
    return replace(message, proof=render_proof((found.first, found.last, HOPS[found.hops], digest)))


def _invent_path(world: World, message: Message) -> Message:
    """Say that the routes of the path have sent this message."""
    return _with_digest(world, message, "a")


def _hide(world: World, message: Message) -> Message:
    """Say that the message comes from the broker b, so that no gateway sends it there."""
    dialect = world.brokers["b"].dialect
    name = name_of(world.plan.brokers["b"], key_of(world.plan.brokers["a"], message.address))
    mark = GatewayIdentity("").mark(BrokerName("b"), name, dialect)
    headers = message.headers.with_origin((mark, "elsewhere/route"))
    return _with_digest(world, replace(message, headers=headers), "a")


# kind -> what it makes of a message with the name and payload that it will have
_KINDS: Final[Mapping[str, Callable[[World, Message], Message]]] = {
    "derive": _as_it_is,  # another payload, with all properties
    "rename": _rename,  # another name, with all properties
    "reject": _as_it_is,  # into a dead-letter queue
    "move": _as_it_is,  # back to the queue that it came from
    "bridge": _as_it_is,  # a foreign bridge, to another name
    "invent-path": _invent_path,
    "hide": _hide,
    "garbage": _garbage,
}
