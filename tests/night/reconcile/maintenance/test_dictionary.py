"""The dictionary of shortened names: its entries, its findings, and interrupted builds."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from gateway.archive.journal.records import Rows
from gateway.archive.location import ArchiveLocation, parse_location
from gateway.archive.storage import LocalStorage
from gateway.dialects.base import parse_subject
from gateway.dialects.registry import DIALECTS
from gateway.errors import ArchiveError, GatewayError
from gateway.night.archive.lookup.name_lookup import find_name
from gateway.night.archive.segments import write
from gateway.night.archive.segments.pairs import MAX_PAIRS, every_pair_of
from gateway.night.archive.segments.tables import to_table
from gateway.night.reconcile.maintenance.compact import compact
from gateway.night.reconcile.maintenance.dictionary import ShortNameReport, build_dictionary
from gateway.translate.shorten import digest_of
from gateway.trial.synthetic.sealed_rows import write_sealed
from tests.archive.samples import DAY, NOON
from tests.night.reconcile import shortening
from tests.night.reconcile.shortening import DAY_LONG, Sender, long_name


def silent(_text: str, _share: float | None = None) -> None:
    return None


def made(root: Path, oldest: date | None = None) -> ShortNameReport:
    return build_dictionary(ArchiveLocation(root), oldest, silent)


def table(root: Path) -> dict[tuple[str, str], dict[str, Any]]:
    """The rows of the dictionary by target and name."""
    rows = pq.read_table(root / "_dictionary", partitioning=None).to_pylist()
    found = {(row["target"], row["name"]): row for row in rows}
    assert len(found) == len(rows)
    return found


def moment(micros: int) -> datetime:
    return datetime.fromtimestamp(micros / 1_000_000, UTC)


def levels(source: str) -> list[str]:
    return list(parse_subject(source, DIALECTS["mqtt"]).levels)


def rules(done: ShortNameReport) -> list[tuple[str, str, str]]:
    return [(each.weight.value, each.rule, each.place) for each in done.findings]


LOOK_ALIKES = [
    ("mqtt", "a/x.~{d}", "a/x.~{d}", "another-systems-separator"),
    ("mqtt", "a/~{d}", "a/~{d}", "it-came-like-that"),
    ("ems", "a/~{d}", "a.~~{d}", "distinguished-by-a-second-tilde"),
    ("ems", "a/b", "a.~{d}.b", "not-the-last-level"),
    ("ems", "a/b", "a.~{d}9", "longer"),
    ("martian", "a/b", "a.~{d}", "an-unknown-system"),
]
BAD_LINES = [
    "[1]",
    "no json",
    '{"digest": 3, "levels": ["a"]}',
    '{"digest": "~a", "levels": "ab"}',
    '{"digest": "~a"}',
    "\udcff",
    '{"digest": "~a", "levels": [["a"]]}',
    '{"digest": "~a", "levels": ["\\ud800"]}',
    '"x"',
]


@dataclass(frozen=True)
class Archive:
    """An archive with every kind of name, and the dictionary built from it."""

    root: Path
    sent: dict[str, str]  # the short names, by their part in a test
    done: ShortNameReport

    def rows(self, *targets: str) -> dict[tuple[str, str], dict[str, Any]]:
        """The rows of these targets, by target and name."""
        return {key: row for key, row in table(self.root).items() if key[0] in targets}

    def findings(self, place: str) -> list[tuple[str, str, str]]:
        return [found for found in rules(self.done) if found[2].startswith(place)]


@pytest.fixture(scope="module")
def listed(tmp_path_factory: pytest.TempPathFactory) -> Archive:
    root = tmp_path_factory.mktemp("names")
    sent = {
        **two_gateways_share_a_name(root),
        **pairs_without_a_name_file(root),
        **an_unreadable_segment(root),
    }
    name_file_with_bad_lines(root)
    return Archive(root, sent, made(root))


def two_gateways_share_a_name(root: Path) -> dict[str, str]:
    east, west = Sender(root, "east"), Sender(root, "w est")
    deep = east.send(long_name(1), "erp", "ems", [NOON, NOON + 1, NOON + DAY_LONG])
    assert west.send(long_name(1), "erp", "ems", [NOON - 7]) == deep
    dotted = east.send(long_name(2) + "/a.b é", "hub", "smf")
    tagged = west.note(long_name(3), "ems")  # a legal tag, too
    west.put(long_name(3), "rack", "yami4", tagged, [NOON])
    west.put(long_name(3), "rack", "yami4", f"other,{tagged}", [NOON + 5])
    idle = east.note(long_name(4), "ems")
    east.send("short/enough", "erp", "ems")
    east.close()
    west.close()
    return {"deep": deep, "dotted": dotted, "tagged": tagged, "idle": idle}


def pairs_without_a_name_file(root: Path) -> dict[str, str]:
    forgetful = Sender(root, "forgetful", noting=False)
    lost = forgetful.send(long_name(12), "lost", "ems")
    forgetful.close()
    sender = Sender(root, "exact")
    name = sender.send(long_name(11), "known", "ems")
    sender.put("a/b", "contrary", "smf", f"elsewhere/{name[-27:]}")
    sender.put("a/b", "unknown", "smf", f"a/~{'b' * 26}")
    for system, source, alike, target in LOOK_ALIKES:
        sender.put(source.format(d="a" * 26), target, system, alike.format(d="a" * 26))
    sender.close()
    return {"lost": lost, "known": name}


def an_unreadable_segment(root: Path) -> dict[str, str]:
    sender = Sender(root, "damaged")
    sender.send(long_name(31), "damaged", "ems", [NOON])
    name = sender.send(long_name(32), "damaged", "ems", [NOON + DAY_LONG])
    sender.close()
    (bad,) = (root / f"date={DAY}").glob("*/damaged-*")
    bad.write_text("no Parquet")
    return {"beside the damaged": name}


def name_file_with_bad_lines(root: Path) -> None:
    contrary = line(long_name(22), digest_of(levels(long_name(21))))
    distant = json.dumps({**json.loads(line(long_name(23))), "time": 10**30})
    content = [line(long_name(21)), *BAD_LINES, contrary, distant, '{"digest": "~a", "le']
    path = root / "_names" / "edge.jsonl"
    path.write_text("\n".join(content), errors="surrogateescape")


def line(source: str, digest: str | None = None) -> str:
    own = levels(source)
    return json.dumps({"digest": digest or digest_of(own), "levels": own})


def test_the_names_of_all_gateways_are_in_one_table(listed: Archive) -> None:
    deep, dotted, tagged = (listed.sent[part] for part in ("deep", "dotted", "tagged"))
    found = listed.rows("erp", "hub", "rack")

    assert list(found) == [("erp", deep), ("hub", dotted), ("rack", tagged)]
    assert found["erp", deep] == {
        "target": "erp", "system": "ems", "name": deep, "digest": deep[-27:],
        "levels": levels(long_name(1)), "whole": long_name(1).replace("/", "."),
        "sources": [long_name(1)], "gateways": ["east", "w est"], "count": 4,
        "first_time": moment(NOON - 7), "last_time": moment(NOON + DAY_LONG),
    }  # fmt: skip
    assert found["hub", dotted]["whole"] == long_name(2) + "/a.b é"
    assert (found["rack", tagged]["count"], found["rack", tagged]["system"]) == (2, "yami4")


def test_a_name_that_was_never_sent_is_listed_without_a_target(listed: Archive) -> None:
    unsent = listed.rows("")["", listed.sent["idle"][-27:]]

    assert (unsent["levels"], unsent["count"]) == (levels(long_name(4)), 0)
    assert unsent["gateways"] == ["east"]


def test_an_unrecorded_name_is_recovered_when_its_digest_proves_it(listed: Archive) -> None:
    lost, known = ("lost", listed.sent["lost"]), ("known", listed.sent["known"])
    contrary = ("contrary", f"elsewhere/{known[1][-27:]}")
    unknown = ("unknown", f"a/~{'b' * 26}")
    found = listed.rows("lost", "known", "contrary", "unknown")

    assert set(found) == {lost, known, contrary, unknown}
    assert found[lost]["levels"] == levels(long_name(12))
    assert found[known]["levels"] == levels(long_name(11))
    assert (found[unknown]["levels"], found[unknown]["sources"]) == (None, ["a/b"])
    findings = [
        each for each in listed.done.findings if each.rule in ("contrary-name", "unknown-name")
    ]
    findings = [each for each in findings if each.place == "name pairs"]
    assert sorted(each.rule for each in findings) == ["contrary-name", "unknown-name"]
    assert ["'a/b'" in each.text for each in findings] == [True, True]


def test_names_that_only_look_shortened_are_not_listed(listed: Archive) -> None:
    assert listed.rows(*(target for *_, target in LOOK_ALIKES)) == {}


def test_bad_lines_are_findings_and_the_others_count(listed: Archive) -> None:
    assert sorted(listed.findings("_names/edge.jsonl")) == sorted(
        [
            *[("error", "bad-line", f"_names/edge.jsonl:{number}") for number in range(2, 11)],
            ("error", "contrary-name", "_names/edge.jsonl:11"),
            ("warning", "torn-line", "_names/edge.jsonl:13"),
        ]
    )
    (finding,) = (each for each in listed.done.findings if each.place == "_names/edge.jsonl:11")
    assert digest_of(levels(long_name(22))) in finding.text
    kept = {digest_of(levels(long_name(number))) for number in (21, 23)}
    assert kept <= {name for _, name in listed.rows("")}


def test_a_file_that_cannot_be_read_costs_its_own_names(listed: Archive) -> None:
    (finding,) = (each for each in listed.done.findings if each.rule == "unreadable-file")

    assert finding.weight.value == "error"
    assert finding.place.startswith(f"date={DAY}/hour=12/damaged-")
    assert ("damaged", listed.sent["beside the damaged"]) in listed.rows("damaged")


def test_the_report_counts_what_is_listed(listed: Archive) -> None:
    rows = table(listed.root)

    assert listed.done.names == len({row["digest"] for row in rows.values()})
    assert listed.done.sent == len({row["digest"] for row in rows.values() if row["count"]})
    assert listed.done.targets == len({target for target, _ in rows if target})


def test_a_name_stays_as_long_as_a_day_that_uses_it(tmp_path: Path) -> None:
    sender = Sender(tmp_path)
    name = sender.send(long_name(1), "erp", "ems", [NOON])
    idle = sender.note(long_name(2), "ems")
    sender.close()
    (file,) = (tmp_path / "_names").glob("*.jsonl")
    old = [json.loads(each) for each in file.read_text().splitlines() if each]
    timeless = {"digest": digest_of(levels(long_name(3))), "levels": levels(long_name(3))}
    stamped = [{**each, "time": NOON - 90 * DAY_LONG} for each in old]
    file.write_text("".join(json.dumps(each) + "\n" for each in (*stamped, timeless)))

    assert made(tmp_path, DAY).names == 2
    assert set(table(tmp_path)) == {("erp", name), ("", timeless["digest"])}
    assert ("", idle[-27:]) not in table(tmp_path)
    shutil.rmtree(tmp_path / f"date={DAY}")
    assert made(tmp_path, DAY).names == 1
    assert set(table(tmp_path)) == {("", timeless["digest"])}


def sealed_here(root: Path, *batches: Rows, gateway: str) -> None:
    """Seal the rows in this process."""
    rows, _ = to_table(batches)
    gateways = pa.array([gateway] * len(rows))
    rows = rows.set_column(0, rows.schema.field(0), gateways)
    write_sealed(LocalStorage(root), f"{gateway}-1-000000", rows, gateway=gateway)


@pytest.mark.nightly
@pytest.mark.spark
@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
def test_names_count_once_whatever_file_they_are_in(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repeats = iter([MAX_PAIRS + 1])  # of the first segment: then its rows are read

    def pairs(rows: pa.Table) -> pa.Table:
        return pa.concat_tables([every_pair_of(rows)] * next(repeats, 1))

    monkeypatch.setattr(write, "every_pair_of", pairs)
    monkeypatch.setattr(shortening, "archive", sealed_here)
    sender = Sender(tmp_path)
    name = sender.send(long_name(1), "erp", "ems", [NOON, NOON + DAY_LONG // 24])
    sender.close()
    made(tmp_path)
    before = table(tmp_path)
    kept = [path.relative_to(tmp_path) for path in tmp_path.glob("date=*/*/*.parquet")]
    for path in kept:
        (tmp_path / "copy" / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(tmp_path / path, tmp_path / "copy" / path)

    assert compact(lambda: spark, ArchiveLocation(tmp_path), DAY, silent).findings == ()
    shutil.copytree(tmp_path / "copy", tmp_path, dirs_exist_ok=True)  # replaced and not yet gone
    shutil.rmtree(tmp_path / "copy")
    done = made(tmp_path)

    assert done.findings == ()
    assert table(tmp_path) == before
    assert before["erp", name]["count"] == 2


@pytest.mark.parametrize("old", [True, False], ids=["an-old-day", "a-kept-day"])
def test_a_file_removed_during_the_build_is_reported(tmp_path: Path, *, old: bool) -> None:
    sender = Sender(tmp_path)
    name = sender.send(long_name(1), "erp", "ems", [NOON, NOON + DAY_LONG])
    sender.close()
    steps: list[str] = []

    def show_step(step: str) -> None:
        steps.append(step)
        if step == "reading the shortened names":  # what the converter does
            shutil.rmtree(tmp_path / f"date={DAY}")

    oldest = date.fromordinal(DAY.toordinal() + old)
    done = build_dictionary(ArchiveLocation(tmp_path), oldest, show_step)

    assert table(tmp_path)["erp", name]["count"] == 1
    assert rules(done) == ([] if old else [("error", "vanished-file", f"date={DAY}")])
    assert any("removed meanwhile" in step for step in steps) == old


QUESTIONS: list[Callable[[str], str]] = [
    lambda name: name,
    lambda name: name[-27:],
    lambda _: long_name(1),
    lambda _: long_name(1).replace("/", "."),
]


class Crash(BaseException):
    """Stands for the end of the process: no code catches it."""


def test_a_name_is_found_by_short_whole_and_source_name_during_a_build(tmp_path: Path) -> None:
    with pytest.raises(ArchiveError, match="is absent"):
        list(find_name(LocalStorage(tmp_path), "x"))
    sender = Sender(tmp_path)
    name = sender.send(long_name(1), "erp", "ems")
    sender.send(long_name(2), "erp", "ems")
    sender.close()
    made(tmp_path)

    def show_step(step: str) -> None:
        if step == "writing the dictionary":
            raise Crash

    with pytest.raises(Crash):
        build_dictionary(ArchiveLocation(tmp_path), None, show_step)

    for question in QUESTIONS:
        (found,) = find_name(LocalStorage(tmp_path), question(name))
        assert (found.target, found.name, found.levels) == ("erp", name, levels(long_name(1)))
    assert list(find_name(LocalStorage(tmp_path), "nothing")) == []


def test_the_dictionary_of_a_remote_archive_is_built_there(tmp_path: Path) -> None:
    """Its files are reached by URL, through Arrow and through Hadoop, like S3 and HDFS."""
    remote = tmp_path / "remote"
    sender = Sender(remote)
    name = sender.send(long_name(1), "erp", "ems", [NOON])
    sender.close()
    location = ArchiveLocation(tmp_path / "buffer", f"file://{remote}")

    build_dictionary(location, DAY, silent)
    done = build_dictionary(location, DAY, silent)  # replaces the first

    assert (done.names, done.sent, done.findings) == (1, 1, ())
    assert set(table(remote)) == {("erp", name)}
    assert not (tmp_path / "buffer").exists()


@pytest.mark.parametrize("url", ["hdfs://127.0.0.1:1/x", "s3://bucket/x?colour=red"])
def test_an_unreachable_archive_is_an_error_of_one_line(url: str) -> None:
    with pytest.raises(GatewayError, match="archive") as caught:
        build_dictionary(parse_location(url), None, silent)

    assert "\n" not in str(caught.value)
