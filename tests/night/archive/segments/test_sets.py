from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gateway.night.archive.intervals import Intervals
from gateway.night.archive.segments.sets import SET_SCHEMA, blocks_of
from gateway.night.archive.segments.tables import sort_rows
from tests.archive.samples import NOON
from tests.night.archive.interval_ids import to_ids
from tests.night.archive.segments.set_model import (
    HASHES,
    MINUTE,
    Row,
    a_row,
    message_id,
    message_rows,
    model_blocks,
    to_table,
)

PAIRS = [("settled_first", "settled_last"), ("open_first", "open_last")]


def found_blocks(rows: pa.Table, part: int = 0) -> list[Row]:
    """Return the blocks with ids as sets and times as integers."""
    return [_plain(block) for block in blocks_of(rows, part).to_pylist()]


def _plain(block: Row) -> Row:
    for name, (first, last) in zip(("settled_ids", "open_ids"), PAIRS, strict=True):
        ends = pa.array(block.pop(first), pa.int64()), pa.array(block.pop(last), pa.int64())
        ids = to_ids(Intervals(*(each.to_numpy() for each in ends))).tolist()
        assert len({*ids}) == len(ids)
        block[name] = {*ids}
    for name in ("minute", "first_time", "last_time"):
        if block[name] is not None:
            block[name] = pa.scalar(block[name], pa.timestamp("us", tz="UTC")).value
    assert sum(block.pop("latency")) == block["settled"]
    return block


def expected_blocks(rows: list[Row], part: int = 0) -> list[Row]:
    blocks = model_blocks(rows, part)
    for block in blocks:
        del block["counter"]
        for name in ("time", "counter"):
            values = block.pop(f"{name}s")
            block[f"first_{name}"], block[f"last_{name}"] = (
                min(values, default=None),
                max(values, default=None),
            )
    return blocks


@given(st.lists(message_rows(), max_size=8), st.integers(0, 3))
@example([[a_row("observed", 1, origin_id="AB" * 16)]], 0)
def test_blocks_are_those_of_a_model_row_by_row(messages: list[list[Row]], part: int) -> None:
    rows = [row for message in messages for row in message]

    assert found_blocks(to_table(rows), part) == expected_blocks(rows, part)


@given(st.lists(message_rows(), max_size=6), st.randoms())
def test_blocks_do_not_depend_on_the_order_of_rows(messages: list[list[Row]], random: Any) -> None:  # noqa: ANN401  # hypothesis names no type
    rows = [row for message in messages for row in message]
    shuffled = random.sample(rows, len(rows))

    assert blocks_of(to_table(shuffled)).equals(blocks_of(sort_rows(to_table(rows))))


def settled(*rows: Row) -> set[int]:
    blocks = found_blocks(to_table(rows))
    return {each for block in blocks for each in block["settled_ids"]}


ARRIVAL = a_row("received", 1)


@pytest.mark.parametrize(
    ("delivered", "is_settled"),
    [
        pytest.param({}, True, id="unchanged"),
        pytest.param({"time": NOON + 9}, True, id="later"),
        pytest.param({"hash": HASHES[1]}, False, id="altered"),
        pytest.param({"hash": HASHES[1], "outcome": "converted"}, True, id="converted"),
        pytest.param({"hash": None}, False, id="without-hash"),
        pytest.param({"hash": None, "outcome": "converted"}, False, id="converted-without-hash"),
        pytest.param({"hash": HASHES[0] + b"\0"}, False, id="longer-hash"),
        pytest.param({"outcome": None}, False, id="without-outcome"),
        pytest.param({"attempt": 2}, False, id="second-attempt"),
        pytest.param({"attempt": None}, True, id="older-gateway"),
        pytest.param({"replayed": True}, False, id="replayed"),
        pytest.param({"received": NOON + 1}, False, id="other-receipt"),
        pytest.param({"target": "audit"}, False, id="other-target"),
        pytest.param({"route": "trades"}, False, id="other-route"),
        pytest.param({"gateway": "west"}, False, id="other-gateway"),
        pytest.param({"id": message_id(1, 2)}, False, id="other-id"),
        pytest.param({"id": message_id(2, 1)}, False, id="other-run"),
    ],
)
def test_a_copy_is_settled_by_an_equal_delivery_only(
    delivered: dict[str, Any], is_settled: bool
) -> None:
    assert settled(ARRIVAL, {**a_row("delivered", 1), **delivered}) == (
        {1} if is_settled else set()
    )


