"""Scripted worlds: the faults that hostile trials with real brokers found, scaled down.

Each function takes a seed, which gives the order of the steps only.
"""

from __future__ import annotations

from random import Random

from tests.simulation.hostile_plans import EMPTY_SPOOL
from tests.simulation.plan import FOREVER, Fault, Plan, Publication
from tests.simulation.scheduler import Policy

_POLICY = Policy(switch=0.1)
_FAN = {"a": "mqtt5", "b": "mqtt5", "c": "mqtt5"}


def _steady(broker: str, number: int, start: float, gap: float, size: int = 0) -> list[Publication]:
    """Messages of one key at equal intervals, padded to at least `size` bytes."""
    return [
        Publication(start + gap * at, broker, "k0", f"<{broker}{at}>".encode() + b"." * size)
        for at in range(number)
    ]


def echoes_of_lost_attempts(seed: int) -> Plan:
    """27.2: a copy to 3.1.1 counts at each attempt, so a real equal message is cut later."""
    there = _steady("a", 6, 1.5, 0.05)
    back = [Publication(4.0 + 0.1 * at, "b", each.key, each.payload)
            for at, each in enumerate(there)]  # fmt: skip
    return Plan(
        seed, "both", {"a": "mqtt5", "b": "mqtt311"}, (*there, *back),
        (Fault(1.6, "silent-down", "b"), Fault(1.85, "cut", "b")),
        _POLICY, spool=False, latency=0.2,
    )  # fmt: skip


def names_from_fields(seed: int) -> Plan:
    """A name comes from the payload, through a spool, a kill and a second gateway."""
    said = [
        Publication(
            1.5 + 0.05 * at, "a", f"k{at % 3}", b'{"key": "k%d", "id": "<a%d>"}' % (at % 3, at)
        )
        for at in range(30)
    ]
    return Plan(
        seed, "chain", _FAN | {"b": "nats"}, tuple(said),
        (
            Fault(1.6, "away", "b", seconds=1.5),
            Fault(2.0, "kill", "g1", steps=seed),
            Fault(3.4, "kill", "g2", steps=seed),
        ),
        _POLICY, fields=True,
    )  # fmt: skip


def spool_waits_for_itself(seed: int) -> Plan:
    """27.3: the spool's thread records dead letters, and waits for the room that it makes."""
    return Plan(
        seed, "fan", _FAN, tuple(_steady("a", 40, 1.5, 0.01, 600)),
        (
            Fault(0.9, "deny", "b", payload=b"<"),
            Fault(1.3, "away", "c", seconds=4.0),
            Fault(1.3, "slow-disk", "g1", seconds=4.0),
        ),
        _POLICY, batch=1, window=100,
    )  # fmt: skip


def reload_removes_an_absent_target(seed: int) -> Plan:
    """27.4: batches that wait for a target which a reload removes are never settled."""
    return Plan(
        seed, "fan", _FAN, tuple(_steady("a", 40, 1.5, 0.1, 600)),
        (Fault(1.3, "away", "c", seconds=FOREVER), Fault(3.0, "reload-remove", "g1")),
        _POLICY, spool=False, batch=1, window=20,
    )  # fmt: skip


def full_spool_blocks_its_own_deletes(seed: int) -> Plan:
    """27.5: an INSERT that a full disk refuses holds back the DELETEs that would make room."""
    return Plan(
        seed, "fan", _FAN, tuple(_steady("a", 40, 1.5, 0.05, 600)),
        (
            Fault(1.3, "away", "c", seconds=2.0),
            Fault(2.5, "full-spool", "g1", seconds=FOREVER),
        ),
        _POLICY, batch=1, window=20, until=4.0,
    )  # fmt: skip


def batch_larger_than_the_disk(seed: int) -> Plan:
    """37.1: a received batch is larger than the room of the disk; then its target is back."""
    return Plan(
        seed, "one", {"a": "mqtt5", "b": "mqtt5"}, tuple(_steady("a", 40, 1.5, 0.0, 1_500)),
        (Fault(0.0, "away", "b", seconds=4.0),), _POLICY, disk=EMPTY_SPOOL + 10_000, until=4.0,
    )  # fmt: skip


def stop_waits_for_the_disk(seed: int) -> Plan:
    """37.3: a lane waits for a mark on a read-only disk, and a stop waits for the lane."""
    return Plan(
        seed, "one", {"a": "mqtt5", "b": "mqtt5"}, tuple(_steady("a", 10, 1.1, 0.01)),
        (
            Fault(0.0, "away", "b", seconds=3.0),
            Fault(2.5, "read-only", "g1", seconds=20.0),
            Fault(4.0, "stop", "g1", seconds=0.5),
        ),
        _POLICY, until=24.0,
    )  # fmt: skip


def start_on_a_full_disk(seed: int) -> Plan:
    """37.1: a start needs the reserve, and new copies take its room before it is kept again."""
    return Plan(
        seed, "one", {"a": "mqtt5", "b": "mqtt5"}, tuple(_steady("a", 30, 1.5, 0.05, 1_500)),
        (Fault(0.0, "away", "b", seconds=4.0), Fault(2.0, "kill", "g1", seconds=0.3)),
        _POLICY, disk=EMPTY_SPOOL + 11_620, until=4.0,
    )  # fmt: skip


def source_too_busy_to_know(seed: int) -> Plan:
    """37.2: a source waits for another target while its broker, which keeps nothing, is lost."""
    return Plan(
        seed, "relay", {"a": "mqtt5", "b": "yami4", "c": "mqtt5"},
        tuple(_steady("a", 60, 1.5, 0.05, 600)),
        (Fault(1.6, "away", "c", seconds=4.0), Fault(3.5, "cut", "b")),
        _POLICY, spool=False, batch=1, window=20, until=6.0,
    )  # fmt: skip


