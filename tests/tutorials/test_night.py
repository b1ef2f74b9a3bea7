"""The platform engineer's tutorial with its nightly job, which starts Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tutorials.walks import PAGES, walk

pytestmark = [pytest.mark.broker, pytest.mark.nightly, pytest.mark.spark]
LIMIT = 900  # seconds


def test_the_tutorial_with_a_night_works_as_printed(tmp_path: Path) -> None:
    (page,) = (each for each in PAGES if "$ gateway reconcile " in each.read_text("utf-8"))

    walk(page, tmp_path, seconds=LIMIT)
