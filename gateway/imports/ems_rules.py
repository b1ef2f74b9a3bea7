"""Lines of bridges.conf as routes; what no route can say is left, with the reason."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from gateway.dialects.base import parse_pattern, parse_subject
from gateway.dialects.ems import EMS
from gateway.errors import SubjectError, TranslationError
from gateway.imports.checks import brace_fault, may_overlap, route_fault, takes
from gateway.imports.document import Names, Rule, Send
from gateway.imports.ems_files import QUEUE, TOPIC, Bridge, Sent
from gateway.imports.ems_ties import Ties
from gateway.imports.lines import Left
from gateway.imports.scalars import REFERENCE, prose

SERVER = "ems"  # the name of its endpoint
PREFIXES = ("topic:", "queue:", "temptopic:", "tempqueue:")  # addresses of a JMS endpoint
QUEUE_SOURCE = (
    "a bridge copies what is sent to the queue, and a client that reads the queue takes it away;"
    " bridge the queue to a topic or to a spare queue in the server and route from that"
)


@dataclass(frozen=True, slots=True)
class Carried:
    """A bridge's lines of one selector that become a route."""

    bridge: Bridge
    selector: str
    sent: tuple[Sent, ...]


def carried_of(bridges: Iterable[Bridge], left: list[Left]) -> list[Carried]:
    """What becomes routes; all the rest goes to `left`."""
    carried: list[Carried] = []
    seen: dict[tuple[str, str], Bridge] = {}
    for bridge in bridges:
        what = f"bridge from {bridge.kind} {bridge.name!r}"
        first = seen.setdefault((bridge.kind, bridge.name), bridge)
        if not bridge.sent:
            left.append(Left(bridge.place, what, "no line under it could be read"))
        elif first is not bridge:
            reason = f"it stands in {first.place} too, and the server refuses a second"
            left += [Left(place, what, reason) for place in bridge.places]
        elif fault := _source_fault(bridge):
            left += [Left(place, what, fault) for place in bridge.places]
        else:
            carried += _by_selector(bridge, left)
    return carried


def _source_fault(bridge: Bridge) -> str | None:
    try:
        parse_pattern(bridge.name, EMS)
    except (SubjectError, TranslationError) as error:
        return str(error)
    return QUEUE_SOURCE if bridge.kind == QUEUE else brace_fault(bridge.name)


def _by_selector(bridge: Bridge, left: list[Left]) -> list[Carried]:
    groups: dict[tuple[str, str], list[Sent]] = {}
    targets: set[tuple[str, str, str]] = set()
    for sent in bridge.sent:
        what = f"target {sent.kind} {sent.name!r}"
        key = (sent.kind, sent.name, sent.selector)
        if fault := _target_fault(bridge, sent):
            left.append(Left(sent.place, what, fault))
        elif key in targets:
            left.append(Left(sent.place, what, "the same line stands above it"))
        else:
            targets.add(key)
            own = sent.name if _is_own(bridge, sent) else ""
            groups.setdefault((sent.selector, own), []).append(sent)
    return [Carried(bridge, selector, tuple(sent)) for (selector, _), sent in groups.items()]


def _is_own(bridge: Bridge, sent: Sent) -> bool:
    """Whether the bridge takes from its own target; that has a route with an exclusion."""
    return sent.kind == TOPIC and takes(bridge.name, sent.name, EMS)


def _target_fault(bridge: Bridge, sent: Sent) -> str | None:
    try:
        parse_subject(sent.name, EMS)
    except (SubjectError, TranslationError) as error:
        return str(error)
    if sent.kind == TOPIC and sent.name == bridge.name:
        return "it is the bridge's own source"
    if REFERENCE in sent.selector:
        return f"its selector holds {REFERENCE!r}, which the configuration would replace"
    return brace_fault(sent.name) or route_fault(
        _address(TOPIC, bridge.name), _address(sent.kind, sent.name), EMS
    )


def _address(kind: str, name: str) -> str:
    """How a JMS endpoint of topics spells a destination."""
    if kind == QUEUE:
        return f"queue:{name}"
    return f"topic:{name}" if name.startswith(PREFIXES) else name


def rules_of(
    carried: Sequence[Carried], by_selector: dict[str, str], ties: Ties, secrets: Sequence[str]
) -> tuple[Rule, ...]:
    names = Names()
    rules = [_rule(each, by_selector[each.selector], names, secrets) for each in carried]
    twice = _twice(carried, [rule.name for rule in rules])
    return tuple(
        replace(
            rule,
            notes=(*rule.notes, *ties.source_notes(each.bridge.name), *again),
            sends=tuple(
                replace(send, notes=(*send.notes, *_target_notes(sent, carried, ties)))
                for send, sent in zip(rule.sends, each.sent, strict=True)
            ),
        )
        for rule, each, again in zip(rules, carried, twice, strict=True)
    )


def _rule(each: Carried, endpoint: str, names: Names, secrets: Sequence[str]) -> Rule:
    bridge = each.bridge
    sends = tuple(
        Send(
            SERVER,
            _address(sent.kind, sent.name),
            (*prose(sent.above, secrets), str(sent.place)),
        )
        for sent in each.sent
    )
    own = tuple(sent.name for sent in each.sent if _is_own(bridge, sent))
    notes = [*prose(bridge.above, secrets), f"{bridge.place}: [{bridge.kind}:{bridge.name}]"]
    if {EMS.any_one, EMS.any_many} & set(bridge.name.split(EMS.separator)):
        notes.append("Many names become one, as over the bridge.")
    if each.selector:
        notes.append(f"The selector stands on the endpoint {endpoint!r}.")
    if own:
        notes.append("Its own target is left out of the source, so that the route does not loop.")
    name = names.make(bridge.name)
    return Rule(name, endpoint, _address(TOPIC, bridge.name), sends, own, tuple(notes))


def _twice(carried: Sequence[Carried], names: Sequence[str]) -> list[list[str]]:
    """For each route, what it delivers a second time."""
    notes: list[list[str]] = [[] for _ in carried]
    senders: dict[tuple[str, str], list[int]] = {}
    for number, each in enumerate(carried):
        for sent in each.sent:
            earlier = senders.setdefault((sent.kind, sent.name), [])
            notes[number] += [
                f"{sent.place}: overlaps with the route {names[other]!r}: {sent.kind}"
                f" {sent.name!r} gets two copies of what both take, as it does from the server."
                for other in earlier
                if may_overlap(each.bridge.name, carried[other].bridge.name, EMS)
            ]
            earlier.append(number)
    return notes


def _target_notes(sent: Sent, carried: Sequence[Carried], ties: Ties) -> list[str]:
    if sent.kind != TOPIC:
        return []
    onward = dict.fromkeys(
        each.bridge.place for each in carried if takes(each.bridge.name, sent.name, EMS)
    )
    notes = [
        f"{place} bridges this topic too; the server does not send on what came over this bridge."
        for place in onward
    ]
    return notes + ties.target_notes(sent.name)
