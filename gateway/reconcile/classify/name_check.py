"""Comparison of the names of a date with the archived routes, or with those of a mapping."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final

import pyarrow as pa
from pyspark.sql import SparkSession

from gateway.archive.findings import Finding, error
from gateway.archive.location import ArchiveLocation
from gateway.archive.routes import Rules
from gateway.archive.storage import open_storage
from gateway.reconcile.classify.renames import renamed
from gateway.reconcile.grouping import ascending
from gateway.reconcile.input.inputs import Segment, day_range
from gateway.reconcile.input.route_history import mapping_history, read_history
from gateway.reconcile.report.formatting import amount, counted_as

_NO_ROUTES: Final = "the archive has no routes of this date; --mapping CONFIG gives some"


@dataclass(frozen=True, slots=True)
class NamesToCheck:
    """The segments of a date, and the routes to compare their names with.

    Without `mapping`, the archived routes of their time; `key` is that of the seals.
    """

    location: ArchiveLocation
    day: date
    segments: Sequence[Segment]
    mapping: Rules | None = None
    key: bytes | None = None


@dataclass(frozen=True, slots=True)
class NameCheck:
    """The wrong names; None when there are no routes. `unchecked` tells why names were not."""

    wrong: pa.Table | None = None
    findings: Sequence[Finding] = ()
    unchecked: str = ""


def check_names(spark: SparkSession, names: NamesToCheck) -> NameCheck:
    """Compare the names that were sent with their translation.

    Raises:
        ArchiveError: a segment cannot be read.
        OSError: the archive cannot be read.
    """
    if names.mapping is None:
        storage = open_storage(names.location)
        history, findings = read_history(storage, day_range(names.day)[1], names.key)
    else:
        history, findings = mapping_history(names.mapping), []
    if not history:
        return NameCheck(unchecked=_NO_ROUTES)
    wrong, unchecked = renamed(spark, names.location, history, names.segments)
    return NameCheck(wrong, [*findings, *_renamed_findings(names, wrong)], _unchecked(unchecked))


def _unchecked(copies: Mapping[str, int]) -> str:
    """Return why names were not checked, by gateway; empty when all were."""
    gateways = (f"{amount(number)} copies of {name!r}" for name, number in sorted(copies.items()))
    listed = ", ".join(gateways)
    return f"the archive does not have the routes of {listed}" if copies else ""


def _renamed_findings(names: NamesToCheck, wrong: pa.Table) -> list[Finding]:
    """Return a finding for each target with wrong names."""
    keys = ["route", "target"]
    counted = wrong.group_by(keys).aggregate([([], "count_all")])
    by = "the routes that the gateway ran with" if names.mapping is None else "the mapping"
    return [
        error(
            "renamed",
            f"date={names.day}",
            f"{counted_as(row['count_all'], 'name')} of route {row['route']!r} to"
            f" {row['target']!r}: not as {by} would translate; the table `renamed` has them",
        )
        for row in counted.sort_by(ascending(*keys)).to_pylist()
    ]
