"""The report in Chromium, from a file, at the sizes of a desktop and of a phone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By

from gateway.model.copy_class import HOP_CLASSES
from gateway.night.reconcile.report.html import page
from gateway.night.reconcile.report.report import Report
from tests.chromium import NEEDS_CHROMIUM, PHONE, SIZES, chromium, sized
from tests.night.reconcile.summaries import (
    HOSTILE,
    SAMPLED,
    clean,
    empty,
    eventful,
    gappy,
    huge,
    lossy,
    paired,
)

__all__ = ["chromium"]  # the fixture
pytestmark = NEEDS_CHROMIUM


@pytest.fixture(params=SIZES)
def browser(request: pytest.FixtureRequest, chromium: webdriver.Chrome) -> webdriver.Chrome:
    sized(chromium, request.param)
    return chromium


def opened(browser: webdriver.Chrome, report: Report, folder: Path) -> None:
    file = folder / "report.html"
    file.write_text(page(report), encoding="utf-8")
    errors(browser)  # discards those of the previous page
    browser.get(file.as_uri())


def errors(browser: webdriver.Chrome) -> list[str]:
    return [str(line["message"]) for line in browser.get_log("browser")]  # type: ignore[no-untyped-call]  # selenium's


def seen(browser: webdriver.Chrome, selector: str) -> list[str]:
    """Return the text of each visible element."""
    found = browser.find_elements(By.CSS_SELECTOR, selector)
    return [each.text for each in found if each.is_displayed()]


def run(browser: webdriver.Chrome, script: str) -> Any:  # noqa: ANN401  # JSON
    return browser.execute_script(script)


@pytest.mark.parametrize(
    ("report", "verdict", "sections"),
    [
        pytest.param(clean(), "✓ Clean: all 21,600 deliveries arrived", 5, id="clean"),
        pytest.param(lossy(), "✗ Not clean: the archive may lack rows", 10, id="lossy"),
        pytest.param(lossy(HOSTILE), "✗ Not clean: the archive may lack rows", 10, id="hostile"),
        pytest.param(huge(), "✗ Not clean: the archive may lack rows", 9, id="huge"),
        pytest.param(empty(), "? No answer", 2, id="empty"),
        pytest.param(gappy(), "! Clean for what was received", 6, id="gaps"),
        pytest.param(paired(), "✓ Clean: all 21,600 deliveries arrived", 6, id="pair"),
        pytest.param(eventful(), "✗ Not clean: 12,000 rows of the date", 8, id="eventful"),
    ],
)
def test_the_verdict_is_visible_without_scrolling(
    browser: webdriver.Chrome, tmp_path: Path, report: Report, verdict: str, sections: int
) -> None:
    opened(browser, report, tmp_path)

    (headline,) = browser.find_elements(By.CSS_SELECTOR, ".headline")
    assert headline.text.startswith(verdict)
    bottom = headline.location["y"] + headline.size["height"]
    assert bottom < run(browser, "return innerHeight")
    assert len(browser.find_elements(By.CSS_SELECTOR, "section > h2")) == sections
    assert run(browser, "return document.documentElement.scrollWidth <= innerWidth")
    assert browser.title.endswith("2026-03-14 reconciliation")  # no name has run a script
    assert errors(browser) == []
    links = run(browser, "return [...document.querySelectorAll('a[href]')].filter("
                "(each) => !document.querySelector(each.getAttribute('href'))).length")  # fmt: skip
    assert links == 0


def test_tables_are_complete_and_charts_are_drawn(
    browser: webdriver.Chrome, tmp_path: Path
) -> None:
    opened(browser, lossy(), tmp_path)

    rows = {
        section: len(browser.find_elements(By.CSS_SELECTOR, f"#{section} tbody tr"))
        for section in ("routes", "worst-names", "dead-letters", "files", "renamed", "samples")
    }
    assert rows == {
        "routes": 3, "worst-names": 5, "dead-letters": 2, "files": 2, "renamed": 1,
        "samples": 10 * len(SAMPLED),
    }  # fmt: skip
    charts = browser.find_elements(By.CSS_SELECTOR, "svg[role=img][aria-label]")
    assert len(charts) == 4 + 3 * 4
    assert [each for each in charts[:4] if each.size["height"] < 100] == []
    drawn = run(browser, "return [...document.querySelectorAll('.charts svg')].map((chart) =>"
                "[...chart.querySelectorAll('path:not(.rule)')]"
                ".every((each) => each.getBBox().width))")  # fmt: skip
    assert drawn == [True] * 4
    heads = run(browser, "return [...document.querySelectorAll('table')].every((each) =>"
                "each.tHead.rows[0].cells.length === each.tBodies[0].rows[0].cells.length"
                " && each.tBodies[0].rows[0].cells[0].scope === 'row')")  # fmt: skip
    assert heads
    shown = seen(browser, "#routes tbody tr:first-child .bad")
    assert [text.split()[-3 if "marked" in text else -1] for text in shown] == list("234856")


def test_all_classes_fit_the_width_of_a_desktop(browser: webdriver.Chrome, tmp_path: Path) -> None:
    opened(browser, lossy(), tmp_path)

    script = "const e = document.querySelector('.routes'); return e.scrollWidth <= e.clientWidth"
    assert run(browser, script)


def test_gaps_are_drawn_as_wide_as_they_last(browser: webdriver.Chrome, tmp_path: Path) -> None:
    opened(browser, eventful(), tmp_path)

    script = """
        const width = (each) => each.getBoundingClientRect().width;
        return [...document.querySelectorAll('.timeline svg')].flatMap((timeline) =>
            [...timeline.querySelectorAll('rect')].map((bar) => width(bar) / width(timeline)));
    """
    whole, short, half_an_hour, *_ = run(browser, script)
    assert abs(whole - 1) < 0.01
    assert abs(short - 240 / 86_400) < 0.001
    assert abs(half_an_hour - 1_800 / 86_400) < 0.001
    assert len(seen(browser, "#source-gaps tbody tr")) == 5


def test_the_times_of_instances_are_drawn_as_long_as_they_last(
    browser: webdriver.Chrome, tmp_path: Path
) -> None:
    opened(browser, paired(), tmp_path)

    script = """
        const width = (each) => each.getBoundingClientRect().width;
        return [...document.querySelectorAll('#instances .timeline svg')].map((timeline) =>
            [...timeline.querySelectorAll('rect')].map((bar) => width(bar) / width(timeline)));
    """
    (first, third), (second,) = run(browser, script)
    assert [first, second, third] == pytest.approx([9.25 / 24, 4.784 / 24, 9.965 / 24], abs=0.002)
    assert len(seen(browser, "#instances tbody tr")) == 3


def test_zeros_are_grey_on_a_desktop_and_hidden_on_a_phone(
    browser: webdriver.Chrome, tmp_path: Path
) -> None:
    opened(browser, lossy(), tmp_path)

    phone = run(browser, "return innerWidth") == PHONE[0]
    zeros = seen(browser, "#routes tbody tr:nth-child(2) td.none")
    assert zeros == ([] if phone else ["0"] * 11)


def test_a_click_selects_an_id(browser: webdriver.Chrome, tmp_path: Path) -> None:
    opened(browser, lossy(), tmp_path)

    browser.find_element(By.CSS_SELECTOR, "#samples .id").click()

    assert run(browser, "return getSelection().toString()") == "0" * 32


def test_a_long_list_of_routes_is_filtered(browser: webdriver.Chrome, tmp_path: Path) -> None:
    opened(browser, huge(), tmp_path)
    words, only_exceptions = browser.find_elements(By.CSS_SELECTOR, "#filter input")

    words.send_keys("route-01 ERP")
    assert seen(browser, "#filter output") == ["100 of 1000"]
    only_exceptions.click()
    (shown,) = seen(browser, "#filter output")
    rows = browser.find_elements(By.CSS_SELECTOR, "#routes tbody tr:not([hidden])")
    assert shown == f"{len(rows)} of 1000"
    assert len(rows) == sum(1 for n in range(100, 200) if n % 3 and n % 7)
    assert errors(browser) == []


def test_the_report_is_complete_without_its_script(
    chromium: webdriver.Chrome, tmp_path: Path
) -> None:
    chromium.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        opened(chromium, huge(), tmp_path)
        assert seen(chromium, "#filter") == []
        assert len(chromium.find_elements(By.CSS_SELECTOR, "#routes tbody tr")) == 1_000
    finally:
        chromium.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


@pytest.mark.parametrize(("scheme", "back"), [("light", "246, 247, 249"), ("dark", "18, 21, 27")])
def test_the_colours_follow_the_preference_of_the_system(
    chromium: webdriver.Chrome, tmp_path: Path, scheme: str, back: str
) -> None:
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    opened(chromium, clean(), tmp_path)

    colour = run(chromium, "return getComputedStyle(document.body).backgroundColor")
    assert colour == f"rgb({back})"


def test_every_section_is_printed(chromium: webdriver.Chrome, tmp_path: Path) -> None:
    opened(chromium, lossy(), tmp_path)
    run(chromium, "dispatchEvent(new Event('beforeprint'))")
    chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        assert seen(chromium, "nav") == []
        assert run(chromium, "return document.querySelectorAll('details:not([open])').length") == 0
    finally:
        chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


BROKEN_WORDS = """
return [...document.querySelectorAll('td[data-label=route] code')].filter((each) =>
  each.textContent.length < 12 && each.getClientRects().length > 1).map((each) => each.textContent)
