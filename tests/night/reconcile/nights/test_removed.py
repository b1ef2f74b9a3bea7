"""Nights after a removal: signed statements say where the chain of each writer begins."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

import pytest

from gateway.archive.findings import Weight
from gateway.archive.heads import WriterHead, head_path
from gateway.archive.layout import DAY as ONE_DAY
from gateway.archive.layout import SEALS, JournalName, day_of, day_start
from gateway.archive.seal_key import SealKey
from gateway.archive.signed_json import TAKEN, Previous
from gateway.archive.storage import LocalStorage
from gateway.night.archive.night_record import NO_NIGHT, Night
from gateway.night.archive.open_archive import open_archive
from gateway.night.archive.removed import Removal
from gateway.night.archive.retention import remove_days
from gateway.night.archive.seals.seal import End, Seal
from gateway.night.archive.seals.store import seal_path
from gateway.night.archive.verification.verify import verify_archive
from gateway.night.reconcile.nights.archive_state import archive_state
from gateway.night.reconcile.nights.plan import plan_night, with_verdict
from tests.archive.samples import DAY, NOON
from tests.night.archive.verification.chained import Chained

KEY = b"a key of the seals"
TODAY = DAY + timedelta(days=9)


@dataclass
class Archive:
    """A keyed archive of five dates, with a journal a date of `east`, and of `west` on the first.

    `seals` are those of `east`; both writers have stopped.
    """

    root: Path
    seals: list[Seal]

    @property
    def storage(self) -> LocalStorage:
        return LocalStorage(self.root)

    def remove(self, dates: int) -> None:
        """Remove the first `dates` dates as a retention does."""
        remove_days(self.storage, DAY + timedelta(days=dates), KEY)

    def lose(self, seal: Seal) -> None:
        """Remove all files of a date as somebody does who can write the archive."""
        for folder in ("", SEALS):
            shutil.rmtree(self.root / folder / f"date={day_of(seal.closed)}")

    def night(self, previous: Night = NO_NIGHT, key: bytes = KEY) -> Night:
        at = day_start(TODAY) + 1
        state = archive_state(open_archive(self.root, key), previous, at=at, in_flight=0)
        night = plan_night(previous, state, at=at, spooled_days=7)
        for each in night.unsettled:
            night = with_verdict(night, each.date, 0, 0)
        return night

    def rules(self, previous: Night = NO_NIGHT, key: bytes = KEY) -> set[str]:
        """The errors of the night after `previous`, and of a verification of all dates."""
        verified = verify_archive(self.storage, key, journals=self.root, today=TODAY)
        found = (*self.night(previous, key).findings, *verified.findings)
        return {each.rule for each in found if each.weight is Weight.ERROR}


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    made = Chained(LocalStorage(tmp_path), KEY)
    made.add("west", NOON, NOON + ONE_DAY // 3, end=End.STOPPED)
    for number in range(5):
        at = NOON + number * ONE_DAY
        end = End.STOPPED if number == 4 else End.CLOSED
        made.add("east", at - ONE_DAY // 3 if number else at, at + ONE_DAY // 3, end=end)
    (west, *east) = made.seals
    for last in (west, east[-1]):
        head = WriterHead(last.gateway, last.writer, last.closed, last.link, None)
        (tmp_path / head_path(last.writer)).parent.mkdir(exist_ok=True)
        (tmp_path / head_path(last.writer)).write_bytes(head.signed(KEY).to_json())
    return Archive(tmp_path, east)


@pytest.mark.parametrize("judged", [False, True], ids=["no-night", "after-a-night"])
@pytest.mark.parametrize("dates", range(1, 6))
def test_journals_that_a_removal_took_are_no_finding(
    archive: Archive, dates: int, *, judged: bool
) -> None:
    """Also where no date is left, and the heads name the last journals of their writers."""
    before = archive.night() if judged else NO_NIGHT

    archive.remove(dates)

    assert archive.rules(before) == set()


@pytest.mark.parametrize("dates", [2, 5], ids=["dates-left", "none-left"])
@pytest.mark.parametrize("judged", [False, True], ids=["no-night", "after-a-night"])
def test_a_lost_seal_is_a_finding_until_a_removal_takes_its_date(
    archive: Archive, dates: int, *, judged: bool
) -> None:
    """It was the last one of these dates, so that no other seal of them names a later journal."""
    before = archive.night() if judged else NO_NIGHT
    (archive.root / seal_path(archive.seals[dates - 1])).unlink()
    assert archive.rules(before)

    archive.remove(dates)

    assert archive.rules(before) == set()


def test_a_removal_after_others_states_what_all_took(archive: Archive) -> None:
    for dates in (1, 2, 2, 5):
        archive.remove(dates)

        assert archive.rules() == set()
    assert len(list((archive.root / "_removed").iterdir())) == 1


def statement(archive: Archive) -> Path:
    (path,) = (archive.root / "_removed").iterdir()
    return path


def absent(archive: Archive) -> None:
    statement(archive).unlink()


def changed(archive: Archive) -> None:
    """It names a later date, and is not signed again."""
    path = statement(archive)
    found = json.loads(path.read_bytes())
    path.write_text(json.dumps({**found, "before": str(TODAY)}))


def unsigned(archive: Archive) -> None:
    """It names later journals, and a forger without the key signed it."""
    last = tuple(each.journal for each in (archive.seals[-1],))
    statement(archive).write_bytes(Removal(str(TODAY), last).signed(None).to_json())


def of_another_writer(archive: Archive) -> None:
    """It is signed, and names a journal of another gateway of the archive."""
    made = Removal.from_json(statement(archive).read_bytes())
    west = tuple(each for each in made.last if each.startswith("west"))
    statement(archive).write_bytes(Removal(made.before, west).signed(KEY).to_json())


def of_an_earlier_removal(archive: Archive) -> None:
    """It is signed, and was the statement of a removal of fewer dates."""
    made = Removal(str(DAY + timedelta(days=1)), (archive.seals[0].journal,))
    path = statement(archive)
    path.with_name(f"{made.before}.json").write_bytes(made.signed(KEY).to_json())
    path.unlink()


FORGED = {changed, unsigned}


@pytest.mark.parametrize("dates", [3, 5], ids=["dates-left", "none-left"])
@pytest.mark.parametrize(
    "tamper", [absent, changed, unsigned, of_another_writer, of_an_earlier_removal]
)
@pytest.mark.parametrize("judged", [False, True], ids=["no-night", "after-a-night"])
def test_a_statement_that_does_not_prove_a_removal_hides_nothing(
    archive: Archive, dates: int, tamper: Callable[[Archive], None], *, judged: bool
) -> None:
    before = archive.night() if judged else NO_NIGHT
    archive.remove(dates)

    tamper(archive)

    rules = archive.rules(before)
    assert rules & {"missing-seal", "missing-journal"}
    assert ("forged-removal" in rules) == (tamper in FORGED)


@pytest.mark.parametrize("lost", [2, 3, 4])
@pytest.mark.parametrize("judged", [False, True], ids=["no-night", "after-a-night"])
def test_a_date_that_is_lost_after_those_of_a_removal_is_no_removed_one(
    archive: Archive, lost: int, *, judged: bool
) -> None:
    before = archive.night() if judged else NO_NIGHT
    archive.remove(2)

    for seal in archive.seals[2 : lost + 1]:
        archive.lose(seal)

    assert archive.rules(before) & {"missing-seal", "missing-journal"}


def test_a_seal_that_is_lost_after_those_of_a_removal_is_a_finding(archive: Archive) -> None:
    archive.remove(2)

    (archive.root / seal_path(archive.seals[2])).unlink()

    assert "missing-journal" in archive.rules()


def test_a_removal_that_fails_has_stated_what_it_takes(
    archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The statement comes before the removal, so that no night is between them."""

    def away(folder: Path) -> None:
        raise OSError(folder)

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", away)
        with pytest.raises(OSError, match="date="):
            archive.remove(2)
    for seal in archive.seals[:2]:
        archive.lose(seal)

    assert archive.rules() == set()


