"""The headline of a date: how many of how many arrived, and how many did not or are wrong."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from gateway.model.copy_class import CLASSES, HOP_CLASSES, HOP_LOSSES
from gateway.reconcile.report.formatting import amount, counted_as
from gateway.reconcile.report.report import BREACH, CLEAN, Report

_MAX_NAMED: Final = 4  # classes, the gravest


def headline(report: Report) -> str:
    """The verdict for people: how many of how many arrived, and the rest by class."""
    if not report.answered:
        absent = f"; {_unproven_rows(report)}" if report.unproven else ""
        return f"No answer: this date could not be reconciled{absent}"
    if report.status == BREACH:
        return f"Not clean: {arrivals(report)}"
    gaps = counted_as(report.source_gaps, "source gap") if report.source_gaps else ""
    if not all_arrived(report):
        return f"{arrivals(report)}; {gaps}" if gaps else arrivals(report)
    if not gaps:
        return f"Clean: {arrivals(report)}"
    accepted = ", accepted" if report.status == CLEAN else ""
    return f"Clean for what was received, with {gaps}{accepted}: {arrivals(report)}"


def arrivals(report: Report) -> str:
    """How many of how many copies arrived, and how many did not or are wrong, by class."""
    if report.is_complete:
        found = [_arrived(report), *_others(report), *_hops(report)]
        if report.errors:
            found.append(counted_as(len(report.errors), "error") + " in the archive")
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
    found = [(name, report.between(name)) for name in HOP_CLASSES[:-1]]
    if named := [f"{amount(number)} {name}" for name, number in found if number]:
        yield f"between gateways {', '.join(named)}"


def _unproven_rows(report: Report) -> str:
    verb = "is" if report.unproven == 1 else "are"
    return f"{counted_as(report.unproven, 'row')} of the date {verb} absent or not proven"
