"""Archive rows of one batch: received, delivered and dead, with ids and fingerprints."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import is_
from typing import Final, TypeVar

import msgpack
from xxhash import xxh3_128_digest

from gateway.archive.journal.records import Cell, Rows
from gateway.archive.schema import Leg, RowOutcome
from gateway.model.message import Headers, Message, Payload, identity_of
from gateway.model.outcome import Settlement
from gateway.routing.route import Route
from gateway.routing.router import Delivery, RouteMatch
from gateway.tracing.context import trace_of

PROPERTY_PREFIX: Final = "property."  # of the properties among the archived headers
FULL_SIZE: Final = "payload_cut_from"  # header of a cut payload: its full size in bytes
REDACTED: Final = "[redacted]"
NOT_TEXT: Final = "not_text"  # header: a JSON list of the headers whose values were not text

_MAX_TIME: Final = 2**63  # microseconds
_IMMUTABLE: Final = frozenset({bytes, str})

Columns = dict[str, Sequence[Cell]]
_T = TypeVar("_T")


def payload_bytes(payload: Payload) -> bytes:
    """The bytes that are counted and hashed for a payload; a map is encoded as msgpack."""
    if isinstance(payload, bytes):
        return payload
    if isinstance(payload, str):
        return payload.encode("utf-8", "surrogatepass")
    try:
        packed: bytes = msgpack.packb(
            dict(payload), unicode_errors="surrogatepass", default=_packable
        )
    except (ValueError, RecursionError):  # nested too deep for msgpack
        return value_text(dict(payload)).encode("utf-8", "surrogatepass")
    return packed


def _packable(value: object) -> object:
    """A value without a type in msgpack as one that has one; the spool returns a map as a dict."""
    return dict(value) if isinstance(value, Mapping) else value_text(value)


def value_text(value: object) -> str:
    """The text of a value; it never raises, so that every message can be recorded."""
    try:
        return str(value)
    except (ValueError, RecursionError):  # an integer of very many digits, or nested too deep
        return hex(value) if isinstance(value, int) else f"a {type(value).__name__} without text"


def fingerprint(payload: Payload) -> tuple[int, bytes]:
    """Size in bytes and 16-byte XXH3 hash of a payload; it detects faults, not forgery."""
    data = payload_bytes(payload)
    return len(data), xxh3_128_digest(data)


@dataclass(frozen=True, slots=True)
class BatchOrigin:
    """Source endpoint, system and receipt time of a batch, and the ids of its messages.

    The id of a message is `run` followed by `first` plus its position.
    Units: microseconds since 1970-01-01 UTC.
    """

    endpoint: str
    system: str
    time: int
    run: int
    first: int


@dataclass(frozen=True, slots=True)
class Cut:
    """A message that a route left out, with the rule: `loop`, `loop-limit` or `duplicate`."""

    position: int
    route: str
    rule: str


class BatchRecord:
    """Creates the rows of one batch.

    A delivered row has the hash of the payload as it was sent. The hash of the receipt stands for
    it only when both payloads are the same immutable object. Maps are mutable, so they are hashed
    at receipt, before a sink can change them, and again when they are sent.
    Mutable: caches the columns that all rows share; a race only computes them twice.
    """

    __slots__ = ("_immutable", "_messages", "_names", "_origin", "_payloads", "_shared_columns")

    def __init__(self, messages: Sequence[Message], origin: BatchOrigin) -> None:
        self._messages = messages
        self._payloads = [message.payload for message in messages]
        self._names: Sequence[Cell] = [message.address for message in messages]
        self._origin = origin
        self._shared_columns: Columns | None = None
        self._immutable = _IMMUTABLE.issuperset(map(type, self._payloads))
        if not self._immutable:
            self._shared()

    def received(self, positions: Sequence[int], matches: Sequence[RouteMatch]) -> Rows:
        """Received rows: one per message and route, with its expected targets.

        Matches of a route that archives payloads are passed alone. `positions` ascend.
        """
        positions = self._as_range(positions)
        messages = _at(positions, self._messages)
        columns = self._columns(positions)
        columns["name"] = _at(positions, self._names)
        common = self._common(Leg.RECEIVED, RowOutcome.RECEIVED, self._origin.time)
        common["attempt"] = 1
        columns |= _header_columns([message.headers for message in messages])
        route = matches[0].route
        if route is not None and route.archive_payload:
            columns |= archived_content(messages, route)
        routes = [match.route.name if match.route else "" for match in matches]
        return _rows(common, columns, route=routes, targets=[match.labels for match in matches])

    def delivered(
        self,
        deliveries: Sequence[Delivery],
        positions: Sequence[int],
        sent: Sequence[Message],
        attempts: int,
        at: int,
    ) -> Rows:
        """Delivered rows of the messages at `positions`, which were `sent` to one endpoint.

        Either all payloads are to be converted or none. `positions` ascend.
        """
        positions = self._as_range(positions)
        target = deliveries[0].target
        converted = target is not None and target.conversion is not None
        outcome = RowOutcome.CONVERTED if converted else RowOutcome.ACCEPTED
        common = self._common(Leg.DELIVERED, outcome, at)
        if target is not None:
            common |= {"endpoint": target.endpoint, "system": target.system}
            if target.payload_encoding:
                common["reason"] = target.payload_encoding
        common["attempt"] = attempts
        columns = self._columns(positions)
        columns["name"] = [message.address for message in sent]
        columns["source_name"] = _at(positions, self._names)
        payloads = [message.payload for message in sent]
        if not self._immutable or not all(map(is_, payloads, _at(positions, self._payloads))):
            columns["size"], columns["hash"] = fingerprints(payloads)
        routes = [each.route.name if each.route else "" for each in deliveries]
        return _rows(common, columns, route=routes, target=[each.label for each in deliveries])

    def dead(
        self, delivery: Delivery, position: int, name: str, settlement: Settlement, at: int
    ) -> Rows:
        """The row of a dead letter, with its content; `name` is empty if it was not translated."""
        message = self._messages[position]
        columns = self._columns([position])
        columns["name"] = [name or message.address]
        columns |= archived_content([message], delivery.route)
        common = self._common(Leg.DEAD, RowOutcome.REJECTED, at)
        common["route"] = delivery.route.name if delivery.route else ""
        common |= {"rule": settlement.rule, "reason": settlement.reason, "attempt": 1}
        common["source_name"] = message.address
        if delivery.target is not None:
            common["target"] = delivery.label
            if name:
                common |= {"endpoint": delivery.target.endpoint, "system": delivery.target.system}
        return Rows(1, common, columns)

    def cut(self, cuts: Sequence[Cut]) -> list[Rows]:
        """Rows of the messages that routes left out, one for each message and route."""
        found: list[Rows] = []
        for rule in sorted({each.rule for each in cuts}):
            chosen = [each for each in cuts if each.rule == rule]
            positions = [each.position for each in chosen]
            columns = self._columns(positions)
            columns["name"] = [self._names[position] for position in positions]
            common = self._common(Leg.CUT, RowOutcome.CUT, self._origin.time)
            common |= {"rule": rule, "attempt": 1}
            found.append(_rows(common, columns, route=[each.route for each in chosen]))
        return found

    def message_id(self, position: int) -> bytes:
        """The 16-byte id of the message at `position`: the run, then its number in the run."""
        origin = self._origin
        return origin.run.to_bytes(8, "big") + (origin.first + position).to_bytes(8, "big")

    def trace(self, position: int) -> bytes:
        """The 16-byte trace id of the message at `position`."""
        return trace_of(self._messages[position].headers.properties) or self.message_id(position)

    def size(self, positions: Sequence[int]) -> int:
        """Payload bytes of the messages at `positions`."""
        found = _at(self._as_range(positions), self._shared()["size"])
        return sum(found)  # type: ignore[arg-type]  # they are numbers

    def _as_range(self, positions: Sequence[int]) -> Sequence[int]:
        """`positions`, as a range if they cover the batch; `_at` then selects without a copy."""
        every = range(len(self._messages))
        return every if len(positions) == len(every) and [*positions] == [*every] else positions

    def _common(self, leg: Leg, outcome: RowOutcome, at: int) -> dict[str, Cell]:
        origin = self._origin
        common: dict[str, Cell] = {"leg": leg.value, "outcome": outcome.value}
        common |= {"time": at, "received": origin.time}
        return common | {"endpoint": origin.endpoint, "system": origin.system}

    def _columns(self, positions: Sequence[int]) -> Columns:
        """The shared columns of the messages at `positions`."""
        return {name: _at(positions, values) for name, values in self._shared().items()}

    def _shared(self) -> Columns:
        """The columns of the whole batch that all legs share, computed once."""
        if self._shared_columns is None:
            messages, origin = self._messages, self._origin
            sizes, hashes = fingerprints(self._payloads)
            self._shared_columns = {
                "id": _message_ids(origin.run, origin.first, len(messages)),
                "size": sizes,
                "hash": hashes,
                "mode": [message.headers.mode for message in messages],
            }
            traces = traces_of(messages)
            if any(traces):
                self._shared_columns["trace"] = traces
        return self._shared_columns


def _at(positions: Sequence[int], values: Sequence[_T]) -> Sequence[_T]:
    """The values at `positions`, as returned by `BatchRecord._as_range`."""
    if positions.__class__ is range:
        return values
    return [values[position] for position in positions]


def _rows(common: dict[str, Cell], columns: Columns, **given: Sequence[Cell]) -> Rows:
    """Rows of `columns` and `given`; a given column with one value for all is stored once."""
    count = 0
    for name, values in given.items():
        count = len(values)
        if values.count(values[0]) == count:
            common[name] = values[0]
        else:
            columns[name] = values
    return Rows(count, common, columns)


def fingerprints(payloads: Sequence[Payload]) -> tuple[list[Cell], list[Cell]]:
    """Sizes and hashes of the payloads, as `fingerprint` computes them."""
    data = [
        payload if payload.__class__ is bytes else payload_bytes(payload) for payload in payloads
    ]
    return list(map(len, data)), list(map(xxh3_128_digest, data))


def _message_ids(run: int, first: int, count: int) -> list[Cell]:
    """Ids of `count` consecutive messages: 8 bytes of the run, 8 of the number in the run."""
    start = run.to_bytes(8, "big")
    return [start + number.to_bytes(8, "big") for number in range(first, first + count)]


def traces_of(messages: Sequence[Message]) -> list[Cell]:
    """The trace ids that the messages carry."""
    carried = [message.headers.properties for message in messages]
    return [trace_of(each) if each else None for each in carried]


def _header_columns(headers: Sequence[Headers]) -> Columns:
    """The header columns that are set for at least one message."""
    shared = len(set(map(id, headers))) == 1  # usual for the messages of one source
    distinct, times = (headers[:1], len(headers)) if shared else (headers, 1)
    columns: Columns = {
        "origin_id": [identity_of(each) for each in distinct],
        "source_time": [_stored_time(each.time) for each in distinct],
        "redelivered": [each.redelivered for each in distinct],
    }
    return {name: [*values] * times for name, values in columns.items() if any(values)}


def _stored_time(time: int | None) -> int | None:
    """`time` in microseconds if a column of 64 bits can store it, else None."""
    return time if time is None or -_MAX_TIME <= time < _MAX_TIME else None


def archived_content(messages: Sequence[Message], route: Route | None) -> Columns:
    """Payload and header columns, redacted and cut as the route's archive settings demand.

    The headers of a cut payload contain FULL_SIZE.
    """
    payloads = [payload_bytes(message.payload) for message in messages]
    headers = [header_map(message) for message in messages]
    if route is not None and route.archive_redact:
        headers = [_redacted(each, route.archive_redact) for each in headers]
    maximum = None if route is None else route.archive_payload_bytes
    if maximum is not None:
        headers = [
            {**each, FULL_SIZE: str(len(payload))} if len(payload) > maximum else each
            for each, payload in zip(headers, payloads, strict=True)
        ]
        payloads = [payload[:maximum] for payload in payloads]
    return {"payload": list(payloads), "headers": list(headers)}


def _redacted(headers: Mapping[str, str], names: Sequence[str]) -> Mapping[str, str]:
    """`headers` with REDACTED for each field or property that `names` selects."""
    return {
        name: REDACTED if any(_selects(each, name) for each in names) else value
        for name, value in headers.items()
    }


def _selects(wanted: str, name: str) -> bool:
    """Return whether `wanted`, perhaps with a final `*`, selects the header `name`."""
    name = name.removeprefix(PROPERTY_PREFIX)
    return name.startswith(wanted[:-1]) if wanted.endswith("*") else name == wanted


def header_map(message: Message) -> Mapping[str, str]:
    """The set headers as text, properties with PROPERTY_PREFIX; for display and replay."""
    headers = message.headers
    named = {
        "priority": headers.priority,
        "expiry": headers.expiry,
        "reply_to": headers.reply_to,
        "content_type": headers.content_type,
        "retained": headers.retained or None,
        "payload_kind": type(message.payload).__name__,
    }
    texts = {name: value_text(value) for name, value in named.items() if value is not None}
    if headers.correlation_id is not None:
        raw = headers.correlation_id
        texts["correlation_id"] = raw if isinstance(raw, str) else raw.hex()
    texts |= {
        f"{PROPERTY_PREFIX}{name}": value_text(value) for name, value in headers.properties.items()
    }
    if other := _not_text(headers):
        texts[NOT_TEXT] = json.dumps(other)
    return texts


def _not_text(headers: Headers) -> list[str]:
    """The names of the properties, and of the correlation id, whose values are not text."""
    found = [
        f"{PROPERTY_PREFIX}{name}"
        for name, value in headers.properties.items()
        if not isinstance(value, str)
    ]
    return ["correlation_id", *found] if isinstance(headers.correlation_id, bytes) else found
