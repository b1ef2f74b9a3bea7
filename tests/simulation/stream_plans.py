"""Random worlds of NATS and RabbitMQ: answers lost, full streams, deleted consumers and queues."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Final

from tests.simulation.plan import SHAPES, Fault, Plan, Publication
from tests.simulation.scheduler import Policy

LENGTH: Final = 5.0  # seconds with messages and faults
STREAMS: Final = ("nats", "rabbitmq")
OTHERS: Final = ("mqtt5", "jms")
FAULTS: Final = {  # kind -> weight
    "cut": 4, "silent-down": 3, "retry": 3, "away": 1, "repeat": 1, "slow": 1, "block": 2,
}  # fmt: skip
OWN_FAULTS: Final = {  # only of each system
    "nats": {"lose-acks": 3, "delete-consumer": 3, "purge": 3},
    "kafka": {"lose-acks": 3, "delete-group": 3, "retain": 2, "other-member": 3},
    "rabbitmq": {"unbind": 3, "lose-sessions": 2, "block": 2},
}  # fmt: skip
GATEWAY_FAULTS: Final = {"kill": 4, "power": 1, "stop": 2, "reload-sink": 1, "reload-source": 1}


def stream_plan(seed: int) -> Plan:
    """Draw the plan of `seed`."""
    return _plan(seed, "stream", STREAMS, "ab")


def _plan(seed: int, name: str, streams: Sequence[str], places: str) -> Plan:
    """Draw a plan with a stream at one broker at least."""
    random = Random(f"{name} {seed}")  # noqa: S311  # no secret
    shape = random.choice(("one", "one", "fan", "chain"))
    brokers = {name: random.choice((*streams, *streams, *OTHERS)) for name in SHAPES[shape]}
    if not {*brokers.values()} & {*streams}:
        brokers[random.choice(places)] = random.choice(streams)
    count, keys = random.choice((10, 30, 60)), random.choice((1, 3))
    pace = random.choice((0.02, 1.0))  # a burst, or evenly
    publications = tuple(
        Publication(1.5 + pace * LENGTH * at / count, "a", f"k{at % keys}", f"<a{at}>".encode())
        for at in range(count)
    )
    faults = [_fault(random, shape, brokers, pace) for _ in range(random.choice((0, 1, 2, 4)))]
    plan = Plan(
        seed, shape, brokers, publications, tuple(sorted(faults, key=lambda each: each.at)),
        Policy(switch=random.choice((0.02, 0.1, 0.4)), pause=random.choice((0.0, 0.1))),
        spool=random.random() < 0.6, archive=random.random() < 0.9,
        latency=random.choice((0.005, 0.05, 0.2)), flush=random.choice((0.001, 0.05)),
        batch=random.choice((1, 3, 1_000)), window=random.choice((3, 20, 100)), until=LENGTH + 2,
    )  # fmt: skip
    return _with_amqp(Random(f"amqp {seed}"), plan)  # noqa: S311  # no secret


def kafka_plan(seed: int) -> Plan:
    """Draw a plan with Kafka at one broker at least."""
    return _plan(seed, "kafka", ("kafka",), "a")


def _with_amqp(random: Random, plan: Plan) -> Plan:
    """Return the plan with AMQP 1.0 in place of some RabbitMQs, where a user may not send all."""
    brokers = {
        name: random.choice(("rabbitmq", "amqp")) if system == "rabbitmq" else system
        for name, system in plan.brokers.items()
    }
    denied = [
        Fault(0.9, "deny", name, payload=random.choice(plan.publications).payload)
        for name, system in brokers.items()
        if system == "amqp" and random.random() < 0.3
    ]
    return replace(plan, brokers=brokers, faults=(*denied, *plan.faults))


def _fault(random: Random, shape: str, brokers: dict[str, str], pace: float) -> Fault:
    at = 1.5 + random.random() * (LENGTH * pace + 0.5)
    seconds = random.choice((0.05, 0.3, 1.0, 2.0))
    if random.random() < 0.3:
        where = random.choice(("g1", "g2") if shape == "chain" else ("g1",))
        return Fault(at, _drawn(random, GATEWAY_FAULTS), where, seconds, random.randrange(60))
    where = random.choice([*brokers])
    own = OWN_FAULTS.get(brokers[where], {})
    kind = _drawn(random, own if own and random.random() < 0.6 else FAULTS)
    return Fault(at, kind, where, seconds, random.randrange(60))


def _drawn(random: Random, weights: dict[str, int]) -> str:
    return random.choices([*weights], [*weights.values()])[0]
