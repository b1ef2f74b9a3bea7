"""A walk through the golden page in Chromium: it is opened once, and each test is a step.

A step begins with the golden status at the size of a desktop, and ends without an error of a
script and without an element made of a name.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Final

import pytest
from selenium import webdriver
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

from gateway.runtime.record.counters import RouteTotals
from gateway.runtime.status import EndpointStatus, PairStatus, RouteStatus, Status
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
from tests.web.golden import HOSTILE, LONG, calm, golden, passed, shown_golden, thousand
from tests.web.page import Page
from tests.web.status_samples import STANDBY, FakeStatus, changed, endpoint, served

pytestmark = NEEDS_CHROMIUM
EDGES: Final = "#map .edge"
BEGIN: Final = """
const done = arguments[0];
if (details.chosen) closeDetails();
for (const each of document.querySelectorAll("input[id]")) each.value = "";
byId("problems").checked = false;
document.querySelector("input[value=name]").checked = true;
byId("system").value = "";
byId("answer").replaceChildren();
filter();
scrollTo(0, 0);
poll().then(() => done());
"""
# The boxes of the brokers lie apart, and have the texts in them.
GEOMETRY: Final = """
const box = (e) => e.getBoundingClientRect();
const boxes = [...document.querySelectorAll('#map .node rect')].map(box);
const apart = (a, b) => a.right <= b.left || b.right <= a.left
  || a.bottom <= b.top || b.bottom <= a.top;
const outside = [...document.querySelectorAll('#map .node')].filter((node) =>
  [...node.querySelectorAll('text')].some((e) =>
    box(e).right > box(node.querySelector('rect')).right));
const { scrollWidth, clientWidth } = document.documentElement;
return [
  boxes.every((a, i) => boxes.every((b, j) => i === j || apart(a, b))),
  outside.length,
  scrollWidth - clientWidth,
];
"""
# Changes each value of the status in turn. Returns those whose change shows nowhere; `*` is any
# entry of a list.
UNSEEN: Final = """
const base = JSON.parse(JSON.stringify(previous.status));
for (const route of base.routes) { delete route.rate; delete route.latency; } // the page's own
const page = () => [...document.querySelectorAll("header, main, title")]
  .map((each) => each.outerHTML).join();
const other = (value) => {
  if (typeof value === "number") return 2 * value + 1000;
  if (typeof value === "boolean") return !value;
  if (value === null) return 7;
  return { connected: "refusing", refusing: "connected" }[value] || `${value}~`;
};
const leaves = (value, path) => (value !== null && typeof value === "object"
  ? Object.entries(value).flatMap(([key, each]) => leaves(each, [...path, key])) : [path]);
const display = (change) => {
  const status = JSON.parse(JSON.stringify(base));
  change(status);
  const before = base.routes.map((each) => [each.name, { ...each, delivered: each.delivered - 1 }]);
  Object.assign(previous, { time: base.time - 1, routes: new Map(before) });
  show(status);
  return page();
};
const [seen, all] = [new Set(), new Set()];
for (const path of leaves(base, [])) {
  const name = path.map((key) => (/^\\d+$/.test(key) ? "*" : key)).join(".");
  all.add(name);
  if (seen.has(name)) continue;
  const before = display(() => {}); // a row that came back is the last of its table
  const after = display((status) => {
    const last = path.length - 1;
    const place = path.slice(0, last).reduce((value, key) => value[key], status);
    place[path[last]] = other(place[path[last]]);
  });
  if (after !== before) seen.add(name);
}
display(() => {});
return [...all].filter((name) => !seen.has(name)).sort();
"""
ELSEWHERE: Final = {  # values of /api/status that the page does not show as they are
    "archive.failure": "a reason has it",
    "dead_letters.bytes": "/metrics",
    "dead_letters.dropped": "/metrics",
    "heartbeat_seconds": "max_heartbeat_age is a multiple of it",
    "pair.active": "a standby shows it",
    "routes.*.received_bytes": "/metrics",
    "routes.*.spooled": "/metrics",
    "routes.*.stuck.*": "the details of a route have it, from /api/route",
    "routes.*.targets.*": "target_names has them",
    "spool_failure": "a reason has it",
    "suspected_loops.*.endpoint": "a warning has it",
    "suspected_loops.*.name": "a warning has it",
    "suspected_loops.*.reason": "a warning has it",
    "suspected_loops.*.route": "a warning has it",
    "suspected_loops.*.since": "a warning has it",
    "thread_failure": "a reason has it",
}
LAYOUT: Final = """
const edges = [["plant", "erp"], ["plant", "lake"], ["plant", "office"], ["erp", "hall"]]
  .map(([from, to]) => ({ key: `${from} ${to}`, from, to }));
