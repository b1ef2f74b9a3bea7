"""The verdict of a reconciliation in words: headline, reasons, actions and key figures."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from types import MappingProxyType
from typing import Final

from gateway.reconcile.report.formatting import amount, visible
from gateway.reconcile.report.summary import Summary, count, word
from gateway.reconcile.report.wording import (
    CLASSES,
    Severity,
    all_violations,
    severity_of,
    violations,
)

_STATES: Final = (("good", "✓"), ("bad", "✗"), ("warn", "?"))  # by exit status
_HEADLINES: Final = MappingProxyType(
    {
        0: "Clean: nothing was lost, altered, duplicated or out of order",
        1: "Not clean",
        2: "No answer: this date could not be reconciled",
    }
)
_MAX_ERRORS: Final = 3  # shown when there is no answer; the last is the gravest


@dataclass(frozen=True, slots=True)
class Action:
    """A step for the operator, with the command to run or the section to read, if any."""

    text: str
    command: str = ""
    section: str = ""


@dataclass(frozen=True, slots=True)
class KeyFigure:
    """A number at the top of the report."""

    label: str
    value: str
    share: str = ""


def state(summary: Summary) -> tuple[str, str]:
    """Return the verdict as a class of the style sheet and as one character."""
    return _STATES[summary.status if summary.status in range(len(_STATES)) else -1]


def headline(summary: Summary) -> str:
    """Return the verdict as one sentence."""
    if summary.status != 1:
        return _HEADLINES.get(summary.status, summary.verdict)
    violated = all_violations(summary.totals, strict=summary.strict)
    errors = _errors(summary)
    parts = []
    if violated:
        expected = amount(count(summary.totals, "received"))
        parts.append(f"{amount(violated)} of {expected} deliveries violated a guarantee")
    if errors:
        parts.append(f"the archive has {_counted_errors(errors)}")
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
        yield f"{_counted_errors(errors_found)} in the archive: the counts may be wrong."


def _errors(summary: Summary) -> int:
    return sum(word(row, "weight") == "error" for row in summary.findings)


def _counted_errors(number: int) -> str:
    return f"{amount(number)} {'error' if number == 1 else 'errors'}"


def actions(summary: Summary) -> Iterator[Action]:
    """Yield the operator's next steps, the gravest first."""
    if _errors(summary):
        lead = "" if summary.routes else "Check the date and the folder. "
        yield Action(
            f"{lead}Restore or repair the files with errors, then reconcile again.", section="Files"
        )
    for name, description in CLASSES.items():
        total = count(summary.totals, name)
        if not total or not description.advice:
            continue
        severity = severity_of(name, summary.totals, strict=summary.strict)
        if name == "duplicated" and severity is Severity.STRICT:
            continue  # all of them are marked, which at-least-once delivery allows
        yield Action(
            f"{name.capitalize()} ({amount(total)}): {description.advice}",
            command=_replay_command(summary, name) if description.replayable else "",
        )
    if summary.renamed:
        yield Action(
            "The mapping now makes other names than those that were sent.", section="Renamed"
        )


def _replay_command(summary: Summary, name: str) -> str:
    """Return a dry run of `gateway replay` for the route with the most deliveries of a class."""
    worst = max(summary.routes, key=lambda row: count(row, name), default={})
    day = summary.date
    options = {
        "--config": "CONFIG",
        "--route": word(worst, "route"),
        "--from": str(day),
        "--to": str(day + timedelta(days=1)) if day < date.max else f"{day}T23:59:59.999999",
        "--class": name,
    }
    words = [f"{option} {shlex.quote(visible(value))}" for option, value in options.items()]
    return f"gateway replay {shlex.quote(summary.archive)} {' '.join(words)} --dry-run"


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
    if summary.proof:
        yield KeyFigure("proven by digest", _percent(count(summary.proof, "copies"), expected))
    yield KeyFigure("routes by target", amount(len(summary.routes)))


def _percent(part: int, whole: int) -> str:
    """Return a share, rounded down: 100 % means all."""
    return f"{part * 10_000 // whole / 100:g} %" if whole else "-"
