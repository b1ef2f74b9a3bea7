"""The flow map in Chromium: shapes, words, keyboard and details, on three sizes of screen."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import cycle, islice, permutations
from typing import Final

import pytest
from selenium import webdriver
from selenium.webdriver.common.keys import Keys

from gateway.runtime.status import EndpointStatus, RouteStatus, Status
from tests.chromium import DESKTOP, NEEDS_CHROMIUM, PHONE, WIDE, chromium, media, sized
from tests.web.page import Page
from tests.web.status_samples import FakeStatus, changed, endpoint, refusal, route, served, status

__all__ = ["chromium"]  # the fixture
pytestmark = NEEDS_CHROMIUM
SYSTEMS: Final = {"plant": "mqtt", "office": "ems", "market": "smf", "tools": "yami4"}
EDGES: Final = "#map .edge"
# The boxes of the brokers; the parts of their texts that stand out; whether the page scrolls.
GEOMETRY: Final = """
const box = (e) => e.getBoundingClientRect();
const boxes = [...document.querySelectorAll('#map .node rect')].map(box);
const apart = (a, b) => a.right <= b.left || b.right <= a.left
  || a.bottom <= b.top || b.bottom <= a.top;
const outside = [...document.querySelectorAll('#map .node')].filter((node) =>
  [...node.querySelectorAll('text')].some((e) =>
    box(e).right > box(node.querySelector('rect')).right));