const { nodes } = layOut(["plant", "erp", "lake", "office", "hall"], edges, 330);
return Object.fromEntries([...nodes].map(([key, box]) => [key, box.y]));
"""
OPEN_BROKER: Final = """
const { broker } = previous.status.endpoints.find((each) => each.name === arguments[0]);
openDetails({ key: `node ${broker}` });
"""
OVERFLOW: Final = "const e = document.documentElement; return e.scrollWidth - e.clientWidth"
# Tab should reach these, in the order of the document: of radio buttons the chosen one.
NUMBER_CONTROLS: Final = """
window.controls = [...document.querySelectorAll("a, button, input, select, [tabindex]")]
  .filter((each) => each.checkVisibility() && each.tabIndex >= 0)
  .filter((each) => each.type !== "radio" || each.checked);
return window.controls.length;
"""
FOCUSED: Final = """
const each = document.activeElement;
return [window.controls.indexOf(each), getComputedStyle(each).outlineStyle];
"""


@dataclass(frozen=True, slots=True)
class Walk:
    """The open page, and the status that it shows."""

    page: Page
    shown: FakeStatus

    def show(self, status: Status) -> None:
        """Let the page poll a status now."""
        self.shown.status = status
        self.page.browser.execute_async_script("poll().then(arguments[0])")

    def words(self, selector: str) -> list[str]:
        """Return the accessible names of the elements."""
        script = "return [...document.querySelectorAll(arguments[0])].map((e) => e.ariaLabel)"
        found: list[str] = self.page.browser.execute_script(script, selector)
        return found

    def type(self, field: str, text: str) -> None:
        """Replace the text of a field of the lookup."""
        self.page.find(field).clear()
        self.page.find(field).send_keys(text)

    def answers(self, *parts: str) -> None:
        """Look up what is typed, and wait for an answer with all these parts."""
        self.page.find("#text").send_keys(Keys.ENTER)
        self.page.until(lambda: all(each in self.page.find("#answer").text for each in parts))

    def press(self, *keys: str) -> None:
        webdriver.ActionChains(self.page.browser).send_keys(*keys).perform()


@pytest.fixture(scope="module")
def opened(
    chromium_process: webdriver.Chrome, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Walk]:
    fresh(chromium_process)
    zone = "Emulation.setTimezoneOverride"
    chromium_process.execute_cdp_cmd(zone, {"timezoneId": "Asia/Tokyo"})
    shown = shown_golden(tmp_path_factory.mktemp("golden"))
    with served(shown) as server:
        yield Walk(Page(chromium_process, server.url), shown)
    chromium_process.execute_cdp_cmd(zone, {"timezoneId": ""})


@pytest.fixture
def walk(opened: Walk) -> Iterator[Walk]:
    browser = opened.page.browser
    sized(browser, DESKTOP)
    media(browser)
    opened.shown.status = golden()
    browser.execute_async_script(BEGIN)
    yield opened
    gone = "/api/"  # the details of a route of a step, asked for once more after its end
    assert [each for each in errors(browser) if gone not in each] == []
    script = "return document.querySelectorAll('img, b, script:not(:last-of-type)').length"
    assert opened.page.run(script) == 0


@pytest.mark.parametrize("kind", [Status, EndpointStatus, RouteStatus, RouteTotals, PairStatus])
def test_the_golden_status_has_a_value_in_every_field(kind: type) -> None:
    whole, plain = golden(), calm()
    of_kind: dict[type, tuple[list[object], object]] = {
        Status: ([whole], replace(plain, started=0, reloaded=0, gateway="", version="",
                                  heartbeat_seconds=0.0)),
        EndpointStatus: ([*whole.endpoints], endpoint("", "", system="", connection="", since=0.0)),
        RouteStatus: ([*whole.routes], RouteStatus("", "", (), "", RouteTotals(), None)),
        RouteTotals: ([each.totals for each in whole.routes], RouteTotals()),
        PairStatus: ([whole.pair], PairStatus("", "", 0, 0.0, "", ())),
    }  # fmt: skip
    values, empty = of_kind[kind]

    names = [each.name for each in fields(kind)]
    assert [
        name
        for name in names
        if all(getattr(each, name) == getattr(empty, name) for each in values)
    ] == ["journals"] * (kind is Status)  # only /metrics has them


def test_each_value_of_the_status_is_seen(walk: Walk) -> None:
    page = walk.page
    page.run(OPEN_BROKER, "office")

    assert page.run(UNSEEN) == sorted(ELSEWHERE)


def test_names_and_reasons_are_shown_as_text(walk: Walk) -> None:
    page = walk.page

    assert page.find("h1").text == f"plant-1 {HOSTILE}"
    assert f"gone {HOSTILE}" in page.find("#reasons").text
    assert len(page.texts("#reasons li")) == 9
    assert f"gateway.yaml:3:5 {HOSTILE}" in page.texts("#warnings li")[0]
    assert page.texts("#warnings li")[2] == (
        "a loop is suspected since 2026-09-21 14:13:20 UTC: route telemetry from plant,"
        f' "{HOSTILE}" is its heartbeat, and came back'
    )
    assert HOSTILE in page.find("#endpoints").text
    assert HOSTILE in page.find("#refusals").text
    page.find('#routes-table button[data-route^="<img"]').click()
    page.until(lambda: page.find("#details-title").text == f"Route {HOSTILE}")


def test_problems_are_said_in_words(walk: Walk) -> None:
    page = walk.page
    text = page.find("main").text
    parts = (
        "lost", "too-long 12", "99 s", "loops dropped 3", "lost fields: reply to 5", "line/2/y",
        "123.5K on disk", "83 % of the spool", "2 min", "at least once", "at most once",
        "echoes of its reverse route dropped 30", "12 at the broker", "4.0 KiB in memory",
        "no route 3, retries 8", "session-lost, 77 s", "office-2:7222", "thinned 70", "tap, ems",
    )  # fmt: skip

    assert page.find("#state").text == "✗ not ready"
    assert [part for part in parts if part not in text] == []
    assert page.texts("#figures dt")[4] == "dead letters kept, 1,234 sent again"
    loops = page.texts("#figures div")[5].split()
    assert loops == ["loops", "dropped", "3"]  # echoes of a route in both directions do not count


def test_every_width_and_both_schemes_can_be_read(walk: Walk) -> None:
    browser, found, backs = walk.page.browser, [], []
    walk.page.run(OPEN_BROKER, LONG)  # its reason is long
    for size in WIDTHS:
        sized(browser, size)
        for scheme in ("light", "dark"):
            media(browser, prefers_color_scheme=scheme)
            found += [f"{size} {scheme}: {each}" for each in faults_of_sight(browser)]
            backs.append(walk.page.run("return getComputedStyle(document.body).backgroundColor"))
    assert found == []
    assert backs == ["rgb(246, 247, 249)", "rgb(18, 21, 27)"] * 3


def test_every_broker_and_flow_has_its_place(walk: Walk) -> None:
    walk.page.find("#filter").send_keys("none")  # no table has to be laid out
    for status, edges in ((calm(), 1), (golden(), 13), (thousand(), 12)):
        walk.show(status)  # 12: a bundle for each pair
        for size in WIDTHS:
            sized(walk.page.browser, size)
            walk.page.run("showMap(previous.status)")
            assert (walk.page.run(GEOMETRY), size) == ([True, 0, 0], size)
            assert len(walk.words(EDGES)) == edges


def test_a_state_is_a_word_and_a_dash_and_not_only_a_colour(walk: Walk) -> None:
    script = ("return [...document.querySelectorAll('#map .edge')].map((e) =>"
              " getComputedStyle(e.querySelector('.flow')).strokeDasharray)")  # fmt: skip
    edges = walk.words(EDGES)
    states = {name.partition(":")[0]: name.rpartition(", ")[2] for name in edges}
    dashes = {name.rpartition(", ")[2]: dash for name, dash in
              zip(edges, walk.page.run(script), strict=True)}  # fmt: skip

    assert states == {
        "telemetry": "spooling", "there": "connected", "back": "connected", "fields": "refusing",
        "several": "connected", "silent": "stuck", "stuck": "stuck", "thin": "connected",
        "waiting": "not connected", HOSTILE: "connected", LONG: "not connected",
    }  # fmt: skip
    assert len(set(dashes.values())) == len(dashes) == 5
    assert dashes["connected"] == "none"
    assert "telemetry: plant to office" in edges[0]
    assert walk.words("#map .node.off")[0].startswith("Broker office: lost")
    text = walk.page.find("#map").text
    assert all(state in text for state in ("spooling", "refusing", "stuck", "not connected"))


def test_the_keyboard_reaches_every_control_in_order(walk: Walk) -> None:
    number = walk.page.run(NUMBER_CONTROLS)
    reached = [0]
    walk.page.run("window.controls[0].focus()")
    for _ in range(1, number):
        walk.press(Keys.TAB)
        at, outline = walk.page.run(FOCUSED)
        reached.append(at)
        assert outline != "none", at  # the focus is visible

    assert reached == [*range(number)]


def test_the_keyboard_opens_and_closes_the_details(walk: Walk) -> None:
    page, focused = (
        walk.page,
        "return document.activeElement.ariaLabel || document.activeElement.id",
    )
    page.run("[...document.querySelectorAll('#map .edge')].find("
             "(each) => each.ariaLabel.startsWith('telemetry')).focus()")  # fmt: skip
    walk.press(Keys.ENTER)

    page.until(lambda: "in 7 s" in page.find("#details").text)
    assert page.run(focused) == "details-title"
    assert "the oldest has waited 12 s for office" in page.find("#details").text
    walk.press(Keys.ESCAPE)
    assert page.run(focused).startswith("telemetry")
    assert not page.find("#details").is_displayed()


def test_the_details_of_a_route_show_its_patterns_and_the_names_that_pass(walk: Walk) -> None:
    page = walk.page
    page.find('#routes-table button[data-route="telemetry"]').click()

    page.until(lambda: page.texts("#details-names tbody tr"))
    there, refused = page.texts("#details-names tbody tr")
    assert there.split("\n")[0].startswith("2026-09-21 14:13:23 plant")
    assert f"line/{HOSTILE}" in there
    assert f"LINE.{HOSTILE}" in there
    assert "too-long" in refused
    facts = page.find("#details-facts").text
    assert "line/{line}/{rest...} except line/test/#, where amount > 100" in facts
    assert "LINE.{line}.{rest...}" in facts


def test_the_filter_hides_routes_that_do_not_match(walk: Walk) -> None:
    page = walk.page
    assert page.find("#routes-shown").text == "11 of 11"

    page.find("#filter").send_keys("PLANT line")
    assert page.find("#routes-shown").text == "0 of 11"
    walk.type("#filter", "OFFICE plant")
    assert page.texts("#routes-table tbody th") == ["telemetry"]
    walk.type("#filter", Keys.SPACE)
    page.find("#problems").click()
    calm_routes = {"there", "back", "thin", HOSTILE}
    assert set(page.texts("#routes-table tbody th")).isdisjoint(calm_routes)
    assert page.find("#routes-shown").text == "7 of 11"


def test_the_page_polls_by_itself_and_changes_only_cells(walk: Walk) -> None:
    page = walk.page
    page.run("window.kept = document.querySelector('#routes-table tbody tr')")

    passed(walk.shown, 50_000)

    row = "#routes-table tbody tr"
    page.until(lambda: "50,010" in page.find(row).text and "/s" in page.find(row).text)
    assert page.run("return window.kept.isConnected")  # the row is the same


def test_the_width_of_an_edge_is_its_rate(walk: Walk) -> None:
    page = walk.page
    widths = ("return [...document.querySelectorAll('#map .flow')].map((e) =>"
              " parseFloat(getComputedStyle(e).strokeWidth))")  # fmt: skip
    routes = [changed(each, received=100_000 * n) for n, each in enumerate(golden().routes)]
    walk.show(replace(golden(), routes=tuple(routes)))

    assert max(page.run(widths)) > 8
    assert min(page.run(widths)) < 3
    assert page.run("return document.querySelectorAll('#map .moving:not(.still)').length") == 6
    media(page.browser, prefers_reduced_motion="reduce")
    moves = "return getComputedStyle(document.querySelector('#map .moving')).animationName"
    assert page.run(moves) == "none"


def test_sparklines_show_ten_minutes_and_go_on(walk: Walk) -> None:
    page = walk.page
    row = '#routes-table tbody tr:first-child [data-label="last 10 min"]'

    passed(walk.shown, 0)  # the samples of other steps end
    for messages, peak in ((100_000, "≤ 10,000/s"), (800_000, "≤ 80,000/s")):
        passed(walk.shown, messages)
        page.run("trends.at = 0")  # as if ten seconds had passed
        walk.show(walk.shown.status)
        walk.show(walk.shown.status)  # the samples come after the status, and show with the next
        assert page.find(row).text == peak
    assert page.find("#endpoints .trend svg").accessible_name.startswith("no messages")


def test_a_bundle_lists_its_routes_with_the_worst_first(walk: Walk) -> None:
    page = walk.page
    page.find("#filter").send_keys("none")  # as above
    walk.show(thousand())
    bundle = next(each for each in walk.words(EDGES) if "1 refusing" in each)
    assert "84 routes" in bundle
    click = (
        "[...document.querySelectorAll('#map .edge')].find((e) => e.ariaLabel ==="
        " arguments[0]).dispatchEvent(new MouseEvent('click', {bubbles: true}))"
    )
    page.browser.execute_script(click, bundle)

    listed = page.run("return [...document.querySelectorAll('#details-routes tbody th')]"
                      ".map((each) => each.textContent)")  # fmt: skip
    assert (listed[0], len(listed)) == ("route-0600", 84)
    page.find("#details-routes tbody button").click()
    page.until(lambda: page.find("#details-title").text == "Route route-0600")
    page.until(lambda: "too-long" in page.find("#details-refusals").text)


def test_no_edge_passes_behind_the_rest_of_its_layer(walk: Walk) -> None:
    """On a phone a layer has several lines: a broker that sends on is in the last of them."""
    y = walk.page.run(LAYOUT)

    assert y["plant"] < y["lake"] == y["office"] < y["erp"] < y["hall"]


def test_the_lookup_begins_with_the_systems_of_the_routes(walk: Walk) -> None:
    page, target = walk.page, walk.page.find("#target")
    first = page.run("return byId('target').options[0].value")
    assert first != target.get_property("value") == "mqtt"  # of the first target
    walk.type("#text", "echo.7")
    walk.answers("Valid name in kafka")
    walk.type("#text", "line.7.a")
    walk.answers("Did you mean 'line/7/a'")

    Select(target).select_by_value("yami4")
    walk.show(calm())
    assert target.get_property("value") == "yami4"
    Select(target).select_by_value("mqtt")


def test_a_name_is_looked_up_while_it_is_typed(walk: Walk) -> None:
    page = walk.page
    walk.type("#text", "line/7/v1.2")
    page.until(lambda: "LINE.7.v1%2E2" in page.find("#answer").text)

    assert "246 characters" in page.find("#answer").text
    where = "line/{line}/{rest...}, where amount > 100, not evaluated"
    assert where in page.find("#answer").text
    walk.type("#text", "line/test/1")
    walk.answers("excluded by 'line/test/#'")
    page.find("input[value=pattern]").click()
    walk.answers("pattern in mqtt")
    walk.type("#text", "a/#/b")
    page.find("#text").send_keys(Keys.ENTER)
    page.until(lambda: page.texts("#answer .bad"))
    walk.type("#text", HOSTILE)
    walk.answers("No route selects it")


def test_a_route_is_proposed_for_a_wanted_name(walk: Walk) -> None:
    page = walk.page
    walk.type("#text", "line/7/v1.2")
    Select(page.find("#target")).select_by_value("ems")
    walk.type("#wanted", "STATE.7.v1%2E2")
    command = "gateway explain 'line/7/v1.2' --config CONFIG --from plant --to office --wanted"
    walk.answers("Proposed route", f"{command} 'STATE.7.v1%2E2'")

    assert 'pattern: "line/{rest...}"' in page.find("#answer pre").text
    sized(page.browser, PHONE)
    broken = ("return [...document.querySelectorAll('#answer p > code span')].filter("
              "(each) => each.getClientRects().length > 1).length")  # fmt: skip
    assert page.run(broken) == 0
    assert page.run(OVERFLOW) == 0
    walk.type("#wanted", HOSTILE)
    walk.answers(HOSTILE)
    Select(page.find("#target")).select_by_value("mqtt")


def test_a_name_is_made_of_the_fields_that_are_typed(walk: Walk) -> None:
    walk.type("#text", "o/m1")
    walk.answers("there is only a name")
    walk.type("#payload", '{"site": "hall"}')
    walk.answers("to.hall.none")
    walk.type("#properties", "x=1, line=7")
    walk.answers("to.hall.7")


def test_a_reload_and_the_end_of_the_faults_are_seen(walk: Walk) -> None:
    page = walk.page
    assert page.find("#reloaded").text == "2026-09-21 14:13:20 UTC"  # the browser is in Tokyo

    walk.show(replace(calm(), endpoints=(), routes=(), reloaded=golden().reloaded + 60_000_000))
    assert page.find("#reloaded").text == "2026-09-21 14:14:20 UTC"
    assert not page.find("#map-section").is_displayed()  # a reload replaces every endpoint

    walk.show(calm())
    assert page.find("#state").text == "✓ ready"
    gone = ("#reasons", "#warnings", "#pair", "#refusals")
    assert [each for each in gone if page.find(each).is_displayed()] == []
    assert page.texts("#map .edge.not-connected") == []


def test_the_page_says_which_instance_of_a_pair_it_is(walk: Walk) -> None:
    page = walk.page
    assert page.find("#pair").text.endswith(f"lease 7; b waits; lease: the disk is away {HOSTILE}")

    walk.show(replace(calm(), pair=STANDBY, endpoints=()))

    assert page.find("#state").text == "✓ standby"
    assert page.find("#pair").text.endswith("a is active; lease: the disk is away")
