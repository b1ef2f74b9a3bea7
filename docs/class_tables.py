"""The tables of the classes of a night, from `gateway/model/copy_class.py`."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.model.copy_class import CLASSES, ClassFacts, Severity
from gateway.reconcile.classify.copy_classes import RULES


def classes(arguments: Sequence[str], lines: Sequence[str]) -> list[str]:
    """One row for each class, in the order of their rules."""
    del arguments, lines
    rows = ["| class | condition | arrived | breaks the verdict |", "| --- | --- | --- | --- |"]
    for each in RULES:
        facts = each.facts
        arrived = "yes" if facts.arrived else "no"
        rows.append(f"| {facts.name} | {facts.condition} | {arrived} | {_breaks(facts)} |")
    return rows


def advice(arguments: Sequence[str], lines: Sequence[str]) -> list[str]:
    """One row for each class with an advice, the gravest first."""
    del arguments, lines
    rows = ["| class | the deliveries | action |", "|---|---|---|"]
    for name, facts in CLASSES.items():
        command = f" `{facts.command}`" if facts.command else ""
        if facts.advice:
            rows.append(f"| {name} | {facts.meaning} | {facts.advice}{command} |")
    return rows


def _breaks(facts: ClassFacts) -> str:
    if facts.severity is Severity.STRICT:
        return "with `--strict`"
    if facts.severity is not Severity.BREACH:
        return "no; listed by rule" if facts.dead_letter else "no"
    return f"unless {facts.allowed}; with `--strict` always" if facts.allowed else "yes"
