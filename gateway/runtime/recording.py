"""Archive rows of one batch: received, delivered and dead, with ids and fingerprints; no I/O."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import msgpack

from gateway.archive.records import Cell, Rows
from gateway.archive.schema import Leg, Step
from gateway.model.message import Headers, Message, Payload, identity_of
from gateway.model.outcome import Settlement
from gateway.routing.route import Route
from gateway.routing.router import Hop, Way

HASH_SIZE = 16  # bytes
PROPERTY = "property."  # in front of a property's name among the headers
CUT = "payload_cut_from"  # header of a payload that is not whole: the bytes it had
REDACTED = "[redacted]"
NOT_TEXT = "not_text"  # header with the names of those whose values are no text, as JSON

Columns = dict[str, list[Cell]]


def now() -> int:
    """Microseconds since 1970-01-01 UTC."""
    return time.time_ns() // 1000


def payload_bytes(payload: Payload) -> bytes:
    """The bytes a payload is counted and hashed by: of a map its msgpack form."""
    if isinstance(payload, bytes):
        return payload
    if isinstance(payload, str):
        return payload.encode("utf-8", "surrogatepass")
    packed: bytes = msgpack.packb(dict(payload), unicode_errors="surrogatepass", default=str)
    return packed


def fingerprint(payload: Payload) -> tuple[int, bytes]:
    """Size in bytes and 16-byte hash of a payload."""
    data = payload_bytes(payload)
    return len(data), blake2b(data, digest_size=HASH_SIZE).digest()


@dataclass(frozen=True, slots=True)
class Copy:
    """One message of a batch for one target: its position in the batch, and its hop."""

    position: int
    hop: Hop


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a batch came from, when, and the ids of its messages: a run and a first counter."""

    endpoint: str
    system: str
    time: int
    run: int
    first: int


class BatchRecord:
    """Makes the rows of one batch; mutable, it computes each fingerprint once."""

    __slots__ = ("_fingerprints", "_messages", "_origin")

    def __init__(self, messages: Sequence[Message], origin: Origin) -> None:
        self._messages = messages
        self._origin = origin
        self._fingerprints: dict[int, tuple[int, bytes]] = {}

    def received(self, route: Route, positions: Sequence[int], ways: Sequence[Way]) -> Rows:
        """Rows that say that `route` took the messages at `positions`, and which ends they owe."""
        messages = [self._messages[position] for position in positions]
        columns = self._columns(positions, [message.address for message in messages])
        columns |= _header_columns([message.headers for message in messages])
        if route.archive_payload:
            columns |= kept_content(messages, route)
        common = self._common(route.name, Leg.RECEIVED, Step.RECEIVED, self._origin.time)
        common["attempt"] = 1
        first = ways[0].labels
        if all(way is ways[0] or way.labels == first for way in ways):
            common["targets"] = first
        else:
            columns["targets"] = [way.labels for way in ways]
        return Rows(len(messages), common, columns)

    def delivered(
        self, hop: Hop, positions: Sequence[int], sent: Sequence[Message], attempts: int, at: int
    ) -> Rows:
        """Rows that say that the end of `hop` has the messages at `positions`, as `sent`."""
        converted = hop.target is not None and hop.target.conversion is not None
        step = Step.CONVERTED if converted else Step.ACCEPTED
        common = self._common(hop.route.name if hop.route else "", Leg.DELIVERED, step, at)
        if hop.target is not None:
            common |= {"endpoint": hop.target.endpoint, "system": hop.target.system}
        common |= {"target": hop.label, "attempt": attempts}
        columns = self._columns(positions, [message.address for message in sent])
        columns["source_name"] = [self._messages[position].address for position in positions]
        if converted:
            prints = [fingerprint(message.payload) for message in sent]
            columns |= {"size": [each[0] for each in prints], "hash": [each[1] for each in prints]}
        return Rows(len(positions), common, columns)

    def dead(self, copy: Copy, name: str, settled: Settlement, at: int) -> Rows:
        """The row of a dead letter: the whole message, and under `name` if it got that far."""
        hop, message = copy.hop, self._messages[copy.position]
        columns = self._columns([copy.position], [name or message.address])
        columns |= kept_content([message], hop.route)
        common = self._common(hop.route.name if hop.route else "", Leg.DEAD, Step.REJECTED, at)
        common |= {"rule": settled.rule, "reason": settled.reason, "attempt": 1}
        common["source_name"] = message.address
        if hop.target is not None:
            common["target"] = hop.label
            if name:
                common |= {"endpoint": hop.target.endpoint, "system": hop.target.system}
        return Rows(1, common, columns)

    def identity(self, position: int) -> bytes:
        """The id of the message at `position`: the run, then its number in it."""
        origin = self._origin
        return origin.run.to_bytes(8, "big") + (origin.first + position).to_bytes(8, "big")

    def size(self, positions: Sequence[int]) -> int:
        """Payload bytes of the messages at `positions`."""
        return sum(self._fingerprint(position)[0] for position in positions)

    def _common(self, route: str, leg: Leg, step: Step, at: int) -> dict[str, Cell]:
        origin = self._origin
        common: dict[str, Cell] = {"route": route, "leg": leg.value, "outcome": step.value}
        common |= {"time": at, "received": origin.time}
        return common | {"endpoint": origin.endpoint, "system": origin.system}

    def _columns(self, positions: Sequence[int], names: Sequence[str]) -> Columns:
        prints = [self._fingerprint(position) for position in positions]
        run, first = self._origin.run.to_bytes(8, "big"), self._origin.first
        return {
            "name": list(names),
            "id": [run + (first + position).to_bytes(8, "big") for position in positions],
            "size": [each[0] for each in prints],
            "hash": [each[1] for each in prints],
            "mode": [int(self._messages[position].headers.mode) for position in positions],
        }

    def _fingerprint(self, position: int) -> tuple[int, bytes]:
        if (found := self._fingerprints.get(position)) is None:
            found = fingerprint(self._messages[position].payload)
            self._fingerprints[position] = found
        return found


