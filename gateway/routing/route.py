"""Routes and their targets as frozen values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from typing import TypeAlias

from gateway.dialects.base import Dialect, parse_subject
from gateway.dialects.names import names_system, system_fault
from gateway.errors import TranslationError
from gateway.model.dead_letter_rule import NOT_ALLOWED
from gateway.model.subject import Subject
from gateway.routing.destination_kind import refuse_kind_chosen_by_publisher
from gateway.routing.header_draft import REPLY_TO
from gateway.routing.header_rules import NO_RULES, HeaderRules
from gateway.routing.message_fields import SOURCE_FIELD, FieldValues, field_levels
from gateway.routing.origin_path import NO_BROKER, BrokerName
from gateway.routing.payload_conversion import PayloadConversion
from gateway.routing.payload_pick import PayloadPick
from gateway.routing.selectors.selector import Selector
from gateway.routing.source_pattern import SourcePattern
from gateway.routing.tags import TagRule, join_tags
from gateway.routing.template import FieldPlaceholder, Template, TextTemplate
from gateway.translate.names import OnTooLong, Renderer
from gateway.translate.shorten import ShortNamesInMemory

EACH_TAG = TagRule()
Conversion: TypeAlias = PayloadConversion | PayloadPick


class WhenFull(Enum):
    """Policy for a message whose target has a full spool."""

    SLOW = "slow"  # the source waits
    OLDEST = "dead-letter-oldest"
    NEWEST = "dead-letter-newest"


@dataclass(frozen=True, slots=True)
class Thin:
    """The rule by which a target gets less of each name.

    With `seconds` it gets one copy in each interval, without them only a copy whose payload is
    another one than the target accepted last.
    """

    seconds: float = 0.0

    def __str__(self) -> str:
        return f"one message a name in {self.seconds:g} s" if self.seconds else "changes only"


@dataclass(frozen=True, slots=True)
class BrokerAccess:
    """The facts by which another gateway's routes meet a source or a target at its broker.

    `broker` is equal for endpoints that spell one name alike at one broker, also in different
    gateways. It is a hash, and empty when only this machine can know the broker. `name` is its
    `broker_id`. `ids`: the messages carry their trace id. Readers of one `group` divide the
    messages; `filtered`: a source does not receive all messages of its names.
    """

    broker: str = ""
    name: str = ""
    ids: bool = False
    group: str = ""
    filtered: bool = False


NO_ACCESS = BrokerAccess()


@dataclass(frozen=True)
class Target:
    """One destination of a route; without `templates` a message keeps its name.

    `label` is unique in its route: the name of the endpoint, numbered from its second target on.
    """

    label: str
    endpoint: str
    renderer: Renderer
    templates: tuple[Template, ...] = ()  # one; for a target with tag lists one for each tag
    allow: tuple[SourcePattern, ...] = ()  # other names are refused; empty: all names are allowed
    rules: HeaderRules = NO_RULES
    conversion: Conversion | None = None
    lossy: bool = False  # the mapping allows that different names become one
    when_full: WhenFull = WhenFull.SLOW
    carries_name: bool = False  # each copy carries the name at its source in `gateway_name`
    has_partitions: bool = False  # its broker has; without a `partition` the key chooses one
    partition: TextTemplate | int | None = None
    add_message_id: bool = False  # each copy carries the id of its message in a property
    broker: BrokerName = NO_BROKER
    observe: str = ""  # a subscription at the target that records arriving messages
    kind: str = ""  # the kind prefix of its addresses, which the mapping's own text contains
    payload_encoding: str = ""  # how its driver changes payloads behind their hash, as a clause
    access: BrokerAccess = NO_ACCESS
    thin: Thin | None = None  # None: every message is sent

    @property
    def template(self) -> Template | None:
        """Its first template; None when messages keep their name."""
        return self.templates[0] if self.templates else None

    @cached_property
    def name_fields(self) -> tuple[FieldPlaceholder, ...]:
        """The fields of messages that its names are made of."""
        return tuple(each for template in self.templates for each in template.fields)

    @cached_property
    def fields(self) -> tuple[str, ...]:
        """The names of all fields of messages that it uses, each once."""
        return tuple(dict.fromkeys(each.name for each in (*self.name_fields, *self.other_fields)))

    @cached_property
    def _level_fields(self) -> frozenset[str]:
        """The names of the fields that become levels or headers, not only values in a payload."""
        return frozenset(each.name for each in (*self.name_fields, *self.rules.fields))

    @property
    def other_fields(self) -> tuple[FieldPlaceholder, ...]:
        """The fields of messages in header rules, in the partition and in what payloads get."""
        picked = self.conversion.fields if isinstance(self.conversion, PayloadPick) else ()
        chosen = self.partition.fields if isinstance(self.partition, TextTemplate) else ()
        return (*self.rules.fields, *picked, *chosen)

    def field_captures(self, values: FieldValues) -> dict[str, tuple[str, ...]]:
        """Return the fields of a message as captures; those that `values` lacks are not part of it.

        Raises:
            TranslationError: with the rule `field`; one is not a level of the target's system, and
                stands in its names or headers.
        """
        dialect = self.renderer.dialect
        return {
            name: field_levels(name, values[name], dialect if name in self._level_fields else None)
            for name in self.fields
            if name in values
        }

    @property
    def system(self) -> str:
        """The name of the target's dialect."""
        return self.renderer.dialect.name

    def name_for(self, subject: Subject, captures: Mapping[str, tuple[str, ...]]) -> str:
        """Return the name of `subject` at this target.

        Raises:
            TranslationError: the target has no form for it, or does not allow it.
            LimitError: it is too long or too deep.
        """
        if not self.templates:
            return self._spell(subject)
        return join_tags(self._spell(each.expand(captures)) for each in self.templates)

    def partition_for(self, captures: Mapping[str, tuple[str, ...]]) -> str | int | None:
        """Return the text or the number that chooses the partition; None where the key does.

        Raises:
            TranslationError: a function does not find its part, or the message lacks a field.
        """
        chosen = self.partition
        return chosen.expand(captures) if isinstance(chosen, TextTemplate) else chosen

    def _spell(self, subject: Subject) -> str:
        name = self.renderer.render(subject)
        refuse_kind_chosen_by_publisher(name, self.kind, self.renderer.dialect)
        if self.allow:  # the name as it is sent: it may be shortened, or have replaced characters
            sent = parse_subject(name, self.renderer.dialect).levels
            if not any(pattern.selects(sent) for pattern in self.allow):
                reason = "is outside of what the endpoint allows"
                raise TranslationError(self.system, name, NOT_ALLOWED, reason)
        return name

    def reply_name(self, dialect: Dialect, name: str) -> str:
        """Translate a reply address from the source's `dialect` to this target's.

        Raises:
            SubjectError: the address is illegal at the source.
            TranslationError: the target has no form for it, or a publisher who knows no kinds of
                destinations chose one.
        """
        made = replace(self.renderer, replies=True).render(parse_subject(name, dialect))
        there = self.renderer.dialect
        if there.kind_prefixes != dialect.kind_prefixes:
            own_text = self.rules.own_text(REPLY_TO, name)
            refuse_kind_chosen_by_publisher(made, there.find_kind(own_text), there)
        return made


