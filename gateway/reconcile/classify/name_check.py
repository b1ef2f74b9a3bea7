"""Comparison of the names of a date with the archived routes, or with those of a mapping."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Final

import pyarrow as pa
from pyspark.sql import SparkSession

from gateway.archive.findings import Finding, error
from gateway.archive.location import ArchiveLocation
from gateway.archive.routes import Rules
from gateway.archive.storage import open_storage
from gateway.archive.verification.contents import VerifiedSegment
from gateway.reconcile.classify.renames import renamed
from gateway.reconcile.grouping import summed
from gateway.reconcile.input.inputs import day_range
from gateway.reconcile.input.route_history import mapping_history, read_history
from gateway.reconcile.report.formatting import amount, counted_as

_TARGET: Final = ("route", "target")
_NO_ROUTES: Final = "the archive has no routes of this date; --mapping CONFIG gives some"


def check_names(  # noqa: PLR0913, PLR0917  # the date, and what its names are compared with
    spark: SparkSession,
    location: ArchiveLocation,
    day: date,
    segments: Sequence[VerifiedSegment],
    mapping: Rules | None,
    key: bytes | None,
) -> tuple[pa.Table | None, list[Finding], str]:
    """Compare the names that were sent in `segments` with their translation.

    Return the wrong names, None when there are no routes; the findings; and why the names of some
    copies were not checked. Without `mapping`, the archived routes of their time translate; `key`
    is that of the seals.

    Raises:
        ArchiveError: a segment cannot be read.
        OSError: the archive cannot be read.
    """
    if mapping is None:
        history, findings = read_history(open_storage(location), day_range(day)[1], key)
    else:
        history, findings = mapping_history(mapping), []
    if not history:
        return None, [], _NO_ROUTES
    wrong, unchecked = renamed(spark, location, history, segments)
    by = "the routes that the gateway ran with" if mapping is None else "the mapping"
    return wrong, [*findings, *_renamed_findings(wrong, day, by)], _unchecked(unchecked)


def _unchecked(copies: Mapping[str, int]) -> str:
    """Return why names were not checked, by gateway; empty when all were."""
    gateways = (f"{amount(number)} copies of {name!r}" for name, number in sorted(copies.items()))
    listed = ", ".join(gateways)
    return f"the archive does not have the routes of {listed}" if copies else ""


def _renamed_findings(wrong: pa.Table, day: date, by: str) -> list[Finding]:
    """Return a finding for each target with wrong names."""
    found = summed(wrong.append_column("names", pa.array([1] * len(wrong))), _TARGET, ["names"])
    return [
        error(
            "renamed",
            f"date={day}",
            f"{counted_as(row['names'], 'name')} of route {row['route']!r} to"
            f" {row['target']!r}: not as {by} would translate; the table `renamed` has them",
        )
        for row in found.to_pylist()
    ]
