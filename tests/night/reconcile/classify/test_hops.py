"""The class of a message between gateways, as executors find it."""

from __future__ import annotations

import json
import sys
import tracemalloc
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from gateway.archive.gaps import SourceGap
from gateway.archive.journal.records import Cell
from gateway.archive.location import ArchiveLocation
from gateway.archive.routes import write_routes
from gateway.archive.storage import LocalStorage
from gateway.config.load import load
from gateway.night.archive.open_archive import opened_at
from gateway.night.archive.segments.tables import schema_of
from gateway.night.reconcile.classify.hop_events import (
    EVENTS,
    HOP_KEYS,
    Event,
    HopScope,
    run_events,
)
from gateway.night.reconcile.classify.hops import hop_table, judge, with_waiting
from gateway.night.reconcile.input.hop_routes import find_hops
from gateway.night.reconcile.input.inputs import day_range, find_inputs
from gateway.night.reconcile.input.route_history import read_history
from gateway.routing.name_rules import to_rules
from tests.archive.samples import DAY, NOON, digest, identity
from tests.night.reconcile.hop_chain import CLOSED, HOUR, SECOND, Chain

MINUTE = 60 * SECOND
BOTH = pytest.mark.parametrize("ids", [True, False], ids=["ids", "hashes"])
FIRST, SECOND_HOP = ("plant", "bus", "core"), ("core", "hub", "office")


def found(root: Path, **options: Any) -> Counter[tuple[object, ...]]:  # noqa: ANN401  # of `judged`
    """The messages by gateway, broker, receiver and class, with the mark and the id's number."""
    _, messages = judged(root, **options)
    return counted(messages)


def judged(
    root: Path,
    *,
    gaps: Sequence[SourceGap] = (),
    until: int = CLOSED,
    late: int = 300,
    retired: Mapping[str, int] = MappingProxyType({}),
) -> tuple[HopScope, pa.Table]:
    location = ArchiveLocation(root)
    history, findings = read_history(LocalStorage(root), CLOSED, None)
    assert not findings
    hops, notes = find_hops(location, history.ended(retired))
    assert not notes
    scope = HopScope(
        hops, day_range(DAY), 0, gaps, dict.fromkeys(("plant", "core", "office"), until)
    )
    segments = find_inputs(opened_at(location), DAY).all
    events = pa.concat_tables(run_events(scope, segments))
    return scope, pa.concat_tables(judge(late * SECOND, events))


def counted(messages: pa.Table) -> Counter[tuple[object, ...]]:
    counts: Counter[tuple[object, ...]] = Counter()
    for row in messages.to_pylist():
        number = None if row["id"] is None else int(row["id"][16:], 16)
        mark = ("marked",) if row["marked"] else ()
        ends = (row["gateway"], row["broker"], row["receiver"])
        counts[(*ends, row["class"], number, *mark)] += row["copies"]
    return counts


def clean(number: int) -> Counter[tuple[object, ...]]:
    return Counter({(*hop, "delivered", None): number for hop in (FIRST, SECOND_HOP)})


@BOTH
def test_a_clean_chain_is_clean(tmp_path: Path, *, ids: bool) -> None:
    chain = Chain(ids)
    for number in range(20):
        chain.message(number, NOON + number * SECOND)
    chain.write(tmp_path / "archive")

    assert found(tmp_path / "archive") == clean(20)


@BOTH
def test_a_loss_at_a_broker_is_missing_at_that_hop_only(tmp_path: Path, *, ids: bool) -> None:
    chain = Chain(ids)
    chain.message(1, NOON)
    chain.relay("plant", 2, NOON)
    chain.relay("plant", 3, NOON)
    chain.relay("core", 3, NOON + SECOND)
    chain.write(tmp_path / "archive")

    assert found(tmp_path / "archive") == Counter(
        {
            (*FIRST, "delivered", None): 2,
            (*FIRST, "missing", 2): 1,
            (*SECOND_HOP, "delivered", None): 1,
            (*SECOND_HOP, "missing", 3): 1,
        }
    )


