"""A walk through the golden report in Chromium: it is opened once, and each test is a step.

A step begins at the size of a desktop, and ends without an error and with no script of a name run.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By

from gateway.night.reconcile.report.html import page
from gateway.night.reconcile.report.report import Report
from tests.chromium import (
    DESKTOP,
    NEEDS_CHROMIUM,
    PHONE,
    WIDTHS,
    errors,
    faults_of_sight,
    fresh,
    media,
    sized,
)
from tests.night.reconcile.summaries import SAMPLED, empty, golden

pytestmark = NEEDS_CHROMIUM
BEGIN: Final = """
scrollTo(0, 0);
const controls = [...document.querySelectorAll("#filter input")];
controls[0].value = "";
controls[1].checked = false;
controls[0].dispatchEvent(new Event("input", { bubbles: true }));
document.querySelectorAll("details").forEach((each) => { each.open = true; });
"""
BROKEN_WORDS: Final = """
return [...document.querySelectorAll('td[data-label=route] code')].filter((each) =>
  each.textContent.length < 12 && each.getClientRects().length > 1).map((each) => each.textContent)
"""


@pytest.fixture(scope="module")
def opened(
    chromium_process: webdriver.Chrome, tmp_path_factory: pytest.TempPathFactory
) -> webdriver.Chrome:
    fresh(chromium_process)
    open_report(chromium_process, golden(), tmp_path_factory.mktemp("report"))
    return chromium_process


@pytest.fixture
def report(opened: webdriver.Chrome) -> Iterator[webdriver.Chrome]:
    sized(opened, DESKTOP)
    media(opened)
    opened.execute_script(BEGIN)
    yield opened
    assert opened.title == "✗ 2026-03-14 reconciliation"  # no name has run a script
    assert errors(opened) == []


def open_report(browser: webdriver.Chrome, shown: Report, folder: Path) -> None:
    file = folder / "report.html"
    file.write_text(page(shown), encoding="utf-8")
    browser.get(file.as_uri())


def seen(browser: webdriver.Chrome, selector: str) -> list[str]:
    """Return the text of each visible element."""
    found = browser.find_elements(By.CSS_SELECTOR, selector)
    return [each.text for each in found if each.is_displayed()]


def run(browser: webdriver.Chrome, script: str) -> Any:  # noqa: ANN401  # JSON
    return browser.execute_script(script)


def test_every_width_and_both_schemes_can_be_read(report: webdriver.Chrome) -> None:
    found, backs = [], []
    for size in WIDTHS:
        sized(report, size)
        for scheme in ("light", "dark"):
            media(report, prefers_color_scheme=scheme)
            found += [f"{size} {scheme}: {each}" for each in faults_of_sight(report)]
            backs.append(run(report, "return getComputedStyle(document.body).backgroundColor"))
    assert found == []
    assert backs == ["rgb(246, 247, 249)", "rgb(18, 21, 27)"] * 3


def test_the_verdict_is_visible_without_scrolling(report: webdriver.Chrome) -> None:
    for size in WIDTHS:
        sized(report, size)
        (headline,) = report.find_elements(By.CSS_SELECTOR, ".headline")
        assert headline.text.startswith("✗ Not clean: the archive may lack rows")
        bottom = headline.location["y"] + headline.size["height"]
        assert bottom < run(report, "return innerHeight")


def test_every_section_has_a_link_and_every_link_a_section(report: webdriver.Chrome) -> None:
    links = run(report, "return [...document.querySelectorAll('nav a')].map((each) =>"
                "document.querySelector(each.getAttribute('href'))?.tagName)")  # fmt: skip
    assert links == ["SECTION"] * 14
    ends = run(report, "return [...document.querySelectorAll('a[href]')].filter("
               "(each) => !document.querySelector(each.getAttribute('href'))).length")  # fmt: skip
    assert ends == 0


def test_tables_are_complete_and_charts_are_drawn(report: webdriver.Chrome) -> None:
    rows = {
        section: len(report.find_elements(By.CSS_SELECTOR, f"#{section} tbody tr"))
        for section in ("routes", "worst-names", "dead-letters", "files", "renamed", "samples")
    }
    assert rows == {
        "routes": 15, "worst-names": 5, "dead-letters": 3, "files": 2, "renamed": 1,
        "samples": 10 * len(SAMPLED) + 1,
    }  # fmt: skip
    charts = report.find_elements(By.CSS_SELECTOR, "#the-day svg[role=img][aria-label]")
    assert len(charts) == 4
    assert [each for each in charts if each.size["height"] < 100] == []
    drawn = run(report, "return [...document.querySelectorAll('.charts svg')].map((chart) =>"
                "[...chart.querySelectorAll('path:not(.rule)')]"
                ".every((each) => each.getBBox().width))")  # fmt: skip
    assert drawn == [True] * 4
    heads = run(report, "return [...document.querySelectorAll('table')].every((each) =>"
                "each.tHead.rows[0].cells.length === each.tBodies[0].rows[0].cells.length"
                " && each.tBodies[0].rows[0].cells[0].scope === 'row')")  # fmt: skip
    assert heads
    shown = seen(report, "#routes tbody tr:first-child .bad")
    assert [text.split()[-3 if "marked" in text else -1] for text in shown] == list("234856")


def test_all_classes_fit_the_width_of_a_desktop(report: webdriver.Chrome) -> None:
    script = "const e = document.querySelector('.routes'); return e.scrollWidth <= e.clientWidth"
    assert run(report, script)


def test_bars_are_drawn_as_wide_as_they_last(report: webdriver.Chrome) -> None:
    script = """
        const width = (each) => each.getBoundingClientRect().width;
        return (section) => [...document.querySelectorAll(`#${section} .timeline svg`)].map(
            (line) => [...line.querySelectorAll('rect')].map((bar) => width(bar) / width(line)));
    """
    gaps, turns = (
        run(report, f"{script.replace('return (section) =>', 'const of = (section) =>')}"
            f"return of('{section}');")
        for section in ("source-gaps", "instances")
    )  # fmt: skip

    whole, short, half_an_hour = [bar for line in gaps for bar in line][:3]
    assert [whole, short, half_an_hour] == pytest.approx(
        [1, 240 / 86_400, 1_800 / 86_400], abs=0.01
    )
    assert len(seen(report, "#source-gaps tbody tr")) == 5
    (first, third), (second,) = turns
    assert [first, second, third] == pytest.approx([9.25 / 24, 4.784 / 24, 9.965 / 24], abs=0.002)
    assert len(seen(report, "#instances tbody tr")) == 3


def test_zeros_are_grey_on_a_desktop_and_hidden_on_a_phone(report: webdriver.Chrome) -> None:
    zeros = "#routes tbody tr:nth-child(3) td.none"
    assert seen(report, zeros) == ["0"] * 11

    sized(report, PHONE)
    assert seen(report, zeros) == []


def test_a_command_on_a_phone_breaks_only_between_its_words(report: webdriver.Chrome) -> None:
    sized(report, PHONE)
    words = run(report, "return [...document.querySelectorAll('#next li > code span')]"
                ".map((each) => [each.textContent, each.getClientRects().length])")  # fmt: skip

    assert {"--config", "--date"} <= {word for word, _ in words}
    assert [word for word, lines in words if lines > 1] == []
    copied = run(report, "return document.querySelector('#next li > code').textContent")
    assert copied.startswith("gateway ")
    assert "  " not in copied


def test_a_click_selects_an_id(report: webdriver.Chrome) -> None:
    report.find_element(By.CSS_SELECTOR, "#samples .id").click()

    assert run(report, "return getSelection().toString()") == "0" * 32


def test_a_long_list_of_routes_is_filtered(report: webdriver.Chrome) -> None:
    words, only_exceptions = report.find_elements(By.CSS_SELECTOR, "#filter input")

    words.send_keys("route-1 AUDIT")
    assert seen(report, "#filter output") == ["5 of 15"]  # 10 to 14
    words.clear()
    only_exceptions.click()
    assert seen(report, "#filter output") == ["2 of 15"]
    assert len(report.find_elements(By.CSS_SELECTOR, "#routes tbody tr:not([hidden])")) == 2


def test_every_section_is_printed(report: webdriver.Chrome) -> None:
    run(report, "document.querySelectorAll('details').forEach((each) => { each.open = false; })")
    run(report, "dispatchEvent(new Event('beforeprint'))")
    media(report, "print")

    assert seen(report, "nav") == []
    assert run(report, "return document.querySelectorAll('details:not([open])').length") == 0


def test_a_short_name_of_a_route_is_not_broken(report: webdriver.Chrome) -> None:
    for width in (900, 1_280, 1_920):
        sized(report, (width, 900))
        assert run(report, "return document.querySelectorAll('td[data-label=route] code').length")
        assert run(report, BROKEN_WORDS) == []


def test_the_ends_of_a_hop_break_between_gateway_and_route(report: webdriver.Chrome) -> None:
    """At 1,280 pixels the counts leave no room for both."""
    count = "return arguments[0].getClientRects().length"
    row = "#hops tr:first-child td[data-label=receiver]"
    codes = report.find_elements(By.CSS_SELECTOR, f"{row} code")[:2]
    assert [report.execute_script(count, each) for each in codes] == [1, 1]
    assert codes[0].location["y"] < codes[1].location["y"]
    table = report.find_element(By.CSS_SELECTOR, "#hops .scroll")
    wide = "return arguments[0].scrollWidth - arguments[0].clientWidth"
    assert report.execute_script(wide, table) == 0
    assert [each.text for each in codes] == ["office/", "shipping-out"]

    sized(report, PHONE)  # side by side, without a gap
    first, second = (each.rect for each in codes)
    assert first["x"] + first["width"] == pytest.approx(second["x"], abs=1)


def test_the_report_is_complete_without_its_script(
    chromium: webdriver.Chrome, tmp_path: Path
) -> None:
    chromium.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        open_report(chromium, golden(), tmp_path)
        assert seen(chromium, "#filter") == []
        assert len(chromium.find_elements(By.CSS_SELECTOR, "#routes tbody tr")) == 15
    finally:
        chromium.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def test_a_night_without_data_has_a_report(chromium: webdriver.Chrome, tmp_path: Path) -> None:
    open_report(chromium, empty(), tmp_path)

    assert seen(chromium, ".headline")[0].startswith("? No answer")
    assert faults_of_sight(chromium) == []
    assert errors(chromium) == []
