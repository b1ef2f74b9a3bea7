"""The page in Chromium where it needs a server of its own; test_golden_page.py has the rest."""

from __future__ import annotations

import pytest
from selenium import webdriver
from selenium.webdriver.common.keys import Keys

from gateway.config.process import WebSettings
from tests.chromium import NEEDS_CHROMIUM, errors
from tests.web.page import Page
from tests.web.status_samples import FakeStatus, busy, served, status

pytestmark = NEEDS_CHROMIUM
TOKEN = "0123456789abcdef0123456789abcdef"  # noqa: S105  # only of the tests


def test_the_page_shows_that_the_gateway_does_not_answer(chromium: webdriver.Chrome) -> None:
    with served(FakeStatus(status())) as server:
        page = Page(chromium, server.url)
        page.until(lambda: "✓ ready" in page.find("#state").text)

    page.run("poll()")
    page.until(lambda: "no answer from the gateway" in page.find("#state").text)


def test_a_token_is_required_and_stored_nowhere(chromium: webdriver.Chrome) -> None:
    with served(FakeStatus(status()), WebSettings(port=0, token=TOKEN)) as server:
        page = Page(chromium, server.url)
        page.until(lambda: page.find("#token").is_displayed())
        assert errors(chromium) == []

        page.find("#token").send_keys("wrong", Keys.ENTER)
        page.until(lambda: "token is wrong" in page.find("#login-error").text)
        page.find("#token").send_keys(TOKEN, Keys.ENTER)
        page.until(lambda: "✓ ready" in page.find("#state").text)

        assert page.find("#token").get_attribute("value") == ""
        kept = page.run("return [localStorage.length, sessionStorage.length, document.cookie]")
        assert kept == [0, 0, ""]


@pytest.mark.nightly
def test_a_thousand_routes_are_drawn_within_200_ms(chromium: webdriver.Chrome) -> None:
    shown = FakeStatus(busy(0))
    with served(shown) as server:
        page = Page(chromium, server.url)
        page.until(lambda: page.find("#routes-shown").text == "1000 of 1000")
        page.run("window.changed = 0;"
                 "new MutationObserver((all) => { window.changed += all.length; })"
                 ".observe(document.querySelector('#routes-table tbody'),"
                 " {subtree: true, childList: true, characterData: true});")  # fmt: skip
        script = (
            "const done = arguments[0]; session.token = ''; clearTimeout(session.timer);"
            "fetch('api/status').then((a) => a.json()).then((found) => {"
            " window.changed = 0; const start = performance.now(); show(found);"
            " document.body.getBoundingClientRect(); const took = performance.now() - start;"
            " setTimeout(() => done([took, window.changed]), 0); });"
        )
        turns = []
        for turn in range(1, 6):
            shown.status = busy(turn)
            turns.append(chromium.execute_async_script(script))

    assert min(took for took, _ in turns) < 200
    later = [changed for _, changed in turns[1:]]  # the first gives every route its rate
    assert max(later) < 1_000  # of 11,000 cells
