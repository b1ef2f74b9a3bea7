"""Routes of one bridge, drafted from its topic lines.

mosquitto.conf(5), topic: mosquitto subscribes to the pattern with the prefix of the sending side,
and replaces that prefix by the prefix of the receiving side. Where lines overlap, the first line
with a prefix decides, lines without a prefix come last, and one copy crosses (from 2.1 on, one for
each line, with the same name). Mosquitto does not return messages over the bridge they came by. A
route avoids that only for its own reverse route, so names that one line sends out and another takes
in become one route in both directions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from gateway.dialects.base import parse_pattern
from gateway.dialects.systems.mqtt import MQTT
from gateway.imports.mosquitto.topic_lines import Direction, TopicLine, intersect, with_captures
from gateway.imports.route_checks import MAX_OVERLAPS, is_covered, may_overlap
from gateway.imports.source_lines import OmittedLine
from gateway.model.overlap_index import candidate_pairs


@dataclass(frozen=True, slots=True)
class RouteDraft:
    """One route: local names `local + stem` are `remote + stem` at the remote broker.

    `exclude` has patterns of the source. `lines` are the topic lines it was made from; the first
    one determines its position. `states`: names of the source that report states of connections.
    """

    local: str
    remote: str
    stem: str
    direction: Direction
    lines: tuple[TopicLine, ...]
    exclude: tuple[str, ...] = ()
    states: tuple[str, ...] = ()

    @property
    def source_pattern(self) -> str:
        """Subscription at the source, with captures for the wildcards."""
        inward = self.direction is Direction.IN
        return (self.remote if inward else self.local) + with_captures(self.stem)

    @property
    def target_template(self) -> str:
        """Template at the target."""
        inward = self.direction is Direction.IN
        return (self.local if inward else self.remote) + with_captures(self.stem)

    def pattern_at(self, direction: Direction) -> str:
        """Return its pattern at the source of `direction`."""
        return (self.remote if direction is Direction.IN else self.local) + self.stem

    def crosses(self, direction: Direction) -> bool:
        return self.direction in {direction, Direction.BOTH}

    def has_same_prefixes(self, other: RouteDraft) -> bool:
        return (self.local, self.remote) == (other.local, other.remote)


def draft_routes(lines: Sequence[TopicLine]) -> tuple[list[RouteDraft], list[OmittedLine]]:
    """Return the routes in the order of their lines, and the lines they do not fully replace."""
    drafts: list[RouteDraft] = []
    omitted: list[OmittedLine] = []
    distinct = _distinct(lines)
    overlapping = _overlaps(distinct)
    if overlapping is None:
        reason = (
            f"more than {MAX_OVERLAPS:,} pairs of topics of this connection overlap, so that none"
            " was read; write fewer and wider topics"
        )
        return [], [line.omitted(reason) for line in lines]
    for topics in _clusters(distinct, overlapping):
        both = _bidirectional(topics)
        drafts += both
        omitted += [each for draft in both for each in _ambiguous(draft, topics)]
        for direction in (Direction.OUT, Direction.IN):
            for number, topic in enumerate(topics):
                if topic.crosses(direction):
                    drafts += _one_way(topic, direction, topics[:number], both)
    used = {line for draft in drafts for line in draft.lines}
    reason = "lines before it, or with a prefix, cover it, so mosquitto does not use it"
    omitted += [line.omitted(reason) for line in lines if line not in used]
    return sorted(drafts, key=lambda draft: draft.lines[0].location), omitted


def _distinct(lines: Sequence[TopicLine]) -> list[RouteDraft]:
    """Return the lines in the order in which they decide; a repeated line never decides."""
    found: dict[object, RouteDraft] = {}
    for line in sorted(lines, key=lambda each: not (each.local or each.remote)):
        topic = _topic(line)
        found.setdefault((topic.local, topic.remote, topic.stem, line.direction), topic)
    return list(found.values())


def _overlaps(topics: Sequence[RouteDraft]) -> list[set[int]] | None:
    """Return for each line the positions of the lines that overlap it; None when too many do."""
    overlapping: list[set[int]] = [{at} for at in range(len(topics))]
    free = MAX_OVERLAPS
    for direction in (Direction.OUT, Direction.IN):
        rows = [
            (pattern, at)
            for at, topic in enumerate(topics)
            for pattern in parse_pattern(topic.pattern_at(direction), MQTT)
        ]
        for one, other in candidate_pairs(rows, rows):
            if other not in overlapping[one]:
                free -= one < other
                overlapping[one].add(other)
            if free < 0:
                return None
    return overlapping


def _clusters(
    topics: Sequence[RouteDraft], overlapping: Sequence[AbstractSet[int]]
) -> Iterator[list[RouteDraft]]:
    """Split the lines into groups that have no name in common; each group keeps its order."""
    seen: set[int] = set()
    for start in range(len(topics)):
        if start not in seen:
            found, pending = {start}, [start]
            while pending:
                more = overlapping[pending.pop()] - found
                found |= more
                pending += more
            seen |= found
            yield [topics[at] for at in sorted(found)]


def _topic(line: TopicLine) -> RouteDraft:
    """Return a draft of one line; the common end of both prefixes is part of its stem.

    So lines that rename in the same way have equal prefixes.
    """
    local, remote, stem = line.local, line.remote, line.pattern
    if stem == "#" and (local or remote):
        stem = "+/#"  # `L/#` matches `L` too, which has no prefix `L/` to replace
    same = 0
    while same < min(len(local), len(remote)) and local[~same] == remote[~same]:
        same += 1
    cut = len(local) - same
    return RouteDraft(
        local[:cut], remote[: len(remote) - same], local[cut:] + stem, line.direction, (line,)
    )


def _bidirectional(topics: Sequence[RouteDraft]) -> list[RouteDraft]:
    """Draft the names that one line sends out and the same or another line takes in."""
    found: dict[tuple[str, str, str], list[TopicLine]] = {}
    for out in topics:
        for back in topics:
            stem = _common_stem(out, back)
            if stem is not None:
                key = (out.local, out.remote, stem)
                found.setdefault(key, []).extend((*out.lines, *back.lines))
    wide = [key for key in found if not {"+", "#"}.isdisjoint(key[2])]
    widest = [key for key in found if not any(_within(key, other) for other in wide)]
    drafts: list[RouteDraft] = []
    for local, remote, stem in widest:
        lines = [
            line
            for key, lines in found.items()
            if key == (local, remote, stem) or _within(key, (local, remote, stem))
            for line in lines
        ]
        ordered = tuple(sorted(set(lines), key=lambda line: line.location))
        draft = RouteDraft(local, remote, stem, Direction.BOTH, ordered)
        same = [local + each.stem for each in drafts if each.has_same_prefixes(draft)]
        exclude = tuple(each for each in same if may_overlap(each, local + stem, MQTT))
        if not is_covered(local + stem, exclude, MQTT):
            drafts.append(replace(draft, exclude=exclude))
    return drafts


def _common_stem(out: RouteDraft, back: RouteDraft) -> str | None:
    crosses = out.crosses(Direction.OUT) and back.crosses(Direction.IN)
    if not (crosses and out.has_same_prefixes(back)):
        return None
    stem = intersect(out.stem, back.stem)
    if stem is None:
        return None
    for direction in (Direction.OUT, Direction.IN):  # `#` matches `$SYS/x` behind a prefix only
        if not may_overlap(out.pattern_at(direction), back.pattern_at(direction), MQTT):
            return None
    return stem


def _within(key: tuple[str, str, str], other: tuple[str, str, str]) -> bool:
    """Return whether `other` covers `key` and is not equal."""
    return key != other and key[:2] == other[:2] and intersect(key[2], other[2]) == key[2]


def _one_way(
    topic: RouteDraft,
    direction: Direction,
    earlier: Sequence[RouteDraft],
    both: Sequence[RouteDraft],
) -> Iterator[RouteDraft]:
    """Draft the rest of a line in one direction, unless other lines cover it."""
    pattern = topic.pattern_at(direction)
    others = [each.pattern_at(direction) for each in earlier if each.crosses(direction)]
    others += [draft.pattern_at(direction) for draft in both if topic.has_same_prefixes(draft)]
    overlapping = [each for each in dict.fromkeys(others) if may_overlap(pattern, each, MQTT)]
    if not is_covered(pattern, overlapping, MQTT):
        exclude = tuple(
            each
            for each in overlapping
            if not any(other != each and intersect(each, other) == each for other in overlapping)
        )
        yield RouteDraft(topic.local, topic.remote, topic.stem, direction, topic.lines, exclude)


def _ambiguous(draft: RouteDraft, topics: Sequence[RouteDraft]) -> Iterator[OmittedLine]:
    """Report names that an earlier line renames differently, in one direction only."""
    for direction in (Direction.OUT, Direction.IN):
        own = next(
            at
            for at, each in enumerate(topics)
            if each.lines[0] in draft.lines
            and each.crosses(direction)
            and intersect(each.stem, draft.stem) == draft.stem
        )
        for topic in topics[:own]:
            if (
                topic.crosses(direction)
                and not topic.has_same_prefixes(draft)
                and may_overlap(draft.pattern_at(direction), topic.pattern_at(direction), MQTT)
            ):
                reason = (
                    f"it and {topic.lines[0].location} both match messages going {direction.value},"
                    " which cross under two names, and mosquitto uses the name of that line only;"
                    " decide which you want"
                )
                yield draft.lines[0].omitted(reason)
