"""Archive rows of the gaps of a source: one for each of its routes."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.archive.gaps import NO_ID, GapRule
from gateway.archive.journal.records import Cell, Rows
from gateway.archive.schema import Leg, RowOutcome
from gateway.routing.route import Route


def gap_rows(  # noqa: PLR0913  # the facts of one gap
    routes: Sequence[Route],
    endpoint: str,
    *,
    rule: GapRule,
    reason: str,
    begin: int,
    end: int,
    lost: int | None = None,
) -> Rows:
    """The rows of a gap of `endpoint` from `begin` to `end`, in microseconds.

    `lost` is the number of lost messages, where it is known.
    """
    common: dict[str, Cell] = {
        "leg": Leg.GAP.value,
        "endpoint": endpoint,
        "system": routes[0].dialect.name,
        "id": NO_ID,
        "source_time": begin,
        "received": begin,
        "time": max(begin, end),
        "redelivered": rule is GapRule.AWAY,
        "rule": rule.value,
        "reason": reason,
        "size": lost,
        "outcome": RowOutcome.GAP.value,
    }
    columns: dict[str, Sequence[Cell]] = {
        "route": [route.name for route in routes],
        "name": [route.source.subscription for route in routes],
    }
    return Rows(len(routes), common, columns)
