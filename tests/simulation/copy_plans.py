"""Random worlds of copies: loops, equal addresses, copied properties, redrives and forgeries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any, Final

from tests.simulation.configurations import DEAD_QUEUE
from tests.simulation.plan import SHAPES, Application, Fault, Plan, Publication
from tests.simulation.scheduler import Policy

LENGTH: Final = 3.0  # seconds with messages and faults
# Systems that carry a path.
CARRIERS: Final = ("mqtt5", "mqtt5", "jms", "solace", "rabbitmq", "amqp")
REMOVERS: Final = ("mqtt5", "solace")
FAULTS: Final = {"cut": 3, "retry": 2, "silent-down": 1, "away": 2, "repeat": 1}  # kind -> weight
GATEWAY_FAULTS: Final = {"kill": 4, "power": 1, "stop": 2, "reload-same": 1, "slow-disk": 1}
COPIES: Final = 30  # of a message at a broker of a mesh: 15 come, and 62 without first ids
KINDS: Final = (  # of applications
    "derive", "rename", "invent-path", "hide", "garbage", "move", "reject", "bridge",
)  # fmt: skip


def copy_plan(seed: int) -> Plan:
    """Draw the plan of `seed`."""
    random = Random(f"copies {seed}")  # noqa: S311  # no secret
    make = random.choices([*_WORLDS], [*_WORLDS.values()])[0]
    world: dict[str, Any] = {"broker_ids": random.random() < 0.4} | make(random)
    shape = world["shape"]
    brokers = {each: random.choice(CARRIERS) for each in SHAPES[shape]}
    brokers |= {each: random.choice(REMOVERS) for each in world.get("removing", "")}
    is_mesh = shape in {"ring", "mesh"}
    count = random.choice((1, 3) if is_mesh else (3, 10))
    sources = world.pop("sources")
    publications = tuple(
        Publication(1.5 + LENGTH * at / count, random.choice(sources), f"k{at % 2}",
                    f"<{shape[0]}{at}>".encode())
        for at in range(count)
    )  # fmt: skip
    gateways = {"hub": 2, "queue": 2, "ring": 3, "mesh": 3}.get(shape, 1)
    faults = [_fault(random, gateways, [*brokers]) for _ in range(random.choice((0, 0, 1, 2)))]
    faults = faults[:1] if is_mesh else faults
    return Plan(
        seed, brokers=brokers, publications=publications,
        faults=tuple(sorted(faults, key=lambda each: each.at)),
        policy=Policy(switch=random.choice((0.02, 0.1, 0.4)), pause=random.choice((0.0, 0.1))),
        spool=random.random() < 0.7, latency=random.choice((0.005, 0.05, 0.2)),
        flush=random.choice((0.001, 0.05)), batch=random.choice((1, 3, 1_000)),
        window=random.choice((3, 20)), until=LENGTH + 2,
        path_key=random.random() < 0.2, equal_names=random.random() < 0.3, **world,
    )  # fmt: skip


def _copying(random: Random) -> dict[str, Any]:
    """A route in both directions, and applications that publish with the properties they got."""
    kinds = random.choice((("derive",), ("rename",), ("derive", "rename")))
    at = random.choice("ab")
    applications = [Application(kind, at, at) for kind in kinds]
    return {"shape": "both", "sources": "ab", "applications": tuple(applications)}


def _forging(random: Random) -> dict[str, Any]:
    """A route to two targets, and publishers who write paths."""
    kinds = random.choice((("invent-path",), ("hide",), ("garbage",), ("hide", "garbage")))
    applications = [Application(kind, random.choice("bc"), "a") for kind in kinds]
    return {"shape": "fan", "sources": "a", "applications": tuple(applications),
            "broker_ids": random.random() < 0.8}  # fmt: skip


def _equal_addresses(random: Random) -> dict[str, Any]:
    """Two sites whose brokers have one address, joined by a hub."""
    applications = (Application("derive", "c", "c"),) if random.random() < 0.3 else ()
    return {"shape": "hub", "sources": "ahc", "applications": applications, "broker_ids": False,
            "hosts": {"g1.a": "localhost", "g2.c": "localhost"}}  # fmt: skip


def _meshed(random: Random) -> dict[str, Any]:
    """Brokers that each gateway knows by another address, in a ring or all with all."""
    shape = random.choice(("ring", "mesh"))
    hosts = {"g1.a": "localhost", "g2.b": "localhost", "g3.c": "localhost"}
    return {"shape": shape, "sources": "abc", "hosts": hosts, "copies": COPIES}


def _moving(random: Random) -> dict[str, Any]:
    """A queue that a gateway reads, and an operator who puts what arrived behind it back.

    In some worlds a selector leaves messages out.
    """
    times = random.choice((1, 2))
    return {"shape": "queue", "sources": "a", "removing": "b", "broker_ids": random.random() < 0.5,
            "selector": random.random() < 0.4,
            "applications": (Application("move", "c", "b", times),)}  # fmt: skip


def _redriving(random: Random) -> dict[str, Any]:
    """A queue whose consumer rejects messages, which a route moves back."""
    times = random.choice((1, 2, 3, 100))
    return {"shape": "redrive", "sources": "a", "removing": "b", "max_hops": 6 + 2 * (times < 9),
            "message_ids": random.random() < 0.6,
            "applications": (Application("reject", "b", DEAD_QUEUE, times),)}  # fmt: skip


def _circling(random: Random) -> dict[str, Any]:
    """A foreign bridge that changes names: no message equals its digest."""
    return {"shape": "circle", "sources": "a", "max_hops": random.choice((2, 8)),
            "applications": (Application("bridge", "b", "a", 1_000),)}  # fmt: skip


_WORLDS: Final[Mapping[Callable[[Random], dict[str, Any]], int]] = {
    _copying: 3, _forging: 3, _equal_addresses: 2, _meshed: 3, _moving: 2, _redriving: 3,
    _circling: 1,
}  # fmt: skip


def _fault(random: Random, gateways: int, brokers: list[str]) -> Fault:
    at = 1.5 + random.random() * LENGTH
    at_gateway = random.random() < 0.4
    weights = GATEWAY_FAULTS if at_gateway else FAULTS
    kind = random.choices([*weights], [*weights.values()])[0]
    where = f"g{random.randint(1, gateways)}" if at_gateway else random.choice(brokers)
    return Fault(at, kind, where, random.choice((0.05, 0.5)), random.randrange(60))
