"""Shovels of a file of definitions (rabbitmq.com, Dynamic Shovels), and what no route has of them.

A shovel: two ends, each with URIs, and a queue or an exchange with a key. An end of AMQP 1.0 has
an address, which names them. Every other key of a shovel that has an effect is listed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

from gateway.imports.json_files import JsonEntry
from gateway.imports.source_lines import LineError, LineStatus, OmittedLine, SourceLine

AMQP_1_0: Final = "amqp10"
OTHER_PRODUCT: Final = "artemis"  # stands for each product whose addresses are plain names
TOPICS: Final = "amq.topic"
PROTOCOLS: Final = ("amqp091", "local", AMQP_1_0)
# The addresses of RabbitMQ, of both versions; others are of other products.
_ADDRESS: Final = re.compile(
    r"/(?:amq/)?queues?/(?P<queue>[^/]+)"
    r"|/exchanges?/(?P<exchange>[^/]+)(?:/(?P<key>[^/]+))?"
    r"|/topic/(?P<topic>[^/]+)"
)
_READ: Final = frozenset(
    {
        "ack-mode",
        "dest-address",
        "dest-exchange",
        "dest-exchange-key",
        "dest-protocol",
        "dest-queue",
        "dest-uri",
        "prefetch-count",
        "reconnect-delay",
        "src-address",
        "src-exchange",
        "src-exchange-key",
        "src-prefetch-count",
        "src-protocol",
        "src-queue",
        "src-uri",
    }
)
_STAYS: Final = "the queue exists, and the gateway takes it as it is"
_STAYING: Final = frozenset(
    {"dest-predeclared", "dest-queue-args", "src-predeclared", "src-queue-args"}
)
_HEADERS: Final = "write it as a header rule of the route (`headers: {set: ...}`)"
_ENDS: Final = "a route goes on until it is removed"
_FORWARD: Final = "the gateway marks its copies by their origin path"
_LOST: Final[Mapping[str, str]] = {
    "add-forward-headers": _FORWARD,
    "delete-after": _ENDS,
    "dest-add-forward-headers": _FORWARD,
    "dest-add-timestamp-header": _HEADERS,
    "dest-application-properties": _HEADERS,
    "dest-message-annotations": _HEADERS,
    "dest-properties": _HEADERS,
    "dest-publish-properties": _HEADERS,
    "publish-properties": _HEADERS,
    "src-consumer-args": "an endpoint has no such setting",
    "src-delete-after": _ENDS,
}
_NO_EFFECT: Final = ("never", False, None)


@dataclass(frozen=True, slots=True)
class ShovelEnd:
    """One end; `key` is absent where the shovel names none.

    `known` is the product of an end of AMQP 1.0, as far as its address tells; empty for another
    protocol.
    """

    uris: tuple[str, ...]
    queue: str
    exchange: str
    key: str | None
    known: str = ""


@dataclass(frozen=True, slots=True)
class Shovel:
    """A shovel between two brokers; `prefetch` is 0 without a bound."""

    location: SourceLine
    name: str
    source: ShovelEnd
    target: ShovelEnd
    prefetch: int
    delay: int  # seconds between two attempts

    def omitted(self, item: str, reason: str) -> OmittedLine:
        return OmittedLine(self.location, f"{item} of shovel {self.name!r}", reason)


def parse_shovel(entry: JsonEntry, omitted: list[OmittedLine]) -> Shovel:
    """Read a shovel; keys without an equivalent are added to `omitted`.

    Raises:
        LineError: no route can have it.
    """
    name = entry.text("name")
    item = f"shovel {name!r}"
    value = entry.value.get("value") if isinstance(entry.value, dict) else None
    if not isinstance(value, dict):
        raise LineError(item, "it has no object `value`")
    for role in ("src", "dest"):
        if value.get(f"{role}-protocol", PROTOCOLS[0]) not in PROTOCOLS:
            raise LineError(item, f"its {role}-protocol is none of {', '.join(PROTOCOLS)}")
    shovel = Shovel(
        entry.location,
        name,
        _end(value, "src", item),
        _end(value, "dest", item),
        _number(value, "src-prefetch-count", _number(value, "prefetch-count", 1_000)),
        _number(value, "reconnect-delay", 5),
    )
    omitted += _unread(shovel, value)
    return shovel


def _end(value: Mapping[str, object], role: str, item: str) -> ShovelEnd:
    uris = value.get(f"{role}-uri")
    listed = (uris,) if isinstance(uris, str) else tuple(uris) if isinstance(uris, list) else ()
    texts = tuple(each for each in listed if isinstance(each, str))
    if not texts or len(texts) < len(listed):
        raise LineError(item, f"its {role}-uri is no URI and no list of them")
    if value.get(f"{role}-protocol") == AMQP_1_0:
        address = value.get(f"{role}-address")
        if not isinstance(address, str) or not address:
            raise LineError(item, f"its {role}-address is no text")
        return _addressed(texts, address)
    queue, exchange, key = (
        value.get(f"{role}-{each}") for each in ("queue", "exchange", "exchange-key")
    )
    return ShovelEnd(
        texts,
        queue if isinstance(queue, str) else "",
        exchange if isinstance(exchange, str) else "",
        key if isinstance(key, str) else None,
    )


def _addressed(uris: tuple[str, ...], address: str) -> ShovelEnd:
    """Return an end of AMQP 1.0."""
    found = _ADDRESS.fullmatch(address)
    if found is None:
        return ShovelEnd(uris, address, "", None, OTHER_PRODUCT)
    parts = {name: unquote(text) for name, text in found.groupdict().items() if text is not None}
    exchange, key = parts.get("exchange", ""), parts.get("key")
    if "topic" in parts:
        exchange, key = TOPICS, parts["topic"]
    return ShovelEnd(uris, parts.get("queue", ""), exchange, key, "rabbitmq-4")


def _number(value: Mapping[str, object], key: str, default: int) -> int:
    found = value.get(key)
    return found if isinstance(found, int) and found >= 0 else default


def _unread(shovel: Shovel, value: Mapping[str, object]) -> Iterator[OmittedLine]:
    """Yield the keys without an equivalent; keys that RabbitMQ does not know are among them."""
    for key, setting in value.items():
        item = f"{key!r} of shovel {shovel.name!r}"
        if key in _STAYING:
            yield OmittedLine(shovel.location, item, _STAYS, LineStatus.STAYS_AT_BROKER)
        elif key not in _READ and setting not in _NO_EFFECT:
            yield OmittedLine(shovel.location, item, _LOST.get(key, "no route has such a setting"))
