"""The HTML report of one date: a summary in, a self-contained page out.

`python -m gateway.reconcile.report.html summary.json` writes the page again; it needs no Spark.
A long table shows its worst rows and the number of all, so the size of the page is bounded.
"""

from __future__ import annotations

import hashlib
import json
import sys
from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from gateway.errors import GatewayError, ReconcileError
from gateway.reconcile.report import actions, details, lanes, routes, verdict
from gateway.reconcile.report.charts import HOURS, LARGE
from gateway.reconcile.report.figures import day_of, figures
from gateway.reconcile.report.formatting import amount, counted_as, duration
from gateway.reconcile.report.gaps import clock, outages, rule_of
from gateway.reconcile.report.markup import attribute, marked
from gateway.reconcile.report.summary import Summary, count, number, parse_summary, word
from gateway.reconcile.report.text import REPORT_PAGE
from gateway.reconcile.report.wording import CLASSES, exceptions_in, severity_of, shown_classes

_PACKAGE: Final = "gateway.reconcile.report"


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the page; its slug names its anchor and its template."""

    title: str

    @property
    def slug(self) -> str:
        return self.title.lower().replace(" ", "-")


def page(content: object) -> str:
    """Return the report of a summary that `json.loads` returned.

    Raises:
        ReconcileError: it is not a summary.
    """
    summary = parse_summary(content)
    folder = files(_PACKAGE) / "page"
    style, script = ((folder / name).read_text("utf-8") for name in ("report.css", "report.js"))
    state, sign = verdict.state(summary)
    day = day_of(summary.whole_day)
    found = outages(summary.gaps)
    return environment().get_template("report.html.j2").render(
        summary=summary,
        sections=[Section(title) for title in _titles(summary)],
        style=style,
        script=script,
        style_digest=_digest(style),
        script_digest=_digest(script),
        state=state,
        sign=sign,
        headline=verdict.headline(summary),
        gateways=details.gateways(summary),
        reasons=list(verdict.reasons(summary)),
        key_figures=list(verdict.key_figures(summary)),
        actions=list(actions.actions(summary)),
        day_figures=figures(day, "all routes", LARGE, lanes.bands(found, summary.date)),
        hour_table=details.hour_table(day),
        listed_routes=routes.listed_routes(summary),
        tap_reasons=routes.tap_reasons(summary),
        charted_routes=routes.charted_routes(summary),
        sample_tables=details.sample_tables(summary),
        dead_letters=details.frequent_dead_letters(summary),
        finding_groups=details.finding_groups(summary),
        gap_lanes=lanes.lanes(summary),
        outages=found,
        step_durations=details.step_durations(summary),
    )  # fmt: skip


def _titles(summary: Summary) -> Iterator[str]:
    """Yield the titles of the sections that have content."""
    content = {
        "The day": summary.whole_day,
        "Source gaps": summary.gaps,
        "Routes": summary.routes,
        "Routes by hour": summary.routes and summary.hours,
        "Worst names": summary.names,
        "Samples": summary.samples,
        "Dead letters": summary.dead_letters,
        "Files": summary.findings,
        "Renamed": summary.renamed,
        "Method": summary.routes or summary.seconds or summary.gateways,
        "Classes": CLASSES,
    }
    return (title for title, rows in content.items() if rows)


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
    made.filters |= {
        "amount": amount,
        "attribute": attribute,
        "clock": clock,
        "duration": duration,
        "marked": marked,
        "time_of_day": details.time_of_day,
    }
    made.globals |= {
        "CLASSES": CLASSES,
        "DAY_SECONDS": lanes.DAY_SECONDS,
        "HOURS": HOURS,
        "MAX_GATEWAYS": details.MAX_GATEWAYS,
        "MAX_ROWS": details.MAX_ROWS,
        "MAX_UNFOLDED": routes.MAX_UNFOLDED,
        "count": count,
        "counted_as": counted_as,
        "exceptions_in": exceptions_in,
        "shown_classes": shown_classes,
        "gap_rule": rule_of,
        "number": number,
        "severity_of": severity_of,
        "word": word,
    }
    return made


def _finalize(value: object) -> object:
    """Escape, cut and mark every text that a template prints, except markup."""
    return marked(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _digest(text: str) -> str:
    return "sha256-" + b64encode(hashlib.sha256(text.encode()).digest()).decode()


def write_page(source: Path) -> Path:
    """Write the report beside `source`, a summary.json, and return its path.

    Raises:
        ReconcileError: the file is not a summary.
        OSError: it cannot be read, or the report cannot be written.
    """
    try:
        content = json.loads(source.read_text(encoding="utf-8"))
    except ValueError as fault:
        raise ReconcileError(f"{source}: is not JSON: {fault}") from fault
    written = source.with_name(REPORT_PAGE)
    written.write_text(page(content), encoding="utf-8")
    return written


def main(arguments: Sequence[str]) -> int:
    """Write the page beside each summary; exit status 0, or 2 when a file is not a summary."""
    if not arguments:
        sys.stderr.write("usage: python -m gateway.reconcile.report.html SUMMARY.JSON ...\n")
        return 2
    try:
        for name in arguments:
            sys.stdout.write(f"{write_page(Path(name))}\n")
    except (GatewayError, OSError) as fault:
        sys.stderr.write(f"gateway reconcile: {fault}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
