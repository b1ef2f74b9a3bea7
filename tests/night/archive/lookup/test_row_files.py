"""Rows are read as Python values, whatever a publisher wrote into them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from gateway.archive.storage import LocalStorage, Storage
from gateway.errors import ArchiveError
from gateway.night.archive.lookup.message import message_rows
from gateway.night.archive.lookup.row_files import Row
from gateway.night.archive.lookup.search import ReplayRange, received_rows, replayed_copies
from tests.archive.samples import NOON, archive, identity, received

MILLISECONDS = NOON // 1_000 * 1_000_000  # of a publisher, where its protocol has seconds
RANGE = ReplayRange("orders", NOON, NOON + 1)


@pytest.mark.parametrize(
    "read",
    [
        pytest.param(lambda storage: received_rows(storage, RANGE), id="replay"),
        pytest.param(
            lambda storage: [
                row for number in range(5) for row in message_rows(storage, identity(number).hex())
            ],
            id="show",
        ),
    ],
)
def test_a_time_of_a_publisher_that_no_calendar_has_stops_no_reader(
    tmp_path: Path, read: Callable[[Storage], Iterable[Row]]
) -> None:
    sent = [NOON, MILLISECONDS, 2**63 - 1, -(2**63), None]
    rows = [received([number], source_time=time) for number, time in enumerate(sent)]
    archive(tmp_path, *rows)

    found = {row["id"]: row["source_time"] for row in read(LocalStorage(tmp_path))}

    assert found == {
        identity(number): datetime.fromtimestamp(NOON // 1_000_000, UTC) if not number else None
        for number in range(5)
    }


def test_an_archive_whose_dates_cannot_be_listed_is_an_error_of_the_archive(tmp_path: Path) -> None:
    class Unreachable(LocalStorage):
        def names(self, folder: Path) -> list[str]:
            raise OSError(f"{folder}: no answer")

    with pytest.raises(ArchiveError, match=r"^archive: cannot be read: \.: no answer"):
        replayed_copies(Unreachable(tmp_path), "orders", NOON)
