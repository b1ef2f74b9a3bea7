"""The report of one reconciled date: its rows and its verdict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Final

from gateway.archive.findings import Finding, Weight
from gateway.model.copy_class import CLASSES, TALLIES, UNPROVEN
from gateway.model.cut_class import ON_WORD
from gateway.night.reconcile.report.advice import advice_for
from gateway.night.reconcile.report.reported_gaps import ReportedGap, outages
from gateway.night.reconcile.report.rows import Row, Rows, count, violations
from gateway.night.reconcile.report.timelines import Turn
from gateway.terminal.units import counted

REPORT_PAGE: Final = "report.html"  # beside summary.json
CLEAN: Final = 0
BREACH: Final = 1
NO_ANSWER: Final = 2
GAPS: Final = 3  # clean for what was received; a source may have missed, or a cut hidden, some


@dataclass(frozen=True, slots=True)
class Report:
    """One reconciled date; each sequence of rows comes from the table of that name."""

    archive: str
    day: date | None  # None when no date was judged
    findings: Sequence[Finding] = ()
    # At most 10,000, the worst first; the table has all. Beside the counts, a route may have
    # `taps_needed`: why `altered` needs a tap there, or "", `payloads_archived`: a boolean, and
    # `unconfigured`: its copies in flight wait for a target that no gateway has any more.
    routes: Rows = ()
    dead_letters: Rows = ()
    samples: Rows = ()
    gateways: Rows = ()
    hours: Rows = ()  # of the worst routes; the table has all
    whole_day: Rows = ()  # by hour, for all routes
    names: Rows = ()
    renamed: Rows = ()
    names_unchecked: str = ""  # why the names of some copies were not checked
    gaps: Sequence[ReportedGap] = ()  # for each route of a source
    holders: Sequence[Turn] = ()  # of gateways that have several instances, by time
    # The other dates of the run: date, headline, verdict and status; of those that it reconciled
    # itself also before and after (copies in flight), and status_before.
    carried: Rows = ()
    # With `--hops`: one row per route to a broker and route of another gateway that reads there.
    hops: Rows = ()
    hop_samples: Rows = ()
    hops_unchecked: str = ""  # why messages of some sources were not joined
    # Messages that routes left out, by route, target, rule and class of a cut, and some of them.
    cuts: Rows = ()
    cut_samples: Rows = ()
    totals: Row | None = None  # of all routes; None when `routes` has all
    # Copies proven by sets (`copies`) and compared one by one (`compared`), the number of set
    # files (`sets`) and of seals (`seals`), whether a key signed the seals (`keyed`), and the rows
    # that seals list in segments which are absent or changed (`unproven`).
    proof: Row = field(default_factory=dict)
    mode: str = "sets"  # or "full"
    strict: bool = False
    accept_gaps: bool = False
    accept_cuts: bool = False  # also what a publisher says of messages between gateways
    answered: bool = True  # the archive has data of this date
    timings: Mapping[str, float] = field(default_factory=dict)  # seconds of each step

    def total(self, column: str) -> int:
        """Return the total of `column` over all routes."""
        rows = self.routes if self.totals is None else [self.totals]
        return sum(count(row, column) for row in rows)

    def between(self, name: str) -> int:
        """Return the messages of a class between gateways."""
        return sum(count(row, name) for row in self.hops)

    def cut(self, name: str) -> int:
        """Return the cuts of a class."""
        return sum(count(row, "copies") for row in self.cuts if row["class"] == name)

    def wanting(self, name: str) -> int:
        """Return how many copies of a class did not arrive, or violate a guarantee."""
        if CLASSES[name].arrived:
            return violations(name, self.sums, strict=self.strict)
        return self.total(name)

    @property
    def sums(self) -> Row:
        """The totals of all columns."""
        return {name: self.total(name) for name in TALLIES}

    @property
    def source_gaps(self) -> int:
        """The gaps in which a source may have missed messages."""
        return sum(each.counted for each in outages(self.gaps))

    @property
    def absences(self) -> int:
        """The listed intervals that no verdict counts: nothing was lost by them."""
        return len(outages(self.gaps)) - self.source_gaps

    @property
    def words(self) -> list[str]:
        """The cuts and alterations that a publisher could have made, as texts."""
        found = {
            "cut on another's word": self.cut(ON_WORD),
            "between gateways on a publisher's word": self.between(UNPROVEN),
        }
        return [f"{counted(each, 'message')} {what}" for what, each in found.items() if each]

    @property
    def doubts(self) -> list[str]:
        """Why a clean verdict is about what was received only, and what was accepted, as texts."""
        gaps = [counted(self.source_gaps, "source gap")] if self.source_gaps else []
        found = [*((each, self.accept_gaps) for each in gaps)]
        found += [(each, self.accept_cuts) for each in self.words]
        return [f"{text} (accepted)" if accepted else text for text, accepted in found]

    @property
    def errors(self) -> Sequence[Finding]:
        """The findings that break the verdict."""
        return [each for each in self.findings if each.weight is Weight.ERROR]

    @property
    def unproven(self) -> int:
        """The rows that seals list, and no file proves."""
        return count(self.proof, "unproven")

    @property
    def is_complete(self) -> bool:
        """Whether the counts are those of all messages that the gateways recorded."""
        return all(advice_for(each.rule).rows_intact for each in self.errors)

    @property
    def status(self) -> int:
        """The exit status of this date: CLEAN, BREACH, NO_ANSWER or GAPS."""
        if not self.answered:
            return NO_ANSWER
        if any(self._breaches()):
            return BREACH
        gaps = self.source_gaps and not self.accept_gaps
        words = self.words and not self.accept_cuts
        return GAPS if gaps or words else CLEAN

    @property
    def verdict(self) -> str:
        """The verdict for scripts."""
        if not self.answered:
            return "no answer"
        if reasons := ", ".join(self._breaches()):
            return f"not clean: {reasons}"
        return ", ".join(
            ["clean for what was received", *self.doubts] if self.doubts else ["clean"]
        )

    def _breaches(self) -> Iterator[str]:
        """Yield why the date is not clean."""
        for rows, where in (([self.sums], ""), (self.hops, " between gateways")):
            for name in CLASSES:
                if number := sum(violations(name, row, strict=self.strict) for row in rows):
                    yield f"{number} {name}{where}"
        if self.errors:
            yield f"{counted(len(self.errors), 'error')} in the archive"


def became_breach(carried: Row) -> bool:
    """Return whether a date is not clean now that it was reconciled again, and was not before."""
    return carried.get("status") == BREACH and carried.get("status_before") != BREACH
