"""Settings of routes, common settings of endpoints, and mapping tests.

The loader and the JSON Schema read the dataclasses of this module and of `process`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from gateway.config import process
from gateway.config.state_settings import StateSettings
from gateway.dialects.brokers import BROKERS
from gateway.dialects.name_limits import FIELDS, NameLimits
from gateway.routing.payload_pick import DEFAULT_MAX
from gateway.setting import optional, seconds, setting, size

Scalar: TypeAlias = str | int | float | bool | None
UnmappableText: TypeAlias = Literal["escape", "reject", "replace"]
TooLongText: TypeAlias = Literal["refuse", "shorten"]
NAME_PATTERN: Final = "[A-Za-z0-9][A-Za-z0-9_.-]{0,63}"


def is_legal_name(text: str) -> bool:
    """Return whether `text` can name a gateway, endpoint or route: in files, metrics and logs."""
    return re.fullmatch(NAME_PATTERN, text) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class NameLimitSettings(NameLimits):
    """Limits of names at one broker, by its name, by figures and rules, or by both."""

    broker: str | None = optional(
        "broker whose limits hold beside the others", choices=tuple(BROKERS)
    )

    def all_limits(self) -> NameLimits:
        """Return these limits together with those of the known broker."""
        own = NameLimits(**{name: getattr(self, name) for name in FIELDS})
        return own if self.broker is None else own.with_those_of(BROKERS[self.broker].limits)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommonEndpointSettings:
    """Settings of every endpoint, whatever its kind."""

    limits: NameLimitSettings = setting(
        "limits of names that are tighter than those of the system; a text is the `broker`",
        NameLimitSettings(),
        shorthand="broker",
    )
    allow: tuple[str, ...] = setting(
        "patterns of names that may be sent to; all names when absent", (), filled=True
    )
    on_unmappable: UnmappableText = setting(
        "default of `on_unmappable` for targets at this endpoint", "escape"
    )
    on_too_long: TooLongText = setting(
        "default of `on_too_long` for targets at this endpoint", "refuse"
    )
    was: str | None = optional(
        "earlier name of this endpoint: its source goes on with the memory of that one, and with"
        " session, queue and consumer of that name, and its target with the copies in the spool"
    )
    broker_id: str | None = optional(
        "identifier of the broker, the same in the configurations of all gateways, to detect loops"
        " through several gateways, and to join gateways at night (`--hops`). When absent, loops"
        " know the broker by its address and the identity of the gateway, and nights by its"
        " address"
    )
    echo_window: float = seconds(
        "seconds within which a second message with the same name and payload counts as an echo"
        " and is dropped; for loops through systems that carry no origin path. 0: off",
        0.0,
        minimum=0,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TagSettings:
    """Selection from the tag list of a message."""

    mode: Literal["each", "first", "combine", "list"] = setting(
        "`each`: one copy for each matching tag; `first`: one copy for the first; `combine`: one"
        " copy, with captures of several tags; `list`: one copy with all matching tags",
        "each",
    )
    prefer: tuple[str, ...] = setting(
        "patterns, in order of preference, that choose among several matching tags", ()
    )
    require_tags: tuple[str, ...] = setting(
        "patterns of further tags that the message must have, for `combine`; the template may use"
        " their captures",
        (),
    )
    unused_tags_property: str = setting(
        "property that receives the tags that are not part of the new name; none when empty", ""
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class HeaderSettings:
    """Rules for headers and properties, applied in this order."""

    map: Mapping[str, Mapping[str, Scalar]] = setting(
        "by header or property, new values by old value; '*' stands for all other values",
        default_factory=dict,
    )
    rename: Mapping[str, str] = setting(
        "new names, or header fields, by old name", default_factory=dict
    )
    drop: tuple[str, ...] = setting("names to remove; a name may end with '*'", ())
    keep: tuple[str, ...] = setting("exceptions from `drop`; a name may end with '*'", ())
    set: Mapping[str, Scalar] = setting(
        "values to set, by name; text may use captures and fields of the message",
        default_factory=dict,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PayloadSettings:
    """Conversion of the payload: a form, or some fields of a JSON object."""

    form: Literal["keep", "text", "bytes", "json", "map"] = setting(
        "form of the payload; with `pick` or `set` it is JSON", "keep"
    )
    pick: tuple[str, ...] | None = optional(
        "fields of a JSON object that the copy has, such as `a` and `b.c`; all when absent"
    )
    set: Mapping[str, Scalar] = setting(
        "fields to set in the JSON object, by name; text may use captures and fields of the"
        " message",
        default_factory=dict,
    )
    max: int = size(
        "bytes of a JSON object with `pick` or `set`; a larger one is a dead letter",
        DEFAULT_MAX,
        minimum=1,
    )

    @property
    def picks(self) -> bool:
        """Whether the copy has fields of a JSON object."""
        return self.pick is not None or bool(self.set)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSettings:
    """Source of a route."""

    endpoint: str = setting("name of an endpoint")
    pattern: str = setting(
        "subscription in the dialect of the endpoint; {name} and {name...} are captures",
        "",
        instead=("topic", "names_of"),
    )
    topic: str | None = optional(
        "in place of `pattern`, where a name has a topic and a key: a subscription to topics,"
        " whatever the key, with captures"
    )
    key: str | None = optional(
        "pattern of the keys, with captures, beside `topic`; it takes no message without a key"
    )
    names_of: str | None = optional(
        "in place of `pattern`, where copies carry the name at their source: the route whose copies"
        " at this endpoint it takes, under their own names and with the captures of that route"
    )
    exclude: tuple[str, ...] = setting("patterns of names that this route does not take", ())
    selector: str | None = optional(
        "JMS selector; the route takes only messages for which it is true"
    )
    tags: TagSettings = setting("selection from a tag list", TagSettings())


@dataclass(frozen=True, slots=True, kw_only=True)
class ThinSettings:
    """Less of what a target gets; one of the two."""

    seconds: float | None = seconds(
        "interval in which the target gets one message a name: the first at once, and the latest of"
        " the others at its end, from the spool. Without a spool only the first",
        None,
        minimum=0.1,
    )
    on_change: bool = setting(
        "send a message only if its payload is another one than the target accepted last under"
        " this name",
        False,
    )

    def __post_init__(self) -> None:
        if (self.seconds is None) is not self.on_change:
            raise ValueError("`thin` has one of `seconds: N` and `on_change: true`")


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetSettings:
    """Target of a route."""

    endpoint: str = setting("name of an endpoint")
    template: tuple[str, ...] | None = optional(
        "name of the copy, with captures and fields of the message ({property.x}, {payload.x.y});"
        " when absent, the name of the message. Several templates make several tags, where the"
        " target has tag lists",
        filled=True,
    )
    topic: str | None = optional(
        "in place of `template`, where a name has a topic and a key: the topic of the copy"
    )
    key: str | None = optional("key of the copy, beside `topic`; null when absent")
    partition: str | None = optional(
        "text with captures that chooses the partition as a key of this text does, or the number of"
        " the partition, from 0; the key chooses it when absent. Only a kind with partitions has it"
    )
    on_unmappable: UnmappableText | None = optional(
        "action on characters that the target's names cannot have: escape them, reject the"
        " message, or replace them by `replacement`; as the endpoint when absent"
    )
    payload: PayloadSettings = setting(
        "conversion of the payload: a `form`, or a pick of fields of JSON",
        PayloadSettings(),
        shorthand="form",
    )
    encoding: str = setting("character encoding between text and bytes", "utf-8")
    headers: HeaderSettings = setting("rules for headers and properties", HeaderSettings())
    lossy: bool = setting("permit that different names become the same name at the target", False)
    replacement: str = setting("character that `replace` writes", "-")
    on_too_long: TooLongText | None = optional(
        "action on names beyond the target's limits: refuse the message or shorten the name; as"
        " the endpoint when absent"
    )
    when_full: process.WhenFullText | None = optional(
        "action when the spool of the target is full; as the section `spool` when absent"
    )
    observe: str | None = optional(
        "subscription at this endpoint whose messages are archived as observed, to detect loss"
        " inside the broker; implies `add_message_id` where the system carries properties"
    )
    thin: ThinSettings | None = optional(
        "leave messages out: one a name and interval, or those without a change; each has a row"
        " `cut` with the rule `thinned`"
    )
    add_message_id: bool = setting(
        "add the properties `gateway_id`, a unique id, and `gateway_trace` to each copy", False
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteSettings:
    """Route: every message that matches `from` is copied to every `to`."""

    sources: tuple[SourceSettings, ...] = setting(
        "one source, or a list of sources", key="from", filled=True
    )
    targets: tuple[TargetSettings, ...] = setting(
        "one target, or a list of targets", key="to", filled=True
    )
    direction: Literal["forward", "both"] = setting(
        "`both` derives the reverse route, and runs it too", "forward"
    )
    retained: Literal["ignore", "forward"] = setting(
        "messages that the source broker retained before the subscription", "forward"
    )
    duplicates: Literal["drop", "pass"] = setting(
        "messages received before, by the message identity of the source", "drop"
    )
    loop_limit: int | None = optional(
        "equal messages, by name and payload, that the route takes within a minute; it cuts the"
        " others, each with a row of the archive. No limit when absent",
        minimum=1,
        unit="messages a minute",
    )
    replies_within: float = seconds(
        "for a route that brings replies to the inboxes or queues of clients: seconds in which it"
        " takes a reply to an address that the gateway handed out with a request; others are dead"
        " letters, and so are replies after a restart or a takeover, which forgets the addresses."
        " 0: it takes all names of its pattern",
        0.0,
        minimum=0,
    )
    heartbeat: str | None = optional(
        "name at the first source for heartbeat messages, which pass through the route"
    )
    archive_payload: bool = setting("archive the payload and the headers of each message", False)
    archive_payload_bytes: int | None = size(
        "bytes of each payload to archive; the rest is cut off", None, minimum=0
    )
    archive_redact: tuple[str, ...] = setting(
        "properties and headers whose values are not archived; a name may end with '*'", ()
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenMessage:
    """Message of a mapping test."""

    endpoint: str = setting("endpoint at which the message arrives")
    name: str = setting("name in the dialect of the endpoint; for YAMI4 a tag list")
    payload: str = setting("payload, as text", "")
    properties: Mapping[str, Scalar] = setting(
        "properties and JMS headers by name", default_factory=dict
    )
    reply_to: str | None = optional("reply address")
    priority: int | None = optional("priority", minimum=0, maximum=9)
    ttl: float | None = seconds("seconds until the message expires", None, minimum=1e-6)
    content_type: str | None = optional("type of the payload")
    correlation_id: str | None = optional("correlation id")
    retained: bool | None = optional("whether it is marked as retained")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedCopy:
    """Copy that a mapping test expects: its name, or the rule that refuses it."""

    endpoint: str = setting("endpoint of the target")
    name: str | None = optional("name in the dialect of the endpoint")
    refused: str | None = optional("rule that the name violates")
    payload: str | None = optional("payload, as text; any when absent")
    properties: Mapping[str, Scalar] | None = optional(
        "all properties by name, and JMS headers; any when absent"
    )
    reply_to: str | None = optional("translated reply address; any when absent")
    priority: int | None = optional("priority; any when absent", minimum=0, maximum=9)
    ttl: float | None = seconds(
        "seconds until the copy expires; any when absent", None, minimum=1e-6
    )
    content_type: str | None = optional("type of the payload; any when absent")
    correlation_id: str | None = optional("correlation id; any when absent")
    retained: bool | None = optional("whether it is marked as retained; any when absent")


@dataclass(frozen=True, slots=True, kw_only=True)
class MappingTest:
    """One message and all copies of it; run by `gateway test`."""

    given: GivenMessage = setting("the message")
    expect: tuple[ExpectedCopy, ...] = setting("all copies, in any order; [] for none")


LISTS: Final = ("state",)  # sections of which a file may have several, as a list
SECTIONS: Final[Mapping[str, type]] = {
    "gateway": process.GatewaySettings,
    "routes": RouteSettings,
    "standby": process.StandbySettings,
    "archive": process.ArchiveSettings,
    "spool": process.SpoolSettings,
    "dead_letters": process.DeadLetterSettings,
    "web": process.WebSettings,
    "tracing": process.TracingSettings,
    "tests": MappingTest,
    "state": StateSettings,
}  # without `endpoints`: each kind declares its own settings
