"""The tutorials work as printed: each is typed into a shell, and its output is compared."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tutorials.walks import PAGES, walk

pytestmark = pytest.mark.broker


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_tutorial_works_as_printed(page: Path, tmp_path: Path) -> None:
    walk(page, tmp_path, "gateway reconcile ")  # starts Spark; test_night.py types it
