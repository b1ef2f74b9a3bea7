"""The verdict of a run: that of all dates that it judged, and of the findings beside them.

A date has a verdict of its own, from its own evidence. A finding of a night, such as a writer that
fell silent, belongs to no date: it stands in the record of the night, and counts here. A run that
judged nothing has no verdict.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from gateway.archive.findings import Finding, Weight
from gateway.night.reconcile.report.headline import headline
from gateway.night.reconcile.report.report import BREACH, CLEAN, GAPS, NO_ANSWER, Report
from gateway.night.reconcile.report.rows import Row, Rows, word
from gateway.night.reconcile.report.summary import content_of, members
from gateway.terminal.units import counted

NOTHING: Final = (
    "Nothing to judge: no date that ended is new or changed; --date D judges one again, also today"
)
_WORST_FIRST: Final = (BREACH, NO_ANSWER, GAPS, CLEAN)
_WORDS: Final[Mapping[object, str]] = {
    BREACH: "not clean",
    NO_ANSWER: "no answer",
    GAPS: "clean for what was received",
    CLEAN: "clean",
}
_SAID: Final[Mapping[object, str]] = {**_WORDS, NO_ANSWER: "without an answer"}


@dataclass(frozen=True, slots=True)
class Run:
    """The dates of a run, and the `findings` of its night.

    `report` is that of the newest date, with the other dates as its `carried` rows. It has no `day`
    when the run judged no date.
    """

    report: Report
    findings: Sequence[Finding] = ()

    @property
    def has_report(self) -> bool:
        """Whether the run judged a date, or says why it could not."""
        return self.report.day is not None or not self.report.answered

    @property
    def dates(self) -> Rows:
        """The verdict of each date, the newest last."""
        return [*self.report.carried, *([date_row(self.report)] if self.has_report else ())]

    @property
    def status(self) -> int | None:
        """The worst status of all dates and of the night; None without a verdict."""
        found = {row.get("status") for row in self.dates} | ({BREACH} if self.errors else set())
        return next((each for each in _WORST_FIRST if each in found), None)

    @property
    def exit_status(self) -> int:
        return CLEAN if self.status is None else self.status

    @property
    def errors(self) -> Sequence[Finding]:
        """The findings of the night that break its verdict."""
        return [each for each in self.findings if each.weight is Weight.ERROR]

    @property
    def verdict(self) -> str:
        """The verdict for scripts; empty where nothing was judged."""
        if self.status is None:
            return ""
        dates, same = self.dates, self._dates_of(self.status)
        if len(dates) == 1 and same:
            found = word(dates[0], "verdict")
        elif self.status == CLEAN:
            return _WORDS[CLEAN]
        else:
            counts = f"{len(same)} of {counted(len(dates), 'date')}" if same else ""
            found = f"{_WORDS[self.status]}: {counts}"
        if self.errors:
            found += (", " if same else "") + self._errors
        return found

    @property
    def headline(self) -> str:
        """The verdict for people: that of the worst date, and the errors of the night."""
        if self.status is None:
            return NOTHING
        errors = f"{self._errors}, {', '.join(self._rules)}" if self.errors else ""
        dates = self.dates
        if not dates:
            return f"Not clean: {errors}"
        worst = min(reversed(dates), key=_gravity)
        said = word(worst, "headline")
        if len(dates) > 1:
            status = worst["status"]
            same = len(self._dates_of(status))
            verb = "is" if same == 1 else "are"
            said += f" ({worst['date']}; {same} of {len(dates):,} dates {verb} {_SAID[status]})"
        if not errors:
            return said
        if worst["status"] == BREACH:
            return f"{said}; {errors}"
        return f"Not clean: {errors}; {worst['date']}: {said}"

    @property
    def _errors(self) -> str:
        return f"{counted(len(self.errors), 'error')} of the night"

    @property
    def _rules(self) -> list[str]:
        return list(dict.fromkeys(each.rule for each in self.errors))

    def _dates_of(self, status: object) -> Rows:
        return [row for row in self.dates if row.get("status") == status]


def date_row(report: Report) -> Row:
    """Return the verdict of one date as a row."""
    return {
        "date": "" if report.day is None else str(report.day),
        "headline": headline(report),
        "verdict": report.verdict,
        "status": report.status,
    }


def run_json(run: Run) -> str:
    """Return the JSON of a run: the summary of its newest date, with the verdict of all dates."""
    own = {
        "headline": run.headline,
        "verdict": run.verdict or None,
        "status": run.status,
        "dates": run.dates,
        "night_findings": run.findings,
    }
    return json.dumps(content_of(run.report) | own, indent=2, default=members) + "\n"


def _gravity(row: Row) -> tuple[int, bool]:
    """Return the place of a date among others, the gravest first; then those that lack copies."""
    status = row.get("status")
    place = _WORST_FIRST.index(status) if status in _WORST_FIRST else len(_WORST_FIRST)
    return place, word(row, "headline").startswith("Clean: ")
