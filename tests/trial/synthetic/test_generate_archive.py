from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from datetime import date
from operator import itemgetter
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from gateway.cli import main
from gateway.errors import ArchiveError
from gateway.night.archive.segments.sets import blocks_of
from gateway.trial.synthetic.fault_manifest import MANIFEST
from gateway.trial.synthetic.faults import Fault, parse_faults
from gateway.trial.synthetic.generate_archive import generate
from gateway.trial.synthetic.traffic import Traffic
from tests.archived import read_rows, segments
from tests.night.archive.stored_sets import sets_of

DAY = date(2026, 3, 14)
EVERY = dict.fromkeys(Fault, 2)
SMALL = Traffic(3_000, DAY, routes=3, names=60, gateways=2, observed=True)


def slow_classes(root: Path) -> Counter[tuple[str, str, str]]:
    """Class, id and target of every copy that is an exception, by a simple model."""
    rows = [row for day in (DAY, date(2026, 3, 15)) for row in read_rows(root, day)]
    expected = {
        (row["id"], target): row
        for row in rows
        if row["leg"] == "received"
        for target in row["targets"]
    }
    ends: dict[tuple[bytes, str], list[dict[str, Any]]] = {key: [] for key in expected}
    seen = Counter((row["id"], row["target"]) for row in rows if row["leg"] == "observed")
    for row in rows:
        if row["leg"] in {"delivered", "dead"}:
            ends.setdefault((row["id"], row["target"]), []).append(row)
    found: Counter[tuple[str, str, str]] = Counter()
    for (identity, target), given in ends.items():
        for name in slow_class(expected.get((identity, target)), given, seen[identity, target]):
            found[name, identity.hex(), target] += 1
    found.update(("out of order", *key) for key in slow_disorder(rows))
    found.update(slow_cuts(rows))
    return found


