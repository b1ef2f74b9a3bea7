"""A broker is killed: the page, /readyz and the metrics show it in time."""

from __future__ import annotations

import os
import re
from pathlib import Path
from time import monotonic

import pytest
from selenium import webdriver
from selenium.webdriver.support.ui import WebDriverWait

from tests.brokers.mosquitto import StartMosquitto
from tests.chromium import DESKTOP, NEEDS_CHROMIUM, chromium, sized
from tests.web.page import Page
from tests.web.test_run import DETECTION_TIMEOUT, get, running_gateway, within

__all__ = ["chromium"]  # the fixture
pytestmark = [pytest.mark.broker, *NEEDS_CHROMIUM]
SHOTS = os.environ.get("GATEWAY_SCREENSHOTS")  # a folder, to keep a screenshot


def test_a_killed_broker_is_visible_on_the_page_in_readyz_and_in_the_metrics(
    tmp_path: Path,
    start_mosquitto: StartMosquitto,
    chromium: webdriver.Chrome,
) -> None:
    sized(chromium, DESKTOP)
    source, target = start_mosquitto(), start_mosquitto()
    with running_gateway(tmp_path, source, target) as (process, url):
        within(20, lambda: get(f"{url}/readyz")[0] == 200, process)
        page = Page(chromium, url)
        page.until(lambda: "✓ ready" in page.find("#state").text)

        killed = monotonic()
        target.kill()
        left = DETECTION_TIMEOUT - (monotonic() - killed)
        WebDriverWait(chromium, left, 0.05).until(lambda _: "not ready" in page.find("#state").text)

        shown = "\n".join(page.texts("#reasons li"))
        assert re.search(r"endpoint target \(sink\): (lost|connecting)", shown), shown
        assert not re.search(r"endpoint source", shown), shown
        status, text = get(f"{url}/readyz")
        assert (status, "endpoint target (sink): " in text) == (503, True)
        metrics = get(f"{url}/metrics")[1]
        down = re.findall(r"^gateway_endpoint_connected\{(.*)\} 0\.0$", metrics, re.MULTILINE)
        assert len(down) == 1  # the condition of GatewayEndpointDown; its times: test_deploy.py
        assert 'endpoint="target"' in down[0]
        assert monotonic() - killed < DETECTION_TIMEOUT
        if SHOTS:
            chromium.save_screenshot(f"{SHOTS}/dead-broker.png")

        target.start()
        page.until(lambda: "✓ ready" in page.find("#state").text)
        assert page.texts("#reasons li") == []
        assert page.errors() == []
        assert process.end() == 0
