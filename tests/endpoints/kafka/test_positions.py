"""The begin of a source in a partition: each state of the servers beside each memory."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.endpoints.continuity import Continuity, Retention
from gateway.endpoints.kafka.positions import (
    CLAIM,
    DELETED,
    DROPPED,
    LOST_END,
    MADE_AGAIN,
    PartitionPlace,
    PartitionState,
    find_places,
    forget_deleted,
)
from gateway.endpoints.source_memory import SourceMemory
from tests.endpoints.kafka.stores import Store

OWN, OTHER = "own-claim", "other-claim"
FACT = "partition t 0"


def memory_of(store: Store) -> SourceMemory:
    memory = SourceMemory()
    memory.keep_in(store, "kafka lake")
    return memory


def remembered(settled: int, seen: int, proof: str = "cluster id-1") -> Store:
    return Store({CLAIM: OWN, FACT: [proof, settled, seen]})


def found(
    store: Store, state: PartitionState, cluster: str = "cluster"
) -> tuple[PartitionPlace, list[tuple[str, int | None]]]:
    continuity = Continuity(Retention.KEPT)
    [place] = find_places([state], cluster, memory_of(store), continuity)
    return place, [(each.reason, each.messages) for each in continuity.take_losses()]


def state(committed: int = -1, claim: str = OWN, **other: Any) -> PartitionState:  # noqa: ANN401  # of it
    own = {"topic_id": "id-1", "low": 0, "high": 100, "start": 0, **other}
    return PartitionState("t", 0, committed=committed, claim=claim if committed >= 0 else "", **own)


@pytest.mark.parametrize(
    ("store", "given", "first", "seen"),
    [
        pytest.param(Store(), state(), 0, -1, id="new"),
        pytest.param(Store(), state(start=100), 100, -1, id="new-at-latest"),
        pytest.param(Store(), state(50), 50, 99, id="commit-of-others-and-no-memory"),
        pytest.param(remembered(49, 49), state(50), 50, 49, id="planned-stop"),
        pytest.param(remembered(40, 10_060), state(50), 50, 99, id="kill"),
        pytest.param(remembered(40, 60), state(50), 50, 60, id="kill-in-silence"),
        pytest.param(remembered(49, 49), state(50, OTHER), 50, 99, id="read-by-another-member"),
        pytest.param(remembered(49, 60), state(10, ""), 10, 99, id="offsets-reset-to-an-old-one"),
        pytest.param(remembered(49, 60), state(), 50, 60, id="group-deleted"),
        pytest.param(remembered(49, 60), state(start=100), 50, 60, id="group-deleted-at-latest"),
        pytest.param(remembered(-1, -1), state(0, high=0), 0, -1, id="empty-partition"),
        pytest.param(Store(None), state(50), 50, 99, id="damaged-memory"),
        pytest.param(Store(None), state(), 0, 99, id="damaged-memory-and-no-commit"),
    ],
)
def test_a_source_begins_behind_what_is_settled_and_marks_what_may_have_come(
    store: Store, given: PartitionState, first: int, seen: int
) -> None:
    place, losses = found(store, given)

    assert (place.first, place.position.seen, losses) == (first, seen, [])
    assert place.skips == (first > 0 and given.committed < 0 and place.first == given.start)


@pytest.mark.parametrize(
    ("store", "given", "cluster", "first", "loss"),
    [
        pytest.param(
            remembered(9, 9), state(10, low=30), "cluster", 30, (DROPPED, 20), id="retention"
        ),
        pytest.param(
            remembered(9, 9), state(low=30), "cluster", 30, (DROPPED, 20),
            id="retention-and-group-deleted",
        ),
        pytest.param(
            remembered(149, 149), state(150), "cluster", 0, (LOST_END, None), id="behind-the-end"
        ),
        pytest.param(
            remembered(149, 149), state(150, low=7), "cluster", 7, (LOST_END, None),
            id="behind-the-end-and-retention",
        ),
        pytest.param(
            remembered(9, 9), state(10, topic_id="id-2"), "cluster", 0, (MADE_AGAIN, None),
            id="another-topic-of-its-name",
        ),
        pytest.param(
            remembered(9, 9), state(topic_id="id-2", start=100), "cluster", 0, (MADE_AGAIN, None),
            id="another-topic-and-no-commit",
        ),
        pytest.param(
            remembered(9, 9), state(60), "mirror", 60, (MADE_AGAIN, None), id="another-cluster"
        ),
        pytest.param(
            remembered(9, 9), state(), "mirror", 0, (MADE_AGAIN, None), id="another-new-cluster"
        ),
    ],
)  # fmt: skip
def test_what_is_gone_is_reported_and_what_is_there_is_read(
    store: Store, given: PartitionState, cluster: str, first: int, loss: tuple[str, int | None]
) -> None:
    place, losses = found(store, given, cluster)

    assert (place.first, losses) == (first, [loss])
    assert not place.skips
    assert loss[0] == DROPPED or place.position.seen == given.high - 1


def test_an_identity_names_one_message_of_all_topics_that_had_a_name() -> None:
    first, _ = found(Store(), state())
    again, _ = found(Store(), state(topic_id="id-2"))
    without, _ = found(Store(), state(topic_id=""))
    elsewhere, _ = found(Store(), state(topic_id=""), "other")

    identities = {each.identity(7, 1_000) for each in (first, again, without, elsewhere)}
    assert len(identities) == 4
    assert first.identity(7, 1_000) == first.identity(7, 2_000)
    assert without.identity(7, 1_000) != without.identity(7, 2_000)


def test_an_assignment_of_many_partitions_is_written_once() -> None:
    store = remembered(9, 9)
    memory = memory_of(store)
    states = [state(10)._replace(number=number) for number in range(50)]

    find_places(states, "cluster", memory, Continuity(Retention.KEPT))

    assert store.saved == 1
    assert store.facts is not None
    assert len(store.facts) == 51


def test_a_member_marks_what_another_one_may_have_read_after_its_own_crash() -> None:
    store = remembered(49, 49)
    found(store, state(50, OTHER))

    place, _ = found(store, state(50, OWN))

    assert place.position.seen == 99


def test_a_deleted_topic_is_forgotten_and_a_loss_unless_all_of_it_had_been_read() -> None:
    store = Store(
        {CLAIM: OWN, **{f"partition {t}": ["cluster ", 9, 9] for t in ("a 0", "a 1", "b 0")}}
    )
    memory, continuity = memory_of(store), Continuity(Retention.KEPT)

    forget_deleted({("a", 0)}, {("b", 0)}, memory, continuity)

    assert store.facts == {CLAIM: OWN, "partition a 0": ["cluster ", 9, 9]}
    assert [each.reason for each in continuity.take_losses()] == [DELETED]


def test_a_forgotten_partition_with_a_commit_is_in_doubt() -> None:
    place, losses = found(Store({CLAIM: OWN}), state(50))

    assert (place.first, place.position.seen, losses) == (50, 99, [])
