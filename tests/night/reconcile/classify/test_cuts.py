"""The class of a message that a route left out for a target, as executors find it."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from gateway.archive.journal.records import Cell, Rows
from gateway.archive.location import ArchiveLocation
from gateway.config.load import load
from gateway.model.cut_class import LEFT_OUT_RULES, RETAINED, THINNED, CutClass
from gateway.model.dead_letter_rule import UNSELECTED
from gateway.night.archive.open_archive import open_archive
from gateway.night.reconcile.classify.cut_events import CutScope, run_cut_events
from gateway.night.reconcile.classify.cuts import _matched, judge
from gateway.night.reconcile.classify.survey import merged, run_survey
from gateway.night.reconcile.input.inputs import Scope, Segments, day_range, find_inputs
from gateway.night.reconcile.input.route_history import RouteHistory, RulePeriod
from gateway.night.reconcile.report.cut_results import cut_scope, cut_table
from gateway.routing.name_rules import to_rules
from gateway.runtime.delivery.admission import IGNORED
from gateway.runtime.delivery.loop_limit import LOOP_LIMIT
from gateway.trial.synthetic.faults import Fault
from gateway.trial.synthetic.generate_archive import generate
from gateway.trial.synthetic.traffic import Traffic
from tests.archive.samples import DAY, NOON, START, archive, delivered, digest, identity, received

_CONFIG = """\
endpoints:
  {endpoint}: {{kind: memory, dialect: mqtt, broker_id: {broker}}}
  end: {{kind: memory, dialect: mqtt, broker_id: {end}}}
routes:
  orders: {{from: {{endpoint: {endpoint}, pattern: "a/#"}}, to: {{endpoint: end}}}}
"""
SECOND = 1_000_000
HOUR = 3600 * SECOND
WEEK = 7 * 24 * HOUR
A, B = "erp", "audit"


def cut(number: int, target: str = A, at: int = NOON, rule: str = "loop", **more: Cell) -> Rows:
    """The cut row of a message: name and payload are those of message 1 of `received`."""
    own: dict[str, Cell] = {
        "leg": "cut", "outcome": "cut", "rule": rule, "endpoint": "plant", "system": "mqtt",
        "received": at, "name": "a/b1", "hash": digest("1"), **more,
    }  # fmt: skip
    return delivered([number], target, at, **own)


def sent(number: int, at: int = NOON, **more: Cell) -> Rows:
    """A delivery to the source's own broker, under name and payload of message 1."""
    own: dict[str, Cell] = {
        "endpoint": "plant", "system": "mqtt", "name": "a/b1", "hash": digest("1"), "received": at,
    }  # fmt: skip
    return delivered([number], "back", at, **{**own, **more})


def judged(
    root: Path,
    batches: Sequence[Rows],
    places: RouteHistory | None = None,
    **scope: Any,  # noqa: ANN401  # fields of a scope
) -> Counter[tuple[str, str, str]]:
    """The cuts of DAY in the archive and the further `batches`, by target, rule and class."""
    if batches:
        archive(root, *batches)
    location, inputs = ArchiveLocation(root), find_inputs(open_archive(root), DAY)
    found = merged(pa.concat_tables(run_survey(location, DAY, inputs.all)))
    own = cut_scope(Scope(location, DAY, 300, 0), found, places or RouteHistory())
    own = replace(own, **scope)
    messages = pa.concat_tables(judge(own, _events(own, inputs.all))).select(
        found.cuts.column_names
    )
    counts: Counter[tuple[str, str, str]] = Counter()
    for row in cut_table(found.cuts, messages).to_pylist():
        counts[row["target"], row["rule"], row["class"]] += row["copies"]
    return counts


def _events(scope: CutScope, segments: Segments) -> pa.Table:
    return pa.concat_tables(run_cut_events(scope, segments))


