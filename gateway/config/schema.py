"""What a configuration may say, declared once: the loader and the JSON Schema read it from here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, TypeAlias

from gateway.config.process import (
    ArchiveRef,
    DeadLettersRef,
    GatewayRef,
    SpoolRef,
    TracingRef,
    WebRef,
    WhenFullText,
)

Scalar: TypeAlias = str | int | float | bool | None
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


def legal_name(text: str) -> bool:
    """Names of gateways, endpoints and routes: they stand in file names, metrics and logs."""
    return _NAME.fullmatch(text) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitsRef:
    """What an endpoint takes less than its system does; a hosted MQTT broker, say."""

    bytes: int | None = field(default=None, metadata={"minimum": 1, "doc": "of UTF-8, whole name"})
    characters: int | None = field(default=None, metadata={"minimum": 1, "doc": "whole name"})
    levels: int | None = field(default=None, metadata={"minimum": 1, "doc": "of a name"})
    level_characters: int | None = field(
        default=None, metadata={"minimum": 1, "doc": "characters of the longest level"}
    )

    def maxima(self) -> dict[str, int]:
        """The limits that are given, by name."""
        every = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {name: most for name, most in every.items() if most is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointRef:
    """What every endpoint may say beside the settings of its kind."""

    limits: LimitsRef = field(
        default=LimitsRef(), metadata={"doc": "tighter limits of names than the system's own"}
    )
    allow: tuple[str, ...] = field(
        default=(),
        metadata={"doc": "patterns of the names that may be sent to; all when absent"},
    )
    escape: Literal["escape", "reject", "replace"] = field(
        default="escape", metadata={"doc": "for targets here that do not say it themselves"}
    )
    length: Literal["refuse", "shorten"] = field(
        default="refuse", metadata={"doc": "for targets here that do not say it themselves"}
    )
    place: str | None = field(
        default=None,
        metadata={
            "doc": "what all gateways call this broker, so that none sends a message back to where"
            " it was under the same name; by default its address"
        },
    )
    echo_seconds: float = field(
        default=0.0,
        metadata={
            "minimum": 0,
            "doc": "take the same name and payload within this time for one message that came"
            " back; for loops through systems that carry no origin path, else leave it 0",
        },
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TagsRef:
    """What becomes of the tags of a message that has a list of them."""

    mode: Literal["each", "first", "combine", "list"] = field(
        default="each",
        metadata={"doc": "each: a copy for every tag taken; first: one; combine; list: all in one"},
    )
    prefer: tuple[str, ...] = field(
        default=(), metadata={"doc": "patterns that choose the tag, in their order"}
    )
    along: tuple[str, ...] = field(
        default=(), metadata={"doc": "patterns of other tags whose captures the template may use"}
    )
    others: str = field(
        default="", metadata={"doc": "property that gets the tags that made no name"}
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadersRef:
    """What happens to headers and properties on the way to a target, in this order."""

    map: Mapping[str, Mapping[str, Scalar]] = field(
        default_factory=dict, metadata={"doc": "values to put for others; '*' for all the rest"}
    )
    rename: Mapping[str, str] = field(
        default_factory=dict, metadata={"doc": "new names of properties, or header fields"}
    )
    drop: tuple[str, ...] = field(default=(), metadata={"doc": "what goes; a star may end a name"})
    keep: tuple[str, ...] = field(default=(), metadata={"doc": "what stays though `drop` says go"})
    set: Mapping[str, Scalar] = field(
        default_factory=dict, metadata={"doc": "values to put; text may use the captures"}
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRef:
    """Where a route takes messages from."""

    endpoint: str = field(metadata={"doc": "name of an endpoint"})
    pattern: str = field(
        metadata={"doc": "subscription in the endpoint's dialect; {name} and {name...} capture"}
    )
    exclude: tuple[str, ...] = field(
        default=(), metadata={"doc": "patterns of names that this route leaves alone"}
    )
    selector: str | None = field(
        default=None, metadata={"doc": "take only messages for which this JMS selector is true"}
    )
    tags: TagsRef = field(default=TagsRef(), metadata={"doc": "how a list of tags is taken"})


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetRef:
    """Where a route sends messages to, and under which name."""

    endpoint: str = field(metadata={"doc": "name of an endpoint"})
    template: tuple[str, ...] | None = field(
        default=None,
        metadata={
            "doc": "name to send to, with the captures; without it the name is kept."
            " Several make several tags, where the target has tag lists"
        },
    )
    escape: Literal["escape", "reject", "replace"] | None = field(
        default=None, metadata={"doc": "what happens to characters the target cannot spell"}
    )
    payload: Literal["keep", "text", "bytes", "json", "map"] = field(
        default="keep", metadata={"doc": "what the payload is turned into"}
    )
    encoding: str = field(default="utf-8", metadata={"doc": "of the payload's text, as bytes"})
    headers: HeadersRef = field(
        default=HeadersRef(), metadata={"doc": "rules for headers and properties"}
    )
    lossy: bool = field(
        default=False, metadata={"doc": "different names may become one here, and that is meant"}
    )
    replacement: str = field(
        default="-", metadata={"doc": "the one character that `replace` puts for others"}
    )
    length: Literal["refuse", "shorten"] | None = field(
        default=None, metadata={"doc": "what happens to names past the target's limits"}
    )
    when_full: WhenFullText | None = field(
        default=None, metadata={"doc": "what a full spool does; as the section `spool` says"}
    )
    observe: str | None = field(
        default=None,
        metadata={
            "doc": "a subscription at this endpoint whose messages go to the archive as observed,"
            " so that loss inside the broker shows; each copy then has `gateway_id`, where it can"
        },
    )
    identify: bool = field(
        default=False,
        metadata={"doc": "give each copy the property `gateway_id`, to know it again by"},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteRef:
    """One rule of the bridge: names that match `from` go to every `to`."""

    sources: tuple[SourceRef, ...] = field(
        metadata={"key": "from", "doc": "where messages come from"}
    )
    targets: tuple[TargetRef, ...] = field(metadata={"key": "to", "doc": "where they go"})
    direction: Literal["forward", "both"] = field(
        default="forward", metadata={"doc": "both: the way back is derived, and is a route too"}
    )
    retained: Literal["ignore", "forward"] = field(
        default="forward",
        metadata={"doc": "messages the source broker kept from before: leave them, or take them"},
    )
    duplicates: Literal["drop", "pass"] = field(
        default="drop",
        metadata={"doc": "messages seen before, by the identity that their source gives them"},
    )
    heartbeat: str | None = field(
        default=None,
        metadata={"doc": "a name of the first source to send signs of life to, through the route"},
    )
    archive_payload: bool = field(
        default=False, metadata={"doc": "keep payload and headers in the archive rows"}
    )
    archive_payload_bytes: int | None = field(
        default=None, metadata={"minimum": 0, "doc": "of a payload that is kept; the rest is cut"}
    )
    archive_redact: tuple[str, ...] = field(
        default=(),
        metadata={"doc": "properties and headers whose values are not kept; a star may end a name"},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenRef:
    """The message that a test sends."""

    endpoint: str = field(metadata={"doc": "where it arrives"})
    name: str = field(metadata={"doc": "as that system spells it; of YAMI4 a tag list"})
    payload: str = field(default="", metadata={"doc": "text"})
    properties: Mapping[str, Scalar] = field(
        default_factory=dict, metadata={"doc": "its properties by name"}
    )
    reply_to: str | None = field(default=None, metadata={"doc": "where an answer goes"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectRef:
    """One copy that a test expects: the name it gets, or the rule that refuses it."""

    endpoint: str = field(metadata={"doc": "where it is sent to"})
    name: str | None = field(default=None, metadata={"doc": "as that system spells it"})
    refused: str | None = field(default=None, metadata={"doc": "the rule that the name breaks"})
    payload: str | None = field(default=None, metadata={"doc": "as text; any when absent"})
    properties: Mapping[str, Scalar] | None = field(
        default=None, metadata={"doc": "all of them; any when absent"}
    )
    reply_to: str | None = field(default=None, metadata={"doc": "translated; any when absent"})


@dataclass(frozen=True, slots=True, kw_only=True)
class TestRef:
    """A message and all that the routes make of it; `gateway test` runs it, `run` does not."""

    given: GivenRef = field(metadata={"doc": "the message"})
    expect: tuple[ExpectRef, ...] = field(metadata={"doc": "every copy, in any order; [] for none"})


SECTIONS: Mapping[str, type] = MappingProxyType(
    {
        "gateway": GatewayRef,
        "routes": RouteRef,
        "archive": ArchiveRef,
        "spool": SpoolRef,
        "dead_letters": DeadLettersRef,
        "web": WebRef,
        "tracing": TracingRef,
        "tests": TestRef,
    }
)  # beside `endpoints`, whose settings each kind declares
NAMED = ("routes", "tests")  # sections of many, by name
