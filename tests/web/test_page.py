"""The page's colours and the time the server takes for a status, without a browser."""

from __future__ import annotations

import re
import time
from importlib.resources import files
from urllib.request import ProxyHandler, build_opener

import pytest

from gateway.web.status_page import StatusPage
from tests.contrast import contrast
from tests.waiting import PATIENCE
from tests.web.status_samples import FakeStatus, busy, served


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize(
    ("front", "back"),
    [
        ("text", "back"), ("text", "panel"), ("quiet", "back"), ("quiet", "panel"),
        ("link", "back"), ("panel", "link"), ("good", "good-back"), ("bad", "bad-back"),
        ("warn", "warn-back"), ("bad", "panel"), ("good", "panel"), ("warn", "panel"),
    ],
)  # fmt: skip
def test_colours_have_the_contrast_of_wcag_aa(scheme: int, front: str, back: str) -> None:
    """WCAG 2.2, 1.4.3: 4.5 to 1 for text."""
    style = (files("gateway.web") / "page" / "page.css").read_text("utf-8")
    colours = [re.findall(rf"--{name}: (#[0-9a-f]{{6}})", style)[scheme] for name in (front, back)]

    assert contrast(*colours) >= 4.5


def test_the_page_is_small_and_loads_nothing() -> None:
    page = StatusPage(needs_token=False)
    text = page.body.decode()
    loaded = re.findall(r"""(?:src|href)\s*=\s*["']([^"'#]+)|url\(|@import""", text)

    assert len(page.body) < 200_000
    assert loaded == ["data:,"]  # the empty icon
    assert "default-src 'none'" in page.policy
    assert "unsafe" not in page.policy
    assert " style=" not in text


def test_a_status_of_a_thousand_routes_takes_less_than_200_ms() -> None:
    with served(FakeStatus(busy(0))) as server:
        opener = build_opener(ProxyHandler({}))
        times = []
        size = 0
        for _ in range(5):
            start = time.process_time()
            with opener.open(f"{server.url}/api/status", timeout=PATIENCE) as answer:
                size = len(answer.read())
            times.append(time.process_time() - start)

    assert size > 200_000
    assert min(times) < 0.2
