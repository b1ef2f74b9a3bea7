from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gateway.archive.layout import HOUR, JournalName
from gateway.archive.signed_json import TAKEN, Previous, StoredDigest, Term
from gateway.archive.storage import LocalStorage, RemoteStorage
from gateway.night.archive.parquet import PAIRS_KEY, SETS_KEY
from gateway.night.archive.removed import state_removal
from gateway.night.archive.retention import remove_days
from gateway.night.archive.seals.seal import End, SealedDamage
from gateway.night.archive.seals.store import digests_of, seal_path, write_seal
from gateway.night.archive.segments.journal_facts import CUT
from gateway.night.archive.segments.write import write_segment
from gateway.night.archive.verification.chains import NotRunning
from gateway.night.archive.verification.verify import verify_archive, verify_day
from tests.archive.bucket import Bucket
from tests.archive.samples import DAY, NOON, START
from tests.night.archive.verification.chained import (
    AFTER,
    KEY,
    MIDNIGHT,
    SECOND,
    Chained,
    chained,
    errors,
    file_of,
    rows_at,
    sealed_day,
    segment_of,
    warnings,
)

KEYS = pytest.mark.parametrize("key", [None, KEY], ids=["plain", "keyed"])
NEXT = timedelta(days=1)


@KEYS
def test_a_sealed_day_is_complete(tmp_path: Path, key: bytes | None) -> None:
    made = sealed_day(tmp_path, key)

    verified = made.verify()

    assert verified.findings == ()
    assert verified.complete
    assert all(each.sealed for each in verified.segments)
    assert {each.gateway for each in verified.segments} == {"east", "west"}
    rows = sum(pq.read_metadata(path).num_rows for path in tmp_path.glob(f"date={DAY}/*/*"))
    assert sum(each.rows for each in verified.segments) == rows > 0
    whole = verify_archive(made.storage, key, today=AFTER)
    assert (errors(whole), warnings(whole)) == ([], [])


def test_another_process_can_hash_the_files(tmp_path: Path) -> None:
    made = sealed_day(tmp_path)
    opened: list[Path] = []

    class Watched(LocalStorage):
        def open(self, path: Path) -> pa.NativeFile:
            opened.append(path)
            return super().open(path)

    def hash_elsewhere(files: Mapping[Path, int]) -> Mapping[Path, StoredDigest]:
        found = digests_of(made.storage, files)
        assert {path: each.size for path, each in found.items()} == dict(files)
        return found

    storage = Watched(tmp_path)
    elsewhere = verify_day(storage, DAY, today=AFTER, hash_files=hash_elsewhere)
    assert opened == []

    assert elsewhere == verify_day(storage, DAY, today=AFTER)
    assert len(opened) == len(elsewhere.segments)
    assert elsewhere.complete


def test_a_sealed_day_in_a_bucket_is_complete(bucket: Bucket) -> None:
    bucket.start()
    made = Chained(RemoteStorage(bucket.url), KEY).day()

    assert made.verify().findings == ()

    made.storage.delete(Path(made.seals[2].segments[0].path))
    made.storage.delete(seal_path(made.seals[3]))
    assert errors(made.verify()) == ["missing-seal", "missing-segment", *["unsealed-segment"] * 1]


@KEYS
def test_a_missing_segment_is_found(tmp_path: Path, key: bytes | None) -> None:
    made = sealed_day(tmp_path, key)
    segment_of(tmp_path, made.seals[2]).unlink()

    (finding,) = made.verify().findings

    assert finding.rule == "missing-segment"
    assert finding.text == f"it is absent; {made.seals[2].journal} sealed 6 rows in it"


def test_the_rows_that_no_file_proves_are_counted(tmp_path: Path) -> None:
    made = sealed_day(tmp_path)
    assert made.verify().unproven == 0
    segment_of(tmp_path, made.seals[2]).unlink()
    changed = segment_of(tmp_path, made.seals[3])
    changed.write_bytes(changed.read_bytes()[:-1] + b"?")

    verified = made.verify()

    assert errors(verified) == ["missing-segment", "changed-segment"]
    entries = [made.seals[number].segments[0] for number in (2, 3)]
    assert verified.unproven == sum(each.rows for each in entries) == 14


