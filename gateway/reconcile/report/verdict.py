"""The verdict of a reconciliation in words: headline, reasons and key figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from gateway.reconcile.report.formatting import amount, counted_as
from gateway.reconcile.report.gaps import outages, rule_of, source_gaps
from gateway.reconcile.report.summary import Summary, count, word
from gateway.reconcile.report.text import BREACH, CLEAN, GAPS, NO_ANSWER
from gateway.reconcile.report.wording import CLASSES, all_violations, violations

_STATES: Final = (("good", "✓"), ("bad", "✗"), ("warn", "?"), ("warn", "!"))  # by exit status
_HEADLINES: Final = MappingProxyType(
    {
        0: "Clean: nothing was lost, altered, duplicated or out of order",
        1: "Not clean",
        2: "No answer: this date could not be reconciled",
    }
)
_MAX_ERRORS: Final = 3  # shown when there is no answer; the last is the gravest


@dataclass(frozen=True, slots=True)
class KeyFigure:
    """A number at the top of the report."""

    label: str
    value: str
    share: str = ""


def state(summary: Summary) -> tuple[str, str]:
    """Return the verdict as a class of the style sheet and as one character."""
    known = summary.status in range(len(_STATES))
    return _STATES[summary.status if known else NO_ANSWER]


def headline(summary: Summary) -> str:
    """Return the verdict as one sentence."""
    gaps = source_gaps(summary.gaps)
    if summary.status == GAPS or (gaps and summary.status == CLEAN):
        accepted = ", accepted" if summary.status == CLEAN else ""
        return f"Clean for what was received, with {counted_as(gaps, 'source gap')}{accepted}"
    if summary.status != BREACH:
        return _HEADLINES.get(summary.status, summary.verdict)
    violated = all_violations(summary.totals, strict=summary.strict)
    errors = _errors(summary)
    parts = []
    if violated:
        expected = amount(count(summary.totals, "received"))
        parts.append(f"{amount(violated)} of {expected} deliveries violated a guarantee")
    if errors:
        parts.append(f"the archive has {counted_as(errors, 'error')}")
    return f"{_HEADLINES[1]}: {', and '.join(parts)}" if parts else _HEADLINES[1]


def reasons(summary: Summary) -> Iterator[str]:
    """Yield a sentence for each reason why the date is not clean, or has no answer."""
    if not summary.routes:
        errors = [row for row in summary.findings if word(row, "weight") == "error"]
        yield from (f"{word(row, 'place')}: {word(row, 'text')}" for row in errors[-_MAX_ERRORS:])
        return
    for name, description in CLASSES.items():
        total = violations(name, summary.totals, strict=summary.strict)
        if total:
            yield f"{amount(total)} {name}: these deliveries {description.meaning}."
    errors_found = _errors(summary)
    if errors_found and summary.status:
        yield f"{counted_as(errors_found, 'error')} in the archive: the counts may be wrong."
    yield from _gap_reasons(summary)


def _gap_reasons(summary: Summary) -> Iterator[str]:
    """Yield a sentence for each rule of the gaps that count."""
    rules = Counter(each.rule for each in outages(summary.gaps) if each.counted)
    for rule, number in rules.items():
        yield f"{counted_as(number, 'source gap')}: {rule_of(rule).meaning}."


def _errors(summary: Summary) -> int:
    return sum(word(row, "weight") == "error" for row in summary.findings)


def key_figures(summary: Summary) -> Iterator[KeyFigure]:
    """Yield the numbers at the top; none without a route."""
    if not summary.routes:
        return
    totals = summary.totals
    expected, delivered = count(totals, "received"), count(totals, "delivered")
    dead_letters = count(totals, "refused") + count(totals, "dead-lettered")
    yield KeyFigure("expected deliveries", amount(expected))
    yield KeyFigure("delivered once, unchanged, in time", amount(delivered),
                    _percent(delivered, expected))  # fmt: skip
    yield KeyFigure("dead letters", amount(dead_letters))
    if recovered := count(totals, "recovered"):
        yield KeyFigure("recovered by replay", amount(recovered))
    if gaps := source_gaps(summary.gaps):
        yield KeyFigure("source gaps", amount(gaps))
    if proven := count(summary.proof, "copies"):
        yield KeyFigure("proven by id sets", _percent(proven, expected))
    yield KeyFigure("routes by target", amount(len(summary.routes)))


def _percent(part: int, whole: int) -> str:
    """Return a share, rounded down: 100 % means all."""
    return f"{part * 10_000 // whole / 100:g} %" if whole else "-"