def test_with_ids_a_duplicate_is_found(tmp_path: Path) -> None:
    chain = Chain()
    for number in range(1, 7):
        chain.message(number, NOON)
    chain.receive("core", 2, NOON + SECOND, id=identity(102))
    chain.receive("core", 3, NOON + SECOND, id=identity(103), redelivered=True)
    chain.receive("core", 4, NOON + SECOND, id=identity(104), leg="cut", rule="duplicate")
    chain.deliver("plant", 5, NOON + SECOND, replayed=True)
    chain.receive("core", 5, NOON + 2 * SECOND, id=identity(105))
    chain.write(tmp_path / "archive")

    assert found(tmp_path / "archive") - clean(9) == Counter(
        {
            (*FIRST, "duplicated", 2): 1,
            (*FIRST, "duplicated", 3, "marked"): 1,
            (*FIRST, "recognised", 4): 1,
        }
    )


@pytest.mark.parametrize("signed", [True, False], ids=["signed", "unsigned"])
@pytest.mark.parametrize("arrived", [True, False], ids=["beside", "instead"])
def test_an_id_with_another_payload_proves_an_alteration_only_when_its_path_is_signed(
    tmp_path: Path, *, arrived: bool, signed: bool
) -> None:
    """Each publisher of the bus can read the id of a message, and send it with its own payload."""
    chain = Chain()
    chain.deliver("plant", 1, NOON)
    if arrived:
        chain.receive("core", 1, NOON + 10_000)
    outcome = "signed" if signed else "received"
    other: dict[str, Cell] = {"hash": digest("other"), "outcome": outcome}
    chain.receive("core", 1, NOON + SECOND, id=identity(101), **other)
    chain.write(tmp_path / "archive")

    own = (*FIRST, "delivered", None) if arrived else (*FIRST, "missing", 1)
    told = {own: 1, (*FIRST, "unproven", 1): 1}
    altered = {(*FIRST, "altered", 1): 1}
    assert found(tmp_path / "archive") == Counter(altered if signed and not arrived else told)


def test_an_id_under_another_name_is_another_message(tmp_path: Path) -> None:
    chain = Chain()
    chain.message(1, NOON)
    chain.receive("core", 1, NOON + SECOND, id=identity(101), name="bus/other")
    chain.write(tmp_path / "archive")

    assert found(tmp_path / "archive") == Counter({(*FIRST, "delivered", None): 1}) + Counter(
        {(*SECOND_HOP, "delivered", None): 1}
    )


