"""The verdict of a night as metrics, in a text file for Prometheus's node exporter."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from gateway.archive.durable import replacing
from gateway.archive.findings import Weight
from gateway.archive.layout import SECOND, day_start
from gateway.model.copy_class import COLUMNS, HOP_CLASSES, REPEATS
from gateway.model.cut_class import CUT_CLASSES
from gateway.night.reconcile.report.report import CLEAN
from gateway.night.reconcile.report.run import Run
from gateway.night.reconcile.report.timelines import DAY_SECONDS

LAST_CLEAN: Final = "gateway_reconcile_last_clean_timestamp_seconds"
FAMILIES: Final[Mapping[str, str]] = {
    "gateway_reconcile_status": "Verdict: 0 clean, 1 not clean, 2 no answer, 3 gaps or cuts.",
    "gateway_reconcile_copies": "Messages by target of the reconciled date, by class.",
    "gateway_reconcile_hop_messages": "Messages between gateways with --hops, by class.",
    "gateway_reconcile_unproven_rows": "Rows that seals list, in absent or changed segments.",
    "gateway_reconcile_source_gaps": "Gaps in which sources may have missed messages.",
    "gateway_reconcile_cut_messages": "Messages that routes left out for a target, by class.",
    "gateway_reconcile_findings": "Findings about the archive, by weight.",
    "gateway_reconcile_duration_seconds": "Duration of the run.",
    "gateway_reconcile_date_timestamp_seconds": "End of the reconciled date.",
    "gateway_reconcile_finished_timestamp_seconds": "End of the run.",
    LAST_CLEAN: "End of the newest date with a clean verdict.",
}
_SAMPLE = re.compile(rf"^{LAST_CLEAN}(?:\{{[^}}]*\}})? ([0-9.e+]+)$", re.MULTILINE)
_MODE: Final = 0o644  # the node exporter runs as another user


def write_metrics(run: Run, path: Path, now: int, seconds: float) -> None:
    """Replace the file at `path`; a clean date that it has is kept when this one is not newer.

    `now` is in microseconds since 1970-01-01 UTC, `seconds` the duration of the run.

    Raises:
        OSError: the file cannot be written; an existing one is unchanged.
    """
    samples = _samples(run, now, seconds, _last_clean(path))
    text = "".join(_family(name, samples[name]) for name in FAMILIES if name in samples)
    with replacing(path) as file:
        os.fchmod(file.fileno(), _MODE)
        file.write(text.encode())


def _last_clean(path: Path) -> float:
    """Return the time in an existing file; 0 when it has none or cannot be read."""
    try:
        found = _SAMPLE.search(path.read_text("utf-8"))
        return float(found[1]) if found else 0.0
    except (OSError, ValueError):
        return 0.0


def _samples(run: Run, now: int, seconds: float, last_clean: float) -> dict[str, dict[str, float]]:
    """Return the values of each family by their labels."""
    report = run.report
    end = 0.0 if report.day is None else day_start(report.day) / SECOND + DAY_SECONDS
    if report.status == CLEAN:
        last_clean = max(last_clean, end)
    weights = Counter(each.weight for each in (*report.findings, *run.findings))
    found: dict[str, dict[str, float]] = {
        "unproven_rows": {"": report.unproven},
        "findings": {f'{{weight="{each.value}"}}': weights[each] for each in Weight},
        "duration_seconds": {"": round(seconds, 3)},
        "finished_timestamp_seconds": {"": now / 1_000_000},
    }
    if run.status is not None:
        found["status"] = {"": run.status}
    if report.answered and report.day is not None:
        names = (*COLUMNS, *REPEATS)
        found["copies"] = {f'{{class="{name}"}}': report.total(name) for name in names}
        found["source_gaps"] = {"": report.source_gaps}
        found["cut_messages"] = {f'{{class="{name}"}}': report.cut(name) for name in CUT_CLASSES}
        if report.hops:
            found["hop_messages"] = {
                f'{{class="{name}"}}': report.between(name) for name in HOP_CLASSES
            }
    times = {"date_timestamp_seconds": end, "last_clean_timestamp_seconds": last_clean}
    found |= {name: {"": at} for name, at in times.items() if at}
    return {f"gateway_reconcile_{name}": samples for name, samples in found.items()}


def _family(name: str, samples: Mapping[str, float]) -> str:
    """Return the lines of a gauge; the keys of `samples` are its labels."""
    values = "".join(f"{name}{labels} {value}\n" for labels, value in samples.items())
    return f"# HELP {name} {FAMILIES[name]}\n# TYPE {name} gauge\n{values}"
