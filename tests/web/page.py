"""The status page in a browser, for tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

from tests.waiting import PATIENCE


class Page:
    """The page in the browser, and the actions of its user.

    Mutable: owned by the test.
    """

    def __init__(self, browser: webdriver.Chrome, url: str) -> None:
        self.browser = browser
        browser.get(url)

    def find(self, selector: str) -> WebElement:
        return self.browser.find_element(By.CSS_SELECTOR, selector)

    def texts(self, selector: str) -> list[str]:
        """Return the text of each visible element."""
        found = self.browser.find_elements(By.CSS_SELECTOR, selector)
        return [each.text for each in found if each.is_displayed()]

    def until(self, seen: Callable[[], object]) -> None:
        redrawn = [StaleElementReferenceException]  # the page replaces what it shows
        WebDriverWait(self.browser, PATIENCE, 0.05, redrawn).until(lambda _: seen())

    def run(self, script: str, *arguments: object) -> Any:  # noqa: ANN401  # JSON
        return self.browser.execute_script(script, *arguments)
