"""Chromium for the tests of pages, at the sizes of a phone, a desktop and a wide screen.

A worker starts it once. Each test gets it on an empty page, without what another has emulated.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:  # imported where it starts: every run of the suite loads this module
    from selenium import webdriver

CHROMIUM: Final = shutil.which("chromium") or shutil.which("google-chrome")
DRIVER: Final = shutil.which("chromedriver")
NEEDS_CHROMIUM: Final = [
    pytest.mark.browser,
    pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="no Chromium or no chromedriver"),
]
DESKTOP: Final = (1280, 900)
PHONE: Final = (390, 844)
WIDE: Final = (1920, 1080)
WIDTHS: Final = (PHONE, DESKTOP, WIDE)


@pytest.fixture(scope="session")
def chromium_process() -> Iterator[webdriver.Chrome]:
    with started() as browser:
        yield browser


@pytest.fixture
def chromium(chromium_process: webdriver.Chrome) -> webdriver.Chrome:
    fresh(chromium_process)
    return chromium_process


def fresh(browser: webdriver.Chrome) -> None:
    """Leave the page, which may poll a stopped server, and end every emulation."""
    browser.get("about:blank")
    media(browser)
    sized(browser, DESKTOP)
    errors(browser)


@contextmanager
def started() -> Iterator[webdriver.Chrome]:
    from selenium import webdriver  # noqa: PLC0415  # as above

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


def media(browser: webdriver.Chrome, kind: str = "", **features: str) -> None:
    """Set features such as `prefers_color_scheme="dark"`; none: those of the machine.

    `kind` is `print` for a page on paper.
    """
    facts = [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": kind, "features": facts})


def errors(browser: webdriver.Chrome) -> list[str]:
    """Return the errors of scripts and policies since the last call."""
    return [str(line["message"]) for line in browser.get_log("browser")]  # type: ignore[no-untyped-call]  # selenium's


# Texts with less contrast than WCAG 2.2, 1.4.3, and the pixels that no scroll bar should need. A
# text is measured on the first background below it that is not transparent.
_FAULTS: Final = """
const parts = (colour) => colour.match(/[\\d.]+/g).map(Number);
const light = ([r, g, b]) => [r, g, b].map((each) => each / 255)
  .map((each) => (each <= 0.03928 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4))
  .reduce((sum, each, index) => sum + each * [0.2126, 0.7152, 0.0722][index], 0);
const contrast = (one, other) => {
  const [low, high] = [light(parts(one)), light(parts(other))].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
};
const isClear = (colour) => (parts(colour)[3] ?? 1) === 0;
const behind = (element) => {
  if (!element) return "rgb(255, 255, 255)";
  const { backgroundColor } = getComputedStyle(element);
  return isClear(backgroundColor) ? behind(element.parentElement) : backgroundColor;
};
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
const faint = new Set();
while (walker.nextNode()) {
  const [text, element] = [walker.currentNode.data.trim(), walker.currentNode.parentElement];
  if (!text || !element.checkVisibility() || element.closest("script, style, title")) continue;
  const style = getComputedStyle(element);
  const ratio = contrast(element.closest("svg") ? style.fill : style.color, behind(element));
  if (ratio < 4.5) faint.add(`${ratio.toFixed(1)} ${text.slice(0, 40)}`);
}
const { scrollWidth, clientWidth } = document.documentElement; // a phone widens innerWidth
const wide = scrollWidth - clientWidth;
return [...faint, ...(wide > 0 ? [`${wide} pixels wider than the screen`] : [])];
"""


def faults_of_sight(browser: webdriver.Chrome) -> list[str]:
    """Return each text without enough contrast, and by how much the page is too wide."""
    found: list[str] = browser.execute_script(_FAULTS)
    return found
