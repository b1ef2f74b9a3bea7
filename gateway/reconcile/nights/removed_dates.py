"""Errors of a night about removed dates: with unresolved copies, or with rows that came later."""

from __future__ import annotations

from typing import Final

from gateway.archive.findings import Finding, error
from gateway.archive.layout import JournalName
from gateway.reconcile.nights.world import World

TOLD_ONCE: Final = ("forgotten-unresolved", "forgotten-unjudged", "late-for-forgotten")


def forgotten(unsettled: set[str], world: World) -> list[Finding]:
    """Return an error for each date that was removed before its copies were resolved."""
    today = world.today.isoformat()
    unresolved = "it was removed with unresolved copies"
    unjudged = "it was removed with rows that no night judged"
    removed = [day for day in sorted(unsettled - world.there) if day < today]
    return [
        *(error("forgotten-unresolved", f"date={day}", unresolved) for day in removed),
        *(error("forgotten-unjudged", f"date={day}", unjudged) for day in sorted(world.forgotten)),
    ]


def late_for_forgotten(world: World, oldest: str) -> list[Finding]:
    """Return an error for each new journal and removed date of which it has rows."""
    return [
        error(
            "late-for-forgotten",
            f"date={day}",
            f"{JournalName(each.writer, each.start, each.number)} has rows of its messages, and its"
            " own rows were removed",
        )
        for each in world.journals
        for day in each.concerns
        if day < oldest
    ]