def test_a_forged_statement_that_no_removal_replaces_is_named(archive: Archive) -> None:
    folder = archive.root / "_removed"
    folder.mkdir()
    (folder / f"{date.max}.json").write_bytes(b"[]")

    archive.remove(2)

    assert archive.rules() == {"forged-removal"}


def test_a_removal_takes_no_journal_whose_end_nobody_knows(tmp_path: Path) -> None:
    """A machine wrote on until it was lost; another one took its open journal by the archive."""
    made = Chained(LocalStorage(tmp_path), KEY)
    made.add("east", NOON, NOON + 1)
    lost = Previous(str(JournalName("east", NOON, 1)), TAKEN, NOON + 1)
    later = NOON + 3 * ONE_DAY
    made.add("east", later, later + 1, start=later, previous=lost, end=End.STOPPED)

    remove_days(made.storage, DAY + timedelta(days=1), KEY)

    found = verify_archive(made.storage, KEY, journals=tmp_path, today=TODAY).findings
    assert {each.rule for each in found if each.weight is Weight.ERROR}


NEW = b"the key after a change"


@pytest.mark.parametrize("previous", [None, KEY, b"a key of somebody"])
def test_the_key_before_a_change_proves_what_it_signed(
    archive: Archive, previous: bytes | None
) -> None:
    """Seals, heads, records of nights and statements of removals; a removal keeps their facts."""
    before = archive.night()
    archive.remove(2)
    key = SealKey.of(NEW, previous)

    rules = archive.rules(before, key)

    assert ("forged-removal" in rules) == (previous != KEY)
    assert (rules == set()) == (previous == KEY)
    if previous == KEY:
        remove_days(archive.storage, DAY + timedelta(days=3), key)
        assert archive.rules(before, key) == set()
        assert Removal.from_json(statement(archive).read_bytes()).has_valid_mac(NEW)
