"""The night's report as one HTML file that needs nothing else: a summary in, text out.

It computes no class and imports no Spark; `python -m gateway.reconcile.report.html summary.json`
makes it again. Its size is bounded: a long table shows its worst rows and the number of the rest.
"""

from __future__ import annotations

import hashlib
import json
import sys
from base64 import b64encode
from collections.abc import Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Final

from gateway.errors import GatewayError, ReconcileError
from gateway.reconcile.report import details, routes
from gateway.reconcile.report.figures import day_of, large
from gateway.reconcile.report.front import header, sign, verdict
from gateway.reconcile.report.markup import Html, element, join
from gateway.reconcile.report.summary import Summary, parse_summary

NAME: Final = "report.html"


def page(content: object) -> str:
    """The report of a summary, as `json.loads` gives it.

    Raises:
        ReconcileError: it is not a summary.
    """
    summary = parse_summary(content)
    sections = [(title, body) for title, body in _sections(summary) if body]
    links = [element("a", title, href=f"#{_slug(title)}") for title, _ in sections]
    main = element("main", verdict(summary), *[_section(*each) for each in sections])
    nav = element("nav", *links, aria_label="Parts of the report") if links else Html()
    return _document(summary, join([header(summary), nav, main]))


def _sections(summary: Summary) -> Iterator[tuple[str, Html]]:
    yield "The day", large(day_of(summary.whole_day)) if summary.whole_day else Html()
    yield "Routes", routes.route_table(summary)
    yield "Routes by hour", routes.small_multiples(summary)
    yield "Worst names", details.names(summary)
    yield "Samples", details.samples(summary)
    yield "Dead letters", details.dead_letters(summary)
    yield "Files", details.findings(summary)
    yield "Renamed", details.renamed(summary)
    yield "How it was found", details.method(summary)
    yield "Words", details.glossary()


def _slug(title: str) -> str:
    return title.lower().replace(" ", "-")


def _section(title: str, body: Html) -> Html:
    slug = _slug(title)
    heading = element("h2", title, id=f"{slug}-title")
    return element("section", heading, body, id=slug, aria_labelledby=f"{slug}-title")


def _document(summary: Summary, body: Html) -> str:
    folder = files("gateway.reconcile.report") / "page"
    style, script = ((folder / name).read_text("utf-8") for name in ("report.css", "report.js"))
    policy = (
        f"default-src 'none'; img-src data:; style-src '{_digest(style)}';"
        f" script-src '{_digest(script)}'; base-uri 'none'; form-action 'none'"
    )
    head = join(
        [
            Html('<meta charset="utf-8">'),
            Html(f'<meta http-equiv="Content-Security-Policy" content="{policy}">'),
            Html('<meta name="viewport" content="width=device-width, initial-scale=1">'),
            Html('<meta name="color-scheme" content="light dark">'),
            Html('<link rel="icon" href="data:,">'),
            element("title", f"{sign(summary)} {summary.date} reconciliation"),
            Html(f"<style>{style}</style>"),
        ]
    )
    return (
        f'<!doctype html>\n<html lang="en">\n<head>{head}</head>\n<body>{body}'
        f"<script>{script}</script></body>\n</html>\n"
    )


def _digest(text: str) -> str:
    return "sha256-" + b64encode(hashlib.sha256(text.encode()).digest()).decode()


def write_page(source: Path) -> Path:
    """Write the report beside `source`, a summary.json; where it is.

    Raises:
        ReconcileError: the file is not a summary.
        OSError: it cannot be read, or the report cannot be written.
    """
    try:
        content = json.loads(source.read_text(encoding="utf-8"))
    except ValueError as fault:
        raise ReconcileError(f"{source}: is no JSON: {fault}") from fault
    written = source.with_name(NAME)
    written.write_text(page(content), encoding="utf-8")
    return written


def main(arguments: Sequence[str]) -> int:
    """Write the page beside each summary; exit status 0, or 2 when one is not."""
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
