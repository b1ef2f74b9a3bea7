"""The table of the names that were sent and are not the translation of their time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pyspark.sql import SparkSession

from gateway.archive.findings import Finding
from gateway.archive.routes import Rules
from gateway.night.reconcile.classify.renames import renamed, renamed_findings
from gateway.night.reconcile.classify.survey import DateFiles
from gateway.night.reconcile.input.route_history import mapping_history
from gateway.night.reconcile.report.result_folder import ResultFolder, first_rows
from gateway.night.reconcile.report.rows import Rows

_NO_ROUTES: Final = "the archive has no routes of this date; --mapping CONFIG gives some"


@dataclass(frozen=True, slots=True)
class NameResults:
    """The wrong names for the report, the findings, and why some names were not checked."""

    rows: Rows = ()
    findings: Sequence[Finding] = ()
    unchecked: str = ""


def write_names(
    spark: SparkSession, results: ResultFolder, files: DateFiles, mapping: Rules | None
) -> NameResults:
    """Compare the sent names with their translation, and write the wrong ones.

    A `mapping` translates all names, in place of the archived routes of their time.
    """
    history = files.history if mapping is None else mapping_history(mapping)
    newer = () if history.mapping else files.newer
    if not history:
        return NameResults(findings=newer, unchecked=_NO_ROUTES)
    by = "the mapping" if history.mapping else "the routes that the gateway ran with"
    wrong, unchecked = renamed(spark, files.scope.location, history, files.inputs.day)
    results.write("renamed", wrong)
    findings = [*newer, *renamed_findings(wrong, files.scope.day, by)]
    return NameResults(first_rows(wrong), findings, unchecked)
