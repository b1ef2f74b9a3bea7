"""Archive rows of the gaps of a source or a tap: one for each of its routes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gateway.archive.gaps import NO_ID
from gateway.archive.heads import Outage
from gateway.archive.journal.records import Cell, Rows
from gateway.archive.schema import Leg, RowOutcome
from gateway.routing.route import Route


@dataclass(frozen=True, slots=True)
class Watched:
    """The messages that a source receives for a route, or the tap at one of its targets."""

    endpoint: str
    route: str
    subscription: str
    system: str
    target: str | None = None  # of a tap

    @property
    def tap_name(self) -> str:
        """The name of the tap, which no other of its endpoint has; empty for a source.

        It is that of its thread, and the end of its client's name.
        """
        return "" if self.target is None else f"tap-{self.route}-{self.target}"

    @property
    def state_name(self) -> str:
        """The name of the state of its source: the endpoint's, or one of the tap's own."""
        return f"{self.endpoint} {self.tap_name}".rstrip()


def watched_by(routes: Iterable[Route]) -> list[Watched]:
    """The messages that the source of `routes` receives."""
    return [
        Watched(each.endpoint, each.name, each.source.subscription, each.dialect.name)
        for each in routes
    ]


def gap_rows(watched: Sequence[Watched], gap: Outage, end: int, lost: int | None) -> Rows:
    """The rows of a gap of one endpoint until `end`, in microseconds.

    `lost` is the number of lost messages, where it is known.
    """
    common: dict[str, Cell] = {
        "leg": Leg.GAP.value,
        "endpoint": watched[0].endpoint,
        "system": watched[0].system,
        "id": NO_ID,
        "begin": gap.begin,
        "time": max(gap.begin, end),
        "rule": gap.rule,
        "reason": gap.reason,
        "lost": lost,
        "outcome": RowOutcome.GAP.value,
    }
    columns: dict[str, Sequence[Cell]] = {
        "route": [each.route for each in watched],
        "name": [each.subscription for each in watched],
        "target": [each.target for each in watched],
    }
    return Rows(len(watched), common, columns)
