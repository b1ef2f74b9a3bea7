"""Selects and sorts the routes that the report lists, and those that it charts."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from gateway.reconcile.report.charts import SMALL
from gateway.reconcile.report.figures import Figure, day_of, figures
from gateway.reconcile.report.gaps import outages
from gateway.reconcile.report.lanes import bands
from gateway.reconcile.report.summary import Row, Summary, word
from gateway.reconcile.report.wording import all_violations, worst_first

MAX_ROUTES: Final = 2_000  # rows of the table
MAX_CHARTED: Final = 40  # routes with their own charts
MAX_UNFOLDED: Final = 3  # of them, when there are more


@dataclass(frozen=True, slots=True)
class RouteCharts:
    """A route to one target with its figures, and its number of violated guarantees."""

    route: str
    target: str
    violations: int
    figures: Sequence[Figure]


def listed_routes(summary: Summary) -> list[Row]:
    """Return the rows of the table of routes, the worst first."""
    return worst_first(summary.routes, strict=summary.strict)[:MAX_ROUTES]


def tap_reasons(summary: Summary) -> list[tuple[str, int]]:
    """Return why targets need a tap to prove payloads unaltered, with the number of routes."""
    reasons = Counter(word(row, "taps_needed") for row in summary.routes)
    return [(reason, number) for reason, number in reasons.most_common() if reason]


def charted_routes(summary: Summary) -> list[RouteCharts]:
    """Return figures of the worst routes that have hours."""
    return list(islice(_charted(summary), MAX_CHARTED))


def _charted(summary: Summary) -> Iterator[RouteCharts]:
    found = outages(summary.gaps)
    hours: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in summary.hours:
        hours[word(row, "route"), word(row, "target")].append(row)
    for row in worst_first(summary.routes, strict=summary.strict):
        route, target = word(row, "route"), word(row, "target")
        if (route, target) in hours:
            scope = f"{route or '-'} to {target or '-'}"
            yield RouteCharts(
                route or "-",
                target or "-",
                all_violations(row, strict=summary.strict),
                figures(
                    day_of(hours[route, target]), scope, SMALL, bands(found, summary.date, route)
                ),
            )
