"""A synthetic day of traffic, computed column by column.

The rate follows a working day; one route has most of the traffic, and a few names have most of a
route's traffic. Messages arrive and are answered in batches, in order. The same seed gives the
same traffic.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gateway.archive.layout import HOUR, day_start

Numbers = npt.NDArray[np.int64]

# Share of the day's messages by hour, in percent: constant load at night, a peak in the morning.
_HOUR_SHARES: Final = (2, 2, 2, 2, 2, 3, 4, 5, 6, 7, 7, 6, 5, 6, 7, 7, 6, 5, 4, 3, 3, 2, 2, 2)
_DAY: Final = 24 * 3_600  # seconds
_SECOND: Final = 1_000_000  # microseconds
BATCH: Final = 20  # messages that arrive together
_MIN_LATENCY: Final = 2_000  # microseconds from a message's arrival to its answer
_MAX_JITTER: Final = 38_000  # microseconds on top of it
LATENCY_BATCHES: Final = 64  # successive batches with the same latency
TARGETS: Final = ("erp", "audit")
STARTED_BEFORE: Final = HOUR  # from the start of the gateways to midnight


@dataclass(frozen=True)
class Traffic:
    """Parameters of a day of traffic; `skew` is the share of the first route."""

    messages: int
    day: date
    routes: int = 4
    names: int = 1_000
    gateways: int = 1
    skew: float = 0.9
    seed: int = 1
    observed: bool = False
    clock_skew: int = 0  # seconds from one gateway's clock to the next one's

    @property
    def midnight(self) -> int:
        """Start of the day in microseconds."""
        return day_start(self.day)

    @cached_property
    def jitter(self) -> int:
        """Range of the latencies in microseconds, at most the batch interval of the peak hour."""
        pause = (
            HOUR * BATCH * self.gateways * sum(_HOUR_SHARES) // (self.messages * max(_HOUR_SHARES))
        )
        return min(_MAX_JITTER, pause)

    @cached_property
    def sources(self) -> pa.Array:
        numbers = range(self.names)
        return pa.array([f"plant/line{number % 40}/sensor{number}/value" for number in numbers])

    def times(self, numbers: Numbers) -> Numbers:
        """Return the ascending arrival times of the messages; a batch arrives at once."""
        share = np.cumsum((0, *_HOUR_SHARES)) / sum(_HOUR_SHARES)
        batches = numbers // (BATCH * self.gateways) * (BATCH * self.gateways)
        hours = np.interp(batches / self.messages, share, np.arange(25))
        # Scaled so that also the day of the last clock ends at midnight.
        day = 1 - self.clock_skew * (self.gateways - 1) / _DAY
        times: Numbers = self.midnight + (hours * HOUR * day).astype(np.int64)
        return times

    def number_at(self, time: int) -> int:
        """Return the number of the first message that arrives at `time` or later."""
        numbers = range(self.messages)
        return bisect_left(numbers, time, key=lambda each: int(self.times(np.array([each]))[0]))

    def targets(self, route: int) -> tuple[str, ...]:
        """Return the targets of a route; every third route has two."""
        return TARGETS if route % 3 == 2 else TARGETS[:1]  # noqa: PLR2004  # the third of three

    def gateway(self, number: int) -> str:
        return f"gateway-{number + 1}"

    def route(self, number: int) -> str:
        return f"route-{number + 1}"


@dataclass(frozen=True)
class Window:
    """Successive messages of one gateway, column by column, in the order of arrival.

    Units: microseconds.
    """

    gateway: int
    number: Numbers  # of the message in the day
    time: Numbers  # of its arrival
    end: Numbers  # of the answer of its targets
    route: Numbers
    name: Numbers
    size: Numbers
    hash: npt.NDArray[np.uint64]  # two words a message


def windows(traffic: Traffic, first: int, after: int) -> Iterator[Window]:
    """Yield the messages from `first` up to `after` (exclusive), in a window for each gateway."""
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
    for gateway in range(traffic.gateways):
        own = slice((gateway - first) % traffic.gateways, None, traffic.gateways)
        ahead = traffic.clock_skew * gateway * _SECOND
        yield Window(
            gateway,
            number[own],
            time[own] + ahead,
            end[own] + ahead,
            route[own],
            name[own],
            size[own],
            words[own],
        )


def _latency(traffic: Traffic, number: Numbers) -> Numbers:
    """Return the microseconds until a message's batch is answered, at least 2 ms.

    They vary by less than the interval of two batches, so that no batch overtakes another.
    """
    batch = number // (BATCH * traffic.gateways)
    mixed = (batch // LATENCY_BATCHES * 2654435761 + traffic.seed) % 1_000_003
    return _MIN_LATENCY + (mixed % 1_000) ** 2 * traffic.jitter // 1_000_000
