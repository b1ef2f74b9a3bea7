"""The pictures of the documents: `python -m tests.pictures` writes docs/page.png and report.png.

Both show samples, without a gateway and without a night. With a folder, every size and colour
scheme of both, and of the golden page and the golden report of the tests, is written there.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from itertools import product
from math import sin
from pathlib import Path
from typing import Final

from selenium import webdriver

from docs.tables import ROOT
from gateway.night.reconcile.report.html import page as report_page
from gateway.night.reconcile.report.report import Report
from gateway.runtime.status import EndpointStatus, RouteStatus, Status
from gateway.web.snapshot import StatusSnapshot
from tests.chromium import WIDTHS, media, sized, started
from tests.night.reconcile.summaries import DAY, counted, gap, golden, hour, sample
from tests.web.golden import shown_golden
from tests.web.page import Page
from tests.web.status_samples import FakeStatus, changed, endpoint, refusal, route, served, status

SHOWN: Final = (1344, 1130)  # pixels of the pictures
RATES: Final = {  # messages a second: route, source, target
    ("telemetry", "plant", "office"): 532,
    ("alarms", "plant", "office"): 2,
    ("orders", "office", "plant"): 53,
    ("backup", "plant", "cloud"): 106,
    ("prices", "office", "market"): 22,
    ("commands", "plant", "tools"): 4,
}
SYSTEMS: Final = {
    "plant": "mqtt", "office": "ems", "cloud": "kafka", "market": "smf", "tools": "yami4",
}  # fmt: skip


class Running(FakeStatus):
    """The sample as it goes on from its tenth minute.

    Mutable: each snapshot replaces `status`.
    """

    begun = 0.0

    def snapshot(self) -> StatusSnapshot:
        if self.begun:
            self.status = at_second(600 + time.monotonic() - self.begun)
        return super().snapshot()


def shown_status() -> Running:
    """A gateway after ten minutes of traffic; one target is away, and another refuses names."""
    shown = Running(at_second(0))
    for second in range(0, 610, 10):
        shown.status = at_second(second)
        shown.seconds = float(second)
        shown.history.sample()
    shown.begun = time.monotonic()
    return shown


def at_second(second: float) -> Status:
    return status(
        endpoints=tuple(ends(second)), routes=tuple(flows(second)), dead_letters=1,
        dead_letters_sent_again=3,
    )  # fmt: skip


def ends(second: float) -> Iterator[EndpointStatus]:
    for name, system in SYSTEMS.items():
        facts = {
            "system": system,
            "broker_id": name,
            "messages": int(160 * second) + 20 * wave(second),
        }
        if name in {"plant", "office"}:
            yield endpoint(name, "source", **facts)
        if name == "market":
            facts |= {
                "connection": "lost", "reason": "market: Connection refused", "retry_in": 3.2,
                "spooled_messages": 1_234, "spooled_bytes": 2_400_000, "spooled_age": 75.0,
                "spool_share": 0.04, "messages": 0,
            }  # fmt: skip
        yield endpoint(name, "sink", **facts)


def flows(second: float) -> Iterator[RouteStatus]:
    for (name, source, target), rate in RATES.items():
        received = int(rate * (second + 60) + rate * wave(second) / 20)
        plain = route(name, source=f"{source} {name}/{{rest...}}", targets=(target,),
                      target_names=(f"{target} {name}/{{rest...}}",))  # fmt: skip
        facts: dict[str, object] = {
            "received": received, "delivered": received, "latency_sum": received * 0.0043,
        }  # fmt: skip
        if target == "market":
            facts |= {"delivered": received - 1_234, "lag": 75.0}
        if name == "commands":
            latest = refusal("line/1/set point", int(time.time()), rule="too-long")
            facts |= {"refusals": (latest,), "refused": {"tools": latest}, "rules": {"too-long": 4}}
        yield changed(plain, **facts)


def wave(second: float) -> int:
    return int(40 * sin(second / 70) + 9 * sin(second / 7))


def shown_report() -> Report:
    """A night with a missing copy, refused names, a source gap and recovered copies."""
    row = counted(1_309_100, missing=2, refused=3, recovered=4, duplicated=13, marked=13)
    bad = {
        9: {"refused": 3},
        14: {"missing": 2, "recovered": 3, "duplicated": 11, "marked": 11},
        15: {"recovered": 1, "duplicated": 2, "marked": 2},
    }
    orders = {"route": "orders-out", "target": "erp"}
    hours = [counted(36_545 + 3_000 * (12 - abs(12 - at)), **bad.get(at, {})) for at in range(24)]
    calm = {"telemetry": 820_000, "alarms": 1_900, "backup": 250_000}
    letter = {
        "class": "refused", **orders, "rule": "too-long", "copies": 3, "id": "ab" * 16,
        "name": "orders/2026/03/14/line-7", "reason": "ems: the name is 260 characters, limit 249",
    }  # fmt: skip
    return Report(
        archive="/var/lib/gateway/archive",
        day=DAY.date(),
        routes=[
            {**orders, **row, "received": 237_200, "delivered": 237_178},
            *({"route": name, "target": "office", **counted(n)} for name, n in calm.items()),
        ],
        gateways=[{"gateway": "plant-1", **row}],
        hours=[hour(at, each, 20_000, **orders) for at, each in enumerate(hours)],
        whole_day=[hour(at, each, int(str(each["received"]))) for at, each in enumerate(hours)],
        dead_letters=[letter],
        samples=[{**sample(kind, n, "orders/line-7"), **orders, "gateway": "plant-1"}
                 for kind, total in (("missing", 2), ("refused", 3), ("recovered", 4))
                 for n in range(total)],
        gaps=[
            gap("session-lost", 14.2, 77, gateway="plant-1", reason="the broker kept no session"),
            gap("away", 3, 240, gateway="plant-1", endpoint="office"),
        ],
        proof={"copies": 1_304_800, "compared": 4_300, "sets": 96, "seals": 96, "keyed": True},
        timings={"files": 0.4, "spark": 6.8, "job": 21.3},
    )  # fmt: skip


@contextmanager
def opened_page(browser: webdriver.Chrome) -> Iterator[None]:
    shown = shown_status()
    with served(shown) as server:
        page = Page(browser, server.url)
        page.until(lambda: page.find("#map .edge"))
        page.until(lambda: "/s" in page.find('[data-figure="receive rate"]').text)
        page.find('#routes-table button[data-route="prices"]').click()
        page.until(lambda: page.find("#details-title").text == "Route prices")
        page.run("scrollTo(0, 0)")
        yield


@contextmanager
def opened_golden_page(browser: webdriver.Chrome) -> Iterator[None]:
    with tempfile.TemporaryDirectory() as folder, served(shown_golden(Path(folder))) as server:
        page = Page(browser, server.url)
        page.until(lambda: page.find("#map .edge"))
        page.find('#routes-table button[data-route="telemetry"]').click()
        page.until(lambda: page.texts("#details-names tbody tr"))
        page.find("#text").send_keys("line/7/v1.2")
        page.find("#wanted").send_keys("LINE/7")
        page.until(lambda: page.find("#answer").text)
        page.run("scrollTo(0, 0)")
        yield


@contextmanager
def opened_report(browser: webdriver.Chrome, report: Report | None = None) -> Iterator[None]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "report.html")
        file.write_text(report_page(report or shown_report()), encoding="utf-8")
        browser.get(file.as_uri())
        yield


def main(arguments: list[str]) -> None:
    """Write both pictures; with a folder, all sizes and colour schemes, each page whole."""
    with started() as browser:
        browser.execute_cdp_cmd("Emulation.setScrollbarsHidden", {"hidden": True})
        shown: dict[str, Callable[[webdriver.Chrome], AbstractContextManager[None]]]
        shown = {"page": opened_page, "report": opened_report}
        if not arguments:
            sized(browser, SHOWN)
            media(browser, prefers_color_scheme="light")
            for name, opened in shown.items():
                with opened(browser):
                    browser.save_screenshot(str(ROOT / "docs" / f"{name}.png"))
            return
        shown["golden-page"] = opened_golden_page
        shown["golden-report"] = partial(opened_report, report=golden())
        for (name, opened), size in product(shown.items(), WIDTHS):
            sized(browser, size)
            with opened(browser):
                height = browser.execute_script("return document.body.scrollHeight")
                sized(browser, (size[0], height))
                for scheme in ("light", "dark"):
                    media(browser, prefers_color_scheme=scheme)
                    browser.save_screenshot(f"{arguments[0]}/{name}-{size[0]}-{scheme}.png")


if __name__ == "__main__":
    main(sys.argv[1:])
