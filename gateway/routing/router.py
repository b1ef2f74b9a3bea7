"""Which routes take a name and what it becomes at each target, remembered for names seen before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from itertools import count

from gateway.dialects.base import Dialect
from gateway.errors import SubjectError, TranslationError
from gateway.model.subject import Subject
from gateway.routing.headers import NO_RULES, HeaderRules
from gateway.routing.route import Route, Target
from gateway.routing.table import PatternTable
from gateway.routing.tags import Pick, Tag, TagMode, parse_tags, spread, tag_list
from gateway.translate.shorten import Dictionary, resolved

CACHED_NAMES = 100_000  # past this the memory starts anew; a name costs about 500 bytes


@dataclass(frozen=True, slots=True)
class Hop:
    """One copy of a message: where it goes and under which name, or why it cannot.

    `label` is what the archive calls it: the target's label, numbered when the target gets several
    copies of one message (a tag list whose tags become different names).
    """

    route: Route | None
    target: Target | None
    address: str
    label: str = ""
    rule: str = ""
    reason: str = ""
    rules: HeaderRules = NO_RULES  # with the captures of the name, and the tags left over
    taken: str = ""  # the mark of where it comes from, under the name it has there
    mark: str = ""  # the mark of where it goes, under the name it gets

    @property
    def place(self) -> str:
        return self.target.place if self.target is not None else ""


@dataclass(frozen=True, slots=True)
class Way:
    """What one route makes of a name; `route` None when the name is at fault before any route."""

    route: Route | None
    hops: tuple[Hop, ...]
    labels: tuple[str, ...] = field(init=False)  # the ends that a message on this way owes

    def __post_init__(self) -> None:
        object.__setattr__(self, "labels", tuple(hop.label for hop in self.hops))


class Router(dict[str, tuple[Way, ...]]):
    """All routes of one source endpoint; `router[name]` says what each makes of that name.

    It is a dict of answers already given, so that a name seen before costs one look-up; hence
    mutable, and bounded. A name that no route takes has no ways.
    """

    def __init__(
        self, dialect: Dialect, routes: Sequence[Route], dictionary: Dictionary | None = None
    ) -> None:
        """Routes from one endpoint; `dictionary` where names that arrive may be shortened ones."""
        super().__init__()
        self.dialect = dialect
        self.routes = tuple(routes)
        self.selective = any(route.selector is not None for route in routes)
        self._dictionary = dictionary
        self._table: PatternTable[Route] = PatternTable()
        for route in routes:
            for pattern in route.source.patterns:
                self._table.add(pattern, route)

    def __missing__(self, name: str) -> tuple[Way, ...]:
        if len(self) >= CACHED_NAMES:
            self.clear()
        ways = self[name] = self._ways(name)
        return ways

    def _ways(self, name: str) -> tuple[Way, ...]:
        try:
            tags = [self._whole(tag) for tag in parse_tags(name, self.dialect)]
        except (SubjectError, TranslationError) as error:
            return (Way(None, (Hop(None, None, "", rule=error.rule, reason=str(error)),)),)
        found = (route for tag in tags for route in self._table.find(tag.subject.levels))
        routes = {id(route): route for route in found}.values()
        ways = (Way(route, _hops(route, name, tags)) for route in routes)
        return tuple(way for way in ways if way.hops)

    def _whole(self, tag: Tag) -> Tag:
        """The tag with the name that a shortened one stands for."""
        if self._dictionary is None:
            return tag
        levels = resolved(tag.subject.levels, tag.text, self.dialect, self._dictionary)
        return Tag(tag.text, Subject(levels))


def mark_of(place: str, name: str) -> str:
    """An entry of an origin path that says: the message has been there under that name.

    `place` is what all gateways call the broker; only its hash travels.
    """
    if not place:
        return ""
    return (
        "@" + blake2b(f"{place}\0{name}".encode(errors="surrogatepass"), digest_size=6).hexdigest()
    )


def _hops(route: Route, whole: str, tags: Sequence[Tag]) -> tuple[Hop, ...]:
    try:
        picks = spread(tags, route.tags, route.source, route.takes)
    except TranslationError as error:
        rule, reason = error.rule, str(error)
        return tuple(Hop(route, each, "", each.label, rule, reason) for each in route.targets)
    taken = mark_of(route.place, whole)
    made = (hop for target in route.targets for hop in _hops_to(route, target, picks))
    return tuple(
        hop if hop.rule else replace(hop, taken=taken, mark=mark_of(hop.place, hop.address))
        for hop in made
    )


def _hops_to(route: Route, target: Target, picks: Sequence[Pick]) -> Iterator[Hop]:
    """One hop for each different name: a target gets a message once under one name."""
    made: dict[str, HeaderRules] = {}
    refused: list[TranslationError] = []
    for pick in picks:
        try:
            name = target.name_for(pick.tag.subject, pick.captures)
            made.setdefault(name, _rules(route, target, pick))
        except TranslationError as error:
            refused.append(error)
    if made and route.tags.mode is TagMode.LIST:
        made = {tag_list(made): next(iter(made.values()))}
    labels = (f"{target.label}#{number}" if number > 1 else target.label for number in count(1))
    for name, rules in made.items():
        yield Hop(route, target, name, next(labels), rules=rules)
    for fault in refused:
        yield Hop(route, target, "", next(labels), fault.rule, str(fault))


def _rules(route: Route, target: Target, pick: Pick) -> HeaderRules:
    rules = target.rules.bind(pick.captures)
    for name, value in pick.property_of(route.tags).items():
        rules = rules.with_property(name, value)
    return rules
