"""Random worlds of targets that get one message a name and interval, or changes only."""

from __future__ import annotations

from random import Random
from typing import Final

from tests.simulation.plan import SHAPES, Fault, Plan, Publication
from tests.simulation.scheduler import Policy

LENGTH: Final = 5.0  # seconds with messages and faults
SYSTEMS: Final = ("mqtt5", "mqtt311", "jms", "solace", "rabbitmq")
BROKER_FAULTS: Final = {"cut": 3, "silent-down": 2, "retry": 2, "away": 3, "slow": 1, "repeat": 1}
GATEWAY_FAULTS: Final = {
    "kill": 6, "power": 3, "stop": 2, "slow-disk": 1, "full-spool": 1, "reload-same": 1,
    "reload-sink": 1, "reload-thin": 2, "reload-rename": 2,
}  # fmt: skip


def thin_plan(seed: int) -> Plan:
    """Draw the plan of `seed`: a few names with many messages, and a kill while some are held."""
    random = Random(f"thin {seed}")  # noqa: S311  # no secret
    shape = random.choice(("one", "one", "fan"))
    brokers = {name: random.choice(SYSTEMS) for name in SHAPES[shape]}
    count, keys = random.choice((6, 20, 60)), random.choice((1, 2, 5))
    pace = random.choice((0.02, 0.3, 1.0))  # a burst, or evenly
    values = random.choice((0, 0, 2, 3))  # of each name, which come again; 0: intervals
    fields, refused = random.random() < 0.3, random.random() < 0.3
    publications = tuple(
        _said(
            1.5 + pace * LENGTH * at / count, f"k{at % keys}",
            f"{at % keys}-{random.randrange(values)}" if values else f"{at}",
            fields=fields, expired=refused and not values and at // keys % 3 == 2,
        )
        for at in range(count)
    )  # fmt: skip
    faults = [_fault(random, brokers, pace) for _ in range(random.choice((0, 1, 1, 2, 4)))]
    return Plan(
        seed, shape, brokers, publications, tuple(sorted(faults, key=lambda each: each.at)),
        Policy(switch=random.choice((0.02, 0.1, 0.4)), pause=random.choice((0.0, 0.1))),
        archive=random.random() < 0.9, latency=random.choice((0.005, 0.05, 0.2)),
        flush=random.choice((0.001, 0.05, 0.2)), batch=random.choice((1, 3, 1_000)),
        window=random.choice((3, 20, 100)), until=LENGTH + 2,
        thin=0.0 if values else random.choice((0.3, 1.0, 3.0, 20.0)), on_change=bool(values),
        fields=fields,
        spool_messages=random.choice((None, None, None, 3)),
    )  # fmt: skip


def _said(at: float, key: str, value: str, *, fields: bool, expired: bool) -> Publication:
    """A message, of whose payload the name may be made."""
    text = f'{{"key": "{key}", "id": "<a{value}>"}}' if fields else f"<a{value}>"
    return Publication(at, "a", key, text.encode(), expired=expired)


def _fault(random: Random, brokers: dict[str, str], pace: float) -> Fault:
    at = 1.5 + random.random() * (LENGTH * pace + 1.0)
    seconds = random.choice((0.05, 0.3, 1.0, 2.0))
    if random.random() < 0.6:
        return Fault(at, _drawn(random, GATEWAY_FAULTS), "g1", seconds, random.randrange(60))
    where = random.choice([*brokers])
    return Fault(at, _drawn(random, BROKER_FAULTS), where, seconds, random.randrange(60))


def _drawn(random: Random, weights: dict[str, int]) -> str:
    return random.choices([*weights], [*weights.values()])[0]