def test_a_segment_that_is_gone_is_found(tmp_path: Path) -> None:
    made = sealed_day(tmp_path)
    segment_of(tmp_path, made.seals[2]).unlink()

    assert errors(made.verify()) == ["missing-segment"]


@KEYS
def test_a_segment_that_is_gone_with_its_seal_is_found(tmp_path: Path, key: bytes | None) -> None:
    made = sealed_day(tmp_path, key)
    segment_of(tmp_path, made.seals[2]).unlink()
    file_of(tmp_path, made.seals[2]).unlink()

    assert errors(made.verify()) == ["missing-seal"]


@KEYS
def test_everything_after_noon_gone_is_found(tmp_path: Path, key: bytes | None) -> None:
    made = sealed_day(tmp_path, key, gateways=("east",))
    for seal in made.seals[3:]:
        shutil.rmtree(segment_of(tmp_path, seal).parent)
        file_of(tmp_path, seal).unlink()

    verified = made.verify()

    assert errors(verified) == ["open-chain"]
    assert "nothing proves the rows of east after 2026-03-14 12:00:00 UTC" in str(verified.findings)


def test_a_lost_journal_is_no_error_of_a_later_machine_that_did_not_know_it(
    tmp_path: Path,
) -> None:
    """The machine between began a chain of its own, and the third one follows the first."""
    made = chained(tmp_path)
    days = [MIDNIGHT + number * 24 * HOUR for number in range(4)]
    term = [Term(number, each, 10) for number, each in enumerate(days, start=1)]
    made.add("edge", days[0], days[0] + HOUR, instance="b", start=days[0], lease=term[0])
    lost = Previous(str(JournalName("edge@b", days[0], 1)), TAKEN, days[0] + HOUR)
    made.add("edge", days[1], days[1] + HOUR, instance="a", start=days[1], lease=term[1],
             end=End.STOPPED)  # fmt: skip
    made.links.clear()
    made.add("edge", days[2], days[2] + HOUR, instance="b", start=days[2], lease=term[2],
             end=End.STOPPED)  # fmt: skip
    made.add("edge", days[3], days[3] + HOUR, instance="b", start=days[3], previous=lost,
             lease=term[3], end=End.STOPPED)  # fmt: skip

    assert [errors(made.verify(DAY + timedelta(days=number))) for number in (2, 3)] == [[], []]


def test_a_whole_gateway_gone_since_the_day_before_is_found(tmp_path: Path) -> None:
    made = sealed_day(tmp_path)
    for seal in made.seals[2:5]:
        shutil.rmtree(segment_of(tmp_path, seal).parent, ignore_errors=True)
        file_of(tmp_path, seal).unlink()

    assert "open-chain" in errors(made.verify())


def test_a_whole_date_gone_is_found(tmp_path: Path) -> None:
    made = sealed_day(tmp_path, gateways=("east",))
    for folder in ("", "_seals"):
        shutil.rmtree(tmp_path / folder / f"date={DAY}")

    assert "missing-seal" in errors(made.verify())
    assert "missing-seal" in errors(verify_archive(made.storage, today=AFTER))


def test_a_date_gone_between_two_stops_is_found(tmp_path: Path) -> None:
    made = chained(tmp_path)
    for number in range(0, 9, 4):
        noon = NOON + (number - 4) * 24 * HOUR
        made.add("east", noon, noon + HOUR, end=End.STOPPED, start=START + number)
    for folder in ("", "_seals"):
        shutil.rmtree(tmp_path / folder / f"date={DAY}")

    assert errors(made.verify()) == ["missing-seal"]
    assert errors(verify_archive(made.storage, today=AFTER)) == ["missing-seal"]


@KEYS
def test_a_copy_of_a_segment_is_found(tmp_path: Path, key: bytes | None) -> None:
    made = sealed_day(tmp_path, key)
    segment = segment_of(tmp_path, made.seals[2])
    copy = segment.with_name("copy-1-000000-0000.parquet")
    shutil.copy2(segment, copy)

    (finding,) = made.verify().findings

    assert finding.rule == "unsealed-segment"
    assert f"it is a copy of {segment.relative_to(tmp_path)}" in finding.text
    assert [each.path.name for each in made.verify().segments if not each.sealed] == [copy.name]


