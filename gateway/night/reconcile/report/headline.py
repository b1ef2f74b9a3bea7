"""The verdict of a date for people: its headline, state and reasons, and the key figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePath
from typing import Final

from gateway.archive.layout import gateway_of, safe_name, writer_of
from gateway.model.copy_class import (
    CLASSES,
    HOP_CLASSES,
    HOP_LOSSES,
    HOP_MEANINGS,
    HOP_RECEIPTS,
    REPEATS,
    CopyClass,
)
from gateway.model.cut_class import CUT_CLASSES, ON_WORD
from gateway.night.reconcile.formatting import amount
from gateway.night.reconcile.report.advice import advice_for
from gateway.night.reconcile.report.report import BREACH, CLEAN, GAPS, Report
from gateway.night.reconcile.report.reported_gaps import outages, rule_of
from gateway.night.reconcile.report.rows import count, word
from gateway.terminal.units import counted

_STATES: Final = (("good", "✓"), ("bad", "✗"), ("warn", "?"), ("warn", "!"))  # by exit status
_MAX_ERRORS: Final = 3  # shown when there is no answer; the last is the gravest
_MAX_NAMED: Final = 4  # classes, the gravest


def headline(report: Report) -> str:
    """The verdict for people: how many of how many arrived, and the rest by class."""
    if not report.answered:
        absent = f"; {_unproven_rows(report)}" if report.unproven else ""
        return f"No answer: this date could not be reconciled{absent}"
    if report.status == BREACH:
        return "; ".join([f"Not clean: {arrivals(report)}", *report.words])
    if not all_arrived(report):
        return "; ".join([arrivals(report), *report.doubts])
    if not report.doubts:
        return f"Clean: {arrivals(report)}"
    doubts = " and ".join(report.doubts)
    return f"Clean for what was received, with {doubts}: {arrivals(report)}"


def arrivals(report: Report) -> str:
    """How many of how many copies arrived, and how many did not or are wrong, by class."""
    if report.is_complete:
        found = [_arrived(report), *_others(report), *_hops(report)]
        if report.errors:
            found.append(counted(len(report.errors), "error") + " in the archive")
        return "; ".join(found)
    cause = _unproven_rows(report) if report.unproven else "the archive may lack rows"
    unknown = f"{cause}, so how many of how many deliveries arrived is not known"
    return "; among the rest, ".join([unknown, *_others(report), *_hops(report)])


def all_arrived(report: Report) -> bool:
    """Whether every copy is known to have arrived, and every message between gateways."""
    arrived = _number_arrived(report) == report.total("received")
    return report.is_complete and arrived and not any(map(report.between, HOP_LOSSES))


def _number_arrived(report: Report) -> int:
    return sum(report.total(name) for name, facts in CLASSES.items() if facts.arrived)


def _arrived(report: Report) -> str:
    expected, arrived = report.total("received"), _number_arrived(report)
    if not expected:
        return "no delivery was expected"
    if arrived < expected:
        return f"{amount(arrived)} of {amount(expected)} deliveries arrived"
    return f"all {amount(expected)} deliveries arrived" if expected > 1 else "1 of 1 arrived"


def _others(report: Report) -> Iterator[str]:
    """Yield the numbers of `wanting` copies as one text, unless there are none."""
    found = [(name, number) for name in CLASSES if (number := report.wanting(name))]
    named = [f"{amount(number)} {name}" for name, number in found[:_MAX_NAMED]]
    if others := sum(number for _, number in found[_MAX_NAMED:]):
        named.append(f"{amount(others)} of other classes")
    if named:
        yield ", ".join(named)


def _hops(report: Report) -> Iterator[str]:
    """Yield the messages between gateways that are not well as one text, unless all are."""
    names = (each for each in HOP_CLASSES[:-1] if each not in HOP_RECEIPTS)
    found = [(name, report.between(name)) for name in names]
    if named := [f"{amount(number)} {name}" for name, number in found if number]:
        yield f"between gateways {', '.join(named)}"


def _unproven_rows(report: Report) -> str:
    verb = "is" if report.unproven == 1 else "are"
    return f"{counted(report.unproven, 'row')} of the date {verb} absent or not proven"


@dataclass(frozen=True, slots=True)
class KeyFigure:
    """A number at the top of the report."""

    label: str
    value: str
    share: str = ""


def state(report: Report) -> tuple[str, str]:
    """Return the verdict as a class of the style sheet and as one character."""
    partly = report.status == CLEAN and not all_arrived(report)
    return _STATES[GAPS if partly else report.status]


def gateways(report: Report) -> list[str]:
    """Return the gateways with copies, then those whose segments have errors and count nowhere."""
    found = [word(row, "gateway") for row in report.gateways]
    known = {"", *map(safe_name, found)}
    places = (PurePath(each.place) for each in report.errors)
    writers = dict.fromkeys(gateway_of(writer_of(place) or "") for place in places)
    return [*found, *(name for name in writers if name not in known)]


def tap_reasons(report: Report) -> list[tuple[str, int]]:
    """Return why targets need a tap to prove payloads unaltered, with the number of routes."""
    reasons = Counter(word(row, "taps_needed") for row in report.routes)
    return [(reason, number) for reason, number in reasons.most_common() if reason]


def reasons(report: Report) -> Iterator[str]:
    """Yield a sentence for each reason why not all is well, or why there is no answer."""
    if not (report.routes or report.cuts):
        yield from (f"{each.place}: {each.text}" for each in report.errors[-_MAX_ERRORS:])
        return
    for name, facts in CLASSES.items():
        if total := report.wanting(name):
            yield f"{amount(total)} {name}: these deliveries {facts.meaning}."
    for name in HOP_CLASSES[:-1]:
        if total := report.between(name):
            yield f"{amount(total)} {name}: these messages {HOP_MEANINGS[name]}."
    for name, each in CUT_CLASSES.items():
        if each.told and (total := report.cut(name)):
            yield f"{amount(total)} {name}: these messages {each.meaning}."
    for rule, number in Counter(each.rule for each in report.errors).items():
        meaning = advice_for(rule).meaning
        yield f"{counted(number, 'error')} {rule}: {meaning}" if meaning else f"{number} {rule}"
    rules = Counter(each.rule for each in outages(report.gaps) if each.counted)
    for rule, number in rules.items():
        yield f"{counted(number, 'source gap')}: {rule_of(rule).meaning}."


def key_figures(report: Report) -> Iterator[KeyFigure]:
    """Yield the numbers at the top; none without a route.

    Where rows may be absent from the archive, nobody knows the whole of which they are a share.
    """
    if not report.routes:
        return
    known = report.is_complete
    expected, delivered = report.total("received"), report.total(CopyClass.DELIVERED.value)
    dead = sum(report.total(name) for name, facts in CLASSES.items() if facts.dead_letter)
    in_time = "delivered once, unchanged, in time"
    share = _percent(delivered, expected) if known else ""
    yield KeyFigure(f"{'expected' if known else 'known'} deliveries", amount(expected))
    yield KeyFigure(in_time if known else f"of them {in_time}", amount(delivered), share)
    if report.unproven:
        yield KeyFigure("rows absent or not proven", amount(report.unproven))
    yield KeyFigure("dead letters", amount(dead))
    for name in (CopyClass.IN_FLIGHT.value, CopyClass.RECOVERED.value):
        if total := report.total(name):
            yield KeyFigure(name, amount(total))
    for name, text in REPEATS.items():
        if total := report.total(name):
            yield KeyFigure(f"{text}, perhaps twice", amount(total))
    if report.source_gaps:
        yield KeyFigure("source gaps", amount(report.source_gaps))
    if total := report.cut(ON_WORD):
        yield KeyFigure(ON_WORD, amount(total))
    if proven := count(report.proof, "copies"):
        share = _percent(proven, expected) if known else amount(proven)
        yield KeyFigure("proven by id sets", share)
    yield KeyFigure("routes by target", amount(len(report.routes)))


def _percent(part: int, whole: int) -> str:
    """Return a share, rounded down: 100 % means all."""
    return f"{part * 10_000 // whole / 100:g} %" if whole else "-"
