"""The HTML report: its sentences, its escaping, and the bounds of its size."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.archive.findings import error, warning
from gateway.errors import ReconcileError
from gateway.model.copy_class import CLASSES
from gateway.night.reconcile.formatting import amount, duration
from gateway.night.reconcile.report.html import environment, main, page
from gateway.night.reconcile.report.report import Report
from gateway.night.reconcile.report.summary import from_json, to_json
from tests.contrast import contrast
from tests.night.reconcile.summaries import (
    DAY,
    HOSTILE,
    clean,
    content,
    counted,
    empty,
    eventful,
    gappy,
    hidden,
    huge,
    lossy,
)

VOID = {"wbr", "meta", "link", "input"}
REPLAY = (
    "gateway replay '/var/archive of the night' --config CONFIG --route plant/line1/temp"
    " --from 2026-03-14 --to 2026-03-15 --class missing --dry-run"
)
CLEAN = "✓ Clean: all {} deliveries arrived"


class Outline(HTMLParser):
    """The tags in order, the unclosed tags, and the text.

    Mutable: filled by the parser.
    """

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] not in (["style"], ["script"]):
            self.text += data


def made(report: Report) -> str:
    return page(report)


def one(**counts: int) -> Report:
    row = {"route": "orders", "target": "erp", **counted(1_000_000, **counts)}
    return Report("/var/archive", DAY.date(), routes=[row])


def damaged(name: str, value: object) -> str:
    return json.dumps({**content(clean()), name: value})


@pytest.mark.parametrize(
    ("report", "sentences"),
    [
        pytest.param(clean(), [CLEAN.format("21,600"), "100 %", "Nothing."], id="clean"),
        pytest.param(
            lossy(),
            [
                "✗ Not clean: the archive may lack rows, so how many of how many deliveries",
                "arrived is not known; among the rest, 2 missing, 3 lost in target, 4 altered,",
                "8 unexpected, 39 of other classes",
                "2 missing: these deliveries were received, and the archive has no outcome",
                "3 duplicated: these deliveries arrived more than once",
                REPLAY,
                "1 error unreadable-file: A file is cut, is no Parquet, or has a damaged page.",
                "10 dead-lettered: these deliveries could not be delivered",
                "known deliveries45,000",
            ],
            id="lossy",
        ),
        pytest.param(
            empty(),
            ["No answer", "date=2026-03-14: there is no readable segment of this date"],
            id="empty",
        ),
        pytest.param(
            gappy(),
            [
                "Clean for what was received, with 1 source gap",
                "1 source gap: the broker had lost the gateway's session when it connected again.",
                "gateway reconcile /var/archive --date 2026-03-14 --accept-gaps",
                "the broker kept no session; 77 s",
                "15 min",
            ],
            id="gaps",
        ),
        pytest.param(
            hidden(),
            [
                "Clean for what was received, with 2 messages cut on another's word and 1 message",
                "2 cut on another's word: these messages were cut, and neither the archive nor",
                "1 unproven: these messages were received with the id of a delivered message",
                "--accept-cuts",
                "left out",
            ],
            id="cuts",
        ),
        pytest.param(
            replace(gappy(), accept_gaps=True),
            ["Clean for what was received, with 1 source gap (accepted)"],
            id="accepted-gaps",
        ),
        pytest.param(
            eventful(),
            [
                "✗ Not clean: 12,000 rows of the date are absent or not proven, so how many of how",
                "arrived is not known; among the rest, 4 missing, 2 lost in target, 2 in flight",
                "1 error changed-segment: The content of a segment differs from its seal.",
                "rows absent or not proven12,000",
                "known deliveries34,800",
                "none known",
                "gateway archive verify /var/archive --date 2026-03-14",
                "Missing (3): Send them again",
                "Missing on 1 route (1): gateway replay cannot send them: their payloads are not",
                f"gateway archive show /var/archive {9:032x}",
                "the JMS client encodes map messages again (1 route).",
                "The content of a segment differs from its seal.",
                "What to do: Find out who can write to the archive.",
                "1,204",
                "2026-03-13: 5 in flight → 0, clean",
                "47 seals of the gateways' journals were checked with the key",
                "recovered5",
            ],
            id="eventful",
        ),
        pytest.param(
            one(missing=1),
            ["999,999 of 1,000,000 deliveries arrived; 1 missing", "99.99 %"],
            id="rounded-down",
        ),
        pytest.param(
            one(duplicated=2, marked=2),
            [CLEAN.format("1,000,000"), "Nothing.", "2 2 marked"],
            id="marked-duplicates",
        ),
        pytest.param(
            replace(one(duplicated=2, marked=2), strict=True),
            ["Not clean: all 1,000,000 deliveries arrived; 2 duplicated"],
            id="strict",
        ),
        pytest.param(
            replace(one(delivered_late=3), strict=True),
            ["3 delivered late: these deliveries"],
            id="late",
        ),
        pytest.param(
            one(refused=3),
            [
                "! 999,997 of 1,000,000 deliveries arrived; 3 refused",
                "3 refused: these deliveries break a rule",
                "Refused (3): The report lists the rules.",
            ],
            id="refused",
        ),
        pytest.param(
            one(in_flight=7),
            ["! 999,993 of 1,000,000 deliveries arrived; 7 in flight"],
            id="in-flight",
        ),
        pytest.param(
            replace(clean(), findings=[warning("missing-hour", "d", "no segment in hour 12")]),
            [CLEAN.format("21,600"), "Nothing.", "no segment in hour 12"],
            id="warning",
        ),
    ],
)
def test_the_verdict_and_the_next_steps_are_sentences(report: Report, sentences: list[str]) -> None:
    text = Outline(made(report)).text

    assert [each for each in sentences if each not in text] == []


@pytest.mark.parametrize(
    ("row", "coloured"),
    [
        pytest.param({"missing": 2}, {"missing": "number bad"}, id="breach"),
        pytest.param({"duplicated": 2, "marked": 2}, {"duplicated": "number warn"}, id="allowed"),
        pytest.param({"duplicated": 2, "marked": 1}, {"duplicated": "number bad"}, id="not-all"),
        pytest.param({"unexpected": 2}, {"unexpected": "number bad"}, id="strange"),
        pytest.param({"recovered": 2}, {"recovered": "number note"}, id="recovered"),
        pytest.param({"refused": 2}, {"refused": "number note"}, id="accounted"),
        pytest.param({}, {}, id="nothing"),
    ],
)
def test_a_count_has_the_colour_of_its_severity(
    row: dict[str, int], coloured: dict[str, str]
) -> None:
    table = made(one(**row)).partition('aria-label="Routes"')[2].partition("</table>")[0]
    cells = re.findall(r'<td class="([^"]+)" data-label="([^"]+)"', table)
    counts = {label: css for css, label in cells if label in CLASSES and label != "delivered"}

    usual = ("missing", "altered", "duplicated", "out of order")
    assert counts == dict.fromkeys(usual, "number none") | coloured


def test_hostile_names_stay_text() -> None:
    outline = Outline(made(lossy(HOSTILE)))

    assert outline.open == []
    assert outline.tags.count("script") == 1
    assert [name for name, _ in outline.attributes if name.startswith("on")] == []
    assert "<script>document.title='taken'</script>\\x1b[2J\\u202e\\x00&\"'\\ud800" in outline.text
    assert outline.text.replace("\n", "").isprintable()
    assert all(value.isprintable() for _, value in outline.attributes if value)


def test_only_the_style_the_script_and_paths_are_printed_without_escaping() -> None:
    folder = Path(str(files("gateway.night.reconcile.report") / "page"))
    printed = {
        found
        for template in folder.rglob("*.j2")
        for found in re.findall(r"{{ *([^}]*)\| *safe", template.read_text("utf-8"))
    }

    assert printed == {"style", "script", "data"}


@given(st.text(max_size=400))
def test_no_text_becomes_markup(value: str) -> None:
    template = environment().from_string(
        '{% from "macros.html.j2" import code %}'
        '<p title="{{ value|attribute }}" class="{{ value }}">'
        "<b>{{ value }}</b>{{ code(value) }}</p>"
    )
    outline = Outline(template.render(value=value))

    assert set(outline.tags) <= {"p", "b", "code", "span"}
    assert outline.text.isprintable()
    assert {name for name, _ in outline.attributes} <= {"title", "class"}
    if value and value.isprintable() and len(value) <= 300:
        assert outline.text == value * 2
        assert (outline.attributes[0][1] or "") == value


def test_a_long_text_is_cut_and_its_length_is_shown() -> None:
    template = environment().from_string('{% from "macros.html.j2" import code %}{{ code(value) }}')

    assert template.render(value="x" * 301) == f"<code>{'x' * 300}… (301 characters)</code>"


@pytest.mark.parametrize(
    ("micros", "shown"),
    [(0, "0 µs"), (999, "999 µs"), (2_047, "2.05 ms"), (1_500_000, "1.5 s"), (119e6, "119 s"),
     (1_073_741_823, "17.9 min"), (7.2e9, "2.0 h"), (8.64e10, "24.0 h")],
)  # fmt: skip
def test_a_duration_has_the_unit_of_its_size(micros: float, shown: str) -> None:
    assert duration(micros) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0, "0"), (0.2506, "0.251"), (12, "12"), (999.5, "1,000"), (999.4, "999"), (1e6, "1,000,000")],
)
def test_amounts_are_short(value: float, shown: str) -> None:
    assert amount(value) == shown


@pytest.mark.nightly
def test_the_page_stays_small_for_a_thousand_routes_and_ten_thousand_exceptions() -> None:
    text = page(huge())

    outline = Outline(text)
    assert len(text.encode()) < 2_000_000
    assert len(text.encode()) < len(to_json(huge())) / 5
    assert "25 of 1,994: these deliveries were received" in outline.text
    assert "The worst 40 of 1,000 routes" in outline.text
    assert "200 of 5,000 are shown" in outline.text
    assert "… (60,007 characters)" in outline.text


def by_hour(text: str) -> list[str]:
    """Return the parts of the section of routes by hour, one for each route."""
    section = text.partition('<section id="routes-by-hour"')[2].partition("</section>")[0]
    return section.split("<article>")[1:]


@pytest.mark.parametrize(
    ("sample", "charted", "opened"),
    [(clean, 1, 1), (lossy, 3, 3), (partial(lossy, routes=9), 9, 1), (huge, 40, 3)],
)
def test_many_routes_by_hour_are_folded(
    sample: Callable[[], Report], charted: int, opened: int
) -> None:
    routes = by_hour(made(sample()))

    assert len(routes) == charted
    assert sum("<details open>" in each for each in routes) == opened
    assert "<details open>" in routes[0]  # the worst


def test_a_source_gap_is_drawn_over_the_routes_that_it_concerns() -> None:
    text = made(eventful())
    orders, events = by_hour(text)
    day = text.partition('<section id="the-day"')[2].partition("</section>")[0]

    assert [day.count(f'class="band {css}"') for css in ("bad", "calm")] == [4, 4]
    assert [orders.count(f'class="band {css}"') for css in ("bad", "calm")] == [4, 4]
    assert [events.count(f'class="band {css}"') for css in ("bad", "calm")] == [0, 4]  # the gateway
    assert "source gap: messages may be lost" in day
    assert 'class="band' not in made(clean())


def test_the_page_loads_nothing_and_runs_only_its_own_script() -> None:
    text = made(lossy())
    policy = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]+)"', text)
    sources = [
        value for name, value in Outline(text).attributes if name in ("src", "href") and value
    ]

    assert policy[0].startswith("default-src 'none'; img-src data:; style-src 'sha256-")
    assert [each for each in sources if not each.startswith(("#", "data:,"))] == []
    assert "style=" not in text.partition("<body>")[2].partition("<script>")[0]


def test_the_same_summary_gives_the_same_page() -> None:
    assert made(lossy()) == made(lossy())


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize(
    ("front", "back", "least"),
    [
        ("text", "back", 4.5), ("text", "panel", 4.5), ("quiet", "back", 4.5),
        ("quiet", "panel", 4.5), ("quiet", "bad-back", 4.5), ("link", "back", 4.5),
        ("good", "good-back", 4.5), ("bad", "bad-back", 4.5), ("warn", "warn-back", 4.5),
        ("note", "note-back", 4.5), ("calm", "panel", 3), ("bad", "panel", 3),
        ("pale", "panel", 3), ("amber", "panel", 3), ("note", "panel", 3), ("good", "panel", 3),
        ("bad", "back", 3), ("calm", "back", 3),
    ],
)  # fmt: skip
def test_colours_have_the_contrast_of_wcag_aa(
    scheme: int, front: str, back: str, least: float
) -> None:
    """WCAG 2.2, 1.4.3 for text and 1.4.11 for pictures."""
    style = (files("gateway.night.reconcile.report") / "page" / "report.css").read_text("utf-8")
    colours = [re.findall(rf"--{name}: (#[0-9a-f]{{6}})", style)[scheme] for name in (front, back)]

    assert contrast(*colours) >= least


def test_the_page_is_written_again_without_spark(tmp_path: Path) -> None:
    source = tmp_path / "summary.json"
    source.write_text(json.dumps(content(lossy(HOSTILE))), encoding="utf-8")
    program = (
        "import sys; from gateway.night.reconcile.report.html import main;"
        "code = main(sys.argv[1:]);"
        "sys.exit(code or any(name.startswith('pyspark') for name in sys.modules))"
    )

    done = subprocess.run([sys.executable, "-c", program, source], check=False, capture_output=True)  # noqa: S603

    assert done.returncode == 0, done.stderr
    written = tmp_path / "report.html"
    assert done.stdout.decode().strip() == str(written)
    assert written.read_text("utf-8") == made(lossy(HOSTILE))


@pytest.mark.parametrize(
    ("text", "error_text"),
    [
        pytest.param("{", "is no JSON", id="no-json"),
        pytest.param("[]", "is no JSON object", id="a-list"),
        pytest.param("{}", "has version None; this program reads version 1", id="nothing-in-it"),
        pytest.param(damaged("version", 7), "has version 7", id="another-version"),
        pytest.param(damaged("archive", 7), "no valid 'archive'", id="archive"),
        pytest.param(damaged("samples", [1]), "no valid 'samples'", id="samples"),
        pytest.param(damaged("findings", [{}]), "lacks or adds 'place' in 'findings'", id="rule"),
        pytest.param(damaged("strict", 1), "no valid 'strict'", id="strict"),
        pytest.param(damaged("hours", 3), "no valid 'hours'", id="hours"),
        pytest.param(damaged("totals", []), "no valid 'totals'", id="totals"),
        pytest.param(damaged("date", "soon"), "no valid 'date'", id="date"),
    ],
)  # fmt: skip
def test_a_file_that_is_no_summary_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, error_text: str
) -> None:
    source = tmp_path / "summary.json"
    source.write_text(text)

    assert main([str(source)]) == 2
    assert error_text in capsys.readouterr().err
    assert not (tmp_path / "report.html").exists()


def test_a_missing_file_and_a_missing_argument_are_errors(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(tmp_path / "absent.json")]) == 2
    assert main([]) == 2
    assert "usage:" in capsys.readouterr().err


@pytest.mark.parametrize(
    "sample",
    [
        clean,
        pytest.param(partial(lossy, HOSTILE), id="hostile"),
        eventful,
        pytest.param(huge, marks=pytest.mark.nightly),
        empty,
    ],
)  # fmt: skip
def test_a_summary_gives_the_page_of_its_report(sample: Callable[[], Report]) -> None:
    report = sample()
    again = from_json(to_json(report))

    assert to_json(again) == to_json(report)
    assert page(again) == page(report)


def test_a_report_without_a_date_has_no_page() -> None:
    with pytest.raises(ReconcileError, match="no date was reconciled"):
        page(Report("/var/archive", None))


@pytest.mark.parametrize(
    ("names", "head"),
    [
        pytest.param(
            ["north-1773446400000000-000012-0000", "north~replay-1773446400000000-000013-0000"],
            "3 gateways</dt><dd><code>east, west, north</code>",
            id="all-its-segments-are-left-out",
        ),
        pytest.param(
            ["east-1773446400000000-000012-0000", "merged-0000", "notes"],
            "2 gateways</dt><dd><code>east, west</code>",
            id="known-or-of-no-gateway",
        ),
    ],
)
def test_the_head_names_the_gateway_of_a_forged_segment(names: list[str], head: str) -> None:
    found = [
        error("changed-segment", f"date=2026-03-14/hour=09/{name}.parquet", "its content differs")
        for name in names
    ]
    report = replace(eventful(), findings=found)

    assert head in page(report)
