"""Worlds in which one rule is strained, among the random ones of `faults.make_plan`.

A purely random world rarely has the second that a rule is for: a break while a hundred messages are
on their way, a spool that is full for long.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from random import Random
from typing import Final

from tests.simulation.plan import FOREVER, Fault, Plan, Publication
from tests.simulation.scheduler import Policy

_RESTLESS: Final = Policy(switch=0.5, pause=0.2, longest=0.2)


def _burst(broker: str, number: int, start: float = 1.5, gap: float = 0.01) -> list[Publication]:
    """Messages of one key, close together."""
    return [
        Publication(start + gap * at, broker, "k0", f"<{broker}{at}>".encode())
        for at in range(number)
    ]


def _break_in_a_burst(random: Random, seed: int) -> Plan:
    """A connection breaks, and breaks again or the process dies, while the lane is full."""
    at = 1.5 + random.random() * 0.6
    second = Fault(at + random.random() * 0.4, "cut", "b")
    if random.random() < 0.7:
        second = Fault(at, "kill", "g1", seconds=0.3, steps=random.randrange(20, 200))
    full = random.random() < 0.2
    return Plan(
        seed, "one", {"a": "mqtt5", "b": "mqtt5"}, tuple(_burst("a", random.choice((40, 80)))),
        (Fault(at, "cut", "b"), second), _RESTLESS,
        spool=random.random() < 0.85, when_full="dead-letter-oldest" if full else "slow",
        spool_messages=4 if full else None, latency=0.2, flush=0.2, batch=1, window=100,
        qos=random.choice((None, None, 0)),
    )  # fmt: skip


def _kill_while_the_spool_is_sent(random: Random, seed: int) -> Plan:
    """A target comes back, and the process dies while its spool is sent."""
    back = 2.0 + random.random() * 0.2
    return Plan(
        seed, "one", {"a": "mqtt5", "b": "mqtt5"}, tuple(_burst("a", 20)),
        (
            Fault(0.0, "away", "b", seconds=back),
            Fault(back + random.random(), "kill", "g1", seconds=0.3, steps=random.randrange(60)),
        ),
        Policy(switch=0.3), latency=0.2, flush=random.choice((0.01, 0.2)), batch=1,
    )  # fmt: skip


def _full_spool(random: Random, seed: int) -> Plan:
    """A target is away from the start, and its spool is soon full."""
    when_full = random.choice(("slow", "slow", "dead-letter-newest", "dead-letter-oldest"))
    return Plan(
        seed, "fan", {"a": "mqtt5", "b": "mqtt5", "c": "mqtt5"}, tuple(_burst("a", 40)),
        (Fault(0.0, "away", "c", seconds=random.choice((3.0, 6.0))),), Policy(),
        when_full=when_full, spool_messages=random.choice((4, 12)), batch=random.choice((1, 3)),
        window=random.choice((3, 20)),
    )  # fmt: skip


def _equal_messages_both_ways(random: Random, seed: int) -> Plan:
    """Both sides have equal messages of their own, and one refuses or breaks now and then."""
    there = _burst("b", 10, gap=0.05)
    back = [
        Publication(each.at + random.random() * 0.3, "a", each.key, each.payload) for each in there
    ]
    kind = random.choice(("retry", "cut", "silent-down", "kill"))
    where = "g1" if kind == "kill" else random.choice("ab")
    fault = Fault(1.4 + random.random() * 0.5, kind, where, seconds=0.4)
    return Plan(
        seed, "both", {"a": "mqtt311", "b": "mqtt311"},
        tuple(sorted([*there, *back], key=lambda each: each.at)), (fault,), Policy(switch=0.3),
        latency=0.2, spool=random.random() < 0.5,
    )  # fmt: skip


def _removed_while_away(random: Random, seed: int) -> Plan:
    """A reload removes a target that is away for ever, while batches wait for it in memory."""
    return Plan(
        seed, "fan", {"a": "mqtt5", "b": "mqtt5", "c": "mqtt5"},
        tuple(_burst("a", 20, gap=0.05)),
        (
            Fault(1.3, "away", "c", seconds=FOREVER),
            Fault(1.5 + random.random(), "reload-remove", "g1"),
        ),
        Policy(switch=0.1), spool=False, batch=1,
    )  # fmt: skip


def _changed_bit_in_the_spool(random: Random, seed: int) -> Plan:
    """A bit of a spool's file changes while its targets are away."""
    padding = b"." * random.choice((0, 600, 2_000))
    return Plan(
        seed, "fan", {"a": "mqtt5", "b": "mqtt5", "c": random.choice(("mqtt5", "jms"))},
        tuple(replace(each, payload=each.payload + padding) for each in _burst("a", 10)),
        (
            Fault(0.0, "away", "b", seconds=4.0),
            Fault(0.0, "away", "c", seconds=random.choice((2.0, 4.0))),
            Fault(2.0, "change-spool", "g1", seconds=0.5, steps=random.randrange(60)),
        ),
        Policy(), batch=1, archive=random.random() < 0.7,
    )  # fmt: skip


def _kill_after_a_break(random: Random, seed: int) -> Plan:
    """The process dies while the batches of a lost connection are put back into the spool."""
    at = 1.6 + random.random() * 0.4
    dies = at + 0.2 + random.random() * 0.15
    return Plan(
        seed, "one", {"a": "mqtt5", "b": "mqtt5"}, tuple(_burst("a", 80)),
        (
            Fault(at, "cut", "b"),
            Fault(dies, "kill", "g1", seconds=0.3, steps=random.randrange(1, 40)),
        ),
        _RESTLESS, latency=0.2, flush=0.2, batch=1, window=100,
    )  # fmt: skip


def _breaks_at_qos_2(random: Random, seed: int) -> Plan:
    """Connections break, and brokers restart, between the four packets of QoS 2."""
    kinds = ("cut", "silent-up", "silent-down", "retry", "kill", "away", *["older-sessions"] * 4)
    faults = []
    for _ in range(random.choice((1, 2, 4))):
        kind = random.choice(kinds)
        where = "g1" if kind == "kill" else random.choice("aab")
        at = 1.5 + random.random()
        faults.append(Fault(at, kind, where, seconds=0.3, steps=random.randrange(60)))
    return Plan(
        seed, "one", {"a": "mqtt5", "b": "mqtt5"},
        tuple(_burst("a", random.choice((10, 40)), gap=random.choice((0.01, 0.05)))),
        tuple(sorted(faults, key=lambda each: each.at)), Policy(switch=0.3),
        spool=random.random() < 0.5, latency=0.2, exactly_once=True,
        batch=random.choice((1, 1_000)), window=random.choice((2, 5, 20)),
    )  # fmt: skip


# kind -> share of all seeds, in percent
_SHARES: Final[Mapping[Callable[[Random, int], Plan], int]] = {
    _break_in_a_burst: 8,
    _kill_while_the_spool_is_sent: 2,
    _full_spool: 2,
    _equal_messages_both_ways: 2,
    _removed_while_away: 1,
}


def special_plan(seed: int) -> Plan | None:
    """The plan of a seed whose world is a special one; None for the others."""
    random = Random(f"special {seed}")  # noqa: S311  # no secret
    chosen = random.random() * 100
    for make, share in _SHARES.items():
        if chosen < share:
            return make(random, seed)
        chosen -= share
    return None


def later_plan(random: Random, seed: int) -> Plan:
    """A world for a rule that the first ones rarely strain."""
    kinds = (_changed_bit_in_the_spool, _breaks_at_qos_2, _kill_after_a_break)
    return random.choices(kinds, (2, 2, 5))[0](random, seed)