PROVEN, ON_WORD = CutClass.PROVEN.value, CutClass.ON_WORD.value


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        pytest.param([cut(9)], ON_WORD, id="nothing-else"),
        pytest.param([received([1]), cut(9)], PROVEN, id="received"),
        pytest.param([sent(1), cut(9)], PROVEN, id="delivered"),
        pytest.param([cut(9, outcome="signed")], PROVEN, id="signed"),
        pytest.param([received([1]), cut(9, rule="duplicate")], PROVEN, id="duplicate"),
        pytest.param([cut(9, rule="duplicate")], ON_WORD, id="duplicate-of-nothing"),
        pytest.param([received([1], hash=digest("x")), cut(9)], ON_WORD, id="other-payload"),
        pytest.param([received([1], name="a/c"), cut(9)], ON_WORD, id="other-name"),
        pytest.param([received([1], endpoint="mill"), cut(9)], ON_WORD, id="other-broker"),
        pytest.param(
            [received([1], time=NOON + SECOND, received=NOON + SECOND), cut(9)],
            ON_WORD,
            id="later",
        ),
        pytest.param([sent(1, NOON + SECOND, received=NOON - SECOND), cut(9)], PROVEN, id="answer"),
        pytest.param([received([9], name="a/b1", hash=digest("1")), cut(9, B)], ON_WORD, id="own"),
        pytest.param([sent(9), cut(9, B)], ON_WORD, id="own-delivery"),
        pytest.param([received([1], leg="dead"), cut(9)], ON_WORD, id="dead"),
    ],
)
def test_a_cut_is_an_outcome_where_the_archive_has_what_it_repeats(
    tmp_path: Path, rows: Sequence[Rows], expected: str
) -> None:
    (found,) = judged(tmp_path / "archive", rows)

    assert found[2] == expected


AT_TARGET: dict[str, Cell] = {"endpoint": A, "system": "ems", "name": "a.b1", "hash": digest("1")}


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        pytest.param([], ON_WORD, id="nothing-else"),
        pytest.param([received([1])], ON_WORD, id="at-the-source"),
        pytest.param([sent(1)], ON_WORD, id="delivered-at-the-source"),
        pytest.param([received([1], (A,), NOON, **AT_TARGET)], PROVEN, id="received-at-the-target"),
        pytest.param([delivered([1], received=NOON)], PROVEN, id="delivered-at-the-target"),
        pytest.param([delivered([1], name="a.c", received=NOON)], ON_WORD, id="other-name"),
        pytest.param([delivered([2], name="a.b1", received=NOON)], ON_WORD, id="other-payload"),
        pytest.param([delivered([1], B, received=NOON)], ON_WORD, id="other-target"),
        pytest.param([delivered([1], received=NOON + SECOND)], ON_WORD, id="later"),
        pytest.param(
            [delivered([9], name="a.b1", hash=digest("1"), received=NOON)], ON_WORD, id="own"
        ),
    ],
)
@pytest.mark.parametrize("label", [A, f"{A}:2", f"{A}#3", f"{A}:2#3"])
def test_a_cut_at_its_target_is_an_outcome_where_the_target_has_what_it_repeats(
    tmp_path: Path, rows: Sequence[Rows], expected: str, label: str
) -> None:
    """The path of the message has the target's broker, and the name that it would get there."""
    found = judged(tmp_path / "archive", [*rows, cut(9, label, target_name="a.b1")])

    assert found == Counter({(label, "loop", expected): 1})


def test_a_cut_at_its_target_may_repeat_a_row_of_another_gateway_there(tmp_path: Path) -> None:
    """Gateway `west` received the message at the broker to which `edge` would send it."""
    root = tmp_path / "archive"
    archive(root, received([1], name="a.b1", endpoint="bus"), gateway="west", start=START + 1)
    own = _period(tmp_path, "edge", "plant", "x", "y")
    near, far = (RouteHistory([own, _period(tmp_path, "west", "bus", each)]) for each in "yx")

    assert judged(root, [cut(9, "end", target_name="a.b1")], near)["end", "loop", PROVEN] == 1
    assert judged(root, [], far)["end", "loop", ON_WORD] == 1