"""


@pytest.mark.parametrize("width", [900, 1_280, 1_920])
def test_a_short_name_of_a_route_is_not_broken(
    chromium: webdriver.Chrome, tmp_path: Path, width: int
) -> None:
    sized(chromium, (width, 900))
    opened(chromium, lossy(), tmp_path)
    chromium.execute_script(
        "document.querySelectorAll('details').forEach((each) => each.open = true)"
    )

    assert run(chromium, "return document.querySelectorAll('td[data-label=route] code').length") > 0
    assert run(chromium, BROKEN_WORDS) == []
    assert run(chromium, "return document.documentElement.scrollWidth <= innerWidth")


def test_the_ends_of_a_hop_break_between_gateway_and_route(
    chromium: webdriver.Chrome, tmp_path: Path
) -> None:
    """At 1,280 pixels the counts leave no room for both."""
    sized(chromium, (1280, 900))
    ends = {"gateway": "plant", "route": "shipping-in", "broker": "work"}
    hop = {**ends, "receiver": "office", "receiver_route": "shipping-out", "expected": 9}
    opened(chromium, replace(clean(), hops=[{**dict.fromkeys(HOP_CLASSES, 0), **hop}]), tmp_path)

    count = "return arguments[0].getClientRects().length"
    codes = chromium.find_elements(By.CSS_SELECTOR, "#hops td[data-label=receiver] code")
    assert [chromium.execute_script(count, each) for each in codes] == [1, 1]
    table = chromium.find_element(By.CSS_SELECTOR, "#hops .scroll")
    wide = "return arguments[0].scrollWidth - arguments[0].clientWidth"
    assert chromium.execute_script(wide, table) == 0
    assert [each.text for each in codes] == ["office/", "shipping-out"]
