"""Archive rows of one batch: received, delivered and dead, with ids and fingerprints; no I/O."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import msgpack
from xxhash import xxh3_128_digest

from gateway.archive.journal.records import Cell, Rows
from gateway.archive.schema import Leg, Step
from gateway.model.message import Headers, Message, Payload, identity_of
from gateway.model.outcome import Settlement
from gateway.routing.route import Route
from gateway.routing.router import Hop, Way

PROPERTY = "property."  # in front of a property's name among the headers
CUT = "payload_cut_from"  # header of a payload that is not whole: the bytes it had
REDACTED = "[redacted]"
NOT_TEXT = "not_text"  # header with the names of those whose values are no text, as JSON

Columns = dict[str, Sequence[Cell]]
_T = TypeVar("_T")


def payload_bytes(payload: Payload) -> bytes:
    """The bytes a payload is counted and hashed by: of a map its msgpack form."""
    if isinstance(payload, bytes):
        return payload
    if isinstance(payload, str):
        return payload.encode("utf-8", "surrogatepass")
    packed: bytes = msgpack.packb(dict(payload), unicode_errors="surrogatepass", default=str)
    return packed


def fingerprint(payload: Payload) -> tuple[int, bytes]:
    """Size in bytes and 16-byte hash of a payload: XXH3, which finds faults and not forgery."""
    data = payload_bytes(payload)
    return len(data), xxh3_128_digest(data)


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a batch came from, when, and the ids of its messages: a run and a first counter."""

    endpoint: str
    system: str
    time: int
    run: int
    first: int


class BatchRecord:
    """Makes the rows of one batch; mutable, it computes what rows share once."""

    __slots__ = ("_messages", "_names", "_origin", "_whole")

    def __init__(self, messages: Sequence[Message], origin: Origin) -> None:
        self._messages = messages
        self._names: Sequence[Cell] = [message.address for message in messages]
        self._origin = origin
        self._whole: Columns | None = None

    def received(self, positions: Sequence[int], ways: Sequence[Way]) -> Rows:
        """Rows that say that a route each took the messages at `positions`, and what ends it owes.

        Of routes that keep payloads these are all of one. Positions rise, here as everywhere.
        """
        positions = self._every(positions)
        messages = _at(positions, self._messages)
        columns = self._columns(positions)
        columns["name"] = _at(positions, self._names)
        common = self._common(Leg.RECEIVED, Step.RECEIVED, self._origin.time)
        common["attempt"] = 1
        columns |= _header_columns([message.headers for message in messages])
        route = ways[0].route
        if route is not None and route.archive_payload:
            columns |= kept_content(messages, route)
        routes = [way.route.name if way.route else "" for way in ways]
        return _rows(common, columns, route=routes, targets=[way.labels for way in ways])

    def delivered(
        self,
        hops: Sequence[Hop],
        positions: Sequence[int],
        sent: Sequence[Message],
        attempts: int,
        at: int,
    ) -> Rows:
        """Rows that say that the ends of `hops` have the messages at `positions`, as `sent`.

        All of one endpoint, and all converted or none.
        """
        positions = self._every(positions)
        target = hops[0].target
        converted = target is not None and target.conversion is not None
        step = Step.CONVERTED if converted else Step.ACCEPTED
        common = self._common(Leg.DELIVERED, step, at)
        if target is not None:
            common |= {"endpoint": target.endpoint, "system": target.system}
        common["attempt"] = attempts
        columns = self._columns(positions)
        columns["name"] = [message.address for message in sent]
        columns["source_name"] = _at(positions, self._names)
        if converted:
            columns["size"], columns["hash"] = _fingerprints(sent)
        routes = [hop.route.name if hop.route else "" for hop in hops]
        return _rows(common, columns, route=routes, target=[hop.label for hop in hops])

    def dead(self, hop: Hop, position: int, name: str, settled: Settlement, at: int) -> Rows:
        """The row of a dead letter: the whole message, and under `name` if it got that far."""
        message = self._messages[position]
        columns = self._columns([position])
        columns["name"] = [name or message.address]
        columns |= kept_content([message], hop.route)
        common = self._common(Leg.DEAD, Step.REJECTED, at)
        common["route"] = hop.route.name if hop.route else ""
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
        """Payload bytes of all messages at `positions`."""
        found = _at(self._every(positions), self._shared()["size"])
        return sum(found)  # type: ignore[arg-type]  # they are numbers

    def _every(self, positions: Sequence[int]) -> Sequence[int]:
        """`positions`, as a range when they are all there are: nothing is looked up then."""
        every = range(len(self._messages))
        return every if len(positions) == len(every) and [*positions] == [*every] else positions

    def _common(self, leg: Leg, step: Step, at: int) -> dict[str, Cell]:
        origin = self._origin
        common: dict[str, Cell] = {"leg": leg.value, "outcome": step.value}
        common |= {"time": at, "received": origin.time}
        return common | {"endpoint": origin.endpoint, "system": origin.system}

    def _columns(self, positions: Sequence[int]) -> Columns:
        """The columns that are the same on every leg."""
        return {name: _at(positions, values) for name, values in self._shared().items()}

    def _shared(self) -> Columns:
        """Those columns of the whole batch, made once."""
        if self._whole is None:
            messages, origin = self._messages, self._origin
            sizes, hashes = _fingerprints(messages)
            self._whole = {
                "id": _identities(origin.run, origin.first, len(messages)),
                "size": sizes,
                "hash": hashes,
                "mode": [message.headers.mode for message in messages],
            }
        return self._whole


def _at(positions: Sequence[int], values: Sequence[_T]) -> Sequence[_T]:
    """The values at `positions`, as `BatchRecord._every` gives them."""
    if positions.__class__ is range:
        return values
    return [values[position] for position in positions]


def _rows(common: dict[str, Cell], columns: Columns, **given: Sequence[Cell]) -> Rows:
    """Rows of `columns` and what is `given`: once where all have the same."""
    count = 0
    for name, values in given.items():
        count = len(values)
        if values.count(values[0]) == count:
            common[name] = values[0]
        else:
            columns[name] = values
    return Rows(count, common, columns)


def _fingerprints(messages: Sequence[Message]) -> tuple[list[Cell], list[Cell]]:
    """As `fingerprint`, sizes and hashes of many."""
    data = [
        payload if (payload := message.payload).__class__ is bytes else payload_bytes(payload)
        for message in messages
    ]
    return list(map(len, data)), list(map(xxh3_128_digest, data))


def _identities(run: int, first: int, count: int) -> list[Cell]:
    """Ids of `count` messages in a row: 8 bytes of the run, 8 of the number in it."""
    start = run.to_bytes(8, "big")
    return [start + number.to_bytes(8, "big") for number in range(first, first + count)]


def _header_columns(headers: Sequence[Headers]) -> Columns:
    """The columns that are not empty in all of them."""
    shared = len(set(map(id, headers))) == 1  # as most messages of a source do
    different, times = (headers[:1], len(headers)) if shared else (headers, 1)
    columns: Columns = {
        "origin_id": [identity_of(each) for each in different],
        "source_time": [each.time for each in different],
        "redelivered": [each.redelivered for each in different],
    }
    return {name: [*values] * times for name, values in columns.items() if any(values)}


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
