"""Messages that mosquitto never returns over its bridge, and imported routes would return."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gateway.dialects.base import parse_pattern
from gateway.dialects.systems.mqtt import MQTT
from gateway.imports.mosquitto.routes import RouteDraft
from gateway.imports.mosquitto.topic_lines import Direction
from gateway.imports.route_checks import is_covered, may_overlap
from gateway.imports.source_lines import OmittedLine
from gateway.model.pattern_index import candidate_pairs

REVERSED = {Direction.OUT: Direction.IN, Direction.IN: Direction.OUT}


def find_echoes(drafts: Sequence[RouteDraft]) -> Iterator[OmittedLine]:
    """Report pairs of routes of which one returns messages of the other under a new name."""
    pairs = dict.fromkeys(pair for direction in REVERSED for pair in _echo_pairs(drafts, direction))
    for one, two in sorted(pairs):
        draft, line = drafts[one], drafts[two].lines[0]
        reason = (
            f"it returns messages of {draft.lines[0].location} under another name, and mosquitto"
            " returns nothing over the connection it came by; exclude them if they are unwanted"
        )
        yield OmittedLine(line.location, f"the topic {line.pattern!r}", reason)


def _echo_pairs(drafts: Sequence[RouteDraft], direction: Direction) -> Iterator[tuple[int, int]]:
    """Yield the positions of a route in `direction` and of one that returns its messages."""
    back = REVERSED[direction]
    sent, received = (
        [
            (pattern, at)
            for at, draft in enumerate(drafts)
            if draft.crosses(each)
            for pattern in parse_pattern(draft.pattern_at(back), MQTT)
        ]
        for each in (direction, back)
    )
    for one, two in candidate_pairs(sent, received):
        draft, other = drafts[one], drafts[two]
        renames = (draft.local, draft.remote) != (other.local, other.remote)
        if renames and _returns(draft, other, back):
            yield one, two


def _returns(draft: RouteDraft, other: RouteDraft, back: Direction) -> bool:
    sent = draft.pattern_at(back)
    excluded = other.exclude if other.direction is back or back is Direction.OUT else ()
    return may_overlap(sent, other.pattern_at(back), MQTT) and not is_covered(sent, excluded, MQTT)