def test_a_file_of_another_size_than_sealed_is_not_read(tmp_path: Path) -> None:
    """A sparse file takes no disk, and hours to hash."""
    made = sealed_day(tmp_path)
    segment = segment_of(tmp_path, made.seals[2])
    for path in (segment, segment.with_name("copy-1-000000-0000.parquet")):
        path.unlink(missing_ok=True)
        with path.open("wb") as file:
            file.truncate(1 << 40)

    assert errors(made.verify()) == ["changed-segment", "unsealed-segment"]


@KEYS
def test_a_changed_segment_with_its_old_time_is_found(tmp_path: Path, key: bytes | None) -> None:
    made = sealed_day(tmp_path, key)
    segment = segment_of(tmp_path, made.seals[2])
    table = pq.read_table(segment, partitioning=None)
    pq.write_table(table.slice(1), segment)

    verified = made.verify()

    assert errors(verified) == ["changed-segment"]
    assert [each.path for each in verified.segments if not each.sealed] == [
        segment.relative_to(tmp_path)
    ]


@pytest.mark.parametrize("key", [SETS_KEY, PAIRS_KEY])
def test_other_sets_or_pairs_in_a_segment_are_found(tmp_path: Path, key: bytes) -> None:
    made = sealed_day(tmp_path)
    segment = segment_of(tmp_path, made.seals[2])
    content = bytearray(segment.read_bytes())
    begin, size = map(int, (pq.read_metadata(segment).metadata or {})[key].split())
    content[begin + size // 2] ^= 1
    segment.write_bytes(content)

    assert errors(made.verify()) == ["changed-segment"]


def test_a_segment_in_another_folder_is_found(tmp_path: Path) -> None:
    made = sealed_day(tmp_path)
    segment = segment_of(tmp_path, made.seals[2])
    other = tmp_path / f"date={DAY - NEXT}" / "hour=12" / segment.name
    other.parent.mkdir(parents=True, exist_ok=True)
    segment.rename(other)

    assert errors(made.verify()) == ["missing-segment"]
    assert errors(made.verify(DAY - NEXT)) == ["unsealed-segment"]


def test_rows_of_another_hour_than_their_folder_are_found(tmp_path: Path) -> None:
    made = sealed_day(tmp_path)
    seal = made.seals[2]
    path = Path(f"date={DAY}/hour=03/{Path(seal.segments[0].path).name}")
    table = pq.read_table(segment_of(tmp_path, seal), partitioning=None)
    entry = write_segment(made.storage, path, [table], seal.journal)
    assert entry is not None
    assert entry.misplaced == entry.rows
    write_seal(made.storage, replace(seal, segments=(*seal.segments, entry)))

    assert errors(made.verify()) == ["wrong-folder"]


@KEYS
def test_a_changed_seal_is_found(tmp_path: Path, key: bytes | None) -> None:
    made = sealed_day(tmp_path, key)
    path = file_of(tmp_path, made.seals[2])
    document = json.loads(path.read_bytes())
    document["rows"] += 1
    path.write_text(json.dumps(document))

    verified = made.verify()

    assert errors(verified) == ["forged-seal"]
    assert sum(not each.sealed for each in verified.segments) == 1


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"version": 1}', b'{"version": 9}', b"\0"])
def test_a_file_that_is_no_seal_is_found(tmp_path: Path, content: bytes) -> None:
    made = sealed_day(tmp_path)
    file_of(tmp_path, made.seals[2]).write_bytes(content)

    assert "forged-seal" in errors(made.verify())


def test_a_seal_under_another_name_is_found(tmp_path: Path) -> None:
    made = sealed_day(tmp_path)
    path = file_of(tmp_path, made.seals[2])
    shutil.copy2(path, path.with_name("east-1-000099.json"))

    (finding,) = made.verify().findings

    assert finding.rule == "forged-seal"
    assert f"is the seal of {path.relative_to(tmp_path)}" in finding.text


@pytest.mark.parametrize(
    "path",
    [
        "../secret.parquet",
        f"date={DAY}/hour=03/../../../secret.parquet",
        f"date={DAY}/hour=24/a.parquet",
        f"/date={DAY}/hour=03/a.parquet",
        f"date={DAY}/hour=03/.a.parquet",
        f"date={DAY}/hour=03/a.parquet\n",
    ],
)
def test_a_path_out_of_the_archive_is_refused(tmp_path: Path, path: str) -> None:
    made = sealed_day(tmp_path)
    seal = made.seals[2]
    bad = replace(seal, segments=(replace(seal.segments[0], path=path),)).signed(None)
    file_of(tmp_path, seal).write_bytes(bad.to_json())

    assert "forged-seal" in errors(made.verify())


