"""The operator's next steps after a reconciliation, with the commands to run."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Final

from gateway.model.copy_class import CLASSES, UNPROVEN, CopyClass
from gateway.model.cut_class import ON_WORD
from gateway.model.dead_letter_rule import FIELD, PAYLOAD
from gateway.night.reconcile.formatting import amount
from gateway.night.reconcile.report.report import Report, became_breach
from gateway.night.reconcile.report.reported_gaps import outages
from gateway.night.reconcile.report.rows import Row, Rows, count, word
from gateway.terminal.text import shortened
from gateway.terminal.units import counted

_HOP_FAULTS: Final = (CopyClass.MISSING.value, CopyClass.ALTERED.value)
_OF_PAYLOAD: Final = frozenset({PAYLOAD, FIELD})  # the name alone does not show the refusal
_MAX_ROUTES: Final = 10  # of one replay command
_NO_PAYLOADS: Final = (
    "gateway replay cannot send them: their payloads are not in the archive. Ask the publishers"
    " to send them again; the table exceptions has their names and times. With archive_payload:"
    " true on the route, the next loss can be replayed."
)

_SHARE_A_KEY: Final = (
    "Do their gateways share no archive and no path_key? Set one gateway.path_key at all of them."
)
_NAME_BROKERS: Final = (
    "Do two brokers have one broker_id? The messages between them are cut. Check the files of all"
    " gateways together."
)
_ASK_PUBLISHER: Final = (
    "Else a publisher wrote the path. The rows of a message show its source: ask who publishes this"
    " name there, and send what was hidden again."
)
_ASK_FOR_ID: Final = (
    "Each has the id of another message. The rows of one show its source: ask who publishes this"
    " name there."
)
_OTHER_ROUTES: Final = " The commands are for the routes with the most; repeat them for {} more."


@dataclass(frozen=True, slots=True)
class Action:
    """A step for the operator, with the commands to run and the section to read, if any."""

    text: str
    commands: Sequence[str] = ()
    section: str = ""


def actions(report: Report) -> Iterator[Action]:
    """Yield the operator's next steps, the gravest first."""
    if report.errors:
        yield _errors(report)
    for name, facts in CLASSES.items():
        allowed = report.total(facts.allowed) if facts.allowed and not report.strict else 0
        if facts.advice and report.total(name) > allowed:
            yield from _for_class(report, name)
    yield from _unconfigured(report)
    if any(map(report.between, _HOP_FAULTS)):
        faults = (row for row in report.hop_samples if word(row, "class") in _HOP_FAULTS)
        yield Action(
            "Messages were lost or changed between gateways. Ask the operator of the broker; the"
            " path of one of them shows its times.",
            [_show(report, faults)],
            "Hops",
        )
    for row in filter(became_breach, report.carried):
        what = "reconciled again" if "before" in row else "judged by an earlier run"
        yield Action(
            f"{word(row, 'date')} was {what}, and its verdict is now:"
            f" {word(row, 'verdict')}. Read the report of that date.",
            section="Method",
        )
    if report.source_gaps:
        yield _gaps(report)
    if report.cut(ON_WORD):
        yield from _cuts(report)
    if report.between(UNPROVEN):
        yield _unproven(report)
    if report.renamed:
        yield Action("Routes translate other names than those that were sent.", section="Renamed")


def _errors(report: Report) -> Action:
    if not report.routes:
        text = "Check the date and the archive. Repair the files with errors, then reconcile again."
        return Action(text, section="Files")
    return Action(
        "The archive has errors. Follow the advice for each rule, then verify the archive and"
        " reconcile this date again.",
        [_command(report, "archive verify"), _command(report, "reconcile")],
        "Files",
    )


def _for_class(report: Report, name: str) -> Iterator[Action]:
    """Yield the steps for a class: with a replay, and without one where payloads are absent."""
    facts, total = CLASSES[name], report.total(name)
    if not facts.replayable:
        of_class = [row for row in report.samples if word(row, "class") == name]
        whole = (row for row in of_class if shortened(word(row, "name")) == word(row, "name"))
        found = next(whole, {"name": "NAME"})
        example = shlex.quote(word(found, "name"))
        if word(found, "rule") in _OF_PAYLOAD:
            example += " --payload PAYLOAD"
        commands = [facts.command.format(NAME=example)] if facts.command else []
        yield Action(f"{name.capitalize()} ({amount(total)}): {facts.advice}", commands)
        return
    affected = [row for row in report.routes if count(row, name)]
    affected.sort(key=lambda row: -count(row, name))
    bare = [row for row in affected if row.get("payloads_archived") is False]
    lost = sum(count(row, name) for row in bare)
    if lost < total:
        sendable = [row for row in affected if row not in bare]
        routes = list(dict.fromkeys(word(row, "route") for row in sendable)) or [""]
        more = len(routes) - _MAX_ROUTES
        others = _OTHER_ROUTES.format(amount(more)) if more > 0 else ""
        yield Action(
            f"{name.capitalize()} ({amount(total - lost)}): {facts.advice}{others}",
            _replay(report, name, routes[:_MAX_ROUTES]),
        )
    if lost:
        routes = [word(row, "route") for row in bare]
        of_class = [row for row in report.samples if word(row, "class") == name]
        where = f" on {counted(len(bare), 'route')}" if lost < total else ""
        yield Action(
            f"{name.capitalize()}{where} ({amount(lost)}): {_NO_PAYLOADS}",
            [_show(report, (row for row in of_class if word(row, "route") in routes))],
        )


