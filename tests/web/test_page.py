"""The page's colours, and how soon the server has what it shows; without a browser."""

from __future__ import annotations

import re
import time
from importlib.resources import files
from urllib.request import ProxyHandler, build_opener

import pytest

from tests.waiting import PATIENCE
from tests.web.site_samples import Shown, busy, served


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize(
    ("front", "back"),
    [
        ("text", "back"), ("text", "panel"), ("quiet", "back"), ("quiet", "panel"),
        ("link", "back"), ("panel", "link"), ("good", "good-back"), ("bad", "bad-back"),
        ("warn", "warn-back"), ("bad", "panel"),
    ],
)  # fmt: skip
def test_colours_have_the_contrast_of_wcag_aa(scheme: int, front: str, back: str) -> None:
    """WCAG 2.2, 1.4.3: 4.5 to 1 for text."""
    style = (files("gateway.web") / "page" / "page.css").read_text("utf-8")
    colours = [found for _, found in re.findall(rf"--({front}): (#[0-9a-f]{{6}})", style)]
    backs = [found for _, found in re.findall(rf"--({back}): (#[0-9a-f]{{6}})", style)]
    light, dark = sorted((luminance(colours[scheme]), luminance(backs[scheme])), reverse=True)

    assert (light + 0.05) / (dark + 0.05) >= 4.5


def test_the_server_makes_a_thousand_routes_within_200_ms() -> None:
    with served(Shown(busy(0))) as server:
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