def test_a_cut_at_its_target_is_listed_with_endpoint_and_name_of_the_source(tmp_path: Path) -> None:
    archive(tmp_path, cut(9, target_name="a.b1"))
    segments = find_inputs(open_archive(tmp_path), DAY).all
    scope = CutScope(ArchiveLocation(tmp_path), day_range(DAY), 0)

    (row,) = pa.concat_tables(judge(scope, _events(scope, segments))).to_pylist()
    assert (row["endpoint"], row["name"], row["target"]) == ("plant", "a/b1", A)


def test_a_retained_message_comes_with_each_subscription(tmp_path: Path) -> None:
    """Each start of its gateway takes it again, so that its cuts use no row."""
    again = [cut(number, reason=RETAINED) for number in range(6, 9)]

    assert judged(tmp_path / "archive", [received([1]), *again]) == Counter(
        {(A, "loop", PROVEN): 3}
    )
    assert judged(tmp_path / "none", again) == Counter({(A, "loop", ON_WORD): 3})


def test_a_retained_message_leaves_the_row_to_the_others(tmp_path: Path) -> None:
    rows = [received([1]), cut(6, reason=RETAINED), cut(7), cut(8)]

    assert judged(tmp_path / "archive", rows) == Counter(
        {(A, "loop", PROVEN): 2, (A, "loop", ON_WORD): 1}
    )


def test_each_row_is_used_once_by_each_route_and_target(tmp_path: Path) -> None:
    rows = [received([1]), *(cut(number, each) for number in (7, 8) for each in (A, B))]

    assert judged(tmp_path / "archive", rows) == Counter(
        {(each, "loop", name): 1 for each in (A, B) for name in (PROVEN, ON_WORD)}
    )


def test_a_message_has_one_receipt_in_all_its_routes(tmp_path: Path) -> None:
    rows = [received([1]), received([1], route="other"), cut(7), cut(8)]

    assert judged(tmp_path / "archive", rows)[A, "loop", ON_WORD] == 1


@pytest.mark.parametrize(
    ("more", "proven"),
    [({}, 1), ({"attempt": 3}, 3), ({"redelivered": True}, 4)],
    ids=["once", "attempts", "redelivered"],
)
def test_a_copy_that_may_have_arrived_more_often_explains_as_many_cuts(
    tmp_path: Path, more: dict[str, Cell], proven: int
) -> None:
    """A gateway that was killed sent without a row, and its source delivered again, marked."""
    rows = [sent(1, NOON, **more), *(cut(number) for number in range(6, 10))]

    assert judged(tmp_path / "archive", rows)[A, "loop", PROVEN] == proven


def test_a_cut_that_an_id_tells_is_the_same_message(tmp_path: Path) -> None:
    rows = [received([1]), cut(7), *(cut(number, redelivered=True) for number in (8, 9))]

    assert judged(tmp_path / "archive", rows) == Counter({(A, "loop", PROVEN): 3})


@pytest.mark.parametrize("rule", LEFT_OUT_RULES)
def test_what_the_mapping_left_out_is_counted_and_not_judged(tmp_path: Path, rule: str) -> None:
    found = judged(tmp_path / "archive", [cut(7, rule=rule), cut(8, rule=rule)])

    assert found == Counter({(A, rule, CutClass.LEFT_OUT.value): 2})


def test_the_rules_are_those_of_admission() -> None:
    assert {*LEFT_OUT_RULES} == {IGNORED, UNSELECTED, LOOP_LIMIT, THINNED}


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        pytest.param({"source_time": NOON - WEEK}, CutClass.RETAINED, id="sent-before"),
        pytest.param({"source_time": NOON - HOUR}, CutClass.ON_WORD, id="sent-on-the-day"),
        pytest.param({"trace": identity(5, NOON - WEEK)}, CutClass.RETAINED, id="id-from-before"),
        pytest.param({"trace": identity(5, NOON - HOUR)}, CutClass.ON_WORD, id="id-of-the-day"),
        pytest.param({"source_time": NOON - WEEK, "reason": ""}, CutClass.ON_WORD, id="live"),
    ],
)
def test_a_retained_message_from_before_the_rows_is_counted_apart(
    tmp_path: Path, more: dict[str, Cell], expected: CutClass
) -> None:
    (found,) = judged(
        tmp_path / "archive", [cut(7, A, NOON, "loop", **{"reason": RETAINED, **more})]
    )

    assert found[2] == expected.value


