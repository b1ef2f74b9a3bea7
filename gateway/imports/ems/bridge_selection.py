"""Selection and grouping of the lines of bridges.conf that become routes.

The server delivers one copy for each of several overlapping bridges, does not forward over one
bridge messages that came over another, and lets many names become one (EMS User's Guide,
"Destination Bridges"). Routes match names alone: overlapping bridges become one copy, and two
topics bridged to each other become one route in both directions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from gateway.dialects.base import matches_text, parse_pattern, parse_subject
from gateway.dialects.systems.ems import EMS
from gateway.imports.document import REFERENCE
from gateway.imports.ems.config_files import QUEUE, TOPIC, Bridge, BridgeEnd, BridgeTarget
from gateway.imports.route_checks import (
    MAX_OVERLAPS,
    fault_of,
    find_brace_fault,
    find_route_fault,
    is_covered,
    may_overlap,
)
from gateway.imports.source_lines import OmittedLine, SourceLine
from gateway.routing.pattern_trie import PatternTrie
from gateway.routing.selectors.selector import parse_selector

WILDCARDS = frozenset({EMS.any_one, EMS.any_many})
QUEUE_SOURCE = (
    "a bridge copies messages of the queue, and a client that reads the queue removes them;"
    " bridge the queue to a topic or to a spare queue in the server and route from that"
)


@dataclass(frozen=True, slots=True)
class SelectedBridge:
    """Lines of a bridge that become one route: with the same selector and `exclude`.

    `exclude` has addresses of a JMS endpoint. `reverse` is the bridge in the reverse direction.
    """

    bridge: Bridge
    targets: tuple[BridgeTarget, ...]
    exclude: tuple[str, ...] = ()
    reverse: Bridge | None = None

    @property
    def target(self) -> BridgeTarget:
        """The target of its first line."""
        return self.targets[0]

    @property
    def target_topics(self) -> Iterator[tuple[SourceLine, BridgeEnd]]:
        """The target topics of its first line, and the location of each."""
        if self.target.kind == TOPIC:
            yield self.target.location, self.target
        if self.reverse is not None:
            yield self.reverse.location, self.bridge


def select_bridges(bridges: Iterable[Bridge], omitted: list[OmittedLine]) -> list[SelectedBridge]:
    """Return the lines that become routes; all others are added to `omitted`."""
    lines: list[SelectedBridge] = []
    for bridge in _joined(bridges):
        item = f"bridge from {bridge.kind} {bridge.name!r}"
        if not bridge.targets:
            omitted.append(OmittedLine(bridge.location, item, "no line below it is readable"))
        elif fault := _source_fault(bridge):
            ends = (bridge, *bridge.targets)  # a command has all of them in its one line
            locations = dict.fromkeys(each.location for each in ends)
            omitted += [OmittedLine(location, item, fault) for location in locations]
        else:
            lines += _lines(bridge, omitted)
    lines = [*_without_duplicates(_merge_pairs(lines), omitted)]
    omitted += _chains(lines)
    return _group(lines)


def has_wildcards(name: str) -> bool:
    return bool(WILDCARDS & set(name.split(EMS.separator)))


def _joined(bridges: Iterable[Bridge]) -> Iterator[Bridge]:
    """Join the bridges of one source, as the server does: each names further targets."""
    found: dict[tuple[str, str], list[Bridge]] = {}
    for bridge in bridges:
        found.setdefault((bridge.kind, bridge.name), []).append(bridge)
    for same in found.values():
        yield replace(same[0], targets=tuple(each for bridge in same for each in bridge.targets))


def _source_fault(bridge: Bridge) -> str:
    if fault := fault_of(parse_pattern, bridge.name, EMS):
        return fault
    return QUEUE_SOURCE if bridge.kind == QUEUE else find_brace_fault(bridge.name)


def _lines(bridge: Bridge, omitted: list[OmittedLine]) -> Iterator[SelectedBridge]:
    targets: set[tuple[str, str, str]] = set()
    for target in bridge.targets:
        key = (target.kind, target.name, target.selector)
        if fault := _target_fault(bridge, target):
            omitted.append(target.omitted(fault))
        elif key in targets:
            omitted.append(target.omitted("it repeats a line above it"))
        else:
            targets.add(key)
            is_own_source = matches_text(bridge.address, target.address, EMS)
            yield SelectedBridge(bridge, (target,), (target.address,) if is_own_source else ())


def _target_fault(bridge: Bridge, target: BridgeTarget) -> str:
    if fault := fault_of(parse_subject, target.name, EMS):
        return fault
    if target.kind == TOPIC and target.name == bridge.name:
        return "it is the bridge's own source"
    if REFERENCE in target.selector:
        return f"its selector contains {REFERENCE!r}, which the configuration would replace"
    if target.selector and (fault := fault_of(parse_selector, target.selector)):
        return fault
    return find_brace_fault(target.name) or find_route_fault(bridge.address, target.address, EMS)


def _merge_pairs(lines: Sequence[SelectedBridge]) -> Iterator[SelectedBridge]:
    """Merge two lines that bridge two topics to each other, without selectors, into the first."""
    plain = {
        (line.bridge.name, line.target.name): line
        for line in lines
        if line.target.kind == TOPIC
        and not line.target.selector
        and not has_wildcards(line.bridge.name)
    }
    for line in lines:
        reverse = plain.get((line.target.name, line.bridge.name))
        if reverse is None or plain.get((line.bridge.name, line.target.name)) is not line:
            yield line
        elif line.target.location < reverse.target.location:
            yield replace(line, reverse=reverse.bridge)


def _without_duplicates(
    lines: Iterable[SelectedBridge], omitted: list[OmittedLine]
) -> Iterator[SelectedBridge]:
    """Exclude from each line the names that earlier lines of its selector send to its target."""
    senders: dict[tuple[str, str, str], list[SelectedBridge]] = {}
    overlaps = 0
    for line in lines:
        earlier = senders.setdefault((line.target.kind, line.target.name, line.target.selector), [])
        same = [each for each in earlier if may_overlap(each.bridge.name, line.bridge.name, EMS)]
        overlaps += len(same)
        if overlaps > MAX_OVERLAPS:
            reason = (
                f"more than {MAX_OVERLAPS:,} pairs of lines send the same messages to one target;"
                " write fewer and wider bridges"
            )
            omitted.append(line.target.omitted(reason))
            continue
        exclude = tuple(dict.fromkeys([*line.exclude, *(each.bridge.address for each in same)]))
        if same:
            locations = ", ".join(str(each.target.location) for each in same)
            reason = (
                f"{locations} sends the same messages there, and the server delivers two copies;"
                " the mapping delivers one"
            )
            omitted.append(line.target.omitted(reason))
        if same and is_covered(line.bridge.address, exclude, EMS):
            continue
        earlier.append(line)
        yield replace(line, exclude=exclude)


def _chains(lines: Sequence[SelectedBridge]) -> Iterator[OmittedLine]:
    """Report bridges whose messages another route would forward, unlike the server."""
    bridged: PatternTrie[SelectedBridge] = PatternTrie()
    for line in lines:
        for name in (line.bridge.name, *([line.target.name] if line.reverse else ())):
            for pattern in parse_pattern(name, EMS):
                bridged.add(pattern, line)
    for line in lines:
        for location, topic in line.target_topics:
            forwarding = [
                other.bridge.location
                for other in bridged.find(parse_subject(topic.name, EMS).levels)
                if other is not line and topic.address not in other.exclude
            ]
            if forwarding:
                locations = ", ".join(map(str, dict.fromkeys(forwarding)))
                reason = (
                    f"{locations} bridges this topic too, and its route forwards messages of this"
                    " line, which the server does not; exclude the topic there if it has no other"
                    " senders"
                )
                yield OmittedLine(location, f"target topic {topic.name!r}", reason)


def _group(lines: Iterable[SelectedBridge]) -> list[SelectedBridge]:
    """Group the lines of a bridge that one route can express; a merged pair has its own route."""
    groups: dict[object, list[SelectedBridge]] = {}
    for line in lines:
        alone = line.target.location if line.reverse else None
        key = (line.bridge.location, line.target.selector, line.exclude, alone)
        groups.setdefault(key, []).append(line)
    return [
        replace(group[0], targets=tuple(line.target for line in group)) for group in groups.values()
    ]
