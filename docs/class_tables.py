"""The tables of classes and of rules of dead letters, from `gateway/model/`."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.model.copy_class import CLASSES, ClassFacts, Severity
from gateway.model.cut_class import CUT_CLASSES
from gateway.model.dead_letter_rule import RULES as DEAD_LETTER_RULES
from gateway.model.dead_letter_rule import Cause
from gateway.night.reconcile.classify.copy_classes import RULES


def classes(arguments: Sequence[str], lines: Sequence[str]) -> list[str]:
    """One row for each class, in the order of their rules."""
    del arguments, lines
    rows = ["| class | condition | arrived | breaks the verdict |", "| --- | --- | --- | --- |"]
    for each in RULES:
        facts = each.facts
        arrived = "yes" if facts.arrived else "no"
        rows.append(f"| {facts.name} | {facts.condition} | {arrived} | {_breaks(facts)} |")
    return rows


def cuts(arguments: Sequence[str], lines: Sequence[str]) -> list[str]:
    """One row for each class of a cut, the last one first: so are they decided."""
    del arguments, lines
    rows = ["| class | condition | changes the verdict |", "| --- | --- | --- |"]
    for name, facts in reversed(CUT_CLASSES.items()):
        told = "exit status 3, unless `--accept-cuts`" if facts.told else "no"
        rows.append(f"| {name} | {facts.condition} | {told} |")
    return rows


def advice(arguments: Sequence[str], lines: Sequence[str]) -> list[str]:
    """One row for each class with an advice, the gravest first."""
    del arguments, lines
    rows = ["| class | the deliveries | action |", "|---|---|---|"]
    for name, facts in CLASSES.items():
        command = f" `{facts.command.format(NAME='NAME')}`" if facts.command else ""
        if facts.advice:
            rows.append(f"| {name} | {facts.meaning} | {facts.advice}{command} |")
    return rows


def dead_letter_rules(arguments: Sequence[str], lines: Sequence[str]) -> list[str]:
    """One row for each rule that a user ends, and one for all that blame the message."""
    del arguments, lines
    rows = ["| rule | what to do |", "|---|---|"]
    by_label = sorted(DEAD_LETTER_RULES.items())
    around = [each for _, each in by_label if each.cause is Cause.SURROUNDINGS]
    rows += [f"| `{each}` | {each.advice} |" for each in around]
    blaming = ", ".join(f"`{label}`" for label, each in by_label if each.cause is Cause.MESSAGE)
    return [*rows, f"| {blaming} | {Cause.MESSAGE.value} |"]


def _breaks(facts: ClassFacts) -> str:
    if facts.severity is Severity.STRICT:
        return "with `--strict`"
    if facts.severity is not Severity.BREACH:
        return "no; listed by rule" if facts.dead_letter else "no"
    return f"unless {facts.allowed}; with `--strict` always" if facts.allowed else "yes"