def test_a_cut_may_repeat_a_row_of_an_open_journal(tmp_path: Path) -> None:
    rows = [cut(7, at=NOON - SECOND), cut(8, B, at=NOON)]
    found = judged(tmp_path / "archive", rows, open_since=NOON)

    assert found == Counter({(A, "loop", ON_WORD): 1, (B, "loop", CutClass.IN_FLIGHT.value): 1})


def test_only_cuts_of_the_date_are_judged(tmp_path: Path) -> None:
    begin, end = day_range(DAY)
    rows = [cut(7, at=begin - SECOND), cut(8, at=end - SECOND), cut(9, at=end)]

    assert judged(tmp_path / "archive", rows).total() == 1


@pytest.mark.parametrize("listed", [True, False], ids=["few-payloads", "many"])
def test_a_repeated_row_may_be_of_another_gateway_at_the_same_broker(
    tmp_path: Path, *, listed: bool
) -> None:
    """Gateway `west` delivered to the broker from which `edge` reads, by a clock a second ahead."""
    root = tmp_path / "archive"
    west = [sent(1, NOON + SECOND, endpoint="bus")]
    archive(root, *west, gateway="west", start=START + 1)
    own = _period(tmp_path, "edge", "plant", "x")
    routes, far = (RouteHistory([own, _period(tmp_path, "west", "bus", each)]) for each in "xy")
    scope: dict[str, Any] = {} if listed else {"hashes": None}

    assert judged(root, [cut(9)], routes, **scope) == Counter({(A, "loop", PROVEN): 1})
    assert judged(root, [], far, **scope) == Counter({(A, "loop", ON_WORD): 1})
    assert judged(root, [], **scope) == Counter({(A, "loop", ON_WORD): 1})


def _period(folder: Path, gateway: str, endpoint: str, broker: str, end: str = "end") -> RulePeriod:
    """The routes of a gateway with one source at a broker, and a target at another."""
    file = folder / f"{gateway}.yaml"
    file.write_text(_CONFIG.format(endpoint=endpoint, broker=broker, end=end))
    routes = load(file).routes
    return RulePeriod(gateway, 0, NOON + WEEK, json.dumps(to_rules(routes)))


def test_the_cuts_of_a_synthetic_day_are_those_of_its_manifest(tmp_path: Path) -> None:
    counts = {Fault.ECHO: 5, Fault.HIDDEN: 3, Fault.LEFT_OUT: 2, Fault.UNEXPECTED: 2}
    traffic = Traffic(2_000, DAY, routes=3, names=60, gateways=2)
    listed = generate(tmp_path, traffic, counts, segment=800)

    found = judged(tmp_path, [])
    expected = Counter(each["class"] for each in listed)
    del expected["unexpected"]
    assert Counter(name for *_, name in found.elements()) == expected


def test_a_flood_of_random_cuts_has_the_classes_of_a_simple_model() -> None:
    for seed in range(200):
        rng = random.Random(seed)  # noqa: S311  # a test's traffic
        number = rng.randrange(1, 30)
        users = np.array([rng.randrange(3) for _ in range(number)])
        free = np.array([rng.randrange(6) for _ in range(number)])
        again = np.array([rng.random() < 0.2 for _ in range(number)])
        used = Counter[int]()
        expected = []
        for user, own, repeated in zip(users.tolist(), free.tolist(), again.tolist(), strict=True):
            proven = own > (0 if repeated else used[user])
            used[user] += proven and not repeated
            expected.append(proven)

        assert _matched(users, free, again).tolist() == expected
