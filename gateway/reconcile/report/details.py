"""The detailed sections of the report: files, names, samples, dead letters, hours as numbers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import PurePath
from typing import Final

from gateway.archive.findings import Weight
from gateway.archive.layout import REPLAY, parse_journal_name, safe_name
from gateway.reconcile.report.advice import FindingAdvice, advice_for
from gateway.reconcile.report.figures import Day, percentiles
from gateway.reconcile.report.formatting import amount, duration
from gateway.reconcile.report.summary import Row, Summary, count, number, word
from gateway.reconcile.report.wording import CLASSES, ClassDescription, Severity

MAX_ROWS: Final = 200  # rows of a table
MAX_GATEWAYS: Final = 10  # named at the top
MAX_SAMPLES: Final = 25  # of each class
_HOURLY: Final = (
    "received", "delivered", "delivered late", "refused", "dead-lettered", "out of order",
    "altered", "duplicated", "lost in target", "recovered", "missing",
)  # fmt: skip


def gateways(summary: Summary) -> list[str]:
    """Return the gateways with copies, then those whose segments have errors and count nowhere."""
    found = [word(row, "gateway") for row in summary.gateways]
    known = {safe_name(name) for name in found}
    errors = (row for row in summary.findings if word(row, "weight") == Weight.ERROR.value)
    writers = dict.fromkeys(_writer(word(row, "place")) for row in errors)
    return [*found, *(name for name in writers if name and name not in known)]


def _writer(segment: str) -> str:
    """Return the gateway of a segment, as its file is named; empty when it tells none."""
    journal = parse_journal_name(PurePath(segment).stem.rpartition("-")[0])
    return journal.writer.removesuffix(REPLAY) if journal else ""


@dataclass(frozen=True, slots=True)
class SampleTable:
    """Sample deliveries of one class."""

    name: str
    description: ClassDescription
    total: int  # of this class on the date
    rows: Sequence[Row]

    @property
    def collapsed(self) -> bool:
        return self.description.severity is Severity.ACCOUNTED


def sample_tables(summary: Summary) -> list[SampleTable]:
    """Return the samples by class, the gravest first."""
    by_class: dict[str, list[Row]] = defaultdict(list)
    for row in summary.samples:
        by_class[word(row, "class")].append(row)
    return [
        SampleTable(name, description, count(summary.totals, name), by_class[name][:MAX_SAMPLES])
        for name, description in CLASSES.items()
        if name in by_class
    ]


@dataclass(frozen=True, slots=True)
class FindingGroup:
    """The findings of one rule and weight, with the meaning of the rule and the advice."""

    weight: str
    rule: str
    advice: FindingAdvice
    total: int
    rows: Sequence[Row]


def finding_groups(summary: Summary) -> list[FindingGroup]:
    """Return the findings about files by rule, errors before warnings."""
    groups: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in summary.findings:
        groups[word(row, "weight"), word(row, "rule")].append(row)
    return [
        FindingGroup(weight, rule, advice_for(rule), len(rows), rows[:MAX_ROWS])
        for (weight, rule), rows in sorted(groups.items(), key=lambda group: group[0][0] != "error")
    ]


def frequent_dead_letters(summary: Summary) -> list[Row]:
    """Return the rules of dead letters, the most frequent first."""
    return sorted(summary.dead_letters, key=lambda row: -count(row, "copies"))[:MAX_ROWS]


def time_of_day(text: str) -> str:
    """Return the time of day of an ISO 8601 time, in milliseconds; other text as it is."""
    try:
        return datetime.fromisoformat(text).strftime("%H:%M:%S.%f")[:-3]
    except ValueError:
        return text or "-"


def step_durations(summary: Summary) -> str:
    """Return the duration of each step of the job, as one line."""
    return ", ".join(
        f"{name} {number(summary.seconds, name) or 0:.1f} s" for name in summary.seconds
    )


@dataclass(frozen=True, slots=True)
class HourTable:
    """The numbers behind the charts of a day, as texts: "0" and "-" are its quiet values."""

    heads: Sequence[str]
    rows: Sequence[tuple[str, Sequence[str]]]  # the hour, and a text for each head


def hour_table(day: Day) -> HourTable:
    times = [*percentiles(day), "slowest"]
    rows: list[tuple[str, Sequence[str]]] = []
    for hour, row in sorted(day.items()):
        durations = [number(row, name) for name in times]
        texts = [
            *[amount(count(row, name)) for name in _HOURLY],
            *["-" if each is None else duration(each) for each in durations],
        ]
        rows.append((f"{hour:02}:00", texts))
    return HourTable([*_HOURLY, *times], rows)
