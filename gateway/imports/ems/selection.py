"""Which lines of bridges.conf become routes, and which together; the others are left with reasons.

Where bridges overlap the server delivers a copy for each, a bridge does not send on what came
over another, and many names become one (EMS User's Guide, "Destination Bridges"). A route goes by
the name alone: what would arrive twice is taken once, and two topics that are bridged to each
other are one pair.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from gateway.dialects.base import parse_pattern, parse_subject
from gateway.dialects.systems.ems import EMS
from gateway.errors import SubjectError, TranslationError
from gateway.imports.checks import brace_fault, covered, may_overlap, route_fault, takes
from gateway.imports.ems.config_files import QUEUE, TOPIC, Bridge, Sent
from gateway.imports.lines import Left, Place
from gateway.imports.yaml_text import REFERENCE
from gateway.routing.selectors.selector import parse_selector

PREFIXES = ("topic:", "queue:", "temptopic:", "tempqueue:")  # addresses of a JMS endpoint
WILD = frozenset({EMS.any_one, EMS.any_many})
QUEUE_SOURCE = (
    "a bridge copies what is sent to the queue, and a client that reads the queue takes it away;"
    " bridge the queue to a topic or to a spare queue in the server and route from that"
)


@dataclass(frozen=True, slots=True)
class Carried:
    """A bridge's lines that become one route: of one selector, with the same `exclude`.

    `exclude` is spelled as a JMS endpoint does. `back` is the bridge the other way, where there is
    one of the same names.
    """

    bridge: Bridge
    selector: str
    sent: tuple[Sent, ...]
    exclude: tuple[str, ...] = ()
    back: Bridge | None = None


@dataclass(frozen=True, slots=True)
class _Line:
    """One line with its bridge."""

    bridge: Bridge
    sent: Sent
    exclude: tuple[str, ...] = ()
    back: Bridge | None = None

    @property
    def target(self) -> tuple[str, str]:
        return self.sent.kind, self.sent.name

    @property
    def ends(self) -> Iterator[tuple[Place, str]]:
        """The topics it sends to, and the lines that say so."""
        if self.sent.kind == TOPIC:
            yield self.sent.place, self.sent.name
        if self.back is not None:
            yield self.back.place, self.bridge.name


def carried_of(bridges: Iterable[Bridge], left: list[Left]) -> list[Carried]:
    """What becomes routes; all the rest goes to `left`."""
    lines: list[_Line] = []
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
            lines += _lines(bridge, left)
    lines = _once(_paired(lines), left)
    left += _chains(lines)
    return _grouped(lines)


def address(kind: str, name: str) -> str:
    """How a JMS endpoint of topics spells a destination."""
    if kind == QUEUE:
        return f"queue:{name}"
    return f"topic:{name}" if name.startswith(PREFIXES) else name


def is_wild(name: str) -> bool:
    return bool(WILD & set(name.split(EMS.separator)))


def _source_fault(bridge: Bridge) -> str | None:
    try:
        parse_pattern(bridge.name, EMS)
    except (SubjectError, TranslationError) as error:
        return str(error)
    return QUEUE_SOURCE if bridge.kind == QUEUE else brace_fault(bridge.name)


def _lines(bridge: Bridge, left: list[Left]) -> Iterator[_Line]:
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
            own = address(sent.kind, sent.name)
            taken = takes(address(TOPIC, bridge.name), own, EMS)
            yield _Line(bridge, sent, (own,) if taken else ())


def _target_fault(bridge: Bridge, sent: Sent) -> str | None:
    try:
        parse_subject(sent.name, EMS)
    except (SubjectError, TranslationError) as error:
        return str(error)
    if sent.kind == TOPIC and sent.name == bridge.name:
        return "it is the bridge's own source"
    if REFERENCE in sent.selector:
        return f"its selector holds {REFERENCE!r}, which the configuration would replace"
    if sent.selector:
        try:
            parse_selector(sent.selector)
        except SubjectError as error:
            return str(error)
    return brace_fault(sent.name) or route_fault(
        address(TOPIC, bridge.name), address(sent.kind, sent.name), EMS
    )


def _paired(lines: Sequence[_Line]) -> list[_Line]:
    """Two topics bridged to each other, without selectors, as the first line alone."""
    plain = {
        (line.bridge.name, line.sent.name): line
        for line in lines
        if line.sent.kind == TOPIC and not line.sent.selector and not is_wild(line.bridge.name)
    }
    found: list[_Line] = []
    for line in lines:
        back = plain.get((line.sent.name, line.bridge.name))
        if back is None or plain.get((line.bridge.name, line.sent.name)) is not line:
            found.append(line)
        elif line.sent.place < back.sent.place:
            found.append(replace(line, back=back.bridge))
    return found


def _once(lines: Sequence[_Line], left: list[Left]) -> list[_Line]:
    """Every line without what earlier ones of its selector send to its target already."""
    found: list[_Line] = []
    senders: dict[tuple[str, str, str], list[_Line]] = {}
    for line in lines:
        earlier = senders.setdefault((*line.target, line.sent.selector), [])
        same = [each for each in earlier if may_overlap(each.bridge.name, line.bridge.name, EMS)]
        sources = [address(TOPIC, each.bridge.name) for each in same]
        exclude = tuple(dict.fromkeys([*line.exclude, *sources]))
        if same:
            what = f"target {line.sent.kind} {line.sent.name!r}"
            places = ", ".join(str(each.sent.place) for each in same)
            reason = (
                f"{places} sends there what both take, and the server delivers two copies;"
                " the mapping delivers one"
            )
            left.append(Left(line.sent.place, what, reason))
        if same and covered(address(TOPIC, line.bridge.name), exclude, EMS):
            continue
        found.append(replace(line, exclude=exclude))
        earlier.append(line)
    return found


def _chains(lines: Sequence[_Line]) -> Iterator[Left]:
    """What one bridge brings another would take, which the server does not do."""
    by_name: dict[str, list[_Line]] = {}
    for line in lines:
        by_name.setdefault("" if is_wild(line.bridge.name) else line.bridge.name, []).append(line)
        if line.back is not None:
            by_name.setdefault(line.sent.name, []).append(line)
    for line in lines:
        for place, name in line.ends:
            onward = [
                other.bridge.place
                for other in (*by_name.get(name, ()), *by_name.get("", ()))
                if other is not line
                and address(TOPIC, name) not in other.exclude
                and (not is_wild(other.bridge.name) or takes(other.bridge.name, name, EMS))
            ]
            if onward:
                places = ", ".join(map(str, dict.fromkeys(onward)))
                reason = (
                    f"{places} bridges this topic too, and its route sends on what comes by this"
                    " line, where the server does not; exclude the topic there if it has no other"
                    " senders"
                )
                yield Left(place, f"target topic {name!r}", reason)


def _grouped(lines: Iterable[_Line]) -> list[Carried]:
    """The lines of a bridge that one route can say; a way back has a route of its own."""
    groups: dict[object, list[_Line]] = {}
    for line in lines:
        alone = line.sent.place if line.back else None
        key = (line.bridge.place, line.sent.selector, line.exclude, alone)
        groups.setdefault(key, []).append(line)
    return [
        Carried(
            group[0].bridge,
            group[0].sent.selector,
            tuple(line.sent for line in group),
            group[0].exclude,
            group[0].back,
        )
        for group in groups.values()
    ]
