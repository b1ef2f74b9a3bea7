"""Topic lines of one bridge as routes in the making: what each takes, and what it leaves to others.

mosquitto.conf(5), topic: the pattern is subscribed with the prefix of the side it is taken from,
that prefix is removed from the name, and the other side's is put before it. Where lines overlap,
the first with a prefix decides, those without come last, and one copy crosses. What came over a
bridge is not sent back over it. A route has no such memory but for its own way back, so what one
line takes out and another takes in under the same names becomes one part in both directions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gateway.dialects.base import parse_pattern
from gateway.dialects.systems.mqtt import MQTT
from gateway.imports.checks import covered, may_overlap
from gateway.imports.lines import Left
from gateway.imports.mosquitto.topic_lines import Direction, TopicLine, captured, meet
from gateway.model.pattern_index import overlapping


@dataclass(frozen=True, slots=True)
class Part:
    """Names `local + stem` here are `remote + stem` there; `exclude` are of the side it takes from.

    `lines` asked for it, the first one decides where it stands.
    """

    local: str
    remote: str
    stem: str
    direction: Direction
    lines: tuple[TopicLine, ...]
    exclude: tuple[str, ...] = ()

    @property
    def taken(self) -> str:
        """The subscription of the side it takes from, with captures for the wildcards."""
        inward = self.direction is Direction.IN
        return (self.remote if inward else self.local) + captured(self.stem)

    @property
    def given(self) -> str:
        """The template of the other side."""
        inward = self.direction is Direction.IN
        return (self.local if inward else self.remote) + captured(self.stem)

    def side(self, direction: Direction) -> str:
        """Its names where `direction` begins."""
        return (self.remote if direction is Direction.IN else self.local) + self.stem

    def goes(self, direction: Direction) -> bool:
        return self.direction in {direction, Direction.BOTH}


@dataclass(frozen=True, slots=True)
class _Entry:
    """A line with its prefixes as short as they can be: lines of the same names have the same."""

    line: TopicLine
    local: str
    remote: str
    stem: str

    def pattern(self, direction: Direction) -> str:
        """What it takes where `direction` begins."""
        return (self.remote if direction is Direction.IN else self.local) + self.stem

    def goes(self, direction: Direction) -> bool:
        return self.line.direction in {direction, Direction.BOTH}

    def renames_as(self, other: _Entry | Part) -> bool:
        return (self.local, self.remote) == (other.local, other.remote)


def parts_of(lines: Sequence[TopicLine]) -> tuple[list[Part], list[Left]]:
    """The parts in the order of their lines, and what they do not do as mosquitto does."""
    parts: list[Part] = []
    left: list[Left] = []
    for entries in _clusters([_entry(line) for line in sorted(lines, key=_without_prefix)]):
        both = _both(entries)
        parts += both
        left += [each for part in both for each in _undecided(part, entries)]
        for direction in (Direction.OUT, Direction.IN):
            for number, entry in enumerate(entries):
                if entry.goes(direction):
                    part = _one_way(entry, direction, entries[:number], both)
                    parts += [] if part is None else [part]
    used = {line for part in parts for line in part.lines}
    left += [_unused(line) for line in lines if line not in used]
    return sorted(parts, key=lambda part: part.lines[0].place), left


def _clusters(entries: Sequence[_Entry]) -> Iterator[list[_Entry]]:
    """The entries in order, apart where no message concerns two of them."""
    near: list[set[int]] = [{at} for at in range(len(entries))]
    for direction in (Direction.OUT, Direction.IN):
        rows = [
            (pattern, at)
            for at, entry in enumerate(entries)
            for pattern in parse_pattern(entry.pattern(direction), MQTT)
        ]
        for one, other in overlapping(rows, rows):
            near[one].add(other)
    seen: set[int] = set()
    for start in range(len(entries)):
        if start not in seen:
            found, waiting = {start}, [start]
            while waiting:
                more = near[waiting.pop()] - found
                found |= more
                waiting += more
            seen |= found
            yield [entries[at] for at in sorted(found)]


def _without_prefix(line: TopicLine) -> bool:
    return not (line.local or line.remote)


def _entry(line: TopicLine) -> _Entry:
    local, remote, stem = line.local, line.remote, line.pattern
    if stem == "#" and (local or remote):
        stem = "+/#"  # `L/#` takes `L` too, which has no prefix `L/` to remove
    same = 0
    while same < min(len(local), len(remote)) and local[~same] == remote[~same]:
        same += 1
    cut = len(local) - same
    return _Entry(line, local[:cut], remote[: len(remote) - same], local[cut:] + stem)


def _both(entries: Sequence[_Entry]) -> list[Part]:
    """What one line takes out and the same or another takes in, widest first."""
    found: dict[tuple[str, str, str], list[TopicLine]] = {}
    for out in entries:
        for back in entries:
            stem = _common(out, back)
            if stem is not None:
                key = (out.local, out.remote, stem)
                found.setdefault(key, []).extend((out.line, back.line))
    widest = [key for key in found if not any(_within(key, other) for other in found)]
    parts: list[Part] = []
    for local, remote, stem in widest:
        lines = [
            line
            for key, lines in found.items()
            if key == (local, remote, stem) or _within(key, (local, remote, stem))
            for line in lines
        ]
        same = [part.side(Direction.OUT) for part in parts if _prefixes(part) == (local, remote)]
        exclude = tuple(each for each in same if may_overlap(each, local + stem, MQTT))
        ordered = tuple(sorted(set(lines), key=lambda line: line.place))
        if not covered(local + stem, exclude, MQTT):
            parts.append(Part(local, remote, stem, Direction.BOTH, ordered, exclude))
    return parts


def _prefixes(part: Part) -> tuple[str, str]:
    return part.local, part.remote


def _common(out: _Entry, back: _Entry) -> str | None:
    if not (out.goes(Direction.OUT) and back.goes(Direction.IN) and out.renames_as(back)):
        return None
    stem = meet(out.stem, back.stem)
    if stem is None:
        return None
    for direction in (Direction.OUT, Direction.IN):  # `#` and `$SYS/x` meet behind a prefix only
        if not may_overlap(out.pattern(direction), back.pattern(direction), MQTT):
            return None
    return stem


def _within(key: tuple[str, str, str], other: tuple[str, str, str]) -> bool:
    """Whether `other` has all of `key` and more."""
    return key != other and key[:2] == other[:2] and meet(key[2], other[2]) == key[2]


def _one_way(
    entry: _Entry, direction: Direction, earlier: Sequence[_Entry], both: Sequence[Part]
) -> Part | None:
    """What is left of a line in one direction; None when others take it all."""
    pattern = entry.pattern(direction)
    others = [each.pattern(direction) for each in earlier if each.goes(direction)]
    others += [part.side(direction) for part in both if entry.renames_as(part)]
    met = [each for each in dict.fromkeys(others) if may_overlap(pattern, each, MQTT)]
    if covered(pattern, met, MQTT):
        return None
    exclude = tuple(
        each
        for each in met
        if not any(other != each and meet(each, other) == each for other in met)
    )
    return Part(entry.local, entry.remote, entry.stem, direction, (entry.line,), exclude)


def _unused(line: TopicLine) -> Left:
    reason = "lines before it, or with a prefix, take all of it, so mosquitto does not use it"
    return Left(line.place, f"the topic {line.pattern!r}", reason)


def _undecided(part: Part, entries: Sequence[_Entry]) -> Iterator[Left]:
    """Names that an earlier line gives another name; one direction alone cannot leave them out."""
    for direction in (Direction.OUT, Direction.IN):
        own = next(
            at
            for at, each in enumerate(entries)
            if each.line in part.lines
            and each.goes(direction)
            and meet(each.stem, part.stem) == part.stem
        )
        for entry in entries[:own]:
            if (
                entry.goes(direction)
                and not entry.renames_as(part)
                and may_overlap(part.side(direction), entry.pattern(direction), MQTT)
            ):
                reason = (
                    f"what it and {entry.line.place} both take {direction.value} crosses under two"
                    " names, and mosquitto gives it that one's alone; decide which you want"
                )
                yield Left(part.lines[0].place, f"the topic {part.lines[0].pattern!r}", reason)
