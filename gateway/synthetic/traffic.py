"""A believable day of traffic as archive rows, thousands at once; it writes nothing.

The rate follows a working day, one route has most of the traffic, a few names have most of a
route's. Messages arrive and are answered in batches, in order. Everything follows from the seed.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gateway.archive.layout import HOUR
from gateway.archive.segments.parquet import SCHEMA

Numbers = npt.NDArray[np.int64]

# Share of the day's messages by hour, in percent: a plant that never sleeps, an exchange that does.
_HOURS: Final = (2, 2, 2, 2, 2, 3, 4, 5, 6, 7, 7, 6, 5, 6, 7, 7, 6, 5, 4, 3, 3, 2, 2, 2)
_DAY: Final = 24 * 3_600  # seconds
_SECOND: Final = 1_000_000  # microseconds
BATCH: Final = 20  # messages that arrive together
_QUICKEST: Final = 2_000  # microseconds from a message's arrival to its answer
_SLOWER: Final = 38_000  # what may come on top
STRETCH: Final = 64  # batches that are answered equally fast
TARGETS: Final = ("erp", "audit")
EARLIER: Final = HOUR  # how long before midnight the gateways started


@dataclass(frozen=True)
class Traffic:
    """What a day holds; `skew` is the share of the first route."""

    messages: int
    day: date
    routes: int = 4
    names: int = 1_000
    gateways: int = 1
    skew: float = 0.9
    seed: int = 1
    observed: bool = False
    ahead: int = 0  # seconds that each gateway's clock is ahead of the one before

    @property
    def midnight(self) -> int:
        """Start of the day, microseconds."""
        return (
            int(datetime(self.day.year, self.day.month, self.day.day, tzinfo=UTC).timestamp())
            * 1_000_000
        )

    @cached_property
    def spread(self) -> int:
        """How much the answers differ: less than two batches are apart in the busiest hour."""
        pause = HOUR * BATCH * self.gateways * sum(_HOURS) // (self.messages * max(_HOURS))
        return min(_SLOWER, pause)

    @cached_property
    def sources(self) -> pa.Array:
        numbers = range(self.names)
        return pa.array([f"plant/line{number % 40}/sensor{number}/value" for number in numbers])

    @cached_property
    def sent(self) -> pa.Array:
        return pa.array([name.replace("/", ".") for name in self.sources.to_pylist()])

    def times(self, numbers: Numbers) -> Numbers:
        """When the messages `numbers` arrive, all of a batch at once; never decreasing."""
        share = np.cumsum((0, *_HOURS)) / sum(_HOURS)
        batches = numbers // (BATCH * self.gateways) * (BATCH * self.gateways)
        hours = np.interp(batches / self.messages, share, np.arange(25))
        day = 1 - self.ahead * (self.gateways - 1) / _DAY  # the last clock's ends at midnight too
        times: Numbers = self.midnight + (hours * HOUR * day).astype(np.int64)
        return times

    def number_at(self, time: int) -> int:
        """The first message that arrives at `time` or later."""
        low, high = 0, self.messages
        while low < high:
            middle = (low + high) // 2
            if int(self.times(np.array([middle]))[0]) < time:
                low = middle + 1
            else:
                high = middle
        return low

    def targets(self, route: int) -> tuple[str, ...]:
        """Every third route has two targets."""
        return TARGETS if route % 3 == 2 else TARGETS[:1]  # noqa: PLR2004  # the third of three

    def gateway(self, number: int) -> str:
        return f"gateway-{number + 1}"

    def route(self, number: int) -> str:
        return f"route-{number + 1}"


@dataclass(frozen=True)
class Window:
    """The messages of one gateway in a stretch of the day, column by column, as they came."""

    gateway: int
    number: Numbers  # of the message in the day
    time: Numbers  # of its arrival, microseconds
    end: Numbers  # when its targets had answered
    route: Numbers
    name: Numbers
    size: Numbers
    hash: npt.NDArray[np.uint64]  # two words a message


def windows(traffic: Traffic, first: int, after: int) -> list[Window]:
    """The messages from `first` up to `after`, one window a gateway."""
    rng = np.random.default_rng([traffic.seed, first])
    number = np.arange(first, after, dtype=np.int64)
    time = traffic.times(number)
    count = len(number)
    others = 1 + rng.integers(0, max(traffic.routes - 1, 1), count)
    alone = (rng.random(count) < traffic.skew) | (traffic.routes == 1)
    route = np.where(alone, 0, others)
    of_route = (traffic.names - route + traffic.routes - 1) // traffic.routes
    name = route + traffic.routes * (rng.random(count) ** 2 * of_route).astype(np.int64)
    size = np.minimum(20 + rng.exponential(200, count).astype(np.int64), 60_000)
    words = rng.integers(0, 2**64, (count, 2), dtype=np.uint64)
    end = time + _latency(traffic, number)
    found = []
    for gateway in range(traffic.gateways):
        own = slice((gateway - first) % traffic.gateways, None, traffic.gateways)
        ahead = traffic.ahead * gateway * _SECOND
        found.append(
            Window(
                gateway, number[own], time[own] + ahead, end[own] + ahead, route[own], name[own],
                size[own], words[own],
            )
        )  # fmt: skip
    return found


def _latency(traffic: Traffic, number: Numbers) -> Numbers:
    """Microseconds until a message's batch is answered, at least 2 ms.

    It varies by less than the pause between two batches, so that none overtakes another.
    """
    batch = number // (BATCH * traffic.gateways)
    mixed = (batch // STRETCH * 2654435761 + traffic.seed) % 1_000_003
    return _QUICKEST + (mixed % 1_000) ** 2 * traffic.spread // 1_000_000


def ids(start: int, numbers: Numbers) -> pa.Array:
    """16-byte identities of the messages `numbers` of the gateway started at `start`."""
    words = np.empty((len(numbers), 2), ">u8")
    words[:, 0], words[:, 1] = start, numbers
    return fixed(words)


def fixed(words: npt.NDArray[np.uint64]) -> pa.Array:
    """Pairs of words as 16-byte binary values."""
    buffer = pa.py_buffer(np.ascontiguousarray(words, ">u8").tobytes())
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(16), len(words), [None, buffer]).cast(
        pa.binary()
    )


def rows(count: int, **columns: object) -> pa.Table:
    """Archive rows; a column is an array, or one value for all, and null where it is absent."""
    arrays = []
    for field in SCHEMA:
        given = columns.get(field.name)
        if given is None:
            arrays.append(pa.nulls(count, field.type))
        elif isinstance(given, (pa.Array, np.ndarray)):
            arrays.append(pa.array(given).cast(field.type))
        else:
            arrays.append(pa.repeat(pa.scalar(given, field.type), count))
    return pa.Table.from_arrays(arrays, schema=SCHEMA)
