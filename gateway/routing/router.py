"""The router of a source endpoint: the routes and target names of each name, in a cache."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from types import MappingProxyType
from typing import Final, TypeAlias

from gateway.dialects.base import Dialect
from gateway.errors import IllegalNameError, TranslationError
from gateway.model.dead_letter_rule import FIELD, NO_RULE, DeadLetterRule
from gateway.model.limited_cache import LimitedCache
from gateway.model.memory_size import text_size
from gateway.model.message import (
    CHOSEN_PARTITION,
    NO_PROPERTIES,
    SOURCE_NAME,
    Headers,
    Message,
    Properties,
)
from gateway.model.subject import Subject
from gateway.routing.header_rules import NO_RULES, HeaderRules
from gateway.routing.message_fields import (
    SOURCE_FIELD,
    FieldValue,
    FieldValues,
    is_payload_field,
    is_redacted,
    read_fields,
)
from gateway.routing.origin_path import BrokerAddress, GatewayIdentity, wire_name
from gateway.routing.pattern_trie import PatternTrie
from gateway.routing.payload_pick import PayloadPick
from gateway.routing.proven_names import proven
from gateway.routing.route import Conversion, Route, Target
from gateway.routing.tags import Tag, TagMode, TagSelection, join_tags, parse_tags, select_tags
from gateway.routing.template_functions import Levels
from gateway.translate.shorten import ShortNames, resolved

MAX_CACHE_SIZE: Final = 48 << 20  # bytes of the cached names and deliveries
MAX_FIELDS_SIZE: Final = 16 << 20  # bytes of those for names and fields of messages
MAX_WIRE_NAMES_SIZE: Final = 12 << 20  # bytes of canonical names; likewise
_DELIVERY_OVERHEAD: Final = 800  # bytes of a delivery and its match beside their texts
_NAME_OVERHEAD: Final = 200  # bytes of a name and its canonical form beside their texts
NO_FIELDS: Final[FieldValues] = MappingProxyType({})  # of a name without its message
_FieldKey: TypeAlias = tuple[str, tuple[tuple[str, FieldValue], ...]]  # a name, and fields
_Bound: TypeAlias = tuple[HeaderRules, Conversion | None, Properties]
NOBODY: Final = GatewayIdentity("")  # where no copy is sent


class WireNames(LimitedCache[str, bytes]):
    """The canonical names of one dialect, for the digests of copies. Mutable: of one thread."""

    def __init__(self, dialect: Dialect) -> None:
        super().__init__(MAX_WIRE_NAMES_SIZE)
        self._dialect = dialect

    def __missing__(self, name: str) -> bytes:
        made = wire_name(name, self._dialect).encode("utf-8", "surrogatepass")
        return self.add(name, made, text_size(name) + len(made) + _NAME_OVERHEAD)


@dataclass(frozen=True, slots=True)
class Delivery:
    """One copy of a message for one target: the name it gets, or the rule that refuses it.

    `label` is its name in the archive: the target's label, numbered when the target gets several
    copies of one message (a tag list whose tags become different names).
    """

    route: Route | None
    target: Target | None
    address: str
    label: str = ""
    rule: DeadLetterRule = NO_RULE
    reason: str = ""
    rules: HeaderRules = NO_RULES  # with the captures of the name and the unused tags
    conversion: Conversion | None = None  # of the payload, with the captures of the name
    source_mark: str = ""  # of the source's broker and the name there, for the origin path
    target_mark: str = ""  # of the target's broker and the name there
    wire_name: bytes = b""  # the canonical name at the target, for the digest of a copy
    # properties that only the gateway writes there, and names of such ones that its copies lack
    own: Properties = field(default_factory=lambda: NO_PROPERTIES)
    removed: frozenset[str] = frozenset()
    fields: str = ""  # those of the message in the name, as JSON; empty for a name without any


@dataclass(frozen=True, slots=True)
class RouteMatch:
    """The deliveries of one route for a name; without a `route` the name itself is refused."""

    route: Route | None
    deliveries: tuple[Delivery, ...]
    labels: tuple[str, ...] = field(init=False)  # of the deliveries; each must get an outcome

    def __post_init__(self) -> None:
        object.__setattr__(self, "labels", tuple(each.label for each in self.deliveries))


class Router(LimitedCache[str, tuple[RouteMatch, ...]]):
    """All routes of one source endpoint: `router[name]` is the match of every route.

    The dict is a cache, so that a known name takes one look-up. A name that no route takes has no
    matches.

    A name alone does not tell the copies of a route that uses fields of the message: by its name,
    such a copy is refused with the rule `field`, and `match` has it.

    Mutable: the caches grow up to a number of bytes.
    """

    def __init__(
        self,
        dialect: Dialect,
        routes: Sequence[Route],
        dictionary: ShortNames | None = None,
        identity: GatewayIdentity = NOBODY,
    ) -> None:
        """Index the routes from one endpoint.

        `dictionary` resolves shortened names; `identity` is of the gateway that sends the copies.
        """
        super().__init__(MAX_CACHE_SIZE)
        self.dialect = dialect
        self.identity = identity
        self.wire_names = WireNames(dialect)
        self.routes = tuple(routes)
        self.selective = any(route.selector is not None for route in routes)
        self.uses_fields = any(route.fields for route in routes)
        self._with_fields: LimitedCache[_FieldKey, tuple[RouteMatch, ...]] = LimitedCache(
            MAX_FIELDS_SIZE
        )
        self._dictionary = dictionary
        self._trie: PatternTrie[Route] = PatternTrie()
        for route in routes:
            for pattern in route.source.patterns:
                self._trie.add(pattern, route)

    @cached_property
    def addresses(self) -> frozenset[BrokerAddress]:
        """The addresses of the brokers of its routes that have no `broker_id`."""
        ends = [(route.endpoint, route.broker) for route in self.routes]
        ends += [(each.endpoint, each.broker) for route in self.routes for each in route.targets]
        return frozenset(
            BrokerAddress(endpoint, broker.address_hash)
            for endpoint, broker in ends
            if broker.address_hash
        )

    def selection(self, headers: Headers) -> str:
        """Return which routes take a message with these headers, a digit for each route."""
        try:
            taken = [
                each.selector is None or each.selector.matches(headers) for each in self.routes
            ]
        except Exception:  # noqa: BLE001  # of a selector on one value; admission refuses it
            return ""
        return "".join("01"[each] for each in taken)

    def __missing__(self, name: str) -> tuple[RouteMatch, ...]:
        matches = self._matches(name)
        self.add(name, matches, _cached_size(name, matches))
        return matches

    def forget(self) -> None:
        """Clear the caches."""
        self.clear()
        self._with_fields.clear()

    def match(self, message: Message) -> tuple[RouteMatch, ...]:
        """Return the matches of a message: of its name, unless a route uses its fields."""
        matches = self[message.address]
        names = [name for each in matches if each.route for name in each.route.fields]
        if not names:
            return matches
        return self.match_fields(message.address, read_fields(dict.fromkeys(names), message))

    def match_fields(self, name: str, values: FieldValues) -> tuple[RouteMatch, ...]:
        """Return the matches of a message with this name and these fields.

        Those of routes without fields are the same for every message of the name.
        """
        key = name, tuple(values.items())
        if (known := self._with_fields.get(key)) is not None:
            return known
        made = tuple(
            match
            for each in self[name]
            if (match := self._with_values(each, name, values)).deliveries
        )
        used = sum(text_size(each) for each in values.values() if isinstance(each, str))
        size = _cached_size(name, made) + used * (1 + sum(map(_copies, made)))
        return self._with_fields.add(key, made, size)

    def _with_values(self, match: RouteMatch, name: str, values: FieldValues) -> RouteMatch:
        route = match.route
        if route is None or not route.fields:
            return match
        tags = self._tags(name) if route.names_of is None else ()
        return RouteMatch(route, _deliveries(route, name, tags, self.identity, values))

    def _tags(self, name: str) -> Sequence[Tag]:
        return [self._resolved(tag) for tag in parse_tags(name, self.dialect)]

    def _matches(self, name: str) -> tuple[RouteMatch, ...]:
        try:
            tags = self._tags(name)
        except (IllegalNameError, TranslationError) as error:
            return (
                RouteMatch(None, (Delivery(None, None, "", rule=error.rule, reason=str(error)),)),
            )
        found = (route for tag in tags for route in self._trie.find(tag.subject.levels))
        routes = {id(route): route for route in found}.values()
        matches = (
            RouteMatch(route, _deliveries(route, name, tags, self.identity, NO_FIELDS))
            for route in routes
        )
        return tuple(match for match in matches if match.deliveries)

    def _resolved(self, tag: Tag) -> Tag:
        """Return the tag with the original of a shortened name."""
        if self._dictionary is None:
            return tag
        levels = resolved(tag.subject.levels, tag.text, self.dialect, self._dictionary)
        return Tag(tag.text, Subject(levels))


def _cached_size(name: str, matches: Sequence[RouteMatch]) -> int:
    """Return about the bytes of a cached name; the rules of a delivery hold captures of it."""
    length = text_size(name)
    return length + sum(
        _DELIVERY_OVERHEAD + length + text_size(each.address) + text_size(each.reason)
        for match in matches
        for each in match.deliveries
    )


def _deliveries(
    route: Route, name: str, tags: Sequence[Tag], identity: GatewayIdentity, values: FieldValues
) -> tuple[Delivery, ...]:
    selections: Sequence[TagSelection]
    carried = name
    try:
        if route.names_of is None:
            selections = select_tags(tags, route.tags, route.source, route.takes)
        else:
            selections, carried = _proven(route.names_of, name, values)
    except TranslationError as error:
        rule, reason = error.rule, str(error)
        return tuple(Delivery(route, each, "", each.label, rule, reason) for each in route.targets)
    mark = identity.mark(route.broker, name, route.dialect)
    return tuple(
        each
        for target in route.targets
        for each in _deliveries_to(route, target, selections, (carried, mark), identity, values)
    )


def _deliveries_to(  # the facts of one message for one target
    route: Route,
    target: Target,
    selections: Sequence[TagSelection],
    source: tuple[str, str],
    identity: GatewayIdentity,
    values: FieldValues,
) -> Iterator[Delivery]:
    """Yield one delivery for each distinct name, and one for each refused tag.

    `source` is the name at the source of the first route, and the mark of this one.
    """
    carried, source_mark = source
    made: dict[str, _Bound] = {}
    refused: list[TranslationError] = []
    for selection in selections:
        try:
            captures = selection.captures
            if target.fields:
                captures = {**captures, **target.field_captures(values)}
            name = target.name_for(selection.tag.subject, captures)
            made.setdefault(name, _bound(route, target, selection, captures, carried))
        except TranslationError as error:
            refused.append(error)
    if made and route.tags.mode is TagMode.LIST:
        made = {join_tags(made): next(iter(made.values()))}
    labels = (f"{target.label}#{number}" if number > 1 else target.label for number in count(1))
    dialect = target.renderer.dialect
    for name, (rules, conversion, own) in made.items():
        wire = wire_name(name, dialect)
        yield Delivery(
            route,
            target,
            name,
            next(labels),
            rules=rules,
            conversion=conversion,
            source_mark=source_mark,
            target_mark=identity.mark(target.broker, name, dialect, wire),
            wire_name=wire.encode("utf-8", "surrogatepass"),
            own={key: value for key, value in own.items() if value is not None} or NO_PROPERTIES,
            removed=frozenset(key for key, value in own.items() if value is None),
            fields=_recorded(route, {each.name for each in target.name_fields}, values),
        )
    for refusal in refused:
        label, proven = next(labels), _recorded(route, set(), values)
        yield Delivery(route, target, "", label, refusal.rule, str(refusal), fields=proven)


def _own(route: Route, target: Target, captures: Mapping[str, Levels], carried: str) -> Properties:
    """Return the properties that only the gateway writes, or None for those that a copy lacks.

    `carried` is the name at the source.

    Raises:
        TranslationError: as `Target.partition_for`.
    """
    own: dict[str, str | int | None] = {}
    if target.carries_name or route.names_of is not None:
        own[SOURCE_NAME] = carried if target.carries_name else None
    if target.has_partitions:
        own[CHOSEN_PARTITION] = target.partition_for(captures)
    return own or NO_PROPERTIES


def _proven(writer: Route, name: str, values: FieldValues) -> tuple[Sequence[TagSelection], str]:
    """Return the selection that a message proves, or none, and the name that it carries.

    Raises:
        TranslationError: with the rule `field`; there is only a name, and no message.
    """
    if SOURCE_FIELD not in values:
        reason = f"it takes what route {writer.name!r} wrote, which {SOURCE_NAME!r} proves"
        raise TranslationError(writer.dialect.name, name, FIELD, reason)
    claimed = values[SOURCE_FIELD]
    found = proven(writer, name, claimed)
    return ([], "") if found is None else ([found], str(claimed))


def _recorded(route: Route, used: Collection[str], values: FieldValues) -> str:
    """Return the fields `used` in a name for its row, in which a missing one is null.

    A proven name is one of them. Empty without any, and where the route redacts one of them.
    """
    if not used and route.names_of is None:
        return ""
    names = sorted(used)
    names += [SOURCE_FIELD] if route.names_of is not None else []
    properties = [each for each in names if not is_payload_field(each)]
    if any(is_redacted(each, route.archive_redact) for each in properties):
        return ""
    return json.dumps({name: values[name] for name in names}, ensure_ascii=False)


def _copies(match: RouteMatch) -> int:
    return len(match.deliveries)


def _bound(
    route: Route,
    target: Target,
    selection: TagSelection,
    captures: Mapping[str, Levels],
    carried: str,
) -> _Bound:
    """Return the rules, the conversion and the gateway's properties with the captures of a name."""
    rules, conversion = target.rules.bind(captures), target.conversion
    if isinstance(conversion, PayloadPick):
        conversion = conversion.bind(captures)
    name, unused = route.tags.unused_tags_property, selection.unused_tags
    if name and unused:
        rules = rules.with_property(name, ",".join(unused))
    return rules, conversion, _own(route, target, captures, carried)