def test_a_null_hash_on_both_sides_settles_nothing() -> None:
    rows = [{**a_row(leg, 1), "hash": None} for leg in ("received", "delivered")]

    (block,) = found_blocks(to_table(rows))
    assert (block["settled_ids"], block["open_ids"]) == (set(), {1})


def test_other_ids_of_equal_number_are_named() -> None:
    rows = [a_row("received", number) for number in range(32)]
    rows += [a_row("delivered", number) for number in range(100, 132)]

    (block,) = found_blocks(to_table(rows))
    assert block["received"] == block["delivered"] == 32
    assert block["open_ids"] == {*range(32), *range(100, 132)}
    assert block["settled_ids"] == set()


@pytest.mark.parametrize("leg", ["delivered", "dead", "spooled", "observed", "received", "other"])
def test_one_more_row_of_any_leg_opens_a_copy(leg: str) -> None:
    rows = [ARRIVAL, a_row("delivered", 1)]

    assert settled(*rows) == {1}
    assert settled(*rows, a_row(leg, 1)) == set()
    assert settled(*rows, a_row("gap", 1)) == {1}
    assert settled(*rows, a_row("cut", 1), a_row("cut", 2, target="")) == {1}


def test_a_stream_out_of_order_is_open_and_others_are_settled() -> None:
    arrivals = [a_row("received", number, name=name) for number, name in enumerate("aabb")]
    ends = [
        a_row("delivered", number, source_name=name, time=NOON + time)
        for number, (name, time) in enumerate(zip("aabb", (9, 5, 7, 7), strict=True))
    ]

    assert settled(*arrivals, *ends) == {2, 3}


def test_times_far_apart_are_compared_exactly() -> None:
    month = 30 * 86_400_000_000
    rows = [a_row("received", number) for number in range(3)]
    times = (0, month + 1, month)
    rows += [a_row("delivered", number, time=NOON + times[number]) for number in range(3)]

    assert settled(*rows) == set()


def test_ids_are_stored_as_intervals_and_latencies_by_bucket() -> None:
    numbers = [*range(1000), *range(2000, 2010)]
    rows = [a_row("received", number, redelivered=number == 3) for number in numbers]
    rows += [a_row("delivered", number, time=NOON + 6) for number in numbers]

    (block,) = blocks_of(to_table(rows)).to_pylist()
    assert (block["settled_first"], block["settled_last"]) == ([0, 2000], [999, 2009])
    assert (block["open_first"], block["open_last"]) == ([], [])
    assert block["latency"] == [0, 0, 0, 0, 0, 1010]
    assert (block["slowest"], block["redelivered"]) == (6, 1)


def test_no_rows_have_no_blocks() -> None:
    assert blocks_of(to_table([])).equals(SET_SCHEMA.empty_table())
    assert blocks_of(to_table([a_row("gap", 0), a_row("cut", 0)])).num_rows == 0


def test_a_block_is_of_the_minute_of_the_receipt() -> None:
    late = NOON + 59 * MINUTE
    rows = [a_row("received", 1, received=NOON + 5), a_row("delivered", 1, received=NOON + 5)]
    rows[1]["time"] = late

    (block,) = found_blocks(to_table(rows))
    assert (block["minute"], block["slowest"]) == (NOON, late - NOON - 5)
