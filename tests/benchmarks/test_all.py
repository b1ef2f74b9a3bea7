"""`make bench` runs all benchmarks, and its page shows how each ended."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from benchmarks.__main__ import Run, page


def test_a_benchmark_that_fails_stops_no_other_and_is_told(tmp_path: Path) -> None:
    written = tmp_path / "new" / "page.md"
    command = [sys.executable, "-m", "benchmarks", "absent", "columns", "--page", str(written)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603  # a fixed command

    assert done.returncode == 1
    assert done.stdout.splitlines()[-1] == f"== summary in {written}; failed: absent"
    assert "| absent    | with status 1 |" in written.read_text()
    assert "| columns   | well " in written.read_text()
    assert "No module named benchmarks.absent" in written.read_text()


def test_all_that_end_well_end_with_status_0(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks", "columns", "--page", str(tmp_path / "page.md")]

    assert subprocess.run(command, capture_output=True, check=False).returncode == 0  # noqa: S603  # fixed


def test_the_page_shows_the_last_table_of_a_benchmark() -> None:
    printed = '{"n": 1}\n| n |\n| - |\n| 1 |\nskipped: nothing\n| n | m |\n| - | - |\n| 1 | 2 |\n'

    assert page([Run("relay", 0, 1.0, printed)]).endswith(
        "## relay\n\n| n | m |\n| - | - |\n| 1 | 2 |\n"
    )
    assert page([Run("names", 0, 1.0, "7 names/s\n")]).endswith("## names\n\n```\n7 names/s\n```\n")