def oldest_strands_rows_at_a_break(seed: int) -> Plan:
    """27.6: making room reads newer rows than those that a lost connection puts back."""
    return Plan(
        seed, "one", {"a": "mqtt5", "b": "mqtt5"}, tuple(_steady("a", 80, 1.5, 0.01)),
        (Fault(1.9, "cut", "b"), Fault(2.1, "cut", "b")),
        Policy(switch=0.5, pause=0.2, longest=0.2),
        when_full="dead-letter-oldest", spool_messages=4, latency=0.2, flush=0.2, batch=1,
        window=100,
    )  # fmt: skip


def clean_stop_forgets_echoes(seed: int) -> Plan:
    """An echo that the broker keeps during a clean stop returns to its origin, unmarked."""
    return Plan(
        seed, "both", {"a": "mqtt5", "b": "mqtt311"}, tuple(_steady("a", 6, 1.5, 0.05)),
        (Fault(1.6, "stop", "g1", seconds=0.5),), _POLICY, latency=0.2,
    )  # fmt: skip


def outcome_without_receipt(seed: int) -> Plan:
    """A spooled copy is delivered and recorded before the receipt of its batch; then a kill."""
    return Plan(
        seed, "fan", _FAN, tuple(_steady("a", 6, 1.5, 0.05)),
        (
            Fault(1.4, "silent-down", "c"),
            Fault(1.45, "away", "b", seconds=0.3),
            Fault(2.6, "kill", "g1", seconds=0.2),
        ),
        _POLICY, batch=1,
    )  # fmt: skip


def echo_of_a_failed_send(seed: int) -> Plan:
    """27.2: a send that fails at once, then the spool: the copy counts twice among the echoes."""
    there = _steady("b", 1, 2.0, 0.0)
    back = [Publication(5.0, "a", each.key, each.payload) for each in there]
    return Plan(
        seed, "both", {"a": "mqtt311", "b": "mqtt5"}, (*there, *back),
        (Fault(1.95, "cut", "a"),), _POLICY,
    )  # fmt: skip


def gap_forgotten_by_a_kill(seed: int) -> Plan:
    """The end of an outage is noted before its row is durable; a kill forgets the gap."""
    return Plan(
        seed, "one", {"a": "mqtt5", "b": "mqtt5"}, tuple(_steady("a", 6, 1.5, 0.05)),
        (
            Fault(2.0, "full-archive", "g1", seconds=1.0),
            Fault(2.1, "lose-sessions", "a"),
            Fault(2.5, "kill", "g1", seconds=0.2),
        ),
        _POLICY,
    )  # fmt: skip


def gap_forgotten_by_a_stop(seed: int) -> Plan:
    """A source makes its deleted consumer again, and a stop comes before the gap is recorded."""
    return Plan(
        seed, "one", {"a": "nats", "b": "jms"}, tuple(_steady("a", 10, 1.5, 0.05)),
        (
            Fault(1.75, "delete-consumer", "a"),
            Fault(1.75, "stop", "g1", seconds=0.3, steps=3 + 3 * seed),
        ),
        _POLICY, latency=0.2,
    )  # fmt: skip


def echo_of_an_unanswered_copy(seed: int) -> Plan:
    """A message that equals a copy without an answer is its echo, and the copy is refused then."""
    copy, message = (
        Publication(at, broker, "k0", b"<x>") for at, broker in ((2.0, "b"), (2.1, "a"))
    )
    return Plan(
        seed, "both", {"a": "mqtt311", "b": "mqtt311"}, (copy, message),
        (Fault(1.9, "retry", "a", seconds=0.4),), _POLICY, latency=0.2,
    )  # fmt: skip


def redelivered_before_the_answer(seed: int) -> Plan:
    """A source delivers again what a target has not answered: duplicates, and settled no sooner."""
    draw = Random(seed)  # noqa: S311  # no secret
    at = 1.7 + draw.random()
    return Plan(
        seed, "fan", _FAN | {"a": draw.choice(("jms", "solace", "nats"))},
        tuple(_steady("a", 12, 1.5, 0.1)),
        (
            Fault(1.3 + draw.random(), draw.choice(("away", "retry", "silent-down")), "b",
                  seconds=3.0),
            Fault(at, "cut", "a"),
            Fault(at + draw.random(), *draw.choice((("kill", "g1"), ("power", "g1"), ("cut", "a"))),
                  seconds=0.3),
        ),
        _POLICY, spool=draw.random() < 0.3, batch=draw.choice((1, 5)), latency=0.05,
    )  # fmt: skip


def rename_with_copies_on_their_way(seed: int) -> Plan:
    """A reload renames a target whose copies are on disk, unanswered or in memory."""
    draw = Random(seed)  # noqa: S311  # no secret
    at = 1.5 + draw.random() * 1.5
    faults = [
        Fault(at - draw.random(), draw.choice(("away", "silent-down", "slow")), "b",
              seconds=draw.random() * 2),
        Fault(at, "reload-rename", "g1"),
        Fault(at + draw.random(), draw.choice(("kill", "power", "stop", "reload-sink")), "g1",
              seconds=0.2),
        Fault(4.5 + draw.random(), "reload-rename", "g1"),
    ]  # fmt: skip
    return Plan(
        seed, draw.choice(("one", "both")), {"a": "mqtt5", "b": draw.choice(("mqtt5", "jms"))},
        tuple(_steady("a", 60, 1.5, 0.05, 600)), tuple(sorted(faults, key=lambda each: each.at)),
        _POLICY, spool=draw.random() < 0.8, batch=draw.choice((1, 5)), window=20, until=8.0,
    )  # fmt: skip
