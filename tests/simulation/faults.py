"""Random plans: the world of one run, its messages and its faults, all drawn from one seed."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Final

from tests.simulation.hostile_plans import hostile_plan
from tests.simulation.plan import SHAPES, Fault, Plan, Publication
from tests.simulation.scheduler import Policy
from tests.simulation.special_plans import later_plan, special_plan

KEPT_SYSTEMS: Final = ("mqtt5", "mqtt311", "jms", "solace")
BOTH_WAYS: Final = ("mqtt5", "mqtt311")

_WEIGHTS: Final = {"one": 5, "fan": 6, "both": 3, "chain": 2, "ring2": 1, "ring3": 1}
GATEWAYS: Final = {
    "one": ("g1",), "fan": ("g1",), "both": ("g1",), "chain": ("g1", "g2"),
    "ring2": ("g1", "g2"), "ring3": ("g1", "g2", "g3"),
}  # fmt: skip
SOURCES: Final = {
    "one": ("a",), "fan": ("a",), "both": ("a", "b"), "chain": ("a",),
    "ring2": ("a", "b"), "ring3": ("a", "b", "c"),
}  # fmt: skip

# kind -> weight; the place is chosen by kind
BROKER_FAULTS: Final = {
    "cut": 4, "away": 4, "silent-up": 1, "silent-down": 2, "silent-both": 1, "lose-sessions": 1,
    "refuse": 1, "driver-fault": 1, "block": 1, "retry": 2, "repeat": 1, "expire": 1, "slow": 2,
    "poison": 2, "deny": 2,
}  # fmt: skip
GATEWAY_FAULTS: Final = {
    "kill": 6, "stop": 2, "slow-disk": 2, "full-spool": 1, "full-archive": 2, "clock": 1,
    "reload-same": 1, "reload-remove": 1, "reload-sink": 1, "reload-source": 1,
}  # fmt: skip
MESSAGE_FAULTS: Final = frozenset(
    {"poison", "deny", "hang-up", "unwritable"}
)  # of some messages only
KILLS: Final = frozenset({"kill", "power", "change-spool", "change-journal"})
HOSTILE_SEEDS: Final = (2, 4, 9, 11)  # modulo 13; likewise
LATER_SEEDS: Final = 4  # modulo 7; the others keep the plans with which they found faults once
LATER_FAULTS: Final = ("older-sessions", "change-spool", "change-journal")
HARMLESS: Final = frozenset(
    {"deny", "slow-disk", "full-spool", "full-archive", "reload-same", "lose-acks"}
)


def make_plan(seed: int) -> Plan:
    """Draw the plan of `seed`."""
    if seed % 13 in HOSTILE_SEEDS:
        return hostile_plan(seed)
    random = Random(f"later {seed}")  # noqa: S311  # no secret
    if seed % 7 != LATER_SEEDS:
        return _first_plan(seed)
    taps = random.random() < 0.3
    if random.random() < 0.5:
        plan = later_plan(random, seed)
        return replace(plan, taps=taps and plan.archive)
    plan = _first_plan(seed)
    faults = [_later_fault(random, plan) for _ in range(random.choice((0, 1, 1, 2)))]
    faults = sorted((*plan.faults, *faults), key=lambda each: each.at)
    once = random.random() < 0.6
    taps = taps and plan.archive and plan.shape in {"one", "fan"}
    return replace(plan, faults=tuple(faults), exactly_once=once, taps=taps)


def _later_fault(random: Random, plan: Plan) -> Fault:
    kind = random.choice(LATER_FAULTS)
    places = plan.brokers if kind == "older-sessions" else GATEWAYS[plan.shape]
    at = 1.0 + random.random() * plan.until * 0.9
    return Fault(at, kind, random.choice([*places]), 0.05, steps=random.randrange(200))


def _first_plan(seed: int) -> Plan:
    if (special := special_plan(seed)) is not None:
        return special
    random = Random(f"plan {seed}")  # noqa: S311  # no secret
    shape = _weighted(random, _WEIGHTS)
    brokers = {name: _system(random, shape, name) for name in SHAPES[shape]}
    until = random.choice((2.0, 4.0, 8.0))
    number = int(random.choice((3, 8, 20, 40)))
    publications = _publications(random, shape, number, until)
    faults = [
        _fault(random, shape, until, publications) for _ in range(random.choice((0, 1, 2, 3, 5)))
    ]
    policy = Policy(
        switch=random.choice((0.02, 0.1, 0.3, 0.7)),
        pause=random.choice((0.0, 0.0, 0.02, 0.1)),
        longest=random.choice((0.05, 0.5)),
        by_priority=random.random() < 0.4,
    )
    spool = random.random() < 0.7
    return Plan(
        seed, shape, brokers, publications, tuple(sorted(faults, key=lambda each: each.at)),
        policy,
        spool=spool,
        archive=random.random() < 0.85,
        sync="interval" if random.random() < 0.2 else "batch",
        when_full=random.choice(("slow", "slow", "dead-letter-oldest", "dead-letter-newest")),
        spool_messages=random.choice((None, None, 4, 12)),
        spool_seconds=random.choice((None, None, None, 2.0)),
        duplicates=random.choice(("drop", "drop", "pass")),
        window=random.choice((1, 3, 20, 100)),
        batch=random.choice((1, 3, 1_000)),
        capacity=random.choice((1_000, 4_000, 1 << 20)),
        latency=random.choice((0.001, 0.02, 0.2)),
        flush=random.choice((0.001, 0.01, 0.2)),
        heartbeat=random.random() < 0.15,
        until=until,
        dead_letter_endpoint=spool and random.random() < 0.2,
    )  # fmt: skip


def _weighted(random: Random, weights: dict[str, int]) -> str:
    return random.choices(list(weights), list(weights.values()))[0]


def _system(random: Random, shape: str, name: str) -> str:
    if shape in {"both", "ring2", "ring3"}:
        return random.choice(BOTH_WAYS) if shape == "both" else "mqtt5"
    if name == "a" and random.random() < 0.08:
        return "yami4"
    return random.choice(KEPT_SYSTEMS)


def _publications(random: Random, shape: str, number: int, until: float) -> tuple[Publication, ...]:
    sources = SOURCES[shape]
    keys = random.choice((1, 2, 4))
    padding = b"." * random.choice((0, 0, 600))
    if random.random() < 0.5:
        times = [random.random() ** random.choice((1, 3)) * until for _ in range(number)]
    else:  # in bursts
        bursts = [random.random() * until for _ in range(random.choice((1, 2, 4)))]
        times = [random.choice(bursts) + random.random() * 0.1 for _ in range(number)]
    times.sort()
    found: list[Publication] = []
    for at, time in enumerate(times):
        broker = random.choice(sources)
        key = f"k{random.randrange(keys)}"
        payload = f"<{broker}{at}>".encode() + padding
        if shape == "both" and found and random.random() < 0.2:
            other = random.choice(found)
            if other.broker != broker:  # an application repeats what came from the other side
                key, payload = other.key, other.payload
        found.append(Publication(1.0 + time, broker, key, payload))
    return tuple(found)


def _fault(
    random: Random, shape: str, until: float, publications: tuple[Publication, ...]
) -> Fault:
    at = 1.0 + random.random() * until * 0.9
    if random.random() < 0.6:  # while messages are on their way
        at = min(1.0 + until * 0.95, random.choice(publications).at + random.random() * 0.3)
    seconds = min(random.choice((0.05, 0.5, 2.0, 5.0)), until + 1.0 - at)
    if random.random() < 0.55:
        kind = _weighted(random, BROKER_FAULTS)
        where = random.choice(SHAPES[shape])
        if kind in {"poison", "deny"}:
            payload = random.choice(publications).payload
            if kind == "deny" and random.random() < 0.5:  # a tenth of all
                payload = payload.rstrip(b".")[-2:]
            return Fault(0.9, kind, where, payload=payload)
        return Fault(at, kind, where, seconds)
    kind = _weighted(random, GATEWAY_FAULTS)
    where = random.choice(GATEWAYS[shape])
    steps = random.randrange(200)
    if kind == "kill" and steps % 4 == 0:
        kind = "power"
    return Fault(at, kind, where, seconds, steps=steps)
