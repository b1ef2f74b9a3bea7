"""The night of a bucket whose machine was lost with its buffer."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.archive.layout import DAY as DAY_LENGTH
from gateway.night.archive.open_archive import open_archive
from gateway.night.reconcile.job import Job
from gateway.night.reconcile.nights.run import run_night
from tests.archive.bucket import Bucket
from tests.archive.journal.processes import no_converter
from tests.archive.journal.test_lost_machines import World, stopped_before
from tests.archive.samples import NOON

__all__ = ["no_converter"]  # a fixture

pytestmark = [
    pytest.mark.spark,
    pytest.mark.usefixtures("spark"),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]


@pytest.mark.parametrize("fetch", [True, pytest.param(False, marks=pytest.mark.nightly)])
def test_the_night_after_a_lost_machine_names_its_journal(
    tmp_path: Path, bucket: Bucket, *, fetch: bool
) -> None:
    """It died in its first journal after a clean stop, before the next one took its name."""
    bucket.start()
    world = World(tmp_path, bucket.url)
    process = world.start(stopped_before(world))
    process.write(3, 4)
    lost = process.path.stem
    world.lose(process)
    other = world.start(world.machine(), fetch=fetch, upload=fetch)
    other.write(5)
    world.stop(other)

    night = run_night(open_archive(bucket.url), Job(now=NOON + DAY_LENGTH), lambda *_: None)

    assert night.run.status == 1
    assert lost in str(night.report.errors)
    assert not [each for each in night.report.gaps if each.begin.hour == 14]