return [
  boxes.every((a, i) => boxes.every((b, j) => i === j || apart(a, b))),
  outside.length,
  document.documentElement.scrollWidth <= innerWidth,
];
"""


def ends(name: str, **sink: object) -> tuple[EndpointStatus, EndpointStatus]:
    """Return both sides of a connection to one broker; `sink` are facts of its target side."""
    both = {"system": SYSTEMS[name], "broker_id": name}
    return endpoint(name, **both), endpoint(name, "sink", **both, **sink)


def flow(name: str, source: str, target: str, **facts: object) -> RouteStatus:
    return route(name, source=f"{source} line/{{rest...}}", targets=(target,), **facts)


def four_states() -> Status:
    market = ends("market", connection="lost", reason="market: gone", retry_in=7.0,
                  spooled_messages=12)  # fmt: skip
    tools = ends("tools", connection="refused", reason="tools: not authorized")
    return status(
        endpoints=(*ends("plant"), *ends("office"), *market, *tools),
        routes=(
            flow("telemetry", "plant", "office", has_reverse=True, loops=30),
            flow("orders", "office", "plant", has_reverse=True),
            flow("prices", "plant", "market", lag=12.0),
            flow("debug", "plant", "tools"),
            flow("alarms", "office", "plant", heartbeat_age=99.0),
        ),
    )


def thousand() -> Status:
    pairs = islice(cycle(permutations(SYSTEMS, 2)), 1_000)
    routes = tuple(
        flow(f"route-{n:04}", *pair, lag=2.0 * (pair[1] == "tools")) for n, pair in enumerate(pairs)
    )
    away = ends("tools", connection="lost", spooled_messages=3)
    return status(
        endpoints=(*ends("plant"), *ends("office"), *ends("market"), *away), routes=routes
    )


def one() -> Status:
    return status(
        endpoints=(ends("plant")[0], ends("office")[1]),
        routes=(flow("telemetry", "plant", "office"),),
    )


@pytest.fixture
def browser(chromium: webdriver.Chrome) -> Iterator[webdriver.Chrome]:
    sized(chromium, DESKTOP)
    chromium.get("about:blank")  # the previous page polls a stopped server
    chromium.get_log("browser")  # type: ignore[no-untyped-call]  # selenium's
    yield chromium
    media(chromium)


def words(page: Page, selector: str) -> list[str]:
    """Return the accessible names of the elements."""
    script = "return [...document.querySelectorAll(arguments[0])].map((e) => e.ariaLabel)"
    found: list[str] = page.browser.execute_script(script, selector)
    return found


@pytest.mark.parametrize(
    "size",
    [
        pytest.param(PHONE, id="390"),
        pytest.param(DESKTOP, id="1280"),
        pytest.param(WIDE, id="2560", marks=pytest.mark.nightly),
    ],
)
@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.nightly)])
@pytest.mark.parametrize("made", [one, four_states, thousand], ids=["1", "5", "1000"])
def test_every_broker_and_flow_has_its_place(
    browser: webdriver.Chrome, size: tuple[int, int], scheme: str, made: Callable[[], Status]
) -> None:
    sized(browser, size)
    media(browser, prefers_color_scheme=scheme)
    shown = made()
    with served(FakeStatus(shown)) as server:
        page = Page(browser, server.url)
        page.until(lambda: words(page, EDGES))

        assert page.run(GEOMETRY) == [True, 0, True]
        edges = {1: 1, 5: 5, 1_000: 12}[len(shown.routes)]  # 12: a bundle for each pair
        assert len(words(page, EDGES)) == edges
        assert page.errors() == []


def test_a_state_is_a_word_and_a_dash_and_not_only_a_colour(browser: webdriver.Chrome) -> None:
    with served(FakeStatus(four_states())) as server:
        page = Page(browser, server.url)
        page.until(lambda: words(page, EDGES))
        found = {name.partition(":")[0]: name for name in words(page, EDGES)}
        script = ("return [...document.querySelectorAll('#map .edge')].map((e) =>"
                  " getComputedStyle(e.querySelector('.flow')).strokeDasharray)")  # fmt: skip
        dashes = dict(zip(found, page.run(script), strict=True))

        states = {name: text.rpartition(", ")[2] for name, text in found.items()}
        assert states == {
            "telemetry": "connected", "orders": "connected", "prices": "spooling",
            "debug": "refusing", "alarms": "stuck",
        }  # fmt: skip
        assert len({dashes[each] for each in ("orders", "prices", "debug", "alarms")}) == 4
        assert "telemetry: plant to office" in found["telemetry"]
        assert words(page, "#map .node.off")[0].startswith("Broker market: lost")
        text = page.find("#map").text
        assert all(state in text for state in ("spooling", "refusing", "stuck"))
        assert page.texts("#figures div")[5].endswith("\n0")  # loops: echoes of `both` are none


@pytest.mark.nightly
def test_the_width_of_an_edge_is_its_rate(browser: webdriver.Chrome) -> None:
    shown = FakeStatus(four_states())
    with served(shown) as server:
        page = Page(browser, server.url)
        page.until(lambda: words(page, EDGES))
        routes = [changed(each, received=100_000 * n) for n, each in enumerate(shown.status.routes)]
        shown.status = replace(shown.status, routes=tuple(routes))
        script = ("return [...document.querySelectorAll('#map .flow')].map((e) =>"
                  " parseFloat(getComputedStyle(e).strokeWidth))")  # fmt: skip

        page.until(lambda: max(page.run(script)) > 8)
        assert min(page.run(script)) < 3
        assert page.run("return document.querySelectorAll('#map .moving:not(.still)').length") == 1
        media(browser, prefers_reduced_motion="reduce")
        moves = "return getComputedStyle(document.querySelector('#map .moving')).animationName"
        assert page.run(moves) == "none"


def test_the_keyboard_opens_and_closes_the_details(browser: webdriver.Chrome) -> None:
    with served(FakeStatus(four_states())) as server:
        page = Page(browser, server.url)
        page.until(lambda: words(page, EDGES))
        focused = "return document.activeElement.ariaLabel || document.activeElement.id"
        for _ in range(40):
            webdriver.ActionChains(browser).send_keys(Keys.TAB).perform()
            if page.run(focused).startswith("prices"):
                break
        webdriver.ActionChains(browser).send_keys(Keys.ENTER).perform()

        page.until(lambda: "in 7 s" in page.find("#details").text)
        assert page.run(focused) == "details-title"
        assert "the oldest has waited 12 s for market" in page.find("#details").text
        webdriver.ActionChains(browser).send_keys(Keys.ESCAPE).perform()
        assert page.run(focused).startswith("prices")
        assert not page.find("#details").is_displayed()
        assert page.errors() == []


@pytest.mark.nightly
def test_a_bundle_lists_its_routes_with_the_worst_first(browser: webdriver.Chrome) -> None:
    shown = thousand()
    latest = refusal(at=4_000_000_000)  # never long ago
    worst = next(each for each in shown.routes if each.source.startswith("plant")
                 and each.targets == ("office",) and each.name > "route-0500")  # fmt: skip
    bad = changed(worst, refusals=(latest,), refused={"": latest}, rules={"too-long": 1})
    routes = tuple(bad if each is worst else each for each in shown.routes)
    with served(FakeStatus(replace(shown, routes=routes))) as server:
        page = Page(browser, server.url)
        page.until(lambda: words(page, EDGES))
        bundle = next(each for each in words(page, EDGES) if "plant to office" in each)
        assert "84 routes" in bundle
        assert "1 refusing" in bundle
        click = (
            "[...document.querySelectorAll('#map .edge')].find((e) => e.ariaLabel ==="
            " arguments[0]).dispatchEvent(new MouseEvent('click', {bubbles: true}))"
        )
        browser.execute_script(click, bundle)

        page.until(lambda: page.texts("#details-routes tbody th"))
        listed = page.texts("#details-routes tbody th")
        assert (listed[0], len(listed)) == (worst.name, 84)
        page.find("#details-routes tbody button").click()
        page.until(lambda: page.find("#details-title").text == f"Route {worst.name}")
        page.until(lambda: "too-long" in page.find("#details-refusals").text)
        assert page.errors() == []


@pytest.mark.nightly
def test_sparklines_show_ten_minutes_and_go_on(browser: webdriver.Chrome) -> None:
    shown = FakeStatus(one())

    def add(received: int) -> None:
        (only,) = shown.status.routes
        shown.status = replace(shown.status, routes=(changed(only, received=received),))
        shown.seconds += 10
        shown.history.sample()

    with served(shown) as server:
        add(1_010)
        page = Page(browser, server.url)
        page.until(lambda: "≤ 100/s" in page.find("#routes-table").text)
        assert page.find("#endpoints .trend svg").accessible_name.startswith("no messages")

        add(9_010)
        page.run("trends.at = 0")  # as if ten seconds had passed
        page.until(lambda: "≤ 800/s" in page.find("#routes-table").text)
        assert page.errors() == []


def test_times_are_utc(browser: webdriver.Chrome) -> None:
    with served(FakeStatus(one())) as server:
        browser.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": "Asia/Tokyo"})
        try:
            page = Page(browser, server.url)
            page.until(lambda: page.find("#reloaded").text)
            assert page.find("#reloaded").text == "2026-09-21 14:13:20 UTC"
            assert "configuration loaded" in page.find("header").text
        finally:
            browser.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": ""})


LAYOUT = """
const edges = [["plant", "erp"], ["plant", "lake"], ["plant", "office"], ["erp", "hall"]]
  .map(([from, to]) => ({ key: `${from} ${to}`, from, to }));
const { nodes } = layOut(["plant", "erp", "lake", "office", "hall"], edges, 330);
return Object.fromEntries([...nodes].map(([key, box]) => [key, box.y]));
"""


def test_no_edge_passes_behind_the_rest_of_its_layer(browser: webdriver.Chrome) -> None:
    """On a phone a layer has several lines: a broker that sends on is in the last of them."""
    with served(FakeStatus(status())) as server:
        page = Page(browser, server.url)
        y = page.run(LAYOUT)

    assert y["plant"] < y["lake"] == y["office"] < y["erp"] < y["hall"]
