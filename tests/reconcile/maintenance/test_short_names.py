"""The dictionary of shortened names: what it lists, what it finds wrong, and what it survives."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from gateway.archive.layout import PAIRS
from gateway.archive.location import Place
from gateway.archive.lookup.name_lookup import find
from gateway.archive.storage import Here
from gateway.dialects.base import parse_subject
from gateway.dialects.registry import DIALECTS
from gateway.errors import ArchiveError
from gateway.reconcile.maintenance.compact import compact
from gateway.reconcile.maintenance.short_names_job import Lexicon, build
from gateway.translate.shorten import digest_of
from tests.archive.samples import DAY, NOON
from tests.reconcile.shortening import DAY_LONG, Sender, long_name

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]


def silent(_: str) -> None:
    return None


def made(spark: SparkSession, root: Path, oldest: date | None = None) -> Lexicon:
    return build(spark, Place(root), oldest, silent)


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


def rules(done: Lexicon) -> list[tuple[str, str, str]]:
    return [(each.weight.value, each.rule, each.place) for each in done.findings]


def test_all_gateways_names_are_one_table(spark: SparkSession, tmp_path: Path) -> None:
    east, west = Sender(tmp_path, "east"), Sender(tmp_path, "w est")
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

    assert made(spark, tmp_path) == Lexicon(4, 3, 3)
    found = table(tmp_path)
    assert list(found) == [("", idle[-27:]), ("erp", deep), ("hub", dotted), ("rack", tagged)]
    assert found["erp", deep] == {
        "target": "erp", "system": "ems", "name": deep, "digest": deep[-27:],
        "levels": levels(long_name(1)), "whole": long_name(1).replace("/", "."),
        "sources": [long_name(1)], "gateways": ["east", "w est"], "count": 4,
        "first_time": moment(NOON - 7), "last_time": moment(NOON + DAY_LONG),
    }  # fmt: skip
    assert found["hub", dotted]["whole"] == long_name(2) + "/a.b é"
    assert (found["rack", tagged]["count"], found["rack", tagged]["system"]) == (2, "yami4")
    unsent = found["", idle[-27:]]
    assert (unsent["levels"], unsent["count"]) == (levels(long_name(4)), 0)
    assert unsent["gateways"] == ["east"]


LOOK_ALIKES = [
    pytest.param("mqtt", "a/x.~{d}", "a/x.~{d}", id="another-systems-separator"),
    pytest.param("mqtt", "a/~{d}", "a/~{d}", id="it-came-like-that"),
    pytest.param("ems", "a/~{d}", "a.~~{d}", id="told-apart-by-a-second-tilde"),
    pytest.param("ems", "a/b", "a.~{d}.b", id="not-the-last-level"),
    pytest.param("ems", "a/b", "a.~{d}9", id="longer"),
    pytest.param("martian", "a/b", "a.~{d}", id="a-system-of-nobody"),
]


def test_pairs_are_believed_when_their_digest_proves_them(
    spark: SparkSession, tmp_path: Path
) -> None:
    forgetful = Sender(tmp_path, "west", noting=False)
    lost = forgetful.send(long_name(2), "erp", "ems")
    forgetful.close()
    sender = Sender(tmp_path)
    name = sender.send(long_name(1), "erp", "ems")
    sender.put("a/b", "hub", "smf", f"elsewhere/{name[-27:]}")
    sender.put("a/b", "hub", "smf", f"a/~{'b' * 26}")
    for case in LOOK_ALIKES:
        system, source, alike = (str(text).format(d="a" * 26) for text in case.values)
        sender.put(source, str(case.id), system, alike)
    sender.close()

    done = made(spark, tmp_path)

    assert rules(done) == [("error", "contrary-name", PAIRS), ("error", "unknown-name", PAIRS)]
    assert ["'a/b'" in each.text for each in done.findings] == [True, True]
    unknown = ("hub", f"a/~{'b' * 26}")
    found = table(tmp_path)
    assert set(found) == {("erp", lost), ("erp", name), ("hub", f"elsewhere/{name[-27:]}"), unknown}
    assert found["erp", lost]["levels"] == levels(long_name(2))
    assert found["erp", name]["levels"] == levels(long_name(1))
    assert (found[unknown]["levels"], found[unknown]["sources"]) == (None, ["a/b"])


def line(source: str, digest: str | None = None) -> str:
    own = levels(source)
    return json.dumps({"digest": digest or digest_of(own), "levels": own})


def test_bad_lines_are_told_with_their_place_and_cost_no_other(
    spark: SparkSession, tmp_path: Path
) -> None:
    names = tmp_path / "_names"
    names.mkdir()
    bad = ["[1]", "no json", '{"digest": 3, "levels": ["a"]}', '{"digest": "~a", "levels": "ab"}']
    bad += [
        '{"digest": "~a"}',
        "\udcff",
        '{"digest": "~a", "levels": [["a"]]}',
        '{"digest": "~a", "levels": ["\\ud800"]}',
        '"x"',
    ]
    contrary = line(long_name(2), digest_of(levels(long_name(1))))
    distant = json.dumps({**json.loads(line(long_name(3))), "time": 10**30})
    content = [line(long_name(1)), *bad, contrary, distant, '{"digest": "~a", "le']
    (names / "edge.jsonl").write_text("\n".join(content), errors="surrogateescape")

    done = made(spark, tmp_path)

    assert (done.names, sorted(rules(done))) == (
        2,
        sorted(
            [
                *[("error", "bad-line", f"_names/edge.jsonl:{number}") for number in range(2, 11)],
                ("error", "contrary-name", "_names/edge.jsonl:11"),
                ("warning", "torn-line", "_names/edge.jsonl:13"),
            ]
        ),
    )
    (told,) = (each for each in done.findings if each.rule == "contrary-name")
    assert digest_of(levels(long_name(2))) in told.text


def test_a_name_stays_as_long_as_a_day_that_uses_it(spark: SparkSession, tmp_path: Path) -> None:
    sender = Sender(tmp_path)
    name = sender.send(long_name(1), "erp", "ems", [NOON])
    idle = sender.note(long_name(2), "ems")
    sender.close()
    (file,) = (tmp_path / "_names").iterdir()
    old = [json.loads(each) for each in file.read_text().splitlines() if each]
    timeless = {"digest": digest_of(levels(long_name(3))), "levels": levels(long_name(3))}
    stamped = [{**each, "time": NOON - 90 * DAY_LONG} for each in old]
    file.write_text("".join(json.dumps(each) + "\n" for each in (*stamped, timeless)))

    assert made(spark, tmp_path, DAY).names == 2
    assert set(table(tmp_path)) == {("erp", name), ("", timeless["digest"])}
    assert ("", idle[-27:]) not in table(tmp_path)
    for folder in ("", "_digests/", "_pairs/"):
        shutil.rmtree(tmp_path / f"{folder}date={DAY}")
    assert made(spark, tmp_path, DAY).names == 1
    assert set(table(tmp_path)) == {("", timeless["digest"])}


def test_names_count_once_whatever_file_they_are_in(spark: SparkSession, tmp_path: Path) -> None:
    sender = Sender(tmp_path)
    name = sender.send(long_name(1), "erp", "ems", [NOON, NOON + DAY_LONG // 24])
    sender.close()
    pairs = sorted((tmp_path / PAIRS).glob("*/*/*"))
    pairs[0].unlink()  # too many to keep, or a crash: the rows are read
    made(spark, tmp_path)
    before = table(tmp_path)
    kept = [path.relative_to(tmp_path) for path in tmp_path.glob("*/*/*/*.parquet")]
    kept += [path.relative_to(tmp_path) for path in tmp_path.glob("date=*/*/*.parquet")]
    for path in kept:
        (tmp_path / "copy" / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(tmp_path / path, tmp_path / "copy" / path)

    compact(tmp_path, DAY, silent)
    shutil.copytree(tmp_path / "copy", tmp_path, dirs_exist_ok=True)  # replaced and not yet gone
    shutil.rmtree(tmp_path / "copy")
    done = made(spark, tmp_path)

    assert done.findings == ()
    assert table(tmp_path) == before
    assert before["erp", name]["count"] == 2


@pytest.mark.parametrize("old", [True, False], ids=["an-old-day", "a-kept-day"])
def test_a_file_that_goes_meanwhile_is_told(
    spark: SparkSession, tmp_path: Path, *, old: bool
) -> None:
    sender = Sender(tmp_path)
    name = sender.send(long_name(1), "erp", "ems", [NOON, NOON + DAY_LONG])
    sender.close()
    said: list[str] = []

    def say(step: str) -> None:
        said.append(step)
        if step == "writing the dictionary":  # what the converter does
            for folder in ("_digests", PAIRS, "."):
                shutil.rmtree(tmp_path / folder / f"date={DAY}")

    oldest = date.fromordinal(DAY.toordinal() + old)
    done = build(spark, Place(tmp_path), oldest, say)

    assert table(tmp_path)["erp", name]["count"] == 1
    assert rules(done) == ([] if old else [("error", "vanished-file", f"date={DAY}")])
    assert any("went meanwhile" in step for step in said) == old


def test_a_file_that_cannot_be_read_costs_its_own_names(
    spark: SparkSession, tmp_path: Path
) -> None:
    sender = Sender(tmp_path)
    sender.send(long_name(1), "erp", "ems", [NOON])
    name = sender.send(long_name(2), "erp", "ems", [NOON + DAY_LONG])
    sender.close()
    (bad,) = (tmp_path / PAIRS / f"date={DAY}").glob("*/*")
    bad.write_text("no Parquet")

    done = made(spark, tmp_path)

    assert rules(done) == [("error", "unreadable-file", PAIRS)]
    assert bad.name in done.findings[0].text
    assert ("erp", name) in table(tmp_path)


QUESTIONS: list[Callable[[str], str]] = [
    lambda name: name,
    lambda name: name[-27:],
    lambda _: long_name(1),
    lambda _: long_name(1).replace("/", "."),
]


class Crash(BaseException):
    """Stands for the end of the process: nothing may catch it."""


def test_a_name_is_found_short_whole_and_as_it_came_while_a_new_table_is_made(
    spark: SparkSession, tmp_path: Path
) -> None:
    with pytest.raises(ArchiveError, match="is absent"):
        list(find(Here(tmp_path), "x"))
    sender = Sender(tmp_path)
    name = sender.send(long_name(1), "erp", "ems")
    sender.send(long_name(2), "erp", "ems")
    sender.close()
    made(spark, tmp_path)

    def say(step: str) -> None:
        if step == "writing the dictionary":
            raise Crash

    with pytest.raises(Crash):
        build(spark, Place(tmp_path), None, say)

    for question in QUESTIONS:
        (found,) = find(Here(tmp_path), question(name))
        assert (found.target, found.name, found.levels) == ("erp", name, levels(long_name(1)))
    assert list(find(Here(tmp_path), "nothing")) == []
