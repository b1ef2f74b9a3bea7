"""The parts of the report a person digs in: files, names, samples, dead letters, the method."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from gateway.reconcile.report.markup import (
    Cell,
    Column,
    Html,
    amount,
    code,
    duration,
    element,
    join,
    table,
)
from gateway.reconcile.report.routes import classes_told, gateway_table
from gateway.reconcile.report.summary import Row, Rows, Summary, count, number, word
from gateway.reconcile.report.wording import KINDS, Harm

LISTED: Final = 200  # rows of a table
SAMPLED: Final = 25  # of each class


def findings(summary: Summary) -> Html:
    """What is wrong with files, errors first."""
    ordered = sorted(summary.findings, key=lambda row: word(row, "weight") != "error")
    heads = [Column("weight"), Column("rule"), Column("file or folder"), Column("what is wrong")]
    rows = [
        [
            Cell(_mark(word(row, "weight"))),
            Cell(code(word(row, "rule"))),
            Cell(code(word(row, "place")), "long"),
            Cell(word(row, "text"), "long"),
        ]
        for row in ordered[:LISTED]
    ]
    return _listed("Files", heads, rows, summary.findings, "findings of summary.json")


def _mark(weight: str) -> Html:
    return element("span", weight, class_=f"mark {'bad' if weight == 'error' else 'warn'}")


def _listed(
    title: str,
    heads: Sequence[Column],
    rows: Sequence[Sequence[Cell]],
    all_of_them: Rows,
    where: str,
) -> Html:
    """A table with a note when it is cut; nothing without a row."""
    if not rows:
        return Html()
    parts = [table(title, heads, rows)]
    if len(rows) < len(all_of_them):
        note = f"{len(rows):,} of {len(all_of_them):,} are shown; the {where} has all."
        parts.append(element("p", note, class_="quiet"))
    return join(parts)


def names(summary: Summary) -> Html:
    """The names with the most exceptions, by class; classes that none of them has are left out."""
    told = classes_told(summary.names)
    heads = [Column("name at the source"), Column("route"), Column("all", number=True)]
    heads += [Column(each, number=True) for each in told]
    rows = [
        [
            Cell(code(word(row, "name"))),
            Cell(code(word(row, "route"))),
            Cell(amount(count(row, "copies"))),
            *[_number(row, name) for name in told],
        ]
        for row in summary.names[:LISTED]
    ]
    return _listed("Worst names", heads, rows, summary.names, "table names")


def _number(row: Row, name: str) -> Cell:
    value = count(row, name)
    if not value:
        return Cell("0", "none")
    return Cell(element("b", amount(value)), KINDS[name].harm.value)


def samples(summary: Summary) -> Html:
    """Some exceptions of every class with what is needed to look them up."""
    by_class: dict[str, list[Row]] = defaultdict(list)
    for row in summary.samples:
        by_class[word(row, "class")].append(row)
    known = [name for name in KINDS if name in by_class]
    parts = [_sampled(name, by_class[name], summary) for name in known]
    if not parts:
        return Html()
    note = "A click selects an id. The table exceptions has every one."
    return join([element("p", note, class_="quiet"), *parts])


def _sampled(name: str, found: Rows, summary: Summary) -> Html:
    shown = found[:SAMPLED]
    total = count(summary.totals, name)
    of = f"{len(shown)} of {amount(total)}" if total > len(shown) else f"{len(shown)}"
    heads = [Column(each) for each in ("id", "name", "route", "gateway", "received (UTC)")]
    heads += [Column("took", number=True), Column("deliveries", number=True), Column("more")]
    made = table(f"Samples: {name}", heads, [_sample(row) for row in shown])
    title = element("summary", element("b", name), f" {of}: they {KINDS[name].meaning}")
    calm = KINDS[name].harm is Harm.ACCOUNTED
    return element("details", title, made, **({} if calm else {"open": "open"}))


def _sample(row: Row) -> list[Cell]:
    way = join([code(word(row, "route")), " → ", code(word(row, "target"))])
    latency = number(row, "latency")
    seen = count(row, "sightings")
    ends = amount(count(row, "deliveries")) + (f", {amount(seen)} seen" if seen else "")
    return [
        Cell(element("code", word(row, "id"), class_="id")),
        Cell(_names_of(row)),
        Cell(way),
        Cell(code(word(row, "gateway"))),
        Cell(_moment(word(row, "received_time")), "whole"),
        Cell("-", "none") if latency is None else Cell(duration(latency)),
        Cell(ends),
        Cell(*_more(row)),
    ]


def _names_of(row: Row) -> Html:
    """The name at the source, and below it the one that was sent, where it differs."""
    name, sent = word(row, "name"), word(row, "sent_name")
    if not sent or sent == name:
        return code(name)
    return join([code(name), element("small", " sent as ", code(sent))])


def _more(row: Row) -> tuple[str, str]:
    rule, reason = word(row, "rule"), word(row, "reason")
    told = ": ".join(each for each in (rule, reason) if each)
    return (told, "long") if told else ("-", "none")


def _moment(text: str) -> str:
    """The time of day of a time in UTC, to the millisecond."""
    try:
        return datetime.fromisoformat(text).strftime("%H:%M:%S.%f")[:-3]
    except ValueError:
        return text or "-"


def dead_letters(summary: Summary) -> Html:
    """What was set aside, by the rule that did it, the most first."""
    ordered = sorted(summary.dead_letters, key=lambda row: -count(row, "copies"))
    heads = [Column("rule"), Column("route"), Column("class"), Column("copies", number=True)]
    heads += [Column("one of them"), Column("its id"), Column("reason")]
    rows = [
        [
            Cell(code(word(row, "rule"))),
            Cell(join([code(word(row, "route")), " → ", code(word(row, "target"))])),
            Cell(word(row, "class")),
            Cell(element("b", amount(count(row, "copies")))),
            Cell(code(word(row, "name"))),
            Cell(element("code", word(row, "id"), class_="id")),
            Cell(word(row, "reason") or "-", "long"),
        ]
        for row in ordered[:LISTED]
    ]
    return _listed("Dead letters", heads, rows, summary.dead_letters, "table dead_letters")


def renamed(summary: Summary) -> Html:
    """Names that the mapping makes anew in another way than they were sent."""
    columns = list(summary.renamed[0]) if summary.renamed else []
    rows = [[Cell(code(word(row, name))) for name in columns] for row in summary.renamed[:LISTED]]
    heads = [Column(name.replace("_", " ")) for name in columns]
    return _listed("Renamed", heads, rows, summary.renamed, "table renamed")


def method(summary: Summary) -> Html:
    """By gateway, how much was proven by digest, and how long each step took."""
    said = "Every message was compared with its ends, one by one."
    if summary.mode != "full":
        proven, minutes = count(summary.proof, "proven"), count(summary.proof, "minutes")
        said = (
            f"Of {amount(minutes)} minutes of routes, the digests prove {amount(proven)} equal on"
            f" both sides, with {amount(count(summary.proof, 'copies'))} messages in them."
            " The others were compared message by message."
        )
    steps = [f"{name} {number(summary.seconds, name) or 0:.1f} s" for name in summary.seconds]
    timings = element("p", f"Time taken: {', '.join(steps)}.") if steps else Html()
    return join([element("p", said) if summary.routes else "", timings, gateway_table(summary)])


def glossary() -> Html:
    """What every class means."""
    kinds = [
        element("div", element("dt", name), element("dd", f"They {kind.meaning}."))
        for name, kind in KINDS.items()
    ]
    return element("dl", *kinds, class_="words")
