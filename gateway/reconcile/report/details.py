"""The detailed sections of the report: files, names, samples, dead letters, hours as numbers."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import PurePath
from typing import Final

from gateway.archive.findings import Finding, Weight
from gateway.archive.layout import gateway_of, safe_name, writer_of
from gateway.model.copy_class import (
    CLASSES,
    COLUMNS,
    EXCEPTION_CLASSES,
    ClassFacts,
    Severity,
)
from gateway.reconcile.report.advice import FindingAdvice, advice_for
from gateway.reconcile.report.figures import Day, percentiles
from gateway.reconcile.report.formatting import amount, duration
from gateway.reconcile.report.report import Report
from gateway.reconcile.report.rows import (
    Row,
    count,
    exceptions_in,
    number,
    word,
    worst_first,
)

MAX_ROWS: Final = 200  # rows of a table
MAX_GATEWAYS: Final = 10  # named at the top
MAX_SAMPLES: Final = 25  # of each class
MAX_ROUTES: Final = 2_000  # rows of the table of routes


def gateways(report: Report) -> list[str]:
    """Return the gateways with copies, then those whose segments have errors and count nowhere."""
    found = [word(row, "gateway") for row in report.gateways]
    known = {safe_name(name) for name in found}
    writers = dict.fromkeys(_writer(each.place) for each in report.errors)
    return [*found, *(name for name in writers if name and name not in known)]


def _writer(segment: str) -> str:
    """Return the gateway of a segment, as its file is named; empty when it tells none."""
    return gateway_of(writer_of(PurePath(segment)) or "")


def listed_routes(report: Report) -> list[Row]:
    """Return the rows of the table of routes, the worst first."""
    return worst_first(report.routes, strict=report.strict)[:MAX_ROUTES]


def tap_reasons(report: Report) -> list[tuple[str, int]]:
    """Return why targets need a tap to prove payloads unaltered, with the number of routes."""
    reasons = Counter(word(row, "taps_needed") for row in report.routes)
    return [(reason, number) for reason, number in reasons.most_common() if reason]


@dataclass(frozen=True, slots=True)
class SampleTable:
    """Sample deliveries of one class."""

    name: str
    facts: ClassFacts
    total: int  # of this class on the date
    rows: Sequence[Row]

    @property
    def collapsed(self) -> bool:
        return self.facts.severity is Severity.ACCOUNTED


def sample_tables(report: Report) -> list[SampleTable]:
    """Return the samples by class, the gravest first."""
    by_class: dict[str, list[Row]] = defaultdict(list)
    for row in report.samples:
        by_class[word(row, "class")].append(row)
    return [
        SampleTable(name, facts, report.total(name), by_class[name][:MAX_SAMPLES])
        for name, facts in CLASSES.items()
        if name in by_class
    ]


@dataclass(frozen=True, slots=True)
class FindingGroup:
    """The findings of one rule and weight, with the meaning of the rule and the advice."""

    weight: str
    rule: str
    advice: FindingAdvice
    total: int
    findings: Sequence[Finding]


def finding_groups(report: Report) -> list[FindingGroup]:
    """Return the findings about files by rule, errors before warnings."""
    groups: dict[tuple[Weight, str], list[Finding]] = defaultdict(list)
    for each in report.findings:
        groups[each.weight, each.rule].append(each)
    return [
        FindingGroup(weight.value, rule, advice_for(rule), len(found), found[:MAX_ROWS])
        for (weight, rule), found in sorted(
            groups.items(), key=lambda group: group[0][0] is not Weight.ERROR
        )
    ]


def frequent_dead_letters(report: Report) -> list[Row]:
    """Return the rules of dead letters, the most frequent first."""
    return sorted(report.dead_letters, key=lambda row: -count(row, "copies"))[:MAX_ROWS]


def time_of_day(text: str) -> str:
    """Return the time of day of an ISO 8601 time, in milliseconds; other text as it is."""
    try:
        return datetime.fromisoformat(text).strftime("%H:%M:%S.%f")[:-3]
    except ValueError:
        return text or "-"


def step_durations(report: Report) -> str:
    """Return the duration of each step of the job, as one line."""
    return ", ".join(f"{name} {seconds:.1f} s" for name, seconds in report.timings.items())


@dataclass(frozen=True, slots=True)
class HourTable:
    """The numbers behind the charts of a day, as texts: "0" and "-" are its quiet values."""

    heads: Sequence[str]
    rows: Sequence[tuple[str, Sequence[str]]]  # the hour, and a text for each head


def hour_table(day: Day) -> HourTable:
    times = [*percentiles(day), "slowest"]
    found = exceptions_in(list(day.values()))
    counts = [name for name in COLUMNS if name not in EXCEPTION_CLASSES or name in found]
    rows: list[tuple[str, Sequence[str]]] = []
    for hour, row in sorted(day.items()):
        durations = [number(row, name) for name in times]
        texts = [
            *[amount(count(row, name)) for name in counts],
            *["-" if each is None else duration(each) for each in durations],
        ]
        rows.append((f"{hour:02}:00", texts))
    return HourTable([*counts, *times], rows)
