"""The tutorials with a night, which starts Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tutorials.walks import PAGES, walk

pytestmark = [pytest.mark.broker, pytest.mark.nightly, pytest.mark.spark]
WITH_NIGHT = [each for each in PAGES if "$ gateway reconcile " in each.read_text("utf-8")]
LIMIT = 900  # seconds


@pytest.mark.parametrize("page", WITH_NIGHT, ids=lambda page: page.stem)
def test_a_tutorial_with_a_night_works_as_printed(page: Path, tmp_path: Path) -> None:
    walk(page, tmp_path, seconds=LIMIT)
