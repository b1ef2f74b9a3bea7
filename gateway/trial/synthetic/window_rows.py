"""The archive rows of one window of synthetic traffic, leg by leg."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from gateway.archive.schema import Leg, RowOutcome
from gateway.night.archive.segments.tables import SCHEMA
from gateway.trial.synthetic.faults import CUTS, Fault
from gateway.trial.synthetic.inject_faults import (
    FaultAssignment,
    TargetOutcomes,
    gateway_start,
    outcomes_at,
)
from gateway.trial.synthetic.traffic import TARGETS, Numbers, Traffic, Window

_TAP_DELAY: Final = 3_000  # microseconds from a delivery to its observation


def window_rows(traffic: Traffic, window: Window, faults: FaultAssignment) -> Iterator[pa.Table]:
    """Yield all rows of a window, in several tables."""
    builder = RowBuilder(traffic, window, faults)
    for route in range(traffic.routes):
        yield builder.received(route)
    for target in TARGETS:
        outcomes = outcomes_at(traffic, window, target, faults)
        yield builder.delivered(target, outcomes)
        yield builder.dead(target, outcomes)
        yield builder.unexpected(target, outcomes)
        for fault in CUTS:
            yield builder.cut(target, outcomes, fault)
        if traffic.observed:
            yield builder.observed(target, outcomes)


class RowBuilder:
    """Builds the rows of one window; each method builds one leg."""

    def __init__(self, traffic: Traffic, window: Window, faults: FaultAssignment) -> None:
        self._traffic = traffic
        self._window = window
        self._source = _message_names(traffic, window, faults)
        self._sent = _sent_names(self._source)
        routes = [traffic.route(number) for number in range(traffic.routes)]
        self._route = pa.array(routes).take(pa.array(window.route))
        number = window.number // traffic.gateways
        self._id = _ids(gateway_start(traffic, window.gateway), number)
        self._hash = _binary16(window.hash)

    def received(self, route: int) -> pa.Table:
        at = np.flatnonzero(self._window.route == route)
        return self._rows(
            (Leg.RECEIVED, RowOutcome.RECEIVED),
            at,
            self._window.time[at],
            endpoint="plant",
            system="mqtt",
            targets=list(self._traffic.targets(route)),
            name=self._source.take(pa.array(at)),
        )

    def delivered(
        self, target: str, outcomes: TargetOutcomes, leg: Leg = Leg.DELIVERED
    ) -> pa.Table:
        at = outcomes.delivered
        sent = self._window.hash[at]
        sent[np.isin(at, outcomes.at[Fault.ALTER]), 1] ^= np.uint64(1)
        end = self._end(target, at) | {"hash": _binary16(sent)}
        return self._rows((leg, RowOutcome.ACCEPTED), at, outcomes.time, **end)

    def observed(self, target: str, outcomes: TargetOutcomes) -> pa.Table:
        seen = ~np.isin(outcomes.delivered, outcomes.at[Fault.UNOBSERVED])
        at, time = outcomes.delivered[seen], outcomes.time[seen] + _TAP_DELAY
        return self.delivered(target, replace(outcomes, delivered=at, time=time), Leg.OBSERVED)

    def dead(self, target: str, outcomes: TargetOutcomes) -> pa.Table:
        at = np.array(outcomes.at[Fault.DEAD], np.int64)
        end = self._end(target, at) | {"rule": "too-long"}
        reason = "ems: the name is 260 characters, limit 249"
        event = (Leg.DEAD, RowOutcome.REJECTED)
        return self._rows(event, at, self._window.end[at], **end, reason=reason)

    def unexpected(self, target: str, outcomes: TargetOutcomes) -> pa.Table:
        at = np.array(outcomes.at[Fault.UNEXPECTED], np.int64)
        names = [_unique_name(each) for each in self._window.number[at].tolist()]
        source = pa.array(names, pa.string())
        own = {"source_name": source, "name": _sent_names(source), "id": self._unrecorded(at)}
        event = (Leg.DELIVERED, RowOutcome.ACCEPTED)
        return self._rows(event, at, self._window.end[at], **self._end(target, at) | own)

    def cut(self, target: str, outcomes: TargetOutcomes, fault: Fault) -> pa.Table:
        """Return messages that came together with those at a fault; an echo has their payload."""
        at = np.array(outcomes.at[fault], np.int64)
        words = self._window.hash[at]
        words[:, 1] ^= np.uint64(fault is not Fault.ECHO)
        own = {"endpoint": "plant", "system": "mqtt", "target": target, "rule": CUTS[fault]}
        own |= {"name": self._source.take(pa.array(at)), "hash": _binary16(words)}
        event, time = (Leg.CUT, RowOutcome.CUT), self._window.time[at]
        return self._rows(event, at, time, **own, id=self._unrecorded(at))

    def _unrecorded(self, at: Numbers) -> pa.Array:
        """Return the ids of messages that no received row has."""
        start = gateway_start(self._traffic, self._window.gateway, unrecorded=True)
        return _ids(start, self._window.number[at] // self._traffic.gateways)

    def _rows(
        self, event: tuple[Leg, RowOutcome], at: Numbers, time: Numbers, **own: object
    ) -> pa.Table:
        """Return the rows of an event of the messages at `at`; `own` columns go first."""
        leg, outcome = event
        chosen = pa.array(at)
        columns: dict[str, object] = {
            "gateway": self._traffic.gateway(self._window.gateway),
            "route": self._route.take(chosen),
            "id": self._id.take(chosen),
            "attempt": 1,
            "received": self._window.time[at],
            "mode": 1,
            "size": self._window.size[at],
            "hash": self._hash.take(chosen),
        }
        columns |= own
        return _rows_of(len(at), leg=leg.value, outcome=outcome.value, time=time, **columns)

    def _end(self, target: str, at: Numbers) -> dict[str, object]:
        chosen = pa.array(at)
        named = {"name": self._sent.take(chosen), "source_name": self._source.take(chosen)}
        return {"endpoint": target, "system": "ems", "target": target, **named}


def _message_names(traffic: Traffic, window: Window, faults: FaultAssignment) -> pa.Array:
    """Return the source name of each message."""
    unique = dict(sorted(faults.unique_names.items()))
    mask = np.zeros(len(window.number), np.bool_)
    mask[list(unique)] = True
    own = [_unique_name(int(window.number[position])) for position in unique.values()]
    names = traffic.sources.take(pa.array(window.name))
    return pc.replace_with_mask(names, mask, pa.array(own, pa.string()))


def _sent_names(names: pa.Array) -> pa.Array:
    return pc.replace_substring(names, "/", ".")


def _unique_name(number: int) -> str:
    return f"plant/rare/sensor{number}/value"


def _ids(start: int, numbers: Numbers) -> pa.Array:
    """Return the 16-byte ids of the messages `numbers` of the gateway started at `start`."""
    words = np.empty((len(numbers), 2), ">u8")
    words[:, 0], words[:, 1] = start, numbers
    return _binary16(words)


def _binary16(words: npt.NDArray[np.uint64]) -> pa.Array:
    """Return pairs of words as 16-byte binary values."""
    buffer = pa.py_buffer(np.ascontiguousarray(words, ">u8").tobytes())
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(16), len(words), [None, buffer]).cast(
        pa.binary()
    )


def _rows_of(count: int, **columns: object) -> pa.Table:
    """Return archive rows; a column is an array or one value for all, and null when absent."""
    arrays = []
    for field in SCHEMA:
        given = columns.get(field.name)
        if isinstance(given, (pa.Array, np.ndarray)):
            arrays.append(pa.array(given).cast(field.type))
        else:
            arrays.append(pa.repeat(pa.scalar(given, field.type), count))
    return pa.Table.from_arrays(arrays, schema=SCHEMA)
