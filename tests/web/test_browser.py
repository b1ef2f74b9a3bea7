"""The status page in Chromium, at the sizes of a desktop and of a phone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

from gateway.config.load import load
from gateway.config.process import WebSettings
from gateway.routing.route import Route
from tests.chromium import DESKTOP, NEEDS_CHROMIUM, PHONE, SIZES, chromium, sized
from tests.web.page import Page
from tests.web.status_samples import (
    HOLDER,
    STANDBY,
    START,
    SUSPECTED,
    FakeStatus,
    busy,
    endpoint,
    refusal,
    route,
    served,
    status,
)
from tests.web.test_lookup import CONFIG, FIELDS

__all__ = ["chromium"]  # the fixture
pytestmark = NEEDS_CHROMIUM
HOSTILE = "<img src=x onerror=alert(1)>"
LOST = endpoint(
    "office", "sink", connection="lost", reason=f"office: gone {HOSTILE}",
    spooled_messages=123_456, spooled_bytes=200_000_000, spool_share=0.83, spooled_age=122.0,
)  # fmt: skip
PROBLEM = route(
    received=1_000, rules={"too-long": 12}, heartbeat_age=44.0, loops=3,
    lost_fields={"reply_to": 5},
    refusals=(refusal(HOSTILE), refusal("line/2/y", START + 5)),
)  # fmt: skip
TOKEN = "0123456789abcdef0123456789abcdef"  # noqa: S105  # only of the tests


@pytest.fixture(params=SIZES)
def browser(request: pytest.FixtureRequest, chromium: webdriver.Chrome) -> webdriver.Chrome:
    sized(chromium, request.param)
    chromium.get("about:blank")  # the previous page polls a stopped server
    chromium.get_log("browser")  # type: ignore[no-untyped-call]  # selenium's
    return chromium


@pytest.fixture(scope="module")
def routes(tmp_path_factory: pytest.TempPathFactory) -> Sequence[Route]:
    file: Path = tmp_path_factory.mktemp("page") / "gateway.yaml"
    file.write_text(CONFIG)
    return load(file).routes


def test_the_page_shows_the_status_and_the_problems(browser: webdriver.Chrome) -> None:
    routes = (PROBLEM, route("calm"))
    shown = FakeStatus(status(endpoints=(endpoint(), LOST), routes=routes))
    with served(shown) as server:
        page = Page(browser, server.url)
        page.until(lambda: "not ready" in page.find("#state").text)

        assert page.find("h1").text == "plant-1"
        assert len(page.texts("#reasons li")) == 3
        text = "\n".join(page.texts("tbody tr"))
        parts = (
            "lost", "too-long 12", "44 s", "loops dropped 3", "lost fields: reply to 5", "line/2/y",
            "123.5K on disk", "83 % of the spool", "2 min", "at least once",
        )  # fmt: skip
        assert [part for part in parts if part not in text] == []
        assert HOSTILE in text  # as text
        assert page.run("return document.images.length") == 0
        assert page.texts("#figures dt")[4] == "dead letters kept"

        shown.status = replace(shown.status, dead_letters_sent_again=1_234)
        page.until(lambda: "dead letters kept, 1,234 sent again" in page.texts("#figures dt"))
        assert page.errors() == []


def test_the_page_says_a_suspected_loop_while_it_lasts(browser: webdriver.Chrome) -> None:
    circling = replace(SUSPECTED, name=HOSTILE)
    shown = FakeStatus(status(suspected_loops=(circling,)))
    with served(shown) as server:
        page = Page(browser, server.url)
        page.until(lambda: "✓ ready" in page.find("#state").text)

        (text,) = page.texts("#warnings li")
        assert text == (
            "a loop is suspected since 2026-09-21 14:13:20 UTC: route telemetry from plant,"
            f' "{HOSTILE}" is its heartbeat, and came back'
        )
        assert page.run("return document.images.length") == 0
        assert page.find("#reasons").is_displayed() is False

        shown.status = status()
        page.until(lambda: not page.find("#warnings").is_displayed())
        assert page.errors() == []


def test_the_page_updates_without_a_reload(browser: webdriver.Chrome) -> None:
    shown = FakeStatus(status())
    with served(shown) as server:
        page = Page(browser, server.url)
        page.until(lambda: "✓ ready" in page.find("#state").text)
        page.run("window.kept = document.querySelector('#routes-table tbody tr')")

        shown.status = status(endpoints=(LOST,), routes=(route(received=50_000),))

        page.until(lambda: "not ready" in page.find("#state").text)
        page.until(lambda: "50,000" in page.find("#routes-table tbody tr").text)
        page.until(lambda: "/s" in page.find("#routes-table tbody tr").text)
        assert page.run("return window.kept.isConnected")  # the row is the same, its cells changed
        assert page.errors() == []


def test_the_page_shows_that_the_gateway_does_not_answer(chromium: webdriver.Chrome) -> None:
    with served(FakeStatus(status())) as server:
        page = Page(chromium, server.url)
        page.until(lambda: "✓ ready" in page.find("#state").text)

    page.until(lambda: "no answer from the gateway" in page.find("#state").text)


def test_the_filter_hides_routes_that_do_not_match(browser: webdriver.Chrome) -> None:
    many = (PROBLEM, *(route(f"r-{n}", source=f"plant line/{n}/#") for n in range(20)))
    with served(FakeStatus(status(routes=many))) as server:
        page = Page(browser, server.url)
        page.until(lambda: page.find("#routes-shown").text == "21 of 21")

        page.find("#filter").send_keys("r- line/1")
        assert page.find("#routes-shown").text == "11 of 21"  # 1 and 10 to 19
        page.find("#filter").clear()
        page.find("#filter").send_keys(Keys.SPACE)
        page.find("#problems").click()
        assert page.texts("#routes-table tbody th") == ["telemetry"]
        assert page.errors() == []


def test_a_name_is_looked_up_while_it_is_typed(
    browser: webdriver.Chrome, routes: Sequence[Route]
) -> None:
    with served(FakeStatus(status(), routes)) as server:
        page = Page(browser, server.url)
        Select(page.find("#system")).select_by_value("mqtt")
        page.find("#text").send_keys("line/7/v1.2")
        page.until(lambda: "LINE.7.v1%2E2" in page.find("#answer").text)
        assert "246 characters" in page.find("#answer").text
        where = "line/{line}/{rest...}, where amount > 100, not evaluated"
        assert where in page.find("#answer").text

        Select(page.find("#target")).select_by_value("ems")
        page.find("#wanted").send_keys("STATE.7.v1%2E2")
        page.until(lambda: "Proposed route" in page.find("#answer").text)
        assert 'pattern: "line/{rest...}"' in page.find("#answer pre").text
        command = "gateway explain 'line/7/v1.2' --config CONFIG --from plant --to office --wanted"
        assert f"{command} 'STATE.7.v1%2E2'" in page.find("#answer").text
        page.find("#wanted").send_keys(HOSTILE)
        page.until(lambda: HOSTILE in page.find("#answer").text)

        page.find("#text").clear()
        page.find("#text").send_keys("line/test/1")
        page.until(lambda: "excluded by 'line/test/#'" in page.find("#answer").text)

        page.find("input[value=pattern]").click()
        page.until(lambda: "pattern in mqtt" in page.find("#answer").text)

        page.find("#text").clear()
        page.find("#text").send_keys("a/#/b", Keys.ENTER)
        page.until(lambda: page.texts("#answer .bad") != [])
        page.find("#text").clear()
        page.find("#text").send_keys(HOSTILE)
        page.until(lambda: "No route selects it" in page.find("#answer").text)
        assert page.run("return document.images.length") == 0
        assert page.errors() == []


def test_a_name_is_made_of_the_fields_that_are_typed(
    browser: webdriver.Chrome, tmp_path: Path
) -> None:
    file = tmp_path / "gateway.yaml"
    file.write_text(FIELDS)
    configuration = load(file)
    settings = {name: each.settings for name, each in configuration.endpoints.items()}
    with served(FakeStatus(status(), configuration.routes, settings)) as server:
        page = Page(browser, server.url)
        Select(page.find("#system")).select_by_value("mqtt")
        page.find("#text").send_keys("o/m1")
        page.until(lambda: "there is only a name" in page.find("#answer").text)
        page.find("#payload").send_keys('{"site": "hall"}')
        page.until(lambda: "TO.hall.none" in page.find("#answer").text)
        page.find("#properties").send_keys("x=1, line=7")
        page.until(lambda: "TO.hall.7" in page.find("#answer").text)
        assert page.errors() == []


def test_the_lookup_begins_with_the_system_of_the_route_that_takes_the_name(
    browser: webdriver.Chrome, routes: Sequence[Route]
) -> None:
    ends = (endpoint(system="nats"), endpoint("office", "sink", system="ems"))
    shown = FakeStatus(status(endpoints=ends), routes)
    with served(shown) as server:
        page = Page(browser, server.url)
        target = page.find("#target")
        page.until(lambda: target.get_property("value") == "ems")
        assert page.find("#system").get_property("value") == ""

        page.find("#text").send_keys("LINE.7")
        page.until(lambda: "Valid name in ems" in page.find("#answer").text)
        page.find("#text").clear()
        page.find("#text").send_keys("line.7.a")
        page.until(lambda: "Did you mean 'line/7/a'" in page.find("#answer").text)
        Select(target).select_by_value("yami4")
        shown.status = status(endpoints=ends, routes=(route("later"),))
        page.until(lambda: page.texts("#routes-table tbody th") == ["later"])
        assert target.get_property("value") == "yami4"
        assert page.errors() == []


def test_a_token_is_required_and_stored_nowhere(browser: webdriver.Chrome) -> None:
    with served(FakeStatus(status()), WebSettings(port=0, token=TOKEN)) as server:
        page = Page(browser, server.url)
        page.until(lambda: page.find("#token").is_displayed())
        assert page.errors() == []

        page.find("#token").send_keys("wrong", Keys.ENTER)
        page.until(lambda: "token is wrong" in page.find("#login-error").text)
        page.find("#token").send_keys(TOKEN, Keys.ENTER)
        page.until(lambda: "✓ ready" in page.find("#state").text)

        assert page.find("#token").get_attribute("value") == ""
        kept = page.run("return [localStorage.length, sessionStorage.length, document.cookie]")
        assert kept == [0, 0, ""]


def test_the_keyboard_reaches_every_control_in_order(chromium: webdriver.Chrome) -> None:
    sized(chromium, DESKTOP)
    with served(FakeStatus(status())) as server:
        page = Page(chromium, server.url)
        page.until(lambda: "✓ ready" in page.find("#state").text)
        reached: list[str] = []
        while "BODY" not in reached:
            webdriver.ActionChains(chromium).send_keys(Keys.TAB).perform()
            focused = page.run("const e = document.activeElement; return [e.id || e.tagName, "
                               "getComputedStyle(e).outlineStyle]")  # fmt: skip
            reached.append(focused[0])
            assert focused[0] == "BODY" or focused[1] != "none"  # the focus is visible

    wanted = ["g", "g", "g", "filter", "problems", "BUTTON", "system", "text", "BUTTON"]
    assert [each for each in reached if each in wanted] == wanted  # an edge and two brokers


@pytest.mark.parametrize("browser", [DESKTOP, PHONE], indirect=True, ids=["desktop", "phone"])
def test_nothing_is_wider_than_the_screen(browser: webdriver.Chrome) -> None:
    long = "x" * 64
    ends = (endpoint(long), replace(LOST, name=long, reason=long * 4))
    with served(FakeStatus(status(gateway=long, endpoints=ends, routes=(route(long),)))) as server:
        page = Page(browser, server.url)
        page.until(lambda: page.find("h1").text == long)

        assert page.run("return document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.nightly
def test_a_thousand_routes_are_drawn_within_200_ms(chromium: webdriver.Chrome) -> None:
    sized(chromium, DESKTOP)
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


@pytest.mark.nightly
def test_the_page_says_which_instance_of_a_pair_it_is(browser: webdriver.Chrome) -> None:
    shown = FakeStatus(status(pair=HOLDER))
    with served(shown) as server:
        page = Page(browser, server.url)
        page.until(lambda: "✓ ready" in page.find("#state").text)
        assert page.find("#pair").text.endswith("lease 7; b waits")

        shown.status = status(pair=STANDBY, endpoints=())

        page.until(lambda: "✓ standby" in page.find("#state").text)
        assert page.find("#pair").text.endswith("a is active; lease: the disk is away")

        shown.status = status()

        page.until(lambda: not page.find("#pair").is_displayed())
        assert page.errors() == []