def for_templates(renderer: Renderer, templates: Sequence[Template]) -> Renderer:
    """Return `renderer`, opened for replies where the first template itself names where they go.

    Then the mapping sends there, and not a publisher who chose the name.
    """
    replies = bool(templates) and names_inboxes(templates[0].text, renderer.dialect)
    return replace(renderer, replies=True) if replies else renderer


def names_inboxes(template: str, dialect: Dialect) -> bool:
    """Return whether a template's own text begins with a level of inboxes."""
    opened = [each for rule in dialect.prefix_rules for each in rule.reply_only]
    opened += dialect.inbox_levels
    fixed = template.partition("{")[0]
    return any(fixed.startswith(each + dialect.separator) for each in opened)


@dataclass(frozen=True)
class Route:
    """A source pattern at an endpoint, its exclusions, and its targets, in order."""

    name: str
    endpoint: str
    dialect: Dialect
    source: SourcePattern
    targets: tuple[Target, ...]
    excludes: tuple[SourcePattern, ...] = ()
    tags: TagRule = EACH_TAG
    selector: Selector | None = None
    inverse: str = ""  # name of the route in the reverse direction
    take_retained: bool = True
    drop_duplicates: bool = True  # by the identity that the source gives a message
    loop_limit: int | None = None  # equal messages within a minute, beyond which they are cut
    names_of: Route | None = None  # it takes what this one wrote; see `routing.proven_names`
    replies_within: float = 0.0  # seconds; it takes replies to handed out addresses only
    heartbeat: str = ""  # a name at the source that receives heartbeats
    broker: BrokerName = NO_BROKER  # of the source
    archive_payload: bool = False
    archive_payload_bytes: int | None = None  # of each message; a longer payload is cut
    archive_redact: tuple[str, ...] = ()  # header fields and properties without recorded values
    access: BrokerAccess = NO_ACCESS

    def takes(self, levels: tuple[str, ...]) -> bool:
        """Return whether the route carries a name: `why_not` is empty."""
        return self.source.selects(levels) and not self._why_excluded(levels)

    def why_not(self, levels: tuple[str, ...]) -> str:
        """Return why the route does not take a name with these canonical levels; "" if it does."""
        if self.source.selects(levels):
            return self._why_excluded(levels)
        return self._why_reserved(levels) or self.source.mismatch(levels)

    def _why_excluded(self, levels: tuple[str, ...]) -> str:
        """Return why the route does not take a name that its pattern selects."""
        for exclude in self.excludes:
            if exclude.selects(levels):
                return f"excluded by {exclude.text!r}"
        return self._why_reserved(levels)

    def _why_reserved(self, levels: tuple[str, ...]) -> str:
        """Return why a name stays in its system; "" where the pattern names such names."""
        fault = system_fault(levels, self.dialect)
        return "" if fault is None or self.names_system else f"{fault[1]}; name them in the pattern"

    @cached_property
    def fields(self) -> tuple[str, ...]:
        """The names of the fields of messages that it uses, each once."""
        own = (SOURCE_FIELD,) if self.names_of is not None else ()
        used = (name for target in self.targets for name in target.fields)
        return tuple(dict.fromkeys((*own, *used)))

    @property
    def source_text(self) -> str:
        """The pattern for people, and the route whose names it takes."""
        of = self.names_of
        return self.source.text if of is None else f"{self.source.text}, names of {of.name}"

    @cached_property
    def over_names(self) -> Route:
        """The route from the names that its templates see: those of `names_of`, or its own."""
        of = self.names_of
        if of is None:
            return self
        return replace(
            self,
            dialect=of.dialect,
            source=of.source,
            excludes=of.excludes,
            tags=of.tags,
            names_of=None,
        )

    @cached_property
    def names_system(self) -> bool:
        """Whether the pattern names names of the system itself, such as `$sys.monitor.>`."""
        return all(names_system(pattern, self.dialect) for pattern in self.source.patterns)


def unrecorded(routes: Sequence[Route]) -> list[Route]:
    """Return equal routes for names that are not sent: the short ones among them are forgotten."""
    aside = ShortNamesInMemory()

    def copied(target: Target) -> Target:
        return replace(target, renderer=replace(target.renderer, dictionary=aside))

    return [
        replace(route, targets=tuple(map(copied, route.targets)))
        if any(each.renderer.on_too_long is OnTooLong.SHORTEN for each in route.targets)
        else route
        for route in routes
    ]
