"""The HTML report of one date: a summary in, a self-contained page out.

`python -m gateway.night.reconcile.report.html summary.json` writes the page again, without Spark.
A long table shows its worst rows and the number of all, so the size of the page is bounded.
"""

from __future__ import annotations

import hashlib
import sys
from base64 import b64encode
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from gateway.errors import GatewayError, ReconcileError
from gateway.model import copy_class, cut_class
from gateway.model.dead_letter_rule import advice_of
from gateway.night.reconcile import formatting
from gateway.night.reconcile.report import (
    actions,
    advice,
    charts,
    headline,
    outage_bars,
    reported_gaps,
    rows,
    timelines,
)
from gateway.night.reconcile.report.report import REPORT_PAGE, Report
from gateway.night.reconcile.report.summary import from_json
from gateway.terminal.text import MAX_TEXT, escaped, rest, shortened

_PACKAGE: Final = "gateway.night.reconcile.report"
# Their public names are known in the templates.
_MODULES: Final = (
    copy_class,
    cut_class,
    actions,
    advice,
    charts,
    formatting,
    reported_gaps,
    outage_bars,
    rows,
    timelines,
    headline,
)
_MAX_ATTRIBUTE: Final = 2_000  # characters of an attribute


def page(report: Report) -> str:
    """Return the page of a report.

    Raises:
        ReconcileError: the report has no date.
    """
    if report.day is None:
        raise ReconcileError("report: no date was reconciled, so there is no page")
    folder = files(_PACKAGE) / "page"
    style, script = ((folder / name).read_text("utf-8") for name in ("report.css", "report.js"))
    state, sign = headline.state(report)
    return (
        environment()
        .get_template("report.html.j2")
        .render(
            report=report,
            sections=list(_titles(report)),
            style=style,
            script=script,
            state=state,
            sign=sign,
            day=charts.day_of(report.whole_day),
            found_outages=reported_gaps.outages(report.gaps),
        )
    )


def _titles(report: Report) -> Iterator[str]:
    """Yield the titles of the sections that have content."""
    content = {
        "The day": report.whole_day,
        "Source gaps": report.gaps,
        "Instances": report.holders,
        "Routes": report.routes,
        "Hops": report.hops or report.hops_unchecked,
        "Cuts": report.cuts,
        "Routes by hour": report.routes and report.hours,
        "Worst names": report.names,
        "Samples": report.samples,
        "Dead letters": report.dead_letters,
        "Files": report.findings,
        "Renamed": report.renamed,
        "Method": report.routes or report.timings or report.gateways,
        "Classes": copy_class.CLASSES,
    }
    return (title for title, part in content.items() if part)


@cache
def environment() -> Environment:
    """Return the environment of the templates: every text is escaped, cut and made visible."""
    made = Environment(
        loader=PackageLoader(_PACKAGE, "page"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finalize,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    shown = (formatting.amount, formatting.duration, formatting.time_of_day, timelines.clock)
    made.filters |= {each.__name__: each for each in (advice_of, attribute, digest, marked, *shown)}
    for module in _MODULES:
        made.globals |= {name: each for name, each in vars(module).items() if name[0] != "_"}
    return made


def _finalize(value: object) -> object:
    """Escape, cut and mark every text that a template prints, except markup."""
    return marked(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def marked(value: str, limit: int = MAX_TEXT) -> Markup:
    """Return `shortened(value)` as HTML, each escape in an element that tells it from a backslash.

    The element has no quotation mark, so that it cannot end an attribute.
    """
    cut = value[:limit]
    if cut.isprintable():
        return escape(shortened(value, limit))
    shown = Markup().join(
        each if each.isprintable() else Markup("<span class=ctl>{}</span>").format(escaped(each))
        for each in cut
    )
    return shown if len(value) <= limit else shown + rest(value)


def attribute(value: str) -> Markup:
    """Return `shortened(value)` escaped for an attribute, where no element can stand."""
    return escape(shortened(value, _MAX_ATTRIBUTE))


def digest(text: str) -> str:
    """Return the digest of a style or a script, as a policy of its page names it."""
    return "sha256-" + b64encode(hashlib.sha256(text.encode()).digest()).decode()


def main(arguments: Sequence[str]) -> int:
    """Write the page beside each summary; exit status 0, or 2 when a file is not a report."""
    if not arguments:
        sys.stderr.write("usage: python -m gateway.night.reconcile.report.html SUMMARY.JSON ...\n")
        return 2
    try:
        for source in map(Path, arguments):
            written = source.with_name(REPORT_PAGE)
            written.write_text(page(from_json(source.read_bytes())), encoding="utf-8")
            sys.stdout.write(f"{written}\n")
    except (GatewayError, OSError) as fault:
        sys.stderr.write(f"gateway reconcile: {fault}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
