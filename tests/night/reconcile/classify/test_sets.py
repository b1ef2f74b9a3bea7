"""Law: the proven tallies and the classes of the joined rows are those of all rows together."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.night.archive.segments.pairs import PAIR_SCHEMA, every_pair_of
from gateway.night.archive.segments.sets import blocks_of
from gateway.night.reconcile.classify.sets import (
    BLOCKS,
    PARTS,
    PROVEN,
    UNPROVEN,
    crossing_parts,
    evaluate,
    tapped_targets,
)
from tests.archive.samples import DAY, NOON
from tests.night.archive.segments.set_model import (
    HASHES,
    MINUTE,
    Element,
    Key,
    Row,
    a_row,
    elements,
    message_id,
    message_rows,
    to_table,
    usually,
)
from tests.night.reconcile.classify.copy_model import LATE, Judged, judge, tallied

Part = tuple[str, int]  # a file and the number of its part

MIDNIGHT = NOON - 12 * 60 * MINUTE
PAIRS_WITH_PART = pa.schema([*PAIR_SCHEMA, *PARTS])


@dataclass(frozen=True, slots=True)
class World:
    """The rows of an archive by part."""

    parts: Mapping[Part, Sequence[Row]]

    def blocks(self) -> pa.Table:
        """Return the blocks of all parts."""
        tables = [BLOCKS.empty_table()]
        for (file, part), rows in self.parts.items():
            found = blocks_of(to_table(rows), part)
            tables.append(found.add_column(0, "file", pa.array([file] * len(found), pa.string())))
        return pa.concat_tables(tables)

    def pairs(self, parts: Iterable[Part]) -> pa.Table:
        """Return the name pairs of some parts."""
        tables = [PAIRS_WITH_PART.empty_table()]
        for file, part in parts:
            found = every_pair_of(to_table(self.parts[file, part]))
            assert found is not None
            for name, value in (("file", file), ("part", part)):
                kind = PARTS.field(name).type
                found = found.append_column(name, pa.array([value] * len(found), kind))
            tables.append(found)
        return pa.concat_tables(tables)

    def elements(self, parts: Iterable[Part] | None = None) -> list[Element]:
        wanted = self.parts if parts is None else parts
        return [each for part in wanted for each in elements(self.parts[part])]


def listed(parts: pa.Table) -> list[Part]:
    return [(row["file"], row["part"]) for row in parts.to_pylist()]


def evaluated(world: World, known: float = 1, random: Any = None) -> Mapping[str, pa.Table]:  # noqa: ANN401  # hypothesis names no type
    """Evaluate with the pairs of a share of the crossing parts; without any when it is negative."""
    blocks = world.blocks()
    crossing = listed(crossing_parts(blocks, DAY))
    if random is not None:
        crossing = random.sample(crossing, round(len(crossing) * max(known, 0)))
    pairs = None if known < 0 else world.pairs(crossing)
    return evaluate(blocks, DAY, LATE // 1_000_000, pairs, tapped_targets(blocks))


def unproven_ids(found: Mapping[str, pa.Table]) -> set[Key]:
    return {
        Key(row["gateway"], row["route"], row["target"], row["run"], counter)
        for row in found["unproven"].to_pylist()
        for first, last in zip(row["first"], row["last"], strict=True)
        for counter in range(first, last + 1)
    }


def joined(world: World, found: Mapping[str, pa.Table]) -> list[Element]:
    """Return the rows that the evaluation leaves to the join."""
    ids = unproven_ids(found)
    return [each for each in world.elements(listed(found["parts"])) if each.key in ids]


def proven_counts(found: Mapping[str, pa.Table]) -> Mapping[tuple[Any, ...], tuple[int, int, int]]:
    return {
        (*[row[name] for name in ("gateway", "route", "target")], micros(row["minute"])): (
            row["received"],
            row["converted"],
            row["redelivered"],
        )
        for row in found["proven"].to_pylist()
    }


def micros(moment: Any) -> int:  # noqa: ANN401  # a time of Arrow
    return int(pa.scalar(moment, pa.timestamp("us", tz="UTC")).value)


def assert_law(world: World, found: Mapping[str, pa.Table]) -> None:
    tapped = tapped_targets(world.blocks())
    truth = judge(world.elements(), tapped)
    ids = unproven_ids(found)
    proven = {key: each for key, each in truth.items() if key not in ids and _is_today(each)}

    assert {each.name for each in proven.values()} <= {"delivered"}
    assert max((each.latency for each in proven.values()), default=0) <= LATE
    rest = judge(joined(world, found), tapped)
    everything = tallied(truth.items(), MIDNIGHT)
    assert tallied(rest.items(), MIDNIGHT) + tallied(proven.items(), MIDNIGHT) == everything
    assert proven_counts(found) == _counts(proven)
    buckets = sum(sum(row["latency"]) for row in found["proven"].to_pylist())
    assert buckets == len(proven)


def _is_today(each: Judged) -> bool:
    return MIDNIGHT <= each.minute < MIDNIGHT + 1440 * MINUTE


def _counts(proven: Mapping[Key, Judged]) -> Mapping[tuple[Any, ...], tuple[int, int, int]]:
    counts: dict[tuple[Any, ...], Counter[str]] = defaultdict(Counter)
    for key, each in proven.items():
        counts[*key[:3], each.minute].update(
            received=1, converted=each.converted, redelivered=each.redelivered
        )
    return {
        key: (each["received"], each["converted"], each["redelivered"])
        for key, each in counts.items()
    }


# Worlds: traffic in the order of time over two days and two runs, in parts, with faults.

FAULTS = (
    "lost", "twice", "altered", "late", "no hash", "converted", "dead", "unrouted", "spooled",
    "delivered elsewhere", "delivered next day", "replayed", "observed", "both elsewhere",
    "overtaken", "unexpected", "other receipt", "second attempt",
)  # fmt: skip
MINUTES = (-1, 0, 1439, 1440)  # of the date


@st.composite
def worlds(draw: st.DrawFn) -> World:
    faults = draw(st.lists(usually("", *FAULTS), min_size=2, max_size=24))
    size = draw(st.integers(1, 8))  # messages in a part
    restart = draw(st.integers(0, 30))
    parts: dict[Part, list[Row]] = defaultdict(list)
    for number, fault in enumerate(faults):
        minute = MINUTES[number * len(MINUTES) // len(faults)]
        base = {
            "run": 1 if number < restart else 2,
            "received": MIDNIGHT + minute * MINUTE + number * 1000,
            "name": draw(st.sampled_from("ab")),
            "route": draw(usually("orders", "trades")),
            "redelivered": draw(usually(None, True)),
        }
        own = (f"f{number // size // 2}", number // size % 2)
        other = (f"f{draw(st.integers(0, len(faults) // size // 2))}", draw(st.integers(0, 1)))
        for row, place in _rows_of(draw, fault, number, base):
            parts[other if place == "other" else ("f9", 0) if place == "last" else own].append(row)
    if draw(usually(False, True)):  # a copy of a file
        file = draw(st.sampled_from(sorted(parts)))
        parts["copied", file[1]] = [*parts[file]]
    for message in draw(st.lists(message_rows(), max_size=2)):
        for row in message:
            row["time"] += draw(st.sampled_from(MINUTES)) * MINUTE - NOON + MIDNIGHT
            parts[draw(st.sampled_from(sorted(parts)))].append(row)
    return World(dict(sorted(parts.items())))


def _rows_of(draw: st.DrawFn, fault: str, number: int, base: Row) -> list[tuple[Row, str]]:
    """Return the rows of a message, each with its place: its own part, another one, or the last."""
    at = base["received"]
    received = a_row("received", number, **base, time=at)
    arrived = {**base, "time": at + draw(usually(500, 999, 1500, 2500))}
    if fault == "late":
        arrived["time"] += draw(st.sampled_from([LATE - 1500, LATE, 9 * LATE]))
    if fault == "overtaken":
        arrived["time"] += draw(st.sampled_from([1000, 3000, 9000]))
    end = a_row("delivered", number, **arrived)
    changed: dict[str, Row] = {
        "altered": {"hash": HASHES[1]},
        "no hash": {"hash": None},
        "converted": {"hash": HASHES[1], "outcome": "converted"},
        "other receipt": {"received": at + 1},
        "second attempt": {"attempt": 2},
    }
    end |= changed.get(fault, {})
    later = {**end, "time": at + draw(st.sampled_from([3000, 2 * LATE, 1440 * MINUTE]))}
    observed = {**end, "leg": "observed", "id": message_id(7, number), "origin_id": end["id"].hex()}
    dead = {**end, "leg": "dead", "outcome": "rejected"}
    place = draw(st.sampled_from(["own", "other", "last"]))
    rows: dict[str, list[tuple[Row, str]]] = {
        "lost": [(received, "own")],
        "twice": [(received, "own"), (end, "own"), (later, place)],
        "dead": [(received, "own"), (dead, place)],
        "unrouted": [({**dead, "route": "", "target": None, "targets": []}, "own")],
        "spooled": [(received, "own"), ({**end, "leg": "spooled"}, "own"), (later, place)],
        "delivered elsewhere": [(received, "own"), (end, "other")],
        "delivered next day": [(received, "own"), (later, "last")],
        "replayed": [(received, "own"), *_originals(draw, end, dead), (_replayed(later), place)],
        "observed": [(received, "own"), (end, "own"), (observed, place)],
        "both elsewhere": [(received, "other"), (end, "other")],
        "unexpected": [(end, "own")],
    }
    return rows.get(fault, [(received, "own"), (end, "own")])


def _originals(draw: st.DrawFn, end: Row, dead: Row) -> list[tuple[Row, str]]:
    return [(row, "own") for row in draw(st.sampled_from([[], [end], [dead]]))]


def _replayed(row: Row) -> Row:
    return {**row, "replayed": True, "attempt": 2}


@given(worlds(), st.sampled_from([-1, 0, 0.5, 1, 1, 1]), st.randoms())
def test_proven_and_joined_copies_are_all_copies(world: World, known: float, random: Any) -> None:  # noqa: ANN401  # hypothesis names no type
    assert_law(world, evaluated(world, known, random))


def messages(
    numbers: Iterable[int],
    fault: Mapping[int, Row] | None = None,
    start: int = NOON,
    **more: object,
) -> list[Row]:
    """Return received and delivered rows, a millisecond apart; `fault` changes deliveries."""
    rows = []
    for number in numbers:
        own = {"received": start + number * 1000, **more}
        rows.append(a_row("received", number, time=start + number * 1000, **own))
        end = a_row("delivered", number, time=start + number * 1000 + 500, **own)
        rows.append({**end, **(fault or {}).get(number, {})})
    return rows


def world_of(*parts: Sequence[Row]) -> World:
    return World({(f"f{number}", 0): rows for number, rows in enumerate(parts)})


def test_a_faultless_day_is_proven_without_a_row() -> None:
    restarted = messages(range(5), start=NOON + 20_000, run=2)
    world = world_of(messages(range(10)), messages(range(10, 20)), restarted)

    found = evaluated(world, known=-1)
    assert found["unproven"].equals(UNPROVEN.empty_table())
    assert found["parts"].equals(PARTS.empty_table())
    assert found["proven"].schema.equals(PROVEN)
    assert [row["received"] for row in found["proven"].to_pylist()] == [25]
    assert_law(world, found)


def test_only_the_block_of_a_fault_is_joined() -> None:
    fault = {13: {"hash": HASHES[1]}}
    minutes = [messages(range(at, at + 10), fault, NOON + at * MINUTE) for at in (0, 10, 20)]
    world = world_of(*minutes)

    found = evaluated(world)
    assert {key.counter for key in unproven_ids(found)} == {13}
    assert listed(found["parts"]) == [("f1", 0)]
    assert_law(world, found)


def test_other_ids_of_equal_number_are_not_proven() -> None:
    rows = [a_row("received", number) for number in range(32)]
    rows += [a_row("delivered", number) for number in range(100, 132)]

    world = world_of(rows)
    names = Counter(each.name for each in judge(joined(world, evaluated(world)), ()).values())
    assert names == {"missing": 32, "unexpected": 32}


@pytest.mark.parametrize("copies", [1, 2])
def test_a_file_copied_under_another_name_doubles_its_messages(copies: int) -> None:
    world = world_of(*[messages(range(10))] * (1 + copies), messages(range(10, 20)))

    found = evaluated(world)
    assert {key.counter for key in unproven_ids(found)} >= {*range(10)}
    assert_law(world, found)
    judged = judge(joined(world, found), ()).values()
    assert Counter(each.name for each in judged)["duplicated"] == 10


def test_a_replay_on_a_later_day_reopens_its_copy() -> None:
    late = NOON + int(timedelta(days=3) / timedelta(microseconds=1))
    again = [_replayed({**row, "time": late}) for row in messages([4]) if row["leg"] == "delivered"]
    world = world_of(messages(range(10)), again)

    found = evaluated(world)
    assert {key.counter for key in unproven_ids(found)} == {*range(10)}  # all of its block
    assert listed(found["parts"]) == [("f0", 0), ("f1", 0)]
    assert_law(world, found)


def test_a_late_delivery_opens_its_block() -> None:
    late = {3: {"time": NOON + 3 * LATE}}

    found = evaluated(world_of(messages(range(4), late)))
    assert {key.counter for key in unproven_ids(found)} == {*range(4)}
    found = evaluated(world_of(messages(range(4), {3: {"time": NOON + 3000 + LATE}})))
    assert not unproven_ids(found)


def crossed(name: str) -> World:
    """Return two parts: a message of the first is delivered after those of the second."""
    early = messages(range(10), {4: {"time": NOON + 15_000}}, name="a")
    own = [{**row, "name": name} if row["id"] == message_id(1, 4) else row for row in early]
    return world_of(own, messages(range(10, 20), name="b"))


def test_streams_that_cross_are_joined_and_others_are_not() -> None:
    same, other = crossed("b"), crossed("c")

    assert listed(crossing_parts(same.blocks(), DAY)) == [("f0", 0), ("f1", 0)]
    assert unproven_ids(evaluated(same, known=-1))
    assert unproven_ids(evaluated(other, known=-1))  # without pairs, they may cross
    assert unproven_ids(evaluated(same))
    assert not unproven_ids(evaluated(other))
    for world in (same, other):
        assert_law(world, evaluated(world))


@pytest.mark.parametrize("parts", [1, 2])
def test_a_message_of_the_day_before_may_be_overtaken(parts: int) -> None:
    before = messages([0], {0: {"time": MIDNIGHT + 5000}}, start=MIDNIGHT - 1)
    rows = [before, messages([1], start=MIDNIGHT)]
    world = (
        world_of(*rows) if parts == len(rows) else world_of([each for row in rows for each in row])
    )

    found = evaluated(world)
    assert {key.counter for key in unproven_ids(found)} == {0, 1}
    names = {key.counter: each.name for key, each in judge(joined(world, found), ()).items()}
    assert names[1] == "disordered"


def test_pairs_of_one_part_alone_prove_no_order() -> None:
    world = crossed("b")

    blocks, pairs = world.blocks(), world.pairs([("f0", 0)])
    assert unproven_ids(evaluate(blocks, DAY, LATE, pairs))


def test_a_tapped_target_is_joined_with_all_its_blocks() -> None:
    seen = a_row("observed", 99, time=NOON + 1440 * MINUTE, received=NOON + 1440 * MINUTE)
    world = world_of(
        messages(range(3)), [seen], messages(range(3, 6), target="audit", targets=["audit"])
    )

    found = evaluated(world)
    assert {key.counter for key in unproven_ids(found)} == {0, 1, 2, 99}
    assert tapped_targets(world.blocks()) == {("orders", "erp")}
    assert_law(world, found)


def test_an_archive_without_rows_has_nothing_to_prove() -> None:
    found = evaluated(World({}))

    assert (len(found["proven"]), len(found["unproven"]), len(found["parts"])) == (0, 0, 0)


@given(world=worlds())
def test_targets_can_be_evaluated_apart(world: World) -> None:
    blocks = world.blocks()
    keys = ["gateway", "route", "target"]
    tapped = tapped_targets(blocks)
    apart: list[Mapping[str, pa.Table]] = []
    for target in blocks.select(keys).group_by(keys).aggregate([]).to_pylist():
        own = blocks
        for name, value in target.items():
            own = own.filter(pc.equal(own[name], value))
        pairs = world.pairs(listed(crossing_parts(own, DAY)))
        apart.append(evaluate(own, DAY, LATE // 1_000_000, pairs, tapped))

    together = evaluated(world)

    assert unproven_ids(together) == set().union(*map(unproven_ids, apart))
    counts = [proven_counts(each) for each in apart]
    assert proven_counts(together) == {key: each[key] for each in counts for key in each}
    assert set(listed(together["parts"])) == {
        part for each in apart for part in listed(each["parts"])
    }
