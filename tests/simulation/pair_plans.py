"""Random worlds of a pair: one lease, two instances, and faults in the middle of takeovers."""

from __future__ import annotations

from random import Random
from typing import Final

from tests.simulation.plan import INSTANCES, Fault, Plan, Publication
from tests.simulation.scheduler import Policy

LENGTH: Final = 8.0  # seconds with messages and faults
INSTANCE_FAULTS: Final = {  # kind -> weight
    "kill": 4, "freeze": 4, "stop": 3, "cut-off-lease": 3, "slow-disk": 1, "power": 1, "clock": 1,
}  # fmt: skip
BROKER_FAULTS: Final = {"cut": 2, "away": 2, "silent-both": 1, "slow": 1}
SECONDS: Final = (0.05, 0.5, 1.5, 4.0)  # shorter and longer than the lease


def pair_plan(seed: int) -> Plan:
    """Draw the plan of `seed`."""
    random = Random(f"pair {seed}")  # noqa: S311  # no secret
    count = random.choice((20, 60))
    publications = tuple(
        Publication(1.5 + LENGTH * at / count, "a", f"k{at % 3}", f"<a{at}>".encode())
        for at in range(count)
    )
    faults = sorted((_fault(random) for _ in range(random.choice((1, 2, 3, 5)))), key=_at)
    return Plan(
        seed, "pair", {each: random.choice(("mqtt5", "mqtt311")) for each in "ab"}, publications,
        tuple(faults), Policy(switch=random.choice((0.1, 0.4)), pause=random.choice((0.0, 0.1))),
        spool=False, latency=random.choice((0.02, 0.2)), flush=random.choice((0.01, 0.2)),
        batch=random.choice((1, 1_000)), window=random.choice((2, 20)), until=LENGTH + 2,
    )  # fmt: skip


def _fault(random: Random) -> Fault:
    at = 1.0 + random.random() * LENGTH
    steps = random.randrange(60) if random.random() < 0.5 else 0
    seconds = random.choice(SECONDS)
    kinds = INSTANCE_FAULTS if random.random() < 0.8 else BROKER_FAULTS
    kind = random.choices([*kinds], [*kinds.values()])[0]
    where = random.choice(INSTANCES if kinds is INSTANCE_FAULTS else ("a", "b"))
    return Fault(at, kind, where, seconds=seconds, steps=steps)


def _at(fault: Fault) -> float:
    return fault.at