def test_a_forger_without_the_key_is_found(tmp_path: Path) -> None:
    made = sealed_day(tmp_path, KEY)
    seal = made.seals[2]
    table = rows_at("east", [MIDNIGHT + SECOND])
    entry = write_segment(made.storage, Path(seal.segments[0].path), [table], seal.journal)
    assert entry is not None
    for forged, rule in (
        (replace(seal, segments=(entry,)).signed(b"a guess"), "forged-seal"),
        (replace(seal, segments=(entry,)).signed(None), "unsigned-seal"),
    ):
        file_of(tmp_path, seal).write_bytes(forged.to_json())
        assert errors(made.verify()) == [rule]


def test_keyed_seals_without_a_key_are_a_warning(tmp_path: Path) -> None:
    made = sealed_day(tmp_path, KEY)

    verified = verify_day(made.storage, DAY, today=AFTER)

    assert (errors(verified), warnings(verified)) == ([], ["unchecked-seals"])


def test_another_content_of_a_predecessor_is_found(tmp_path: Path) -> None:
    made = sealed_day(tmp_path)
    write_seal(made.storage, replace(made.seals[2], digest="0" * 64))

    assert errors(made.verify()) == ["forked-chain"]


def test_two_gateways_of_one_name_are_found(tmp_path: Path) -> None:
    made = sealed_day(tmp_path, gateways=("east",))
    made.links.clear()
    made.add("east", MIDNIGHT - HOUR, NOON, start=START + 1)
    made.add("east", NOON, MIDNIGHT + 25 * HOUR, start=START + 1, end=End.STOPPED)

    verified = made.verify()

    assert errors(verified) == ["forked-chain"]
    assert "give each gateway its own name" in str(verified.findings)


def test_two_successors_of_one_journal_are_found(tmp_path: Path) -> None:
    made = sealed_day(tmp_path, gateways=("east",))
    made.add("east", NOON, NOON + HOUR, start=START + 1, previous=made.seals[2].link)

    assert "forked-chain" in errors(made.verify())


@pytest.mark.parametrize("end", [End.STOPPED, End.CLOSED, End.KILLED])
def test_a_new_chain_is_an_error(tmp_path: Path, end: End) -> None:
    made = chained(tmp_path)
    made.add("east", MIDNIGHT - HOUR, NOON, end=end)
    made.links.clear()
    made.add("east", NOON + HOUR, MIDNIGHT + 25 * HOUR, start=START + 1)

    assert "new-chain" in errors(made.verify())


def test_a_new_buffer_of_a_remote_archive_begins_a_new_chain_after_a_stop(bucket: Bucket) -> None:
    bucket.start()
    made = Chained(RemoteStorage(bucket.url))
    made.add("east", MIDNIGHT - HOUR, NOON, end=End.STOPPED)
    made.links.clear()
    made.add("east", NOON + HOUR, MIDNIGHT + 25 * HOUR, start=START + 1)

    assert (errors(made.verify()), warnings(made.verify())) == ([], ["new-chain"])


def test_a_killed_journal_is_a_warning_and_a_pause(tmp_path: Path) -> None:
    made = chained(tmp_path)
    made.add("east", MIDNIGHT - HOUR, NOON, end=End.KILLED)
    made.add("east", NOON + HOUR, NOON + 2 * HOUR, start=START + 1, end=End.STOPPED)

    verified = made.verify()

    assert (errors(verified), warnings(verified)) == ([], ["killed-journal"])
    assert verified.pauses == (
        NotRunning("east", NOON, NOON + HOUR),
        NotRunning("east", NOON + 2 * HOUR, MIDNIGHT + 24 * HOUR),
    )


def test_a_gateway_that_stopped_days_ago_did_not_run(tmp_path: Path) -> None:
    made = chained(tmp_path)
    made.add("east", NOON - 72 * HOUR, NOON - 71 * HOUR, end=End.STOPPED)
    made.add("east", NOON + 72 * HOUR, NOON + 73 * HOUR, end=End.STOPPED, start=START + 1)

    verified = made.verify()

    assert verified.findings == ()
    assert verified.pauses == (NotRunning("east", MIDNIGHT, MIDNIGHT + 24 * HOUR),)


