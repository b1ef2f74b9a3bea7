"""Chromium for the tests of pages, at the sizes of a phone, a desktop and a wide screen."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pytest
from selenium import webdriver

CHROMIUM: Final = shutil.which("chromium") or shutil.which("google-chrome")
DRIVER: Final = shutil.which("chromedriver")
NEEDS_CHROMIUM: Final = [
    pytest.mark.browser,
    pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="no Chromium or no chromedriver"),
]
DESKTOP: Final = (1280, 900)
PHONE: Final = (390, 844)
WIDE: Final = (2560, 1300)
SIZES: Final = (
    pytest.param(DESKTOP, id="desktop"),
    pytest.param(PHONE, id="phone", marks=pytest.mark.nightly),
)


@pytest.fixture(scope="module")
def chromium() -> Iterator[webdriver.Chrome]:
    with started() as browser:
        yield browser


@contextmanager
def started() -> Iterator[webdriver.Chrome]:
    options = webdriver.ChromeOptions()
    options.binary_location = str(CHROMIUM)
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(str(DRIVER)))
    try:
        yield browser
    finally:
        browser.quit()


def sized(browser: webdriver.Chrome, size: tuple[int, int]) -> None:
    facts = {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": size == PHONE}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", facts)


def media(browser: webdriver.Chrome, **features: str) -> None:
    """Set features such as `prefers_color_scheme="dark"`; none: those of the machine."""
    facts = [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": facts})