def _header_columns(headers: Sequence[Headers]) -> Columns:
    """The columns that are not empty in all of them."""
    columns: Columns = {
        "origin_id": [identity_of(each) for each in headers],
        "source_time": [each.time for each in headers],
        "redelivered": [each.redelivered for each in headers],
    }
    return {name: values for name, values in columns.items() if any(values)}


def kept_content(messages: Sequence[Message], route: Route | None) -> Columns:
    """Payloads and headers as the route lets the archive have them.

    A payload that is cut says so in its headers, with the bytes it had.
    """
    payloads = [payload_bytes(message.payload) for message in messages]
    headers = [header_map(message) for message in messages]
    if route is not None and route.archive_redact:
        headers = [_redacted(each, route.archive_redact) for each in headers]
    most = None if route is None else route.archive_payload_bytes
    if most is not None:
        headers = [
            {**each, CUT: str(len(payload))} if len(payload) > most else each
            for each, payload in zip(headers, payloads, strict=True)
        ]
        payloads = [payload[:most] for payload in payloads]
    return {"payload": list(payloads), "headers": list(headers)}


def _redacted(headers: Mapping[str, str], names: Sequence[str]) -> Mapping[str, str]:
    """`headers` without the values of those `names` tell, as a property or as a field."""
    return {
        name: REDACTED if any(_is_meant(name, each) for each in names) else value
        for name, value in headers.items()
    }


def _is_meant(name: str, wanted: str) -> bool:
    name = name.removeprefix(PROPERTY)
    return name.startswith(wanted[:-1]) if wanted.endswith("*") else name == wanted


def header_map(message: Message) -> Mapping[str, str]:
    """Headers as text by name, properties behind PROPERTY; for people and for a replay."""
    headers = message.headers
    named = {
        "priority": headers.priority,
        "expiry": headers.expiry,
        "reply_to": headers.reply_to,
        "content_type": headers.content_type,
        "retained": headers.retained or None,
        "payload_kind": type(message.payload).__name__,
    }
    shown = {name: str(value) for name, value in named.items() if value is not None}
    if headers.correlation_id is not None:
        raw = headers.correlation_id
        shown["correlation_id"] = raw if isinstance(raw, str) else raw.hex()
    shown |= {f"{PROPERTY}{name}": str(value) for name, value in headers.properties.items()}
    if other := _not_text(headers):
        shown[NOT_TEXT] = json.dumps(other)
    return shown


def _not_text(headers: Headers) -> list[str]:
    """Of the values that may be text, those that are something else."""
    found = [
        f"{PROPERTY}{name}"
        for name, value in headers.properties.items()
        if not isinstance(value, str)
    ]
    return ["correlation_id", *found] if isinstance(headers.correlation_id, bytes) else found
