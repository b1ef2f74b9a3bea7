"""Records the gaps of a source or a tap: the times in which it may have missed messages.

A source that is not connected has an outage. A row is written when it begins, after each midnight
while it lasts, and when it ends; all have the same begin (`gateway.archive.gaps.merge_gaps`).
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import inf
from time import monotonic
from typing import Final

from gateway.archive.gaps import DID_NOT_RUN, GapRule
from gateway.archive.heads import Outage, SourceConnection
from gateway.clock import moment
from gateway.endpoints.base import Source
from gateway.endpoints.continuity import Continuity, ReportsContinuity, Retention
from gateway.errors import (
    ArchiveError,
    ClientIdDisputeError,
    ClosedByBrokerError,
    GatewayError,
    SubscriptionRefusedError,
    TakenOverError,
)
from gateway.runtime.record.batch_recorder import BatchRecorder
from gateway.runtime.record.connection_log import ConnectionLog
from gateway.runtime.record.gap_rows import Watched, gap_rows

log = logging.getLogger(__name__)

CHECK_INTERVAL: Final = 0.25  # seconds between two checks for reported losses
SHORT_CONNECTION: Final = 30_000_000  # microseconds; the backoff of a client in dispute is shorter
_DAY: Final = 86_400_000_000  # microseconds


class GapRecorder:
    """The outages and losses of one source endpoint, or of one tap.

    Without an archive, or for a broker inside this process, it records nothing.
    Mutable: owned by the thread that receives from the source.
    Units: microseconds since 1970-01-01 UTC.
    """

    def __init__(
        self,
        source: Source,
        watched: Sequence[Watched],
        recorder: BatchRecorder,
        connections: ConnectionLog | None,
        oldest_unsettled: Callable[[], int] = lambda: 0,
    ) -> None:
        """Continue with the state of an earlier run.

        `oldest_unsettled` returns the receipt of the oldest message in flight, 0 for none: a broker
        that keeps nothing does not deliver it again after an end of the process.
        A tap has seen nothing before its first connection, and the gateway may send before.
        """
        self._endpoint, self._key = watched[0].endpoint, watched[0].state_name
        self._tap = watched[0].target is not None
        self._archive, self._clock = recorder.archive, recorder.clock
        self._connections, self._oldest_unsettled = connections, oldest_unsettled
        self._known = False  # whether it was ever connected
        self._keeps = True  # whether the broker keeps messages, as of the last connection
        self._outage: Outage | None = None
        self._unrecorded: Outage | None = None  # ended, and its row is not durable
        self._save_lock = threading.Lock()
        self.last_gap = ""  # that counts, of this run; for display
        self._begun = self._clock()
        self._connected_at = 0  # 0 while it is not connected
        self.last_message = 0  # of a tap, which sets it; 0 before the first
        self.all_until = self._begun  # a tap had all that was sent until then, and sets it
        self._last_row = 0  # time of the last row of the outage
        self.next_check = 0.0  # monotonic seconds; when `check` has something to do
        self._disputed = 0  # when the outage after the first of these connections began; 0: none
        self.attach(source, watched)
        state = None if connections is None else connections.get(self._key)
        if connections is not None and state is not None:
            self._known, self._keeps = state.known, state.keeps
            rule, reason = GapRule.NOT_RUNNING, DID_NOT_RUN
            if connections.is_live(self._key):
                rule, reason = GapRule.DISCONNECTED, f"{self._endpoint}: a reload replaced it"
            self._outage = state.outage or Outage(state.heard, rule.value, reason)
            self.all_until = self._outage.begin
        elif self._tap:
            reason = "the tap was not connected before"
            self._outage = Outage(self._begun, GapRule.DISCONNECTED.value, reason)

    def attach(self, source: Source, watched: Sequence[Watched]) -> None:
        """Continue with `source`, which receives the messages `watched`."""
        self._watched = watched
        self._source: ReportsContinuity | None = None
        self.next_check = inf
        connections = None if self._archive is None else self._connections
        if connections is not None and isinstance(source, ReportsContinuity):
            self._source, found = source, source.continuity
            self.next_check = 0.0
            found.clock = self._clock
            state = connections.get(self._key)
            if state is not None and state.dropped is not None and found.dropped is None:
                # the broker's count of dropped messages, as an earlier source saw it
                found.dropped, found.heard = state.dropped, state.heard

    @property
    def _continuity(self) -> Continuity | None:
        source = self._source  # a reload replaces it
        return None if source is None else source.continuity

    def connected(self) -> None:
        """Note that the source is connected, and record the outage that ends."""
        if (continuity := self._continuity) is None:
            return
        at = self._clock()
        if (outage := self._outage) is None:
            continuity.on_told()
        else:
            retention = continuity.retention if self._keeps else Retention.NOTHING
            rule = self._final_rule(GapRule(outage.rule), retention)
            begin = outage.begin
            if self._tap and rule is GapRule.SESSION_LOST:  # it held what came since that message
                begin = min(begin, self.last_message or begin)
            ended = self._unrecorded = replace(outage, rule=rule.value, begin=begin)
            self._write(ended, at, then=lambda: self._recorded(ended, at, continuity))
            self._report(rule, outage, at)
        self._outage, self._known, self._connected_at = None, True, at
        self._keeps = continuity.retention is not Retention.NOTHING
        self._save(at)

    def lost(self, error: GatewayError) -> None:
        """Note that the connection is lost, or that an attempt to connect failed."""
        if (continuity := self._continuity) is None:
            return
        self._look(continuity)
        at, before = self._clock(), self._outage
        last_sign = self._heard(continuity, at) if self._connected_at else self._begun
        rule, begin = self._judge(error, last_sign, at)
        self._connected_at = 0
        # The broker may turn out to have lost the session.
        provisional = GapRule.AWAY if self._known and self._keeps else GapRule.DISCONNECTED
        new = Outage(begin, (rule or provisional).value, str(error))
        outage = before or new
        if rule is not None or outage.rule == GapRule.NOT_RUNNING.value:
            outage = replace(new, begin=outage.begin)
        self._outage = outage
        if before is None or outage.rule != before.rule or at // _DAY != self._last_row // _DAY:
            self._write(outage, at)
            self._save(at)

    def note_losses(self) -> None:
        """Record what a connection reported that the stop of the gateway ends before its use."""
        if (continuity := self._continuity) is not None:
            self._look(continuity)

    def check(self) -> None:
        """Record the reported losses, and note that the source is connected."""
        if (continuity := self._continuity) is None:
            return
        self.next_check = monotonic() + CHECK_INTERVAL
        self._look(continuity)
        heard = self._heard(continuity, self._clock())
        if not self._keeps:
            heard = min(heard, self._oldest_unsettled() or heard)
        self._save(heard, durable=False)

    @property
    def keeps_nothing(self) -> bool:
        """Whether the source is connected, and its broker keeps nothing for it."""
        if (continuity := self._continuity) is None or not self._connected_at:
            return False
        return continuity.retention is Retention.NOTHING

    def stopped(self, since: int, *, removed: bool = False, unread: bool = False) -> None:
        """Note that the gateway stops: an outage continues until the next start.

        For a source whose broker keeps nothing an outage began at `since`. A source that a reload
        `removed` misses nothing from now on: an outage ends, and none begins. A tap that left
        messages `unread` misses them until it is back, and then the outage was an absence.
        """
        if (continuity := self._continuity) is None:
            return
        self._look(continuity)
        at, outage = self._clock(), self._outage
        absent = outage is None or outage.rule in {GapRule.AWAY.value, GapRule.NOT_RUNNING.value}
        if (unread and absent) or (self._connected_at and not self._keeps and not removed):
            begin = self.all_until if unread else min(since, self._oldest_unsettled() or since)
            reason = "the gateway was stopped"
            self._outage = outage = Outage(begin, GapRule.NOT_RUNNING.value, reason)
            self._write(outage, at)
        elif outage is not None and outage.rule != GapRule.NOT_RUNNING.value:
            self._write(outage, at)
        if self._connected_at or self._last_row:  # else the file has the earlier run's state
            self._save(self._heard(continuity, at))

    def _judge(self, error: GatewayError, begin: int, at: int) -> tuple[GapRule | None, int]:
        """The rule of the outage that `error` proves, if it does, and the begin of the outage.

        MQTT 3.1.1 has no reason for a takeover: the endpoint proves it. A dispute is one gap, from
        the first of the short connections in a row that the broker closed.
        """
        if isinstance(error, SubscriptionRefusedError):
            return GapRule.REFUSED, self._connected_at or begin
        if not self._connected_at:
            return None, begin
        closed = isinstance(error, TakenOverError | ClosedByBrokerError)
        if not closed or at - self._connected_at > SHORT_CONNECTION:
            self._disputed = 0
        if closed:
            self._disputed = self._disputed or begin
        proven = isinstance(error, ClientIdDisputeError) and error.proven
        if proven or isinstance(error, TakenOverError):
            return GapRule.TAKEN_OVER, self._disputed
        return None, begin

    def _final_rule(self, rule: GapRule, retention: Retention) -> GapRule:
        if rule in {GapRule.TAKEN_OVER, GapRule.REFUSED, GapRule.SESSION_LOST}:  # proven before
            return rule
        match retention:
            case Retention.KEPT:
                return GapRule.AWAY
            case Retention.NEW:
                return GapRule.SESSION_LOST if self._known else GapRule.DISCONNECTED
            case Retention.NOTHING:
                return rule if rule is GapRule.NOT_RUNNING else GapRule.DISCONNECTED

    def _heard(self, continuity: Continuity, at: int) -> int:
        if not self._connected_at:
            return at
        return min(at, max(continuity.heard or at, self._connected_at))

    def _look(self, continuity: Continuity) -> None:
        """Record the reported losses, and note whether the connected broker keeps messages."""
        if self._connected_at:
            self._keeps = continuity.retention is not Retention.NOTHING
        for loss in continuity.take_losses():
            found = Outage(loss.begin, GapRule.DROPPED.value, loss.reason)
            self._write(found, loss.end, loss.messages)

    def _recorded(self, outage: Outage, heard: int, continuity: Continuity) -> None:
        """The row of an ended outage is durable: no state or memory need have it any more."""
        if self._unrecorded is outage:
            self._unrecorded = None
            self._save(heard)
            continuity.on_told()

    def _write(
        self,
        outage: Outage,
        end: int,
        lost: int | None = None,
        *,
        then: Callable[[], None] = lambda: None,
    ) -> None:
        """Append a row for each route, then call `then`.

        Only a closed archive refuses.
        """
        if self._archive is None:
            then()
            return
        if outage.rule != GapRule.DROPPED.value:
            self._last_row = end
        try:
            self._archive([gap_rows(self._watched, outage, end, lost)], then)
        except ArchiveError as error:
            log.warning("a gap is not recorded: %s", error, extra={"endpoint": self._endpoint})

    def _save(self, heard: int, *, durable: bool = True) -> None:
        if self._connections is None or (continuity := self._continuity) is None:
            return
        with self._save_lock:  # the archive's thread saves too
            outage = self._outage or self._unrecorded
            state = SourceConnection(
                heard, self._known, outage, self._keeps, continuity.dropped, self._tap
            )
            self._connections.put(self._key, state, durable=durable)

    def _report(self, rule: GapRule, outage: Outage, end: int) -> None:
        if self._tap and not self._known:
            return  # the first connection of a new tap
        begin, until, seconds = _text(outage.begin), _text(end), (end - outage.begin) / 1e6
        what, length = "tap" if self._tap else "source", f"{seconds:.1f} s"
        place, unseen = {"endpoint": self._endpoint}, outage.reason == DID_NOT_RUN
        if rule is GapRule.AWAY:  # the night tells how long no process ran
            away = "while the gateway did not run" if unseen else f"for {length}"
            reason = "" if unseen else f": from {begin} to {until}: {outage.reason}"
            text = "%s was away %s, and its broker kept the messages%s"
            log.info(text, what, away, reason, extra=place)
            return
        if unseen:  # it begins at the last sign on disk, before the end
            length = f"at most {length}"
        self.last_gap = f"last gap: {length} until {until}, {rule.value}"
        level = logging.INFO if self._tap else logging.WARNING
        log.log(
            level,
            "%s gap of %s, %s: from %s to %s: %s",
            what,
            length,
            rule.value,
            begin,
            until,
            outage.reason,
            extra=place,
        )


def _text(time: int) -> str:
    return moment(time).isoformat(timespec="milliseconds").replace("+00:00", "Z")