def slow_cuts(rows: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    """Class, id and target of each cut; what it may repeat came at the same time or before."""
    found = []
    for row in (each for each in rows if each["leg"] == "cut"):
        equal = [
            each["time"]
            for each in rows
            if each["leg"] == "received"
            and all(each[name] == row[name] for name in ("gateway", "endpoint", "name", "hash"))
        ]
        name = "cut" if min(equal, default=None) == row["time"] else "cut on another's word"
        name = "left out" if row["rule"] == "unselected" else name
        found.append((name, row["id"].hex(), row["target"]))
    return found


def slow_class(received: dict[str, Any] | None, ends: list[dict[str, Any]], seen: int) -> list[str]:
    if received is None:
        return ["unexpected"]
    if not ends:
        return ["missing"]
    if ends[0]["leg"] == "dead":
        return ["refused"]
    if len(ends) > 1:
        return ["duplicated"]
    found = ["altered"] if ends[0]["hash"] != received["hash"] else []
    if (ends[0]["time"] - received["time"]).total_seconds() > 60:
        found.append("delivered late")
    return found or ([] if seen else ["lost in target"])


def slow_disorder(rows: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Ids and targets of deliveries that came before that of an earlier message of their name."""
    found, latest = [], dict[tuple[str, ...], Any]()
    delivered = [row for row in rows if row["leg"] == "delivered"]
    for row in sorted(delivered, key=lambda row: (row["gateway"], row["id"], row["time"])):
        key = (row["gateway"], row["route"], row["target"], row["source_name"])
        if key in latest and row["time"] < latest[key]:
            found.append((row["id"].hex(), row["target"]))
        latest[key] = max(row["time"], latest.get(key, row["time"]))
    return found


@pytest.mark.parametrize("minutes", [pytest.param(0, marks=pytest.mark.nightly), 45])
def test_an_archive_has_the_faults_of_its_manifest_and_no_other(
    tmp_path: Path, minutes: int
) -> None:
    injected = generate(tmp_path, SMALL, EVERY, fault_minutes=minutes, segment=800)

    listed = json.loads((tmp_path / MANIFEST).read_text())["faults"]
    found = Counter((each["class"], each["id"], each["target"]) for each in listed)
    assert found == slow_classes(tmp_path)
    assert injected == listed
    assert Counter(Fault(each["fault"]) for each in listed) == EVERY
    if minutes:
        assert len({each["minute"] for each in listed}) <= minutes


def test_ids_are_open_in_the_minutes_of_the_faults(tmp_path: Path) -> None:
    counts = {Fault.LOSS: 3, Fault.ALTER: 3, Fault.DUPLICATE: 3, Fault.UNEXPECTED: 3}
    injected = generate(tmp_path, replace(SMALL, observed=False), counts, segment=800)

    opened = {
        (row["gateway"], row["route"], row["target"], f"{row['minute']:%Y-%m-%dT%H:%MZ}")
        for path in segments(tmp_path, DAY)
        for row in sets_of(path).to_pylist()
        if row["open_first"]
    }

    place = itemgetter("gateway", "route", "target", "minute")
    faulty = set(map(place, injected))
    assert faulty <= opened
    assert {minute[-3:-1] for *_, minute in opened - faulty} <= {"59"}  # delivered in another hour


@pytest.mark.nightly
def test_clocks_of_gateways_differ_and_the_faults_stay_the_same(tmp_path: Path) -> None:
    skew = 90
    for name, clock_skew in (("even", 0), ("apart", skew)):
        generate(tmp_path / name, replace(SMALL, clock_skew=clock_skew), EVERY, segment=800)

    manifests = [json.loads((tmp_path / name / MANIFEST).read_text()) for name in ("even", "apart")]
    assert manifests[1]["clock_skew"] == skew
    listed = [{(each["class"], each["id"]) for each in one["faults"]} for one in manifests]
    assert listed[0] == listed[1] == {key[:2] for key in slow_classes(tmp_path / "apart")}
    first = [
        min(row["received"] for row in read_rows(tmp_path / "apart", DAY) if row["gateway"] == name)
        for name in ("gateway-1", "gateway-2")
    ]
    assert (first[1] - first[0]).total_seconds() == skew


@pytest.mark.nightly
def test_the_same_seed_gives_the_same_archive(tmp_path: Path) -> None:
    for name in ("one", "two"):
        generate(tmp_path / name, SMALL, EVERY)

    files = [
        {path.relative_to(root): path.read_bytes() for path in root.rglob("*") if path.is_file()}
        for root in (tmp_path / "one", tmp_path / "two")
    ]
    assert files[0] == files[1]
    generate(
        tmp_path / "three",
        replace(SMALL, gateways=1, observed=False, seed=2),
        EVERY | {Fault.UNOBSERVED: 0},
    )
    assert (tmp_path / "three" / MANIFEST).read_bytes() != files[0][MANIFEST]


@pytest.mark.nightly
def test_every_segment_has_its_sets_and_one_route_most_of_the_rows(tmp_path: Path) -> None:
    generate(tmp_path, Traffic(20_000, DAY, routes=5, skew=0.8), {}, segment=2_000)

    tables = [pq.read_table(path, partitioning=None) for path in segments(tmp_path, DAY)]
    for path, table in zip(segments(tmp_path, DAY), tables, strict=True):
        assert sets_of(path).equals(blocks_of(table))
    received = [table.filter(pc.equal(table["leg"], "received")) for table in tables]
    assert sum(len(table) for table in received) == 20_000
    first = sum(len(table.filter(pc.equal(table["route"], "route-1"))) for table in received)
    assert 0.78 < first / 20_000 < 0.82
    hours = {path.parent.name for path in segments(tmp_path, DAY)}
    assert len(hours) == 24


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        pytest.param("", {}, id="none"),
        pytest.param("loss=1e-3,dead=3", {Fault.LOSS: 10, Fault.DEAD: 3}, id="share-and-number"),
        pytest.param("alter=0", {Fault.ALTER: 0}, id="zero"),
    ],
)
def test_faults_are_shares_or_numbers(text: str, counts: dict[Fault, int]) -> None:
    assert parse_faults(text, 10_000) == counts


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param(
            "lost=3", "'lost=3' is no fault; write NAME=NUMBER with one of loss,", id="word"
        ),
        pytest.param("loss", "'loss' is no fault", id="no-number"),
        pytest.param("loss=-1", "'loss=-1' is not 0 or more", id="negative"),
        pytest.param("loss=inf", "'loss=inf' is not 0 or more", id="infinite"),
        pytest.param("loss=nan", "'loss=nan' is not 0 or more", id="no-number-at-all"),
        pytest.param("loss=2501", "2501 are too many for 10000 messages", id="too-many"),
    ],
)
def test_a_wrong_list_of_faults_is_an_error(text: str, reason: str) -> None:
    with pytest.raises(ArchiveError, match=reason):
        parse_faults(text, 10_000)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        pytest.param(["--messages", "0"], "--messages 0: is not 1 or more", id="no-messages"),
        pytest.param(["--names", "2"], "--names 2: each of 4 routes", id="few-names"),
        pytest.param(["--clock-skew", "-1"], "--clock-skew -1: is not 0 to an hour", id="clock"),
        pytest.param(["--skew", "2"], "--skew 2.0: is not a share", id="skew"),
        pytest.param(["--date", "today"], "'today' is no date", id="date"),
        pytest.param(["--faults", "lost=1"], "faults: 'lost=1' is no fault", id="fault"),
        pytest.param(["--fault-minutes", "1", "--faults", "loss=100"], "do not fit", id="crowded"),
    ],
)
def test_a_wrong_command_line_is_one_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], text: str
) -> None:
    command = ["archive", "generate", str(tmp_path), "--messages", "1000", *options]

    assert main(command) == 2
    assert text in capsys.readouterr().err


def test_the_command_writes_into_an_empty_day_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["archive", "generate", str(tmp_path / "a"), "--messages", "500"]
    command += ["--date", "2026-03-14", "--faults", "loss=2"]

    assert main(command) == 0
    assert "500 messages of 2026-03-14, 2 faults" in capsys.readouterr().out
    assert main(command) == 2
    assert "has rows of 2026-03-14 already" in capsys.readouterr().err
