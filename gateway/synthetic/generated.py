"""The archive rows of one window of generated traffic, leg by leg; it writes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa

from gateway.archive.schema import Leg, Step
from gateway.synthetic.injection import Befallen, Ends, ends_at, names, rare_name, start_of
from gateway.synthetic.traffic import TARGETS, Numbers, Traffic, Window, fixed, ids, rows

_TAP: Final = 3_000  # microseconds until a tap has what its target got


def window_rows(traffic: Traffic, window: Window, faults: Befallen) -> Iterator[pa.Table]:
    """All rows of a window, in several tables."""
    columns = Columns(traffic, window, faults)
    for route in range(traffic.routes):
        yield columns.received(route)
    for target in TARGETS:
        ends = ends_at(traffic, window, target, faults)
        yield columns.delivered(target, ends)
        yield columns.dead(target, ends)
        yield columns.strangers(target, ends)
        if traffic.observed:
            yield columns.observed(target, ends)


class Columns:
    """What the rows of one window are made of; each function makes those of one leg."""

    def __init__(self, traffic: Traffic, window: Window, faults: Befallen) -> None:
        self._traffic = traffic
        self._window = window
        self._source, self._sent = names(traffic, window, faults)
        routes = [traffic.route(number) for number in range(traffic.routes)]
        self._route = pa.array(routes).take(pa.array(window.route))
        number = window.number // traffic.gateways
        self._id = ids(start_of(traffic, window.gateway), number)
        self._hash = fixed(window.hash)

    def received(self, route: int) -> pa.Table:
        at = np.flatnonzero(self._window.route == route)
        return rows(
            len(at),
            **self._shared(at),
            leg=Leg.RECEIVED.value,
            outcome=Step.RECEIVED.value,
            endpoint="plant",
            system="mqtt",
            targets=list(self._traffic.targets(route)),
            name=self._source.take(pa.array(at)),
            time=self._window.time[at],
        )

    def delivered(self, target: str, ends: Ends) -> pa.Table:
        at = ends.delivered
        sent = self._window.hash[at]
        sent[np.isin(at, ends.altered), 1] ^= np.uint64(1)
        shared = self._shared(at) | {"hash": fixed(sent)}
        return rows(
            len(at),
            **shared,
            **self._end(target, at),
            leg=Leg.DELIVERED.value,
            outcome=Step.ACCEPTED.value,
            time=ends.time,
        )

    def observed(self, target: str, ends: Ends) -> pa.Table:
        seen = ~np.isin(ends.delivered, ends.unseen)
        found = self.delivered(target, ends).filter(pa.array(seen))
        later = pa.array(ends.time[seen] + _TAP).cast(found.schema.field("time").type)
        leg = pa.repeat(Leg.OBSERVED.value, len(found))
        for name, column in (("time", later), ("leg", leg)):
            index = found.schema.get_field_index(name)
            found = found.set_column(index, found.schema.field(name), column)
        return found

    def dead(self, target: str, ends: Ends) -> pa.Table:
        at = np.array(ends.dead, np.int64)
        return rows(
            len(at),
            **self._shared(at),
            **self._end(target, at),
            leg=Leg.DEAD.value,
            outcome=Step.REJECTED.value,
            time=self._window.end[at],
            rule="too-long",
            reason="ems: the name is 260 characters, limit 249",
        )

    def strangers(self, target: str, ends: Ends) -> pa.Table:
        at = np.array(ends.strangers, np.int64)
        number = self._window.number[at]
        start = start_of(self._traffic, self._window.gateway, stranger=True)
        names = pa.array([rare_name(each) for each in number.tolist()], pa.string())
        own = {"id": ids(start, number // self._traffic.gateways), "source_name": names}
        own["name"] = pa.array([name.replace("/", ".") for name in names.to_pylist()], pa.string())
        return rows(
            len(at),
            **self._shared(at) | self._end(target, at) | own,
            leg=Leg.DELIVERED.value,
            outcome=Step.ACCEPTED.value,
            time=self._window.end[at],
        )

    def _shared(self, at: Numbers) -> dict[str, object]:
        """Columns that all legs of the messages at `at` have."""
        chosen = pa.array(at)
        return {
            "gateway": self._traffic.gateway(self._window.gateway),
            "route": self._route.take(chosen),
            "id": self._id.take(chosen),
            "attempt": 1,
            "received": self._window.time[at],
            "mode": 1,
            "size": self._window.size[at],
            "hash": self._hash.take(chosen),
        }

    def _end(self, target: str, at: Numbers) -> dict[str, object]:
        chosen = pa.array(at)
        named = {"name": self._sent.take(chosen), "source_name": self._source.take(chosen)}
        return {"endpoint": target, "system": "ems", "target": target, **named}
