"""Worlds with hostile messages, names, brokers and disks, which honest messages must survive."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Final

from tests.simulation.plan import CONTROL, NOT_TAKEN, SHAPES, Fault, Plan, Publication
from tests.simulation.scheduler import Policy

BACKOFF: Final = (0.5, 30.0)  # seconds, as by default
BOUND: Final = 6.0  # seconds until an honest message arrives, while hostile ones are found
HOSTILE_FAULTS: Final = ("hang-up", "unwritable", "read-only", "thread", "only-accept")  # only here
EMPTY_SPOOL: Final = 110_000  # bytes, with its reserve; `test_stand_ins.py` measures it
_SYSTEMS: Final = ("mqtt5", "mqtt311", "jms", "solace")


def hostile_plan(seed: int) -> Plan:
    """Draw the plan of a seed."""
    later = Random(f"own sinks {seed}")  # noqa: S311  # no secret
    if later.random() < 0.3:
        return later.choice((_at_own_sinks, _load_balancer))(later, seed)
    random = Random(f"hostile {seed}")  # noqa: S311  # no secret
    kinds = (_names_not_taken, _small_disk, _failing_disk, _unwritable, _relay)
    return random.choices(kinds, (3, 5, 2, 1, 2))[0](random, seed)


def _names_not_taken(random: Random, seed: int) -> Plan:
    """A target hangs up for every message of some names, in a burst or in a long stream."""
    shape = random.choice(("one", "fan"))
    share, gap = random.choice((0.05, 0.2, 0.5)), random.choice((0.005, 0.05, 0.4))
    sent = [
        replace(each, key=NOT_TAKEN) if random.random() < share else each
        for each in _stream(random, random.choice((20, 40)), gap)
    ]
    others = _other_faults(random, "kill", "power", "stop", "slow-disk")
    return Plan(
        seed, shape, {name: random.choice(_SYSTEMS) for name in SHAPES[shape]}, tuple(sent),
        (Fault(0.5, "hang-up", "b"), *others), Policy(switch=random.choice((0.02, 0.3))),
        spool=random.random() < 0.6, batch=random.choice((1, 3, 1_000)),
        window=random.choice((5, 20, 100)), latency=random.choice((0.001, 0.02)), backoff=BACKOFF,
        until=sent[-1].at, exactly_once=random.random() < 0.4, bound=None if others else BOUND,
        qos=random.choice((0, 0, 1, None)),
    )  # fmt: skip


def _unwritable(random: Random, seed: int) -> Plan:
    """Messages that cannot be written: an error of the encoder, or a character of their name."""
    sent = [
        replace(each, once=random.random() < 0.7,
                key=CONTROL if random.random() < 0.1 else each.key)
        for each in _stream(random, random.choice((10, 30)), random.choice((0.005, 0.1)))
    ]  # fmt: skip
    chosen = random.sample(sent, random.choice((1, 3)))
    return Plan(
        seed, "one", {"a": random.choice(("jms", "solace")), "b": "mqtt5"}, tuple(sent),
        (*(Fault(0.5, "unwritable", "b", payload=each.payload) for each in chosen),
         *(others := _other_faults(random, "kill", "power", "stop", "slow-disk"))),
        Policy(switch=random.choice((0.02, 0.3))), spool=random.random() < 0.6,
        batch=random.choice((1, 3, 1_000)), window=random.choice((20, 100)),
        latency=random.choice((0.001, 0.02)), backoff=BACKOFF, until=sent[-1].at,
        qos=random.choice((0, 1)), bound=None if others else 2.0,
    )  # fmt: skip


def _at_own_sinks(random: Random, seed: int) -> Plan:
    """Names that are not taken, or messages that cannot be written, at sinks of other systems.

    All are at least once: what YAMI4 does not confirm counts as delivered before it arrives.
    """
    plan = random.choice((_unwritable, _names_not_taken))(random, seed)
    others = ("jms", "solace", "yami4")
    brokers = {each: random.choice(others) if each != "a" else system
               for each, system in plan.brokers.items()}  # fmt: skip
    sent = tuple(replace(each, once=True) for each in plan.publications)
    return replace(plan, brokers=brokers, publications=sent, own_sinks=True)


def _load_balancer(random: Random, seed: int) -> Plan:
    """A load balancer whose broker is away accepts connections, and closes each of them."""
    sent = _stream(random, random.choice((3, 20)), random.choice((0.02, 0.1)))
    at, seconds = random.choice((0.0, 1.4, 1.6)), random.choice((1.0, 3.0))
    return Plan(
        seed, "one", {"a": random.choice(_SYSTEMS), "b": "yami4"}, tuple(sent),
        (Fault(at, "only-accept", "b", seconds=at + seconds),
         *_other_faults(random, "kill", "stop", "slow-disk")),
        Policy(switch=random.choice((0.02, 0.3))), spool=random.random() < 0.6,
        batch=random.choice((1, 3, 1_000)), window=random.choice((20, 100)),
        latency=random.choice((0.001, 0.02)), own_sinks=True, until=max(5.0, sent[-1].at),
    )  # fmt: skip


def _relay(random: Random, seed: int) -> Plan:
    """A gateway sends to a broker that keeps nothing, and receives from it what it sent.

    The pauses are those by default: a source that is busy longer does not know of its loss yet.
    """
    sent = _stream(random, 30, random.choice((0.02, 0.1)))
    at = 1.5 + random.random()
    kind = random.choice(("away", "away", "cut", "kill", "stop"))
    where = "b" if kind in {"away", "cut"} else "g1"
    return Plan(
        seed, "relay", {"a": random.choice(_SYSTEMS), "b": "yami4", "c": random.choice(_SYSTEMS)},
        tuple(sent), (Fault(at, kind, where, seconds=random.choice((0.3, 2.0))),),
        Policy(switch=random.choice((0.02, 0.3))), spool=random.random() < 0.8,
        batch=random.choice((1, 3, 1_000)), window=random.choice((20, 100)),
        latency=random.choice((0.02, 0.2)), backoff=BACKOFF, until=5.0,
    )  # fmt: skip


def _small_disk(random: Random, seed: int) -> Plan:
    """A target is away while its spool fills a small disk, and comes back."""
    shape = random.choice(("one", "fan"))
    sent = _stream(random, 40, random.choice((0.0, 0.01, 0.05)), random.choice((600, 1_500, 2_500)))
    back = random.choice((2.0, 4.0))
    return Plan(
        seed, shape, {name: random.choice(_SYSTEMS) for name in SHAPES[shape]}, tuple(sent),
        (Fault(0.0, "away", "b", seconds=back),
         *_other_faults(random, "kill", "power", "stop", "slow-disk")),
        Policy(switch=random.choice((0.02, 0.3))), batch=random.choice((1, 1_000, 1_000)),
        window=random.choice((3, 20, 100)), until=max(back, sent[-1].at),
        archive=random.random() < 0.7, disk=EMPTY_SPOOL + random.randrange(5_000, 40_000),
        queued=random.choice((3_000, 30_000)),
    )  # fmt: skip


def _failing_disk(random: Random, seed: int) -> Plan:
    """A spool becomes read-only, or an error ends a thread that writes to a disk."""
    sent = _stream(random, 30, random.choice((0.01, 0.1)), random.choice((0, 600)))
    at, steps = 1.5 + random.random() * 2.0, random.randrange(200)
    kind = random.choice(("read-only", "thread", "thread"))
    return Plan(
        seed, "fan", {name: random.choice(_SYSTEMS) for name in "abc"}, tuple(sent),
        (Fault(1.4, "away", "c", seconds=random.choice((0.5, 2.0))),
         Fault(at, kind, "g1", seconds=random.choice((0.5, 3.0)), steps=steps),
         *_other_faults(random, "kill", "stop", "cut")),
        Policy(switch=random.choice((0.02, 0.3))), batch=random.choice((1, 3)),
        window=random.choice((3, 20)), until=5.5,
    )  # fmt: skip


def _stream(random: Random, number: int, gap: float, size: int = 0) -> list[Publication]:
    """Messages of two keys at equal intervals, padded to `size` bytes."""
    return [
        Publication(1.5 + gap * at, "a", random.choice(("k0", "k1")),
                    f"<a{at}>".encode().ljust(size, b"."))
        for at in range(number)
    ]  # fmt: skip


def _other_faults(random: Random, *kinds: str) -> tuple[Fault, ...]:
    """One of the faults, in some worlds."""
    if random.random() < 0.7:
        return ()
    at, steps = 1.5 + random.random() * 1.5, random.randrange(200)
    kind = random.choice(kinds)
    return (Fault(at, kind, "b" if kind == "cut" else "g1", seconds=0.3, steps=steps),)
