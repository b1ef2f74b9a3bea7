"""The messages beside a hostile one: they arrive soon, and none is blamed for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from xxhash import xxh3_128_digest

from tests.simulation.books import Books, short
from tests.simulation.faults import BROKER_FAULTS, MESSAGE_FAULTS
from tests.simulation.gateways import RunningGateway
from tests.simulation.outcomes import Outcomes
from tests.simulation.plan import CONTROL, NOT_TAKEN, Plan

_BLAME: Final = frozenset({"poisoned", "unwritable"})  # rules of dead letters that accuse a message
_ACCUSING: Final = {*BROKER_FAULTS, "older-sessions", "reload-sink"} - MESSAGE_FAULTS


def judge_neighbours(outcomes: Outcomes) -> None:
    """Report each message that no fault concerns and that was blamed, or came late."""
    plan, books = outcomes.plan, outcomes.books
    concerned = set(_concerned(plan))
    if not {each.kind for each in plan.faults} & _ACCUSING:
        for each in outcomes.gateways.values():
            for payload, rule in _blamed(books, each):
                if payload not in concerned:
                    books.report("blamed", f"{each.name}: {short(payload)} is {rule}")
    if plan.bound is None:
        return
    for payload, target in sorted(books.arrivals):
        origins = books.origins(payload)
        if payload in concerned or target in origins or not books.arrivals[payload, target]:
            continue
        seconds = books.arrivals[payload, target][0] - books.published[origins[0], payload][0]
        if seconds > plan.bound:
            books.report("late", f"{short(payload)} came to {target} after {seconds:.1f} s")


def _concerned(plan: Plan) -> Iterator[bytes]:
    """The payloads that a fault concerns."""
    parts = [each.payload for each in plan.faults if each.payload]
    for each in plan.publications:
        if {NOT_TAKEN, CONTROL} & {*each.key} or any(part in each.payload for part in parts):
            yield each.payload


def _blamed(books: Books, each: RunningGateway) -> Iterator[tuple[bytes, str]]:
    """The payloads of dead letters that accuse them, with the rule, as the disk has them."""
    payloads = {xxh3_128_digest(payload): payload for payload in books.keys}
    for row in each.disk.rows():
        if row["leg"] == "dead" and row["rule"] in _BLAME and row["hash"] in payloads:
            yield payloads[row["hash"]], row["rule"]
    for rule, body in each.disk.letters():
        if rule in _BLAME:
            yield from ((payload, rule) for payload in books.keys if payload in body)
