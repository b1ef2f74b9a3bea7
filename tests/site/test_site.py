"""The site of the documents: it builds without a warning, and loads nothing from elsewhere."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from selenium import webdriver

from tests.chromium import NEEDS_CHROMIUM
from tests.waiting import until

ROOT = Path(__file__).parents[2]
pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(not importlib.util.find_spec("mkdocs"), reason="no mkdocs: make docs"),
]
LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(  # noqa: S603  # our own command
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT, capture_output=True, text=True, check=False,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder


class Assets(HTMLParser):
    """Collects the addresses that a page loads. Mutable."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if values.get("rel") not in ("canonical", "next", "prev"):  # links that nothing loads
            self.found.append(values.get(LOADED.get(tag, "")) or "")


def test_no_page_loads_an_asset_from_another_host(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    foreign: list[tuple[str, str]] = []
    for page in pages:
        parser = Assets()
        parser.feed(page.read_text("utf-8"))
        foreign += [(page.name, each) for each in parser.found if "//" in each]

    assert len(pages) > len(list((ROOT / "docs").rglob("*.md")))
    assert foreign == []


def test_no_style_loads_an_asset_from_another_host(site: Path) -> None:
    styles = list(site.rglob("*.css"))

    assert styles
    assert [each.name for each in styles if "url(http" in each.read_text("utf-8")] == []


def test_numbered_lists_are_whole(site: Path) -> None:
    """A numbered line outside a list is one that Markdown did not recognise."""
    pages = {each.name: each.read_text("utf-8") for each in site.glob("*.html")}

    assert [
        name for name, text in pages.items() if re.search(r"^ *\d+\. \S.*\n", text, re.MULTILINE)
    ] == []


@pytest.fixture(params=["server", "files"])
def address(request: pytest.FixtureRequest, site: Path) -> Iterator[str]:
    if request.param == "files":
        yield site.as_uri()
        return
    handler = partial(SilentHandler, directory=str(site))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


class SilentHandler(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Print no line for a request."""


@pytest.mark.browser
@NEEDS_CHROMIUM[1]
def test_the_search_finds_a_setting(address: str, chromium: webdriver.Chrome) -> None:
    chromium.get(f"{address}/index.html?q=overflow_policy")
    results = ".md-search-result__link"
    until(lambda: bool(chromium.find_elements("css selector", results)), "a search result")

    links = [
        str(each.get_attribute("href")) for each in chromium.find_elements("css selector", results)
    ]
    loaded = chromium.execute_script(
        "return performance.getEntriesByType('resource').map(each => each.name)"
    )

    assert any("settings.html" in each for each in links), links
    assert [each for each in loaded if not each.startswith((address, "data:", "blob:"))] == []
