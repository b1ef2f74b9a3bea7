"""What stands at the top of the report: of what it is, the verdict in words, and what to do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from gateway.reconcile.report.markup import Html, amount, code, element, join
from gateway.reconcile.report.summary import Summary, count, word
from gateway.reconcile.report.wording import actions, headline, reasons

_STATES: Final = (("good", "✓"), ("bad", "✗"), ("warn", "?"))  # by exit status
_GATEWAYS: Final = 10  # that are named


def sign(summary: Summary) -> str:
    """One character for the verdict."""
    return _state(summary)[1]


def _state(summary: Summary) -> tuple[str, str]:
    return _STATES[summary.status if summary.status in range(len(_STATES)) else -1]


def header(summary: Summary) -> Html:
    gateways = [word(row, "gateway") for row in summary.gateways]
    facts = [("archive", code(summary.archive))]
    if gateways:
        title = "gateway" if len(gateways) == 1 else f"{len(gateways)} gateways"
        facts.append((title, join([code(", ".join(gateways[:_GATEWAYS]))])))
    facts.append(("method", join(["all messages" if summary.mode == "full" else "digests first"])))
    about = [element("div", element("dt", name), element("dd", value)) for name, value in facts]
    heading = element(
        "h1", "Reconciliation of ", element("span", str(summary.date), class_="whole")
    )
    return element("header", heading, element("dl", *about, class_="about"))


def verdict(summary: Summary) -> Html:
    mark = element("span", sign(summary), aria_hidden="true")
    parts = [element("p", mark, " ", headline(summary), class_="headline")]
    parts += _list("ul", list(reasons(summary)))
    css = f"verdict {_state(summary)[0]}"
    banner = element("section", *parts, class_=css, aria_label="Verdict", id="verdict")
    todo = _list("ol", list(actions(summary))) or [element("p", "Nothing.")]
    following = element("div", element("h2", "What to do next"), *todo, id="next", class_="panel")
    return join([banner, _figures(summary), following])


def _list(kind: str, items: Sequence[str]) -> list[Html]:
    return [element(kind, *[element("li", each) for each in items])] if items else []


def _figures(summary: Summary) -> Html:
    """The few numbers that are looked for first."""
    totals, owed = summary.totals, count(summary.totals, "received")
    if not summary.routes:
        return Html()
    arrived = count(totals, "delivered")
    aside = count(totals, "refused") + count(totals, "dead-lettered")
    shown = {
        "deliveries owed": amount(owed),
        "arrived, once, unchanged, in time": join(
            [amount(arrived), element("small", f" {_percent(arrived, owed)}")]
        ),
        "set aside with a reason": amount(aside),
        "proven by digest": _percent(count(summary.proof, "copies"), owed),
        "routes and their targets": amount(len(summary.routes)),
    }
    if not summary.proof:
        del shown["proven by digest"]
    return element(
        "dl",
        *[
            element("div", element("dt", name), element("dd", value))
            for name, value in shown.items()
        ],
        class_="figures",
    )


def _percent(part: int, whole: int) -> str:
    """A share that is rounded down: 100 % are all of them."""
    return f"{part * 10_000 // whole / 100:g} %" if whole else "-"
