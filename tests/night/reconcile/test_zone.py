"""Dates are UTC, whatever the time zone of the machine."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.archive.samples import DAY
from tests.night.reconcile.night import FEW_HOURS, LATE, model, night

pytestmark = pytest.mark.spark

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    "zone",
    [
        pytest.param("America/New_York", id="behind", marks=pytest.mark.nightly),
        # A rule that sets the clock back at noon of the second Saturday in March: the night's own.
        pytest.param("EST5EDT,M1.1.0,M3.2.6/12", id="set-back-that-day", marks=pytest.mark.nightly),
    ],
)
def test_the_zone_of_the_machine_changes_no_class(tmp_path: Path, zone: str) -> None:
    root = tmp_path / "archive"
    made = night(5, hours=FEW_HOURS)
    made.write(root)

    output = tmp_path / "output"
    command = [sys.executable, "-m", "gateway", "reconcile", str(root), "--date", DAY.isoformat()]
    command += ["--spooled-days", "3650"]
    command += ["--late", str(LATE), "--master", "local[2]", "--output", str(output)]
    done = subprocess.run(  # noqa: S603  # our own command
        command,
        env={**os.environ, "TZ": zone},
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )

    assert done.returncode == 1, done.stderr
    listed = pq.read_table(output / f"date={DAY}" / "exceptions", partitioning=None).to_pylist()
    keys = ("gateway", "route", "target", "id")
    assert {tuple(row[key] for key in keys): row["class"] for row in listed} == model(made)
    assert all(row["name"] for row in listed if row["class"] == "missing")
