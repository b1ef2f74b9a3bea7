"""Each rule of delivery broken once: the simulation must find it (`python -m ...mutations`).

A rule that can be broken without a finding is one that nothing checks. Each entry replaces one
method of the product.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

from gateway.archive.gaps import GapRule
from gateway.archive.journal import records
from gateway.archive.schema import RowOutcome
from gateway.cli.live import run
from gateway.endpoints import sent_messages
from gateway.endpoints.base import Batch
from gateway.endpoints.continuity import Continuity
from gateway.endpoints.kafka import positions
from gateway.endpoints.kafka.positions import PartitionPlace, PartitionState
from gateway.endpoints.mqtt import publish_encoder, publish_state
from gateway.endpoints.mqtt.publish_state import PublishState
from gateway.endpoints.mqtt.receive_state import PACKET_ID, ReceiveState
from gateway.endpoints.nats import sink as nats_sink
from gateway.endpoints.solace import sink as solace_sink
from gateway.endpoints.source_memory import Position
from gateway.endpoints.untold_gap import UntoldGap
from gateway.endpoints.yami4 import request_encoder as yami4_encoder
from gateway.endpoints.yami4.request_state import RequestState as Yami4State
from gateway.errors import ArchiveError, SpoolError
from gateway.model.copy_proof import parse_proof
from gateway.model.message import Headers, Message
from gateway.model.outcome import ACCEPTED, NO_ROOM, REPEAT, RETRY, Outcome
from gateway.night.archive.segments.journal_facts import JournalFacts
from gateway.routing.origin_path import GatewayIdentity
from gateway.runtime import relay
from gateway.runtime.delivery import admission, path_check
from gateway.runtime.delivery.actions import Step
from gateway.runtime.delivery.admission import Admission, never
from gateway.runtime.delivery.backlog import MemoryBacklog, SpoolBacklog
from gateway.runtime.delivery.copy_paths import PathRules
from gateway.runtime.delivery.duplicates import DuplicateFilter
from gateway.runtime.delivery.echoes import Echoes
from gateway.runtime.delivery.isolation import Isolation, Search
from gateway.runtime.delivery.lane_phase import Phase
from gateway.runtime.delivery.lane_state import LaneState
from gateway.runtime.delivery.outbound_batch import OutboundBatch
from gateway.runtime.delivery.received_batch import ReceivedBatch
from gateway.runtime.delivery.rows import Cut
from gateway.runtime.delivery.thinning_candidate import Candidate, Course
from gateway.runtime.delivery.thinning_changes import NameChanges
from gateway.runtime.delivery.thinning_intervals import HeldCopy, NameIntervals
from gateway.runtime.inbound import recovery_from_journals, thinned_batch
from gateway.runtime.inbound.in_flight import InFlightBatch
from gateway.runtime.outbound import spool, spool_codec, spool_db
from gateway.runtime.outbound.held_copies import HeldCopies
from gateway.runtime.outbound.spool import Spool
from gateway.runtime.outbound.spool_codec import pack_batch, select_pending
from gateway.runtime.outbound.spool_db import SpoolDatabase
from gateway.runtime.record.batch_recorder import BatchRecorder
from gateway.runtime.record.gap_recorder import GapRecorder
from gateway.runtime.start_order import StartOrder
from gateway.runtime.tap import Tap
from tests.simulation.copy_plans import copy_plan
from tests.simulation.faults import make_plan
from tests.simulation.plan import Plan
from tests.simulation.scenarios import gap_forgotten_by_a_stop, redelivered_before_the_answer
from tests.simulation.simulate import simulate
from tests.simulation.stream_plans import kafka_plan, stream_plan
from tests.simulation.thin_plans import thin_plan

MAX_SEEDS: Final = 2_000
Method: TypeAlias = Callable[..., Any]  # of any class of the product


@dataclass(frozen=True, slots=True)
class Mutation:
    """A rule, and the attribute of the product that breaks it with another value."""

    rule: str
    owner: Any  # a class or a module
    name: str
    broken: Callable[[Method], Any]  # gets the real attribute
    make: Callable[[int], Plan] = make_plan  # draws the worlds that find it


def _put_back_last(self: MemoryBacklog, batches: Any) -> None:
    self._batches.extend(batches)


def _take_without_mark(self: SpoolBacklog) -> Any:
    if self._returned:
        return self._returned.pop(0)
    return self._take_rows() if self._rows else self._next_read()


def _accept_retries(real: Method) -> Method:
    def settle(self: OutboundBatch, positions: Any, settlements: Any) -> bool:
        taken = [ACCEPTED if each.outcome is RETRY.outcome else each for each in settlements]
        return bool(real(self, positions, taken))

    return settle


def _answered_as(outcome: Outcome, rule: str) -> Callable[[Method], Method]:
    """Accept what has this outcome and rule like any other copy."""

    def broken(real: Method) -> Method:
        def settle(self: OutboundBatch, positions: Any, settlements: Any) -> bool:
            taken = [ACCEPTED if (each.outcome, each.rule) == (outcome, rule) else each
                     for each in settlements]  # fmt: skip
            return bool(real(self, positions, taken))

        return settle

    return broken


def _count_one_more(real: Method) -> Method:
    def report(self: Continuity, reason: str, messages: int | None = None, since: int = 0) -> None:
        real(self, reason, None if messages is None else messages + 1, since)

    return report


def _new_id_each_time(real: Method) -> Method:
    numbers = count()
    return lambda *arguments: f"{real(*arguments)} {next(numbers)}"


def _end_only(self: LaneState) -> Any:
    self.phase = Phase.REMOVED
    return [Step.CLOSE]


def _settle_first(real: Method) -> Method:
    def write(
        self: BatchRecorder, rows: Any, letters: Any, then: Callable[[], None], **how: bool
    ) -> None:
        then()
        real(self, rows, letters, lambda: None, **how)

    return write


def _without_receipts(real: Method) -> Method:
    """Record no spooled row of a copy that leaves the spool, as if its receipt had one."""

    def record(self: BatchRecorder, *arguments: Any) -> None:
        def append(rows: Any, then: Callable[[], None]) -> None:
            assert self.archive is not None
            kept = [each for each in rows if each.common["outcome"] != RowOutcome.SPOOLED.value]
            self.archive(kept, then)

        real(self if self.archive is None else replace(self, archive=append), *arguments)

    return record


class _ForgetfulRecorder:
    """Repeats a receipt only where an earlier run left the copy in the spool."""

    def __init__(self, real: BatchRecorder, last: int) -> None:
        self._real, self._last = real, last

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def record_spooled(self, batch: OutboundBatch, *arguments: Any) -> None:
        record = BatchRecorder.record_spooled
        is_new = batch.rows[0].number > self._last
        (_without_receipts(record) if is_new else record)(self._real, batch, *arguments)


def _receipts_of_earlier_runs(real: Method) -> Method:
    def backlog(name: str, limits: Any, totals: Any, next_number: Any, spool_of: Spool) -> Any:
        spool_of.recorder = cast(BatchRecorder, _ForgetfulRecorder(spool_of.recorder, totals.last))
        return real(name, limits, totals, next_number, spool_of)

    return backlog


def _letters_last(_real: Method) -> Method:
    def write(
        self: BatchRecorder, rows: Any, letters: Any, then: Callable[[], None], **_: bool
    ) -> None:
        def store() -> None:
            with suppress(SpoolError):
                self.dead_letters(letters, then)

        if self.archive is None:
            store()
        else:
            with suppress(ArchiveError):
                self.archive(rows, store)

    return write


def _delete_first(real: Method) -> Method:
    def answered(self: Spool, batch: OutboundBatch) -> None:
        self._delete([row.number for row in batch.rows])
        real(self, batch)

    return answered


def _delete_held_first(real: Method) -> Method:
    def record(self: HeldCopies, spool_of: Spool, copies: Any, batch: OutboundBatch) -> None:
        spool_of.delete_held([row.number for row in batch.rows], lambda: None)
        real(self, spool_of, copies, batch)

    return record


def _delete_replaced_first(real: Method) -> Method:
    def cut(self: HeldCopies, spool_of: Spool, stands: bytes, replaced: HeldCopy) -> None:
        spool_of.delete_held([replaced.number], lambda: None)
        real(self, spool_of, stands, replaced)

    return cut


def _forget_attempts(batch: OutboundBatch) -> Any:
    pending = select_pending(batch.origin.pending_rows(batch), batch.unsettled, 0)
    routes = {str(each.rows.common["route"]) for each in pending}
    return pack_batch(batch.messages_at(batch.unsettled), pending), routes


def _forget_unanswered(real: Method) -> Method:
    return lambda self: real(self)[:0]


def _finish_when_written(real: Method) -> Method:
    def written(self: SpoolBacklog, batch: OutboundBatch, size: int) -> bool:
        real(self, batch, size)
        return False  # the lane finishes it

    return written


def _undecided_as(origin: tuple[str, ...]) -> Callable[[Method], Method]:
    def broken(real: Method) -> Method:
        def returned(self: Echoes, key: Any, now: float) -> Any:
            found = real(self, key, now)
            return origin if found is None else found

        return returned

    return broken


def _expect_echoes_of_refused(real: Method) -> Method:
    def refused(self: Echoes, keys: Any) -> None:
        real(self, [])
        self.accepted([(key, ("g1/r-a", "g1/r-a.back")) for key in keys], 0.0)

    return refused


def _instead(value: object) -> Callable[[Method], object]:
    return lambda _real: value


def _await_none(real: Method) -> Method:
    return lambda self, groups, _answers: real(self, groups, 0)


def _while_broken(real: Method) -> Method:
    def has_room(self: LaneState, batch: OutboundBatch) -> bool:
        phase = self.phase
        self.phase = Phase.AWAY if phase is Phase.BROKEN else phase
        try:
            return bool(real(self, batch))
        finally:
            self.phase = phase

    return has_room


def _without_poison(real: Method) -> Method:
    def send_alone(self: LaneState, isolation: Any, now: float) -> Any:
        isolation.batch.solo_losses.clear()
        return real(self, isolation, now)

    return send_alone


def _search_with_pauses(real: Method) -> Method:
    def lost(self: Search, *arguments: Any, ours: bool) -> bool:
        real(self, *arguments, ours=ours)
        return False

    return lost


def _accuse_all(real: Method) -> Method:
    def lost(self: Search, sends: Any, *arguments: Any, ours: bool) -> bool:
        for send in sends:
            send.batch.solo_losses.update(send.positions)
        return bool(real(self, sends, *arguments, ours=ours))

    return lost


def _never_guilty(real: Method) -> Method:
    def narrow(self: Isolation, send: Any, *, guilty: bool) -> None:
        del guilty
        real(self, send, guilty=False)

    return narrow


def _commit_whole(self: SpoolDatabase, changes: Any) -> int:
    if not self._try_commit(changes):
        self._empty_log()
        return 0
    self._call_back(changes)
    return len(changes)


def _held_in_memory(real: Method) -> Method:
    def write(*arguments: Any, held: bool = False) -> None:
        *_, durable = arguments
        if held:
            durable()
        else:
            real(*arguments)

    return write


def _raise_errors_of_disks(real: Method) -> Method:
    return lambda *errors: real(*[each for each in errors if each is not OSError])


def _confirm_at_once(real: Method) -> Method:
    def confirm(self: PublishState, batch: Any, positions: Any) -> None:
        real(self, batch, positions)
        self._unconfirmed.answered(self.connection.pings + 1)

    return confirm


def _raise(_endpoint: str, error: Exception) -> Any:
    raise error


def _record_end_unchecked(data: bytes, offset: int) -> int | None:
    """The end of a record that is not compared with its CRC."""
    body = offset + 12
    if data[offset : offset + 4] != records.MARK or body > len(data):
        return None
    end = body + int.from_bytes(data[offset + 4 : offset + 8])
    return end if end <= len(data) else None


def _is_unreleased(self: ReceiveState, ack: int, _message: Message) -> bool:
    return ack & PACKET_ID in self._unreleased


def _settle_at_once(real: Method) -> Method:
    def record(self: Tap, batch: Batch) -> None:
        batch.settle([ACCEPTED] * len(batch.messages))
        real(self, Batch(batch.messages, lambda _: None))

    return record


def _without_sync(real: Method) -> Method:
    def connect(folder: Path, **options: bool) -> Any:
        database = real(folder, **options)
        database.execute("PRAGMA synchronous = OFF")
        return database

    return connect


def _leave_in_queues(real: Method) -> Method:
    """Admit the messages of a queue like those that a broker keeps for others."""

    def broken(*arguments: Any, **keywords: Any) -> Any:
        given = [replace(each, removes=never) if hasattr(each, "removes") else each
                 for each in arguments]  # fmt: skip
        return real(*given, **keywords)

    return broken


def _without_rows(real: Method) -> Method:
    """Take copies as if their rows were deleted at once."""

    def take_ready(self: NameIntervals, *values: float, both: bool) -> list[tuple[str, HeldCopy]]:
        taken: list[tuple[str, HeldCopy]] = real(self, *values, both=both)
        for name, held in taken:
            self.deleted(name, held.number)
        return taken

    return take_ready


def _without_open(real: Method) -> Method:
    """Compare with the accepted copy only, whatever is on its way."""

    def change(self: NameChanges, copy: Candidate) -> Course | bytes:
        known = self.by_name.get(copy.name)
        if known is not None and known.accepted is not None and known.accepted[0] == copy.content:
            return known.accepted[1]
        found: Course | bytes = real(self, copy)
        return found

    return change


def _cut_rows(kept: int) -> Callable[[Method], Method]:
    """Record so many cuts only of a message and a route."""

    def broken(real: Method) -> Method:
        def record(self: ReceivedBatch) -> None:
            groups: dict[tuple[int, str], list[Cut]] = defaultdict(list)
            for each in self.cuts:
                groups[each.position, each.route].append(each)
            self.cuts = [each for group in groups.values() for each in group[:kept]]
            real(self)

        return record

    return broken


def _without_first_ids(real: Method) -> Method:
    def find(self: Admission, batch: ReceivedBatch, *arguments: Any) -> Any:
        firsts, batch.firsts = batch.firsts, [""] * len(batch.messages)
        try:
            return real(self, batch, *arguments)
        finally:
            batch.firsts = firsts

    return find


def _believe(_real: Method) -> Method:
    def read(_rules: PathRules, batch: ReceivedBatch, _names: Any) -> None:
        proofs = [parse_proof(each.proof) for each in batch.messages]
        batch.firsts = ["" if each is None else each.first for each in proofs]
        batch.hops = [0 if each is None else each.hops for each in proofs]

    return read


def _anonymous(real: Method) -> Method:
    return lambda self, *arguments: real(replace(self, id=""), *arguments)


def _without_mark(real: Method) -> Method:
    def received(self: Position, number: int) -> bool:
        real(self, number)
        return False

    return received


def _behind_what_was_seen(real: Method) -> Method:
    def find_place(*arguments: Any) -> PartitionPlace:
        place: PartitionPlace = real(*arguments)
        return replace(place, first=max(place.first, place.position.seen + 1))

    return find_place


def _as_own_commit(real: Method) -> Method:
    def find_place(state: PartitionState, cluster: str, claim: str, *rest: Any) -> Any:
        return real(state._replace(claim=claim), cluster, claim, *rest)

    return find_place


def _one_further(real: Method) -> Method:
    return lambda self, number: real(self, number + 1)


MUTATIONS: Final = (
    Mutation("a batch waits for all its answers", InFlightBatch, "relayed", _await_none),
    Mutation("rows are durable before the source is settled", BatchRecorder, "write",
             _settle_first),
    Mutation("the outcome of a spooled copy has the row of its receipt", BatchRecorder,
             "record_spooled",
             _without_receipts),
    Mutation("a copy that leaves the spool has that row in the run that stored it", spool,
             "SpoolBacklog", _receipts_of_earlier_runs),
    Mutation("a dead letter is durable before the rows that say so", BatchRecorder, "write",
             _letters_last),
    Mutation("a copy leaves the spool after the row of its outcome is durable", Spool, "answered",
             _delete_first),
    Mutation("the spool has the attempts of a copy", spool, "_pack_unsettled",
             _instead(_forget_attempts)),
    Mutation("batches without an answer are put back", LaneState, "_give_up", _forget_unanswered),
    Mutation("nothing is sent beside a spool that is not empty", SpoolBacklog, "empty",
             _instead(lambda _self: True)),
    Mutation("a stored batch is durable before it is finished", SpoolBacklog, "written",
             _finish_when_written),
    Mutation("a batch without an answer is sent again", OutboundBatch, "settle", _accept_retries),
    Mutation("unanswered batches are put back in front", MemoryBacklog, "put_back",
             _instead(_put_back_last)),
    Mutation("no batch is stored before older ones that are put back", SpoolBacklog, "puts_back",
             _instead(property(lambda _self: False))),
    Mutation("no batch is stored before unanswered ones", LaneState, "has_room",
             _while_broken),
    Mutation("nothing leaves the disk before its mark is durable", SpoolBacklog, "take",
             _instead(_take_without_mark)),
    Mutation("a commit of the spool survives a power cut", spool_db, "connect", _without_sync),
    Mutation("a changed row of the spool is not sent", spool, "check",
             _instead(lambda _body, _columns, _stored: None)),
    Mutation("a row of the spool is sent to its own target only", spool_codec, "_column_bytes",
             _instead(lambda _columns: b"")),
    Mutation("a changed bit in a journal is a damage", records, "_record_end",
             _instead(_record_end_unchecked)),
    Mutation("a lost end of a journal is a damage", JournalFacts, "_lost_tail",
             _instead(lambda _self, _end: [])),
    Mutation("a repeat at QoS 2 is left out", ReceiveState, "_was_received",
             _instead(lambda _self, _ack, _message: False)),
    Mutation("a new message with an abandoned packet id is no repeat", ReceiveState,
             "_was_received", _instead(_is_unreleased)),
    Mutation("a message of QoS 2 without an answer is sent again", publish_state, "RETRY",
             _instead(ACCEPTED)),
    Mutation("a message of QoS 0 is delivered when a ping after it is answered", PublishState,
             "_confirm", _confirm_at_once),
    Mutation("no packet id is in flight twice", PublishState, "_free_ids",
             _instead(lambda _self, count: [*range(1, count + 1)])),
    Mutation("a tap settles a message when its row is durable", Tap, "_record",
             _settle_at_once),
    Mutation("a poisoned message is rejected", LaneState, "_send_part",
             _without_poison),
    Mutation("the search for a poisoned message makes no pause", Search, "lost",
             _search_with_pauses),
    Mutation("a lost connection accuses a message that was sent alone", Search, "lost",
             _accuse_all),
    Mutation("a part that breaks the connection is halved", Isolation, "narrow", _never_guilty),
    Mutation("after a poisoned message one loss starts the search", Search, "is_wary",
             _instead(lambda _self, _now: False)),
    Mutation("copies that a full disk has no room for are committed in parts", SpoolDatabase,
             "_commit_halves", _instead(_commit_whole)),
    Mutation("a failed commit gives the room of the log back", SpoolDatabase, "_empty_log",
             _instead(lambda _self: None)),
    Mutation("new copies leave the reserve of a full disk", SpoolDatabase, "_make_reserve",
             _instead(lambda _self: True)),
    Mutation("a batch larger than the room on the disk goes in parts", relay, "_parts_of",
             _instead(lambda batch: [batch])),
    Mutation("a read-only disk ends no thread", spool_db, "suppress", _raise_errors_of_disks),
    Mutation("a thread that ends by an error ends the process", run, "end_without_thread",
             _instead(lambda *_: None)),
    Mutation("a stop does not wait for the disk", Spool, "stop", _instead(lambda _self: None)),
    *(Mutation(f"an error while a message is written concerns that message: {system}", module,
               "unwritable", _instead(_raise))
      for system, module in (("MQTT", publish_state), ("JMS, NATS, RabbitMQ", sent_messages),
                             ("Solace", solace_sink), ("YAMI4", yami4_encoder))),
    Mutation("a YAMI4 sink is connected when its broker has answered", Yami4State,
             "await_broker", _instead(lambda _self: None)),
    Mutation("no control character is sent to an MQTT broker", publish_encoder, "refuse_closing",
             _instead(lambda *_: None)),
    Mutation("a full spool slows its sources", SpoolBacklog, "fits",
             _instead(lambda _self, _batch: True)),
    Mutation("a full lane slows its sources", LaneState, "_fits",
             _instead(lambda _self, _size: True)),
    Mutation("a removed target leaves no source waiting", LaneState, "remove",
             _instead(_end_only)),
    Mutation("an origin path ends loops", Headers, "with_origin",
             _instead(lambda self, _origin: self)),
    Mutation("an echo is recognised", Echoes, "returned",
             _instead(lambda _self, _key, _now: ())),
    Mutation("a message that equals an unanswered copy waits", Echoes, "returned",
             _undecided_as(())),
    Mutation("a message that equals a refused copy is a message", Echoes, "returned",
             _undecided_as(("g1/r-a", "g1/r-b"))),
    Mutation("a refused copy has no echo", Echoes, "refused", _expect_echoes_of_refused),
    Mutation("a sink waits for the sources at a broker that keeps nothing", StartOrder,
             "sources_ready", _instead(lambda _self, _name, _since: True)),
    Mutation("a duplicate is settled after its original", InFlightBatch, "when_settled",
             _instead(lambda _self, callback: callback()), redelivered_before_the_answer),
    Mutation("a stream knows a copy by one id at each attempt", nats_sink, "_message_id",
             _new_id_each_time, stream_plan),
    Mutation("a copy that its target knew has a row that says so", OutboundBatch, "settle",
             _answered_as(Outcome.ACCEPTED, REPEAT), stream_plan),
    Mutation("a copy that no queue takes is a dead letter", OutboundBatch, "settle",
             _answered_as(Outcome.REJECTED, "unroutable"), stream_plan),
    Mutation("a copy that a full target refuses is sent again", OutboundBatch, "settle",
             _answered_as(Outcome.RETRY, NO_ROOM.rule), stream_plan),
    Mutation("messages that a stream removed unread are counted exactly", Continuity,
             "report_loss", _count_one_more, stream_plan),
    Mutation("a consumer or a queue that is made again is a gap", GapRecorder, "_final_rule",
             _instead(lambda _self, _rule, _retention: GapRule.AWAY), stream_plan),
    Mutation("a gap without a row is said at the next start", UntoldGap, "_is_untold",
             _instead(lambda _self: False), gap_forgotten_by_a_stop),
    Mutation("a message whose acknowledgement was lost is a duplicate", DuplicateFilter,
             "find_or_add", _instead(lambda *_arguments: None), stream_plan),
    Mutation("what may have come before is marked", Position, "received",
             _without_mark, kafka_plan),
    Mutation("a position is written ahead of what is received", Position, "_write_ahead",
             _instead(lambda _self, _number: None), kafka_plan),
    Mutation("a source of Kafka begins behind what is settled", positions, "_find_place",
             _behind_what_was_seen, kafka_plan),
    Mutation("a commit of another member marks what waits", positions, "_find_place",
             _as_own_commit, kafka_plan),
    Mutation("a commit ends with the last settled message", Position, "settle", _one_further,
             kafka_plan),
    Mutation("each partition has a position of its own", positions, "_fact",
             _instead(lambda topic, _number: f"partition {topic} 0"), kafka_plan),
    Mutation("echoes of the last run are recovered", recovery_from_journals, "saved_echoes",
             _instead(lambda _root, _gateway: [])),
    Mutation("only a message that equals its digest has a path", path_check, "read_paths",
             _believe, copy_plan),
    Mutation("a loop is a dead letter where the source had the only message", admission,
             "_left_out", _leave_in_queues, copy_plan),
    Mutation("an equal message in a queue is no duplicate", Admission, "recognise",
             _leave_in_queues, copy_plan),
    Mutation("copies in a queue are told by their proofs", Admission, "_find_same_copy",
             _instead(lambda _self, batch, position, earlier, _known_as: earlier
                      if batch.messages[position].headers.redelivered else None), copy_plan),
    Mutation("each cut has a row", ReceivedBatch, "record_cuts", _cut_rows(0), copy_plan),
    Mutation("a cut has a row for each target", ReceivedBatch, "record_cuts", _cut_rows(1),
             copy_plan),
    Mutation("the count of hops ends a circle", PathRules, "ends",
             _instead(lambda _self, _hops: False), copy_plan),
    Mutation("a source takes an original once", Admission, "_find_earlier", _without_first_ids,
             copy_plan),
    Mutation("two brokers may have one address", GatewayIdentity, "mark", _anonymous, copy_plan),
    Mutation("the latest of an interval is in the spool", Spool, "write", _held_in_memory,
             thin_plan),
    Mutation("nothing held is sent before its mark is durable", Spool, "try_held",
             _instead(lambda _self, _numbers, _spares: True), thin_plan),
    Mutation("a held copy is deleted after the row of its outcome is durable", HeldCopies,
             "_record", _delete_held_first, thin_plan),
    Mutation("a replaced copy is deleted after the row that says so is durable", HeldCopies,
             "_cut", _delete_replaced_first, thin_plan),
    Mutation("a held copy is settled after the first of its interval", thinned_batch,
             "_wait_for_first", _instead(lambda *_: None), thin_plan),
    Mutation("no copy passes one that was held", NameIntervals, "take_ready", _without_rows,
             thin_plan),
    Mutation("a copy that is replaced has a row", HeldCopies, "_cut_rows",
             _instead(staticmethod(lambda *_: [])), thin_plan),
    Mutation("a spare is sent where the newer copy is refused", NameIntervals, "decided",
             lambda real: lambda self, name, number, *, refused:  # noqa: ARG005  # as it is
             real(self, name, number, refused=False), thin_plan),
    Mutation("a copy on its way may be a change", NameChanges, "course", _without_open, thin_plan),
    Mutation("a held copy is read at the next start", spool_db, "_END_INTERVALS",
             _instead("SELECT 1;"), thin_plan),
)  # fmt: skip


@contextmanager
def applied(mutation: Mutation) -> Iterator[None]:
    """Break the rule in the block."""
    real = vars(mutation.owner)[mutation.name]
    setattr(mutation.owner, mutation.name, mutation.broken(real))
    try:
        yield
    finally:
        setattr(mutation.owner, mutation.name, real)


def seeds_until_found(mutation: Mutation, maximum: int = MAX_SEEDS) -> tuple[int, str] | None:
    """The number of seeds until the simulation finds the broken rule, and its finding.

    A seed that has a finding without the mutation is left out.
    """
    for seed in range(maximum):
        with applied(mutation):
            findings = simulate(mutation.make(seed)).findings
        if findings and not simulate(mutation.make(seed)).findings:
            return seed + 1, findings[0].rule
    return None


def table(rules: Mapping[str, Mutation]) -> Iterator[str]:
    """One line for each rule: seeds until it was found, and the finding."""
    for rule, mutation in rules.items():
        found = seeds_until_found(mutation)
        yield f"| {rule} | {f'{found[0]} | {found[1]}' if found else f'not in {MAX_SEEDS} |'} |"


def main() -> int:
    """Print the table, or a part of it: the numbers of mutations are the arguments."""
    chosen = {int(each) for each in sys.argv[1:]} or {*range(len(MUTATIONS))}
    rules = {each.rule: each for at, each in zip(count(), MUTATIONS, strict=False) if at in chosen}
    for line in table(rules):
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
