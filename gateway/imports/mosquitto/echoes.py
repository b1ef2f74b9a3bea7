"""What a bridge of mosquitto never sends back, and routes would: told, for no route can say it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gateway.dialects.base import parse_pattern
from gateway.dialects.systems.mqtt import MQTT
from gateway.imports.checks import covered, may_overlap
from gateway.imports.lines import Left
from gateway.imports.mosquitto.routes import Part
from gateway.imports.mosquitto.topic_lines import Direction
from gateway.model.pattern_index import overlapping

REVERSE = {Direction.OUT: Direction.IN, Direction.IN: Direction.OUT}


def echoes(parts: Sequence[Part]) -> Iterator[Left]:
    """What crosses by one part and comes back by another, under a name that it did not have."""
    pairs = dict.fromkeys(pair for way in REVERSE for pair in _coming_back(parts, way))
    for one, two in sorted(pairs):
        part, line = parts[one], parts[two].lines[0]
        reason = (
            f"what crosses by {part.lines[0].place} comes back by it under another name,"
            " and mosquitto sends nothing back over the connection it came by; exclude it"
            " where you do not want it"
        )
        yield Left(line.place, f"the topic {line.pattern!r}", reason)


def _coming_back(parts: Sequence[Part], way: Direction) -> Iterator[tuple[int, int]]:
    """Of what goes `way`, the part that sends it and the one that takes it back."""
    back = REVERSE[way]
    made, taken = (
        [
            (pattern, at)
            for at, part in enumerate(parts)
            if part.goes(going)
            for pattern in parse_pattern(part.side(back), MQTT)
        ]
        for going in (way, back)
    )
    for one, two in overlapping(made, taken):
        part, other = parts[one], parts[two]
        renames = (part.local, part.remote) != (other.local, other.remote)
        if renames and _takes_back(part, other, back):
            yield one, two


def _takes_back(part: Part, other: Part, back: Direction) -> bool:
    made = part.side(back)
    excluded = other.exclude if other.direction is back or back is Direction.OUT else ()
    return may_overlap(made, other.side(back), MQTT) and not covered(made, excluded, MQTT)
