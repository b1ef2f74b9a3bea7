"""The tutorials work as printed: each is typed into a shell, and its output is compared."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tutorials.walks import PAGES, walk

pytestmark = pytest.mark.broker


LONG = {"ems-administrator", "gateway-pair", "plant-engineer", "solace-developer"}


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(each, id=each.stem, marks=pytest.mark.nightly if each.stem in LONG else ())
        for each in PAGES
    ],
)
def test_a_tutorial_works_as_printed(page: Path, tmp_path: Path) -> None:
    walk(page, tmp_path, "gateway reconcile ")  # starts Spark; test_night.py types it
