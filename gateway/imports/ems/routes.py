"""Routes from the server back to itself, one for each selected group of bridge lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from gateway.imports.document import NameGenerator, RouteEntry, TargetEntry
from gateway.imports.ems.bridge_selection import SelectedBridge, endpoint_address, has_wildcards
from gateway.imports.ems.config_files import TOPIC, BridgeTarget
from gateway.imports.ems.exchanged_topics import TopicExchange
from gateway.imports.yaml_text import quote_comments

ENDPOINT_NAME = "ems"


def route_entries(
    selected: Sequence[SelectedBridge], exchange: TopicExchange, secrets: Sequence[str]
) -> tuple[RouteEntry, ...]:
    names = NameGenerator()
    pairs = {
        (each.bridge.name, target.kind, target.name) for each in selected for target in each.targets
    }
    senders = Counter((kind, name) for _, kind, name in pairs)
    return tuple(
        RouteEntry(
            names.make(each.bridge.name),
            each.targets[0].location,
            ENDPOINT_NAME,
            endpoint_address(TOPIC, each.bridge.name),
            tuple(
                _target_entry(target, each, senders, exchange, secrets) for target in each.targets
            ),
            each.exclude,
            (*_notes(each, secrets), *exchange.source_notes(each.bridge.name)),
            each.selector,
            both=each.reverse is not None,
        )
        for each in selected
    )


def _target_entry(
    target: BridgeTarget,
    each: SelectedBridge,
    senders: Counter[tuple[str, str]],
    exchange: TopicExchange,
    secrets: Sequence[str],
) -> TargetEntry:
    notes = [*quote_comments(target.comments, secrets), str(target.location)]
    lossy = has_wildcards(each.bridge.name) or senders[target.kind, target.name] > 1
    if lossy:
        notes.append("Different names become this one, as over the bridge.")
    if target.kind == TOPIC:
        notes += exchange.target_notes(target.name)
    return TargetEntry(
        ENDPOINT_NAME, endpoint_address(target.kind, target.name), tuple(notes), lossy
    )


def _notes(each: SelectedBridge, secrets: Sequence[str]) -> Iterator[str]:
    bridge = each.bridge
    yield from quote_comments(bridge.comments, secrets)
    yield f"{bridge.location}: [{bridge.kind}:{bridge.name}]"
    if each.reverse is not None:
        yield f"{each.reverse.location} is its reverse; neither returns messages of the other."
    own = {endpoint_address(target.kind, target.name) for target in each.targets} & set(
        each.exclude
    )
    if own:
        yield "Its own target is excluded from the source, so that the route does not loop."
    if set(each.exclude) - own:
        yield "Names that earlier bridges send to this target are excluded."
