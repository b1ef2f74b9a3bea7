"""Shovels of a file of definitions (rabbitmq.com, Dynamic Shovels), and what no route has of them.

A shovel: two ends, each with URIs, and a queue or an exchange with a key. Every other key of a
shovel that has an effect is listed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from gateway.imports.json_files import JsonEntry
from gateway.imports.source_lines import LineError, LineStatus, OmittedLine, SourceLine

PROTOCOLS: Final = ("amqp091", "local")
_READ: Final = frozenset(
    {
        "ack-mode", "dest-exchange", "dest-exchange-key", "dest-protocol", "dest-queue", "dest-uri",
        "prefetch-count", "reconnect-delay", "src-exchange", "src-exchange-key",
        "src-prefetch-count", "src-protocol", "src-queue", "src-uri",
    }
)  # fmt: skip
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
    "dest-publish-properties": _HEADERS,
    "publish-properties": _HEADERS,
    "src-consumer-args": "an endpoint has no such setting",
    "src-delete-after": _ENDS,
}
_NO_EFFECT: Final = ("never", False, None)


@dataclass(frozen=True, slots=True)
class ShovelEnd:
    """One end; `key` is absent where the shovel names none."""

    uris: tuple[str, ...]
    queue: str
    exchange: str
    key: str | None


@dataclass(frozen=True, slots=True)
class Shovel:
    """A shovel between two brokers of AMQP 0-9-1; `prefetch` is 0 without a bound."""

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
            raise LineError(item, f"its {role}-protocol is not amqp091, which the gateway speaks")
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
    queue, exchange, key = (
        value.get(f"{role}-{each}") for each in ("queue", "exchange", "exchange-key")
    )
    return ShovelEnd(
        texts,
        queue if isinstance(queue, str) else "",
        exchange if isinstance(exchange, str) else "",
        key if isinstance(key, str) else None,
    )


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
