"""What the classes of a night mean to a person, how bad each is, and what to do about it."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from enum import Enum
from types import MappingProxyType
from typing import Final

from gateway.reconcile.report.markup import SHOWN, Html, amount, code, element, join, visible
from gateway.reconcile.report.summary import Row, Summary, count, word


class Harm(Enum):
    """How loud a number is shown."""

    BREACH = "bad"  # a promise was broken
    STRICT = "warn"  # a breach with --strict alone
    ACCOUNTED = "note"  # it did not arrive, and the archive says why
    NONE = ""


@dataclass(frozen=True, slots=True)
class Kind:
    """A class of copies: what it means, and what to do with those in it."""

    harm: Harm
    meaning: str
    advice: str
    replayed: bool = False  # sending them again mends it


# In the order of their weight; the terminal's table has the same names.
KINDS: Final[Mapping[str, Kind]] = MappingProxyType(
    {
        "missing": Kind(
            Harm.BREACH,
            "were received, and nothing says what became of them",
            "Look for them in the gateway's log around the time of receipt. Then send them again.",
            replayed=True,
        ),
        "lost in target": Kind(
            Harm.BREACH,
            "were taken by the target's broker, and its subscribers never saw them",
            "Ask that broker's operator: a full queue, an expiry, a purge. Then send them again.",
            replayed=True,
        ),
        "altered": Kind(
            Harm.BREACH,
            "arrived with another payload than the one received",
            "Compare one with its original. Find what rewrites it before anything is sent again.",
        ),
        "duplicated": Kind(
            Harm.BREACH,
            "were delivered more than once; only those marked as a repetition are allowed",
            "Ask the consumers of these names whether they acted twice.",
        ),
        "out of order": Kind(
            Harm.BREACH,
            "overtook an earlier message of the same name",
            "Ask the consumers of these names whether the older value is now the last they have.",
        ),
        "delivered late": Kind(
            Harm.STRICT,
            "arrived, but later than agreed",
            "See in which hours the latency rises, and what the target did then.",
        ),
        "unexpected": Kind(
            Harm.STRICT,
            "came out at a target, and no received message explains them",
            "Look for a second publisher on the target, and for lost files in the archive.",
        ),
        "dead-lettered": Kind(
            Harm.ACCOUNTED,
            "could not be delivered and were set aside with the reason",
            "When the cause is gone: gateway dead-letters replay.",
        ),
        "refused": Kind(
            Harm.ACCOUNTED,
            "break a rule of the target (a name, a limit, a payload) and were set aside",
            "The rules are listed below. Mend the mapping, see the name with gateway explain.",
        ),
        "in flight": Kind(
            Harm.ACCOUNTED,
            "were still under way when the archive was read",
            "Reconcile this date again when the gateway has written its journal.",
        ),
        "delivered": Kind(Harm.NONE, "arrived once, unchanged and in time", ""),
    }
)

_WHY: Final = 3  # findings that say why there is no answer; the last is the gravest
TOLD_OF: Final = tuple(name for name in KINDS if name != "delivered")
_HEADLINES: Final = MappingProxyType(
    {
        0: "Clean: nothing was lost, altered, doubled or out of order",
        1: "Not clean",
        2: "No answer: this date could not be reconciled",
    }
)


def harm_of(name: str, row: Row, *, strict: bool) -> Harm:
    """How bad the number in column `name` of `row` is; duplicates are fine when all are marked."""
    harm = KINDS[name].harm if name in KINDS and count(row, name) else Harm.NONE
    if name == "duplicated" and harm is Harm.BREACH:
        return Harm.BREACH if broken(name, row, strict=strict) else Harm.STRICT
    return Harm.BREACH if harm is Harm.STRICT and strict else harm


def broken(name: str, row: Row, *, strict: bool) -> int:
    """How many copies of a class break a promise."""
    harm = KINDS[name].harm
    if harm is Harm.BREACH:
        allowed = count(row, "marked") if name == "duplicated" and not strict else 0
        return count(row, name) - allowed
    return count(row, name) if harm is Harm.STRICT and strict else 0


def all_broken(row: Row, *, strict: bool) -> int:
    return sum(broken(name, row, strict=strict) for name in KINDS)


def worst_first(rows: Iterable[Row], *, strict: bool) -> list[Row]:
    """Routes with broken promises first, then those with anything to tell, then the busiest."""

    def weight(row: Row) -> tuple[int, int, int, str, str]:
        told = sum(count(row, name) for name in TOLD_OF)
        broken = all_broken(row, strict=strict)
        return -broken, -told, -count(row, "received"), word(row, "route"), word(row, "target")

    return sorted(rows, key=weight)


def faults(summary: Summary) -> int:
    """Findings that make the numbers doubtful."""
    return sum(word(row, "weight") == "error" for row in summary.findings)


def headline(summary: Summary) -> str:
    """The verdict as one sentence for a person who reads nothing else."""
    if summary.status != 1:
        return _HEADLINES.get(summary.status, summary.verdict)
    total, damaged = all_broken(summary.totals, strict=summary.strict), faults(summary)
    words = []
    if total:
        owed = count(summary.totals, "received")
        words.append(f"{amount(total)} of {amount(owed)} deliveries broke a promise")
    if damaged:
        words.append(f"the archive itself has {amount(damaged)} {_faults(damaged)}")
    return f"{_HEADLINES[1]}: {', and '.join(words)}" if words else _HEADLINES[1]


def _faults(number: int) -> str:
    return "fault" if number == 1 else "faults"


def reasons(summary: Summary) -> Iterator[str]:
    """Why the night is not clean, or has no answer, a sentence each; nothing when it is clean."""
    if not summary.routes:
        errors = [row for row in summary.findings if word(row, "weight") == "error"]
        yield from (f"{word(row, 'place')}: {word(row, 'text')}" for row in errors[-_WHY:])
        return
    for name, kind in KINDS.items():
        total = broken(name, summary.totals, strict=summary.strict)
        if total:
            yield f"{amount(total)} {name}: they {kind.meaning}."
    damaged = faults(summary)
    if damaged and summary.status:
        yield f"{amount(damaged)} {_faults(damaged)} in the archive: the numbers may be wrong."


def actions(summary: Summary) -> Iterator[Html]:
    """What to do next, the gravest first; nothing when there is nothing to do."""
    if faults(summary):
        files = element("a", "Files", href="#files")
        lead = "" if summary.routes else "Look whether the date and the folder are the right ones. "
        yield join([lead, "Bring back or mend what is listed under ", files, "; reconcile again."])
    for name, kind in KINDS.items():
        if not kind.advice or not count(summary.totals, name):
            continue
        if (
            harm_of(name, summary.totals, strict=summary.strict) is Harm.STRICT
            and name == "duplicated"
        ):
            continue  # all marked: what the hop promises
        lead = f"{name.capitalize()} ({amount(count(summary.totals, name))}): {kind.advice} "
        yield (
            join([lead, code(_replay(summary, name), 2 * SHOWN)]) if kind.replayed else join([lead])
        )
    if summary.renamed:
        yield join(["Names: the mapping makes others now than were sent; see Renamed."])


def _replay(summary: Summary, name: str) -> str:
    """The command that shows what sending them again would do, for the route with the most."""
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