@pytest.mark.parametrize("taken", [None, 3], ids=["nothing-removed", "removed-up-to-3"])
def test_all_journals_of_a_process_before_its_first_seal_are_missing(
    tmp_path: Path, taken: int | None
) -> None:
    """Their seals were lost together, and only the last of them is named."""
    made = chained(tmp_path)
    start = MIDNIGHT - 60 * HOUR
    link = Previous(str(JournalName("east", start, 6)), "d" * 64, MIDNIGHT + 48 * HOUR)
    made.add(
        "east", link.closed, link.closed + HOUR, start=start, previous=link, end=End.STOPPED
    )  # fmt: skip
    if taken is not None:
        state_removal(made.storage, DAY, [JournalName("east", start, taken)], None)

    found = [errors(made.verify(DAY + each * NEXT)) for each in (-2, 0, 1, 2, 3)]

    assert ["missing-seal" in each for each in found] == [taken is None, True, True, True, False]


def test_journals_of_earlier_processes_are_missing_before_a_first_seal(tmp_path: Path) -> None:
    """A machine was lost, and then the first seal of the next one: nothing names its journal."""
    made = chained(tmp_path)
    start = MIDNIGHT + 25 * HOUR
    link = Previous(str(JournalName("east", start, 6)), "d" * 64, start + HOUR)
    made.add("east", link.closed, link.closed + HOUR, start=start, previous=link, end=End.STOPPED)

    missing = []
    for taken in (5, 4):
        state_removal(made.storage, DAY, [JournalName("east", START, taken)], None)
        found = (errors(made.verify(DAY + each * NEXT)) for each in (-2, 0, 1))
        missing.append(["missing-seal" in each for each in found])
        shutil.rmtree(tmp_path / "_removed")

    assert missing == [[False, False, True], [False, True, True]]


def test_the_chain_begins_where_older_dates_were_removed(tmp_path: Path) -> None:
    made = sealed_day(tmp_path, gateways=("east",))
    remove_days(made.storage, DAY)

    verified = made.verify()

    assert (errors(verified), warnings(verified)) == ([], ["chain-begins"])


def test_the_first_dates_of_an_archive_are_missing_where_no_removal_took_them(
    tmp_path: Path,
) -> None:
    """A signed statement would say so; the dates after them are whole."""
    made = sealed_day(tmp_path, gateways=("east",))
    for folder in ("", "_seals"):
        shutil.rmtree(tmp_path / folder / f"date={DAY - NEXT}")

    whole = verify_archive(made.storage, today=AFTER)

    assert "missing-seal" in errors(whole)
    assert made.verify().findings == ()


def test_a_date_without_seals_is_an_error(tmp_path: Path) -> None:
    made = sealed_day(tmp_path)
    shutil.rmtree(tmp_path / "_seals")

    found = made.verify()

    assert ("no-seals", f"date={DAY}") in {(each.rule, each.place) for each in found.findings}
    assert errors(found) == ["missing-seal", "missing-seal", "no-seals"], "and by their heads"
    assert len(found.segments) == 4
    assert errors(verify_archive(made.storage, today=AFTER)).count("no-seals") == 3


def test_a_date_before_the_archive_is_an_error(tmp_path: Path) -> None:
    assert errors(chained(tmp_path).verify()) == ["no-seals"]
    assert errors(sealed_day(tmp_path).verify(DAY - 30 * NEXT)) == ["no-seals"]


def test_damages_of_a_journal_are_errors(tmp_path: Path) -> None:
    made = sealed_day(tmp_path)
    damages = (SealedDamage(300, 20, "damaged record skipped"), SealedDamage(400, 80, CUT))
    write_seal(made.storage, replace(made.seals[2], damages=damages))

    assert errors(made.verify()) == ["damaged-journal", "torn-journal"]


def test_many_findings_of_one_kind_are_counted(tmp_path: Path) -> None:
    made = sealed_day(tmp_path, gateways=("east",))
    segment = segment_of(tmp_path, made.seals[2])
    for number in range(50):
        shutil.copy2(segment, segment.with_name(f"copy-{number}.parquet"))

    findings = made.verify().findings

    assert len(findings) == 21
    assert "(and 29 more of this kind)" in findings[-1].text