@pytest.mark.spark
@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
def test_a_forged_id_does_not_make_a_reader_look_behind(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A forged message came an hour after the one whose id it has; another one is missing."""
    chain = Chain()
    chain.relay("plant", 1, CLOSED - 2 * HOUR)
    chain.receive("core", 1, CLOSED - 2 * HOUR + SECOND)
    chain.receive("core", 1, CLOSED - HOUR, id=identity(101), hash=digest("other"))
    chain.relay("plant", 2, CLOSED - 50 * MINUTE)
    chain.write(tmp_path / "archive")

    scope, messages = judged(tmp_path / "archive", late=2 * 3600)
    frame = with_waiting(spark.createDataFrame(messages), scope)
    assert counted(frame.toArrow())[*FIRST, "missing", 2] == 1


@BOTH
def test_a_message_that_one_target_cut_was_received_once(tmp_path: Path, *, ids: bool) -> None:
    chain = Chain(ids)
    chain.relay("plant", 1, NOON)
    chain.receive("core", 1, NOON + 10_000)
    for target in ("hub", "audit"):
        chain.receive("core", 1, NOON + 10_000, leg="cut", rule="loop", target=target)
    chain.relay("plant", 2, NOON + SECOND)
    for target in ("hub", "audit"):
        chain.receive("core", 2, NOON + 2 * SECOND, leg="cut", rule="loop", target=target)
    chain.write(tmp_path / "archive")

    assert found(tmp_path / "archive") == Counter({(*FIRST, "delivered", None): 2})


def test_a_message_that_the_receiver_cut_was_received(tmp_path: Path) -> None:
    chain = Chain()
    chain.relay("plant", 1, NOON)
    chain.receive("core", 1, NOON + 10_000, leg="cut", rule="loop")
    chain.write(tmp_path / "archive")

    assert set(found(tmp_path / "archive")) == {(*FIRST, "delivered", None)}


@pytest.mark.parametrize("ids", [True, pytest.param(False, id="hashes")])
def test_a_double_that_the_receiver_recognised_is_shown(tmp_path: Path, *, ids: bool) -> None:
    chain = Chain(ids)
    for number in (1, 2):
        chain.relay("plant", number, NOON)
        chain.receive("core", number, NOON + 10_000)
    again = {"id": identity(77)}
    chain.receive("core", 1, NOON + 20_000, leg="cut", rule="duplicate", **again)
    chain.write(tmp_path / "archive")

    classes = found(tmp_path / "archive")

    assert classes.pop((*FIRST, "recognised", 1), 0) == ids, "a hash proves no double"
    assert classes == Counter({(*FIRST, "delivered", None): 2})


def test_messages_of_one_trace_are_told_apart_by_their_payloads(tmp_path: Path) -> None:
    chain = Chain()
    for number in (1, 2, 3):
        same: dict[str, Cell] = {"trace": identity(1, 7), "name": "bus/all"}
        chain.deliver("plant", number, NOON + number, **same)
        if number != 2:
            chain.receive("core", number, NOON + 10_000 + number, **same)
    chain.write(tmp_path / "archive")

    assert found(tmp_path / "archive") == Counter(
        {(*FIRST, "delivered", None): 2, (*FIRST, "missing", 2): 1}
    )


@pytest.mark.parametrize("lost", [0, 17, 39])
def test_the_lost_one_of_equal_messages_is_the_one_that_is_missing(
    tmp_path: Path, lost: int
) -> None:
    chain = Chain(ids=False)
    same: dict[str, Cell] = {"hash": digest("on"), "name": "bus/state"}
    for number in range(40):
        at = NOON + number * SECOND
        chain.deliver("plant", number, at, **same)
        if number != lost:
            chain.receive("core", number, at + 3_000, **same)
    chain.receive("core", 99, NOON - HOUR, **same)  # of another publisher
    chain.receive("core", 98, NOON + HOUR, hash=digest("off"), name="bus/state")
    chain.write(tmp_path / "archive")

    classes = found(tmp_path / "archive")
    assert classes == Counter({(*FIRST, "delivered", None): 39, (*FIRST, "missing", lost): 1})


@BOTH
def test_late_gaps_and_open_journals_have_their_classes(tmp_path: Path, *, ids: bool) -> None:
    chain = Chain(ids)
    for number, gateway_late in ((1, 400 * SECOND), (2, 10_000)):
        chain.relay("plant", number, NOON)
        chain.receive("core", number, NOON + gateway_late)
    chain.deliver("plant", 3, NOON + HOUR)
    chain.deliver("plant", 4, NOON + 2 * HOUR)
    chain.deliver("plant", 5, NOON + 3 * HOUR)
    chain.write(tmp_path / "archive")
    gap = SourceGap(
        "core", "across", "bus", "bus/#", "disconnected", "", NOON + HOUR - 5, NOON + HOUR + 5, None
    )
    kept = SourceGap("core", "", "bus", "", "away", "", NOON + 150 * 60 * SECOND, 1 << 62, None)

    classes = found(tmp_path / "archive", gaps=[gap, kept])
    assert classes == Counter(
        {
            (*FIRST, "delivered late", 1): 1,
            (*FIRST, "delivered", None): 1,
            (*FIRST, "in gap", 3): 1,
            (*FIRST, "missing", 4): 1,
            (*FIRST, "in flight", 5): 1,
        }
    )
    early = found(tmp_path / "archive", gaps=[gap], until=NOON + 100 * 60 * SECOND)
    assert early[(*FIRST, "in flight", 4)] == 1


@pytest.mark.spark
@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
@BOTH
def test_messages_wait_at_the_broker_while_their_reader_is_behind(
    spark: SparkSession, tmp_path: Path, *, ids: bool
) -> None:
    """`core` is an hour behind when its rows end; `office` is not, and lost the same number."""
    chain = Chain(ids)
    for number, before in ((1, 90), (2, 75), (3, 65), (4, 50), (5, 1)):
        chain.relay("plant", number, CLOSED - before * MINUTE)
    for number in (1, 3):
        chain.receive("core", number, CLOSED - (31 - 10 * number) * MINUTE)
    for number, before in ((11, 90), (12, 50)):
        chain.deliver("core", number, CLOSED - before * MINUTE)
    chain.receive("office", 11, CLOSED - 90 * MINUTE + SECOND)
    chain.write(tmp_path / "archive")

    scope, messages = judged(tmp_path / "archive", late=2 * 3600)
    frame = with_waiting(spark.createDataFrame(messages), scope)
    assert counted(frame.toArrow()) == Counter(
        {
            (*FIRST, "delivered", None): 2,
            (*FIRST, "missing", 2): 1,
            (*FIRST, "in flight", 4): 1,
            (*FIRST, "in flight", 5): 1,
            (*SECOND_HOP, "delivered", None): 1,
            (*SECOND_HOP, "missing", 12): 1,
        }
    )
    long_ago = replace(scope, spooled_since=CLOSED - 30 * MINUTE)
    old = counted(with_waiting(spark.createDataFrame(messages), long_ago).toArrow())
    assert (old[*FIRST, "missing", 4], old[*FIRST, "in flight", 5]) == (1, 1)


@pytest.mark.spark
@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
@pytest.mark.parametrize(
    ("until", "later", "name"),
    [
        pytest.param(CLOSED, True, "missing", id="ended"),
        pytest.param(CLOSED, False, "in flight", id="nothing-later"),
        pytest.param(NOON + HOUR + MINUTE, True, "in flight", id="not-read-yet"),
        pytest.param(CLOSED, None, "in flight", id="lasting"),
    ],
)
@BOTH
def test_an_absence_of_the_reader_excuses_only_while_it_lasts(
    spark: SparkSession, tmp_path: Path, *, ids: bool, until: int, later: bool | None, name: str
) -> None:
    """A broker that kept the messages hands out what it has: a later one proves the loss."""
    chain = Chain(ids)
    chain.relay("plant", 1, NOON)
    chain.receive("core", 1, NOON + SECOND)
    chain.relay("plant", 2, NOON + HOUR)  # while the reader restarts
    if later is not False:
        chain.relay("plant", 3, NOON + HOUR + 30 * SECOND)
        chain.receive("core", 3, NOON + HOUR + 3 * MINUTE)
    chain.write(tmp_path / "archive")
    end = 1 << 62 if later is None else NOON + HOUR + 2 * MINUTE
    away = SourceGap("core", "", "bus", "", "away", "", NOON + 55 * MINUTE, end, None)

    scope, messages = judged(tmp_path / "archive", gaps=[away], until=until)
    frame = with_waiting(spark.createDataFrame(messages), scope)

    classes = counted(frame.toArrow())
    assert classes[*FIRST, name, 2] == 1, classes


def test_a_receiver_is_expected_once_its_routes_are_in_force_for_long(tmp_path: Path) -> None:
    chain = Chain(started={"core": NOON - 100 * SECOND})
    for number, at in ((1, NOON - HOUR), (2, NOON), (3, NOON + HOUR)):
        chain.deliver("plant", number, at)
    chain.deliver("plant", 4, NOON)
    chain.receive("core", 4, NOON + 10_000)
    chain.write(tmp_path / "archive")

    assert found(tmp_path / "archive") == Counter(
        {(*FIRST, "delivered", None): 1, (*FIRST, "missing", 3): 1}
    )


def test_a_copy_that_waited_while_its_target_got_another_name_has_its_hop(tmp_path: Path) -> None:
    """The routes at its receipt have its label; the routes at its delivery do not."""
    root, chain = tmp_path / "archive", Chain()
    for number in (1, 2):
        chain.deliver("plant", number, NOON + SECOND, received=NOON - HOUR)
    chain.receive("core", 1, NOON + 2 * SECOND)
    chain.write(root)
    file = tmp_path / "plant.yaml"
    renamed = file.read_text().replace("  bus: {", "  line: {was: bus, ")
    file.write_text(renamed.replace("to: {endpoint: bus", "to: {endpoint: line"))
    write_routes(root, "plant", to_rules(load(file).routes), NOON)

    expected = Counter({(*FIRST, "delivered", None): 1, (*FIRST, "missing", 2): 1})
    assert found(root) == expected


def test_a_retired_receiver_is_expected_up_to_its_end(tmp_path: Path) -> None:
    chain = Chain()
    for number, at in ((1, NOON - SECOND), (2, NOON + SECOND), (3, NOON + HOUR)):
        chain.deliver("plant", number, at)
    chain.write(tmp_path / "archive")

    classes = found(tmp_path / "archive", retired={"core": NOON})
    assert classes == Counter({(*FIRST, "missing", 1): 1})


def test_a_source_that_leaves_out_messages_is_not_judged(tmp_path: Path) -> None:
    chain = Chain()
    chain.relay("plant", 1, NOON)
    chain.write(tmp_path / "archive", source=", selector: \"x = 'y'\"")

    history, _ = read_history(LocalStorage(tmp_path / "archive"), CLOSED, None)
    hops, notes = find_hops(ArchiveLocation(tmp_path / "archive"), history)
    assert not hops.brokers
    assert notes == [
        "no gateway reads from a broker that another one sends to",
        "route 'across' of 'core' does not read all messages of its names",
        "route 'down' of 'office' does not read all messages of its names",
    ]


@BOTH
def test_a_message_is_late_although_the_clock_of_its_sender_was_set_back(
    tmp_path: Path, *, ids: bool
) -> None:
    chain = Chain(ids)
    chain.deliver("plant", 1, NOON, received=NOON + HOUR)
    chain.receive("core", 1, NOON + 10 * MINUTE)
    chain.write(tmp_path / "archive")

    assert found(tmp_path / "archive") == Counter({(*FIRST, "delivered late", 1): 1})


@BOTH
def test_two_instances_of_a_gateway_are_one_reader(tmp_path: Path, *, ids: bool) -> None:
    """The second instance of `core` has the same routes since before the day, and received none."""
    chain = Chain(ids)
    for number in range(20):
        chain.message(number, NOON + number * SECOND)
    chain.write(tmp_path / "archive")
    for file in (tmp_path / "archive" / "_routes").glob("core-*.json"):
        since, content = file.stem.rpartition("-")[2], json.loads(file.read_text())
        write_routes(tmp_path / "archive", "core@b", content["routes"], int(since))

    assert found(tmp_path / "archive") == clean(20)


def test_the_table_has_the_counts_of_each_hop() -> None:
    counts = pa.table(
        {
            **{name: ["x", "x"] for name in ("broker", "gateway", "route", "target")},
            "receiver": ["b", "b"], "receiver_route": ["r", "r"],
            "class": ["duplicated", "delivered"], "marked": [True, False], "copies": [2, 3],
        }
    )  # fmt: skip
    unproven = counts.slice(1).set_column(6, "class", pa.array(["unproven"]))
    (row,) = hop_table(pa.concat_tables([counts, unproven])).to_pylist()

    assert (row["expected"], row["duplicated"], row["marked"], row["delivered"]) == (5, 2, 2, 3)
    assert row["unproven"] == 3


def test_the_readers_of_a_share_receive_a_message_once_together(tmp_path: Path) -> None:
    chain = Chain(share="$share/g/")
    for number in range(4):
        chain.relay("plant", number, NOON + number)
    chain.receive("core", 0, NOON + 10_000)
    chain.receive("spare", 1, NOON + 10_000)
    for gateway in ("core", "spare"):
        chain.receive(gateway, 2, NOON + 10_000, id=identity(len(gateway)))
    chain.write(tmp_path / "archive")

    both = ("plant", "bus", "core, spare")
    assert found(tmp_path / "archive") == Counter(
        {(*both, "delivered", None): 2, (*both, "duplicated", 2): 1, (*both, "missing", 3): 1}
    )


@pytest.mark.parametrize("lost", [None, 150])
def test_equal_messages_without_ids_are_counted_together(tmp_path: Path, lost: int | None) -> None:
    """One name and one payload through the day, as of a sensor that stands still."""
    chain, number = Chain(ids=False), 300
    same: dict[str, Cell] = {"hash": digest("on"), "name": "bus/state"}
    for each in range(number):
        at = NOON + each * SECOND
        chain.deliver("plant", each, at, **same)
        if each != lost:
            chain.receive("core", each, at + 1_000, **same)
    chain.write(tmp_path / "archive")

    _, messages = judged(tmp_path / "archive")

    missing = [(*FIRST, "missing", lost)] if lost is not None else []
    delivered = [(*FIRST, "delivered", None)] * (number - len(missing))
    assert counted(messages) == Counter[tuple[object, ...]]([*delivered, *missing])
    assert messages.num_rows == 1 + len(missing)


def test_equal_messages_without_ids_are_matched_as_numbers() -> None:
    """Some thousands a second may be equal all day: an object of each event takes a gigabyte."""
    number = 4_000
    events = equal_events(number)
    assert calls(equal_events(number // 2)) * 2.2 > calls(events), (
        "twice the work for twice as many"
    )

    tracemalloc.start()
    try:
        tables = list(judge(300 * SECOND, events))
        own = tracemalloc.get_traced_memory()[1]
        tracemalloc.reset_peak()
        rows = events.to_pylist()
        objects = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert len(rows) == 2 * number - 1
    (lost,) = [row for row in pa.concat_tables(tables).to_pylist() if row["class"] == "missing"]
    assert lost["id"] == identity(number // 2).hex()
    assert own < objects / 3


def equal_events(number: int) -> pa.Table:
    """Deliveries of one name and payload, a second apart, and their receipts; one is lost."""
    reader: Event = {"key": "core", "name": "bus/state", "identity": b"on", "exact": False,
                     "hash": b"on"}  # fmt: skip
    sender: Event = {"sent": True, "own": True, "sure": True, "unmatched": "missing",
                     **dict.fromkeys(HOP_KEYS, "a")}  # fmt: skip
    found: list[Event] = []
    for each in range(number):
        at = NOON + each * SECOND
        own: Event = reader | {"id": identity(each), "gateway": "plant", "time": at, "at": at}
        found.append(own | sender)
        if each != number // 2:
            found.append(own | {"sent": False, "cut": False, "gateway": "core", "time": at + 1_000})
    return pa.Table.from_pylist(found, schema_of(EVENTS))


def calls(events: pa.Table) -> int:
    """The calls of Python's functions in which `events` are judged."""
    number = 0

    def counted(_frame: object, event: str, _argument: object) -> None:
        nonlocal number
        number += event == "call"

    sys.setprofile(counted)
    try:
        pa.concat_tables(judge(300 * SECOND, events))
    finally:
        sys.setprofile(None)
    return number
