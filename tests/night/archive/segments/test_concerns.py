"""The dates that a segment concerns: of its receipts, and those that its gaps cover."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from gateway.archive.storage import LocalStorage
from gateway.night.archive.seals.store import read_seal, seal_path
from gateway.night.archive.segments.tables import SCHEMA
from gateway.night.archive.segments.write import dates_of
from gateway.trial.synthetic.sealed_rows import write_sealed
from tests.archive.samples import NOON

DAY = 86_400_000_000
STEM = f"one-{NOON}-000001"


def rows(*legs: tuple[str, int, int | None, int | None]) -> pa.Table:
    """Rows of a leg, a time, a receipt and a begin."""
    common: dict[str, object] = dict.fromkeys(
        ("gateway", "route", "endpoint", "system", "name"), "a"
    )
    made = [
        common | {"leg": leg, "time": time, "received": receipt, "begin": begin, "id": bytes(16)}
        for leg, time, receipt, begin in legs
    ]
    return pa.Table.from_pylist(made, SCHEMA)


def test_a_late_outcome_concerns_the_date_of_its_receipt() -> None:
    found = dates_of(rows(("delivered", NOON + 2 * DAY, NOON, None)))

    assert found == ("2026-03-14",)


def test_a_row_without_a_receipt_concerns_its_own_date() -> None:
    assert dates_of(rows(("observed", NOON, None, None))) == ("2026-03-14",)


def test_a_gap_concerns_every_date_that_it_covers() -> None:
    found = dates_of(rows(("gap", NOON + 2 * DAY, None, NOON)))

    assert found == ("2026-03-14", "2026-03-15", "2026-03-16")


def test_a_row_with_an_invalid_time_concerns_no_date() -> None:
    assert dates_of(rows(("delivered", -1, -1, None))) == ()


def test_a_seal_names_what_its_segments_concern(tmp_path: Path) -> None:
    late = rows(("received", NOON, NOON, None), ("delivered", NOON, NOON - DAY, None))

    seal = write_sealed(LocalStorage(tmp_path), STEM, late, gateway="one")

    assert seal.segments[0].concerns == ("2026-03-13", "2026-03-14")


@pytest.mark.parametrize("damaged", ["2026-02-30", "20260314", "", "../x"])
def test_a_seal_that_concerns_no_date_is_not_read(tmp_path: Path, damaged: str) -> None:
    storage = LocalStorage(tmp_path)
    seal = write_sealed(storage, STEM, rows(("received", NOON, NOON, None)), gateway="one")
    path = seal_path(seal)
    storage.put(path, seal.to_json().replace(b'["2026-03-14"]', f'["{damaged}"]'.encode()))

    assert read_seal(storage, path).fault == f"concerns {damaged!r}, which is no date"