def _unconfigured(report: Report) -> Iterator[Action]:
    """Yield the step for copies in the spool that no target of the configuration takes."""
    waiting = [row for row in report.routes if row.get("unconfigured")]
    number = sum(count(row, CopyClass.IN_FLIGHT.value) for row in waiting)
    targets = [f"{word(row, 'target')} of route {word(row, 'route')}" for row in waiting]
    them = ", ".join(map(shortened, targets[:_MAX_ROUTES]))
    text = (
        f"In flight ({amount(number)}) for a target that is no longer configured: {them}. Write"
        " was: OLD at the endpoint that has another name now, or configure the target again. Else"
        " the copies stay in the spool, and are missing at the end of --spooled-days."
    )
    if waiting:
        yield Action(text, [_command(report, "reconcile")], "Routes")


def _gaps(report: Report) -> Action:
    lost = [each.lost for each in outages(report.gaps) if each.counted]
    known = [each for each in lost if each is not None]
    number = "the archive cannot tell how many"
    if known:
        told = f"the brokers count {amount(sum(known))} of them"
        others = counted(len(lost) - len(known), "gap")
        number = f"{told}; for {others} {number}" if len(known) < len(lost) else told
    text = (
        f"{counted(len(lost), 'source gap')}: messages may be lost before they reached the"
        f" gateway; {number}."
    )
    if report.accept_gaps:
        return Action(text, section="Source gaps")
    command = f"{_command(report, 'reconcile')} --accept-gaps"
    return Action(f"{text} When they are cleared up, accept them.", [command], "Source gaps")


def _cuts(report: Report) -> Iterator[Action]:
    """Yield a step for each cause of cuts that nothing proves, the most usual first."""
    number = report.cut(ON_WORD)
    them = "it" if number == 1 else "them"
    what = f"{counted(number, 'message')} {ON_WORD}: no row of the archive proves {them}."
    yield Action(f"{what} {_SHARE_A_KEY}", section="Cuts")
    yield Action(_NAME_BROKERS, ["gateway check A.yaml B.yaml"], "Cuts")
    yield _asking(report, _ASK_PUBLISHER, ON_WORD, report.cut_samples, "Cuts")


def _unproven(report: Report) -> Action:
    """Return the step for messages between gateways that a publisher could have made."""
    number = counted(report.between(UNPROVEN), "message")
    text = f"{number} between gateways on a publisher's word. {_ASK_FOR_ID}"
    return _asking(report, text, UNPROVEN, report.hop_samples, "Hops")


def _asking(report: Report, text: str, name: str, samples: Rows, section: str) -> Action:
    """Return a step that shows a message of a class, and how to accept all of them."""
    commands = [_show(report, (row for row in samples if word(row, "class") == name))]
    if report.accept_cuts:
        return Action(text, commands, section)
    commands.append(f"{_command(report, 'reconcile')} --accept-cuts")
    return Action(f"{text} When they are cleared up, accept them.", commands, section)


def _command(report: Report, name: str) -> str:
    return f"gateway {name} {_archive(report)} --date {report.day}"


def _replay(report: Report, name: str, routes: Sequence[str]) -> list[str]:
    """Return three commands: a trial replay, the replay, and the reconciliation after it."""
    day = report.day
    if day is None:
        return []
    options = [
        ("--config", "CONFIG"),
        *(("--route", route) for route in routes),
        ("--from", str(day)),
        ("--to", str(day + timedelta(days=1)) if day < date.max else f"{day}T23:59:59.999999"),
        ("--class", name),
    ]
    words = " ".join(f"{option} {_quoted(value)}" for option, value in options)
    replay = f"gateway replay {_archive(report)} {words}"
    return [f"{replay} --dry-run", replay, _command(report, "reconcile")]


def _show(report: Report, rows: Iterable[Row]) -> str:
    """Return the command that shows every row of the first message of `rows`."""
    found = (word(row, "id") for row in rows)
    return f"gateway archive show {_archive(report)} {_quoted(next(found, 'ID'))}"


def _archive(report: Report) -> str:
    """Return the archive as a command names it from any folder."""
    is_local = "://" not in report.archive
    return _quoted(str(Path(report.archive).absolute()) if is_local else report.archive)


def _quoted(value: str) -> str:
    return shlex.quote(shortened(value))
