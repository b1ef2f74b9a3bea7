"""A result names the night that judged it: a witness for the records of nights."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import pytest

from gateway.archive.layout import reconciled_folder
from gateway.archive.storage import LocalStorage
from gateway.night.archive.night_record import NO_NIGHT, Night, night_path
from gateway.night.reconcile.nights.chain import read_chain, write_night
from gateway.night.reconcile.nights.witness import newest_stated, state_night
from tests.archive.samples import DAY

KEY = b"a key of the archive"
NIGHT = Night(1, "", 0, str(DAY + timedelta(days=1)), 7)


def judged(root: Path, number: int, day: date, key: bytes | None) -> None:
    storage = LocalStorage(root)
    night = write_night(storage, replace(NIGHT, n=number), key)
    state_night(storage, day, night, key)


@pytest.mark.parametrize("key", [None, KEY], ids=["plain", "keyed"])
@pytest.mark.parametrize("kept", [(), (1,)])
def test_records_of_nights_that_a_result_names_and_nobody_has_are_errors(
    tmp_path: Path, kept: tuple[int, ...], key: bytes | None
) -> None:
    storage = LocalStorage(tmp_path)
    for number in range(1, 5):
        judged(tmp_path, number, DAY + timedelta(days=number % 2), key)
    assert read_chain(storage, key, stated=newest_stated(storage, key)).last == 4
    for number in {*range(1, 5)} - {*kept}:
        (tmp_path / night_path(number)).unlink()

    chain = read_chain(storage, key, stated=newest_stated(storage, key))

    (finding,) = chain.findings
    first = len(kept) + 1
    assert (finding.rule, finding.place) == ("missing-night", f"_nights/{first}.json")
    assert finding.text == f"the records of nights {first} to 4 are missing"
    assert (chain.newest, chain.last) == (NO_NIGHT, 4)  # the next one is the fifth
    judged(tmp_path, 5, DAY, key)
    assert read_chain(storage, key, stated=newest_stated(storage, key)).findings == (finding,)


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b'{"night": 7}', b"[" * 100_000])
def test_a_damaged_statement_names_no_night(tmp_path: Path, content: bytes) -> None:
    judged(tmp_path, 3, DAY, None)
    path = tmp_path / reconciled_folder(Path(), DAY) / "night.json"
    assert newest_stated(LocalStorage(tmp_path), None) == 3

    path.write_bytes(content)

    assert newest_stated(LocalStorage(tmp_path), None) == 0


def test_a_statement_without_the_key_or_of_another_date_names_no_night(tmp_path: Path) -> None:
    """Else a forger makes each night an error, and the next record the one after any number."""
    storage = LocalStorage(tmp_path)
    judged(tmp_path, 3, DAY, KEY)
    state_night(storage, DAY + timedelta(days=1), replace(NIGHT, n=4_000_000), None)
    own = tmp_path / reconciled_folder(Path(), DAY) / "night.json"
    other = tmp_path / reconciled_folder(Path(), DAY + timedelta(days=2)) / "night.json"
    other.parent.mkdir()
    other.write_bytes(own.read_bytes())
    own.unlink()

    assert newest_stated(storage, KEY) == 0