@pytest.mark.parametrize("remote", [False, True])
def test_a_journal_that_is_lost_after_a_stop_is_found_for_ever(
    tmp_path: Path, bucket: Bucket, *, remote: bool
) -> None:
    """The writer comes back two dates later, and its first seal names the lost journal."""
    if remote:
        bucket.start()
    made = Chained(RemoteStorage(bucket.url) if remote else LocalStorage(tmp_path))
    for number in range(9):  # another writer has seals of each date
        begin, end = MIDNIGHT + (number - 1) * 24 * HOUR, End.STOPPED if number == 8 else End.CLOSED
        made.add("west", begin + HOUR, begin + 25 * HOUR, end=end)
    made.add("east", MIDNIGHT - HOUR, NOON, end=End.STOPPED)
    lost = made.add("east", NOON + HOUR, NOON + 2 * HOUR, start=NOON + HOUR)
    back = NOON + 48 * HOUR
    made.add("east", back, back + HOUR, end=End.STOPPED, start=back)
    made.add("east", back + 96 * HOUR, back + 97 * HOUR, end=End.STOPPED, start=back + 96 * HOUR)
    assert errors(made.verify()) == []
    made.storage.delete(seal_path(lost))
    made.storage.delete(Path(lost.segments[0].path))

    dates = [DAY + number * NEXT for number in range(-1, 7)]
    found = {day for day in dates if "missing-seal" in errors(made.verify(day))}

    assert DAY in found
    assert found <= set(dates[1:4]), "the writer was back on the third date"
    assert errors(verify_archive(made.storage, today=AFTER)) == ["missing-seal"]


def test_a_verification_lists_the_seals_of_each_date_once(tmp_path: Path) -> None:
    """A dead writer, of which nothing follows, costs no further look at any date."""
    made = Chained(LocalStorage(tmp_path))
    made.add("dead", MIDNIGHT, NOON, end=End.KILLED)
    begin = MIDNIGHT
    for number in range(12):
        made.add("west", begin, end := MIDNIGHT + (number + 1) * 24 * HOUR + SECOND)
        begin = end
    listed: list[Path] = []

    class Watched(LocalStorage):
        def names(self, folder: Path) -> list[str]:
            listed.append(folder)
            return super().names(folder)

    verify_archive(Watched(tmp_path), today=DAY + 30 * NEXT)

    assert max(Counter(each for each in listed if each.parent.name == "_seals").values()) == 1


def test_seals_that_are_removed_without_their_rows_begin_no_archive(tmp_path: Path) -> None:
    made = chained(tmp_path)
    begin = MIDNIGHT
    for number in range(3):
        made.add("east", begin, end := MIDNIGHT + (number + 1) * 24 * HOUR + SECOND)
        begin = end
    first = made.seals[0]
    assert seal_path(first).parent.name == f"date={DAY + NEXT}"
    file_of(tmp_path, first).unlink()
    file_of(tmp_path, first).parent.rmdir()

    assert "missing-seal" in errors(made.verify(DAY + NEXT))


def test_a_lost_journal_is_no_error_of_the_date_on_which_the_next_one_was_closed(
    tmp_path: Path,
) -> None:
    """Its successor was open by then: it has all rows of that date."""
    made = chained(tmp_path)
    made.add("east", MIDNIGHT - 40 * HOUR, MIDNIGHT - 30 * HOUR)
    lost = made.add("east", MIDNIGHT - 30 * HOUR, MIDNIGHT - 20 * HOUR, end=End.STOPPED)
    made.add("west", MIDNIGHT - 22 * HOUR, MIDNIGHT - HOUR, end=End.STOPPED)
    made.add("east", MIDNIGHT - 2 * HOUR, MIDNIGHT + SECOND)
    made.add("east", MIDNIGHT + SECOND, MIDNIGHT + 24 * HOUR + SECOND, end=End.STOPPED)
    file_of(tmp_path, lost).unlink()
    segment_of(tmp_path, lost).unlink()

    assert errors(made.verify(DAY - NEXT)) == ["missing-seal"]
    assert errors(made.verify()) == []
