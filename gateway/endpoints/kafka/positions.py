"""The begin of a source in each partition that its group gives it.

    claim       a random text of the source, in its memory and in each of its commits. A source
                commits its begin before it reads: a commit with another text says that somebody
                else may have read what lies behind it
    committed   the offset behind the last settled message, at the servers; it decides
    position    in the memory, by topic and partition: the end of what may have been received, and
                the last settled message, for a group whose commits are gone. Its proof is the
                cluster with the id of the topic; a server may have no such ids

A message below the end of what may have been received is marked. An offset is never skipped without
a report: a topic that was made again, or lost its end, is read from its first message.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from secrets import token_hex
from typing import Final, NamedTuple, TypeAlias

from gateway.endpoints.continuity import Continuity
from gateway.endpoints.source_memory import Position, SourceMemory, read_text

AHEAD: Final = 10_000  # messages that may be received before the memory of them is written again
_FACT: Final = "partition "
CLAIM: Final = "claim"  # a fact
DROPPED: Final = "the topic's retention removed messages before they were read"
DELETED: Final = "the topic was deleted: what had not been read of it is gone"
MADE_AGAIN: Final = "the topic was made again: what had not been read of the earlier one is gone"
LOST_END: Final = (
    "the topic was made again, or lost its end: the position is behind its last message"
)


Partition: TypeAlias = tuple[str, int]  # topic and number


class PartitionState(NamedTuple):
    """A partition as the servers have it when it is assigned: `low` to before `high` is there.

    `committed` is -1 without a commit. `start` is the begin of a source that has no position.
    """

    topic: str
    number: int
    low: int
    high: int
    start: int
    topic_id: str = ""
    committed: int = -1
    claim: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class PartitionPlace:
    """The place of a source in one partition, as long as it is assigned.

    `first` is the offset at which it begins, `end` the end of the partition then. `skips` tells
    whether `start` left out messages that are there.
    """

    topic: str
    number: int
    first: int
    end: int
    skips: bool
    position: Position
    prefix: str  # of the identities
    has_id: bool

    def identity(self, offset: int, timestamp: int) -> str:
        """Return the identity of a message, which no other one has.

        Without an id of the topic the time tells its message from that of an earlier topic.
        """
        return f"{self.prefix} {offset}" if self.has_id else f"{self.prefix} {offset} {timestamp}"


def claim_of(memory: SourceMemory) -> str:
    """Return the claim of a source, made where its memory has none."""
    known = memory.get(CLAIM, read_text, "")
    if not known:
        known = token_hex(8)
        memory.put(CLAIM, known)
    return known


def find_places(
    states: Sequence[PartitionState], cluster: str, memory: SourceMemory, continuity: Continuity
) -> list[PartitionPlace]:
    """Return the place of a source in each partition, and report what was lost before it."""
    claim = claim_of(memory)
    with memory.written_together():
        return [_find_place(each, cluster, claim, memory, continuity) for each in states]


def _find_place(
    state: PartitionState, cluster: str, claim: str, memory: SourceMemory, continuity: Continuity
) -> PartitionPlace:
    position = memory.position(_fact(state.topic, state.number), AHEAD)
    position.begin()
    last, has_commit = state.high - 1, state.committed >= 0
    is_ours = state.claim == claim and position.proof != ""
    is_doubtful = not position.is_known or (has_commit and not is_ours)
    seen = last if is_doubtful else min(position.seen, last)
    first, skips = state.start, state.start > state.low
    if has_commit or position.settled >= 0:
        first, skips = state.committed if has_commit else position.settled + 1, False
    proof = f"{cluster} {state.topic_id}"
    if position.proof not in {"", proof}:
        continuity.report_loss(MADE_AGAIN)
        is_same_cluster = position.proof.partition(" ")[0] == cluster
        seen, skips = last, False
        first = state.committed if has_commit and not is_same_cluster else state.low
    if first > state.high:
        continuity.report_loss(LOST_END)
        first, seen = state.low, last
    elif first < state.low:
        continuity.report_loss(DROPPED, state.low - first)
        first = state.low
    position.begin_anew(proof, seen)
    position.settle(first - 1)
    prefix = f"kafka {cluster} {state.topic_id or state.topic} {state.number}"
    return PartitionPlace(
        state.topic, state.number, first, state.high, skips, position, prefix, bool(state.topic_id)
    )


def forget_deleted(
    there: Container[Partition],
    read: Container[Partition],
    memory: SourceMemory,
    continuity: Continuity,
) -> None:
    """Forget the partitions that are not `there` any more.

    A loss is reported unless they are in `read`: each message had been settled.
    """
    for fact in memory.positions_of(_FACT):
        topic, _, number = fact.removeprefix(_FACT).rpartition(" ")
        partition = topic, int(number)
        if partition not in there:
            memory.forget_position(fact)
            if partition not in read:
                continuity.report_loss(DELETED)


def _fact(topic: str, number: int) -> str:
    return f"{_FACT}{topic} {number}"
