"""The gap rows of a source that is lost, refused, contested, or reports dropped messages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from gateway.archive.gaps import SourceGap, merge_gaps
from gateway.archive.heads import open_gaps, read_heads
from gateway.archive.journal.local_head import LocalHead
from gateway.archive.journal.records import Rows
from gateway.archive.storage import LocalStorage
from gateway.clock import moment
from gateway.config.load import load
from gateway.endpoints.base import Batch, Source
from gateway.endpoints.continuity import Continuity, Retention
from gateway.errors import (
    ClientIdDisputeError,
    ClosedByBrokerError,
    GatewayError,
    NotConnectedError,
    TakenOverError,
)
from gateway.runtime.record import connection_log
from gateway.runtime.record.batch_recorder import BatchRecorder
from gateway.runtime.record.connection_log import ConnectionLog
from gateway.runtime.record.gap_recorder import GapRecorder
from gateway.runtime.record.gap_rows import watched_by
from gateway.runtime.wiring import make_source_binding
from tests.runtime.one_route import ONE_ROUTE

SECOND = 1_000_000
MIDNIGHT = 20_000 * 86_400 * SECOND
LOST = NotConnectedError("here: connection lost")
CLOSED = ClosedByBrokerError("here: the broker closed the connection")
UNPROVEN = ClientIdDisputeError("here: the broker closed the connection, perhaps for another")
PROVEN = ClientIdDisputeError("here: another client uses the id", proven=True)
TAKEN = TakenOverError("here: the broker ended the session")


class QuietSource:
    """A source without messages."""

    def __init__(self, retention: Retention) -> None:
        self.continuity = Continuity(retention)

    def open(self) -> None:
        """Connect at once."""

    def receive(self, timeout: float) -> Batch | None:
        del timeout
        return None

    def close(self) -> None:
        """Disconnect."""


class AskedSource(QuietSource):
    """A source that knows the last sign of its broker when it is asked, as that of MQTT."""

    heard = 0

    @property
    def continuity(self) -> Continuity:
        self.known.heard = self.heard
        return self.known

    @continuity.setter
    def continuity(self, value: Continuity) -> None:
        self.known = value


class Recording:
    """A recorder with a clock that the test sets, and its rows. Mutable."""

    source_class: type[QuietSource] = QuietSource

    def __init__(self, folder: Path) -> None:
        self.time = MIDNIGHT - 3_600 * SECOND
        self._folder = folder
        (folder / "gateway.yaml").write_text(ONE_ROUTE)
        self.rows: list[Rows] = []
        self.disk_works = True
        self.oldest_unsettled = 0
        self.tap: str | None = None  # the target, to record the gaps of a tap
        self.start(Retention.KEPT)

    def start(self, retention: Retention) -> None:
        """Begin a run of the gateway."""
        self.source = self.source_class(retention)
        configuration = load(self._folder / "gateway.yaml")
        binding = make_source_binding(configuration, "here", cast(Source, self.source))
        connections = ConnectionLog(LocalHead(self._folder, "test", "test"), {"here": ""})
        watched = watched_by(binding.rules.router.routes)
        if self.tap is not None:
            watched = [replace(each, target=self.tap) for each in watched]
        recorder = BatchRecorder({}, self._append, clock=lambda: self.time)
        self.recorder = GapRecorder(
            binding.source, watched, recorder, connections, lambda: self.oldest_unsettled
        )

    def connect(self, retention: Retention, after: int = 0) -> None:
        self.time += after * SECOND
        self.source.continuity.retention = retention
        self.recorder.connected()

    def lose(self, error: GatewayError, after: int = 0) -> None:
        self.time += after * SECOND
        self.source.continuity.heard = self.time
        self.recorder.lost(error)

    @property
    def gaps(self) -> list[SourceGap]:
        names = ("gateway", "route", "endpoint", "name", "rule", "reason", "begin", "time",
                 "lost", "target")  # fmt: skip
        written = (
            dict(zip(names, values, strict=True))
            for rows in self.rows
            for values in zip(*map(rows.values, names), strict=True)
        )
        times = ("begin", "time")
        return merge_gaps(
            {**row, **{name: moment(cast(int, row[name])) for name in times}} for row in written
        )

    @property
    def rules(self) -> list[tuple[str, int]]:
        """Rule and seconds of each gap."""
        return [(gap.rule, (gap.end - gap.begin) // SECOND) for gap in self.gaps]

    def _append(self, rows: Sequence[Rows], durable: Callable[[], None]) -> None:
        if self.disk_works:
            self.rows += rows
            durable()


@pytest.fixture
def recording(tmp_path: Path) -> Recording:
    return Recording(tmp_path)


@pytest.mark.parametrize(
    ("retention", "rule"),
    [
        pytest.param(Retention.KEPT, "away", id="kept"),
        pytest.param(Retention.NEW, "session-lost", id="lost"),
        pytest.param(Retention.NOTHING, "disconnected", id="nothing"),
    ],
)
def test_the_rule_of_an_outage_follows_from_what_the_broker_kept(
    recording: Recording, retention: Retention, rule: str
) -> None:
    recording.connect(Retention.NEW)
    recording.lose(LOST, after=600)
    recording.connect(retention, after=77)

    assert recording.rules == [(rule, 77)]
    (first, *_) = recording.rows
    assert first.values("id") == [bytes(16)]


def test_an_outage_begins_with_the_last_sign_of_the_broker(recording: Recording) -> None:
    recording.connect(Retention.NOTHING)
    recording.lose(LOST, after=600)
    recording.connect(Retention.NOTHING, after=1)
    recording.source.continuity.heard = recording.time + 100 * SECOND
    recording.time += 145 * SECOND
    recording.recorder.lost(LOST)
    recording.connect(Retention.NOTHING, after=5)

    assert recording.rules == [("disconnected", 1), ("disconnected", 50)]


def test_the_last_sign_is_the_one_that_the_source_knows_at_the_loss(recording: Recording) -> None:
    recording.source_class = AskedSource
    recording.start(Retention.NOTHING)
    recording.connect(Retention.NOTHING)
    begun = recording.time
    assert isinstance(recording.source, AskedSource)

    recording.source.heard = begun + 4 * SECOND
    recording.time += 10 * SECOND
    recording.recorder.lost(LOST)
    recording.connect(Retention.NOTHING, after=60)

    assert [gap.begin - begun for gap in recording.gaps] == [4 * SECOND]


def test_a_source_that_cannot_connect_at_first_has_a_gap(recording: Recording) -> None:
    recording.lose(LOST, after=2)
    recording.connect(Retention.NEW, after=60)

    assert recording.rules == [("disconnected", 62)]


def test_each_day_of_an_outage_has_a_row(recording: Recording) -> None:
    recording.connect(Retention.NOTHING)
    recording.lose(LOST, after=60)
    for _ in range(3 * 24 * 60):
        recording.lose(LOST, after=60)

    times = [int(str(rows.common["time"])) for rows in recording.rows]
    assert [time // (86_400 * SECOND) for time in times] == [19_999, 20_000, 20_001, 20_002]
    assert len(recording.gaps) == 1


def test_the_next_run_continues_an_outage(recording: Recording) -> None:
    recording.connect(Retention.NOTHING)
    recording.lose(LOST, after=60)
    recording.start(Retention.NOTHING)  # killed
    recording.lose(LOST, after=30)
    recording.connect(Retention.NOTHING, after=30)

    assert recording.rules == [("disconnected", 60)]


def test_a_gap_whose_row_was_not_durable_at_a_kill_is_recorded_by_the_next_run(
    recording: Recording,
) -> None:
    recording.connect(Retention.KEPT)
    recording.lose(LOST, after=60)
    recording.disk_works = False
    recording.connect(Retention.NEW, after=30)
    recording.recorder.check()
    recording.disk_works = True
    recording.start(Retention.KEPT)  # killed
    recording.connect(Retention.KEPT, after=30)

    assert recording.rules == [("session-lost", 60)]


def test_a_source_hears_of_its_gap_when_the_row_is_durable(recording: Recording) -> None:
    told: list[str] = []
    recording.connect(Retention.NEW)
    recording.source.continuity.on_told = lambda: told.append("the gap")
    recording.lose(LOST, after=600)
    recording.disk_works = False
    recording.connect(Retention.NEW, after=77)
    assert not told

    recording.disk_works = True
    recording.lose(LOST, after=600)
    recording.connect(Retention.NEW, after=7)

    assert told


def test_the_next_run_records_the_time_without_a_run(recording: Recording) -> None:
    recording.connect(Retention.NOTHING)
    recording.time += 60 * SECOND
    recording.source.continuity.heard = recording.time
    recording.recorder.stopped(recording.time)
    recording.start(Retention.NOTHING)
    recording.connect(Retention.NOTHING, after=30)
    recording.recorder.stopped(recording.time)
    recording.start(Retention.NOTHING)
    recording.lose(LOST, after=10)
    recording.connect(Retention.NOTHING, after=10)

    assert recording.rules == [("not-running", 30), ("disconnected", 20)]


def test_a_stop_begins_a_gap_when_the_broker_keeps_nothing(recording: Recording) -> None:
    """The gateway may not run again before the night is reconciled."""
    recording.connect(Retention.NOTHING)
    recording.time += 60 * SECOND
    recording.recorder.stopped(recording.time)
    assert recording.rules == [("not-running", 0)]

    recording.start(Retention.KEPT)  # from now on
    recording.connect(Retention.KEPT, after=1)
    recording.recorder.stopped(recording.time)

    assert recording.rules == [("not-running", 1)]


@pytest.mark.parametrize("killed", [False, True])
def test_a_gap_begins_with_the_oldest_message_that_nobody_delivers_again(
    recording: Recording, monkeypatch: pytest.MonkeyPatch, *, killed: bool
) -> None:
    monkeypatch.setattr(connection_log, "SAVE_INTERVAL", 0.0)
    recording.connect(Retention.NOTHING)
    recording.oldest_unsettled = recording.time + 50 * SECOND
    recording.time += 60 * SECOND
    recording.source.continuity.heard = recording.time
    if killed:
        recording.recorder.check()
    else:
        recording.recorder.stopped(recording.time)
    recording.oldest_unsettled = 0
    recording.start(Retention.NOTHING)
    recording.connect(Retention.NOTHING, after=1)

    assert recording.rules == [("not-running", 11)]


def test_a_takeover_is_a_gap_although_the_session_is_kept(recording: Recording) -> None:
    recording.connect(Retention.NEW)
    recording.lose(TAKEN, after=600)
    recording.connect(Retention.KEPT, after=10)

    assert recording.rules == [("taken-over", 10)]


@pytest.mark.parametrize("errors", [[TAKEN], [CLOSED, CLOSED, PROVEN]], ids=["5", "3.1.1"])
def test_a_dispute_over_a_client_id_is_one_gap(
    recording: Recording, errors: Sequence[GatewayError]
) -> None:
    recording.connect(Retention.NEW)
    for error in [*errors, *[errors[-1]] * 4]:
        recording.lose(error, after=1)
        recording.connect(Retention.KEPT, after=1)

    counted = [gap for gap in recording.gaps if gap.counts]
    assert [gap.rule for gap in counted] == ["taken-over"]
    assert (counted[0].end - counted[0].begin) // SECOND == 2 * (len(errors) + 4) - 1


@pytest.mark.parametrize("error", [CLOSED, UNPROVEN], ids=["closed", "suspected"])
def test_short_connections_that_the_broker_closes_prove_no_second_client(
    recording: Recording, error: GatewayError
) -> None:
    recording.connect(Retention.NEW)
    for _ in range(5):
        recording.lose(error, after=1)
        recording.connect(Retention.KEPT, after=1)

    assert {rule for rule, _ in recording.rules} == {"away"}


def test_a_broker_that_closes_long_connections_is_not_in_dispute(recording: Recording) -> None:
    recording.connect(Retention.NEW)
    for _ in range(5):
        recording.lose(CLOSED, after=31)
        recording.connect(Retention.KEPT, after=1)

    assert {rule for rule, _ in recording.rules} == {"away"}


def test_dropped_messages_are_a_gap_with_their_number(recording: Recording) -> None:
    recording.connect(Retention.KEPT)
    recording.source.continuity.report_loss("dropped by the broker", 3)
    recording.source.continuity.report_loss("dropped by the broker", 4)
    recording.recorder.check()
    recording.source.continuity.report_loss("a gap in the numbers")
    recording.recorder.stopped(recording.time)

    assert sorted((gap.rule, gap.reason, gap.lost) for gap in recording.gaps) == [
        ("dropped", "a gap in the numbers", None),
        ("dropped", "dropped by the broker", 7),
    ]


def test_a_driver_without_signs_of_the_broker_has_gaps_from_the_failure_on(
    recording: Recording,
) -> None:
    recording.connect(Retention.KEPT)
    recording.start(Retention.KEPT)
    recording.connect(Retention.KEPT, after=5)
    recording.time += 600 * SECOND
    recording.recorder.lost(LOST)
    recording.connect(Retention.NOTHING, after=7)

    assert recording.rules == [("away", 5), ("disconnected", 7)]


def test_a_tap_saw_nothing_before_its_first_connection(recording: Recording) -> None:
    recording.tap = "erp"
    recording.start(Retention.NEW)
    recording.connect(Retention.NEW, after=7)

    assert [(gap.target, gap.rule, gap.counts) for gap in recording.gaps] == [
        ("erp", "disconnected", True)
    ]
    assert recording.rules == [("disconnected", 7)]


def test_a_tap_and_the_source_of_its_endpoint_have_states_of_their_own(
    recording: Recording, tmp_path: Path
) -> None:
    recording.connect(Retention.KEPT)
    recording.tap = "erp"
    recording.start(Retention.NEW)
    recording.connect(Retention.NEW, after=1)
    recording.lose(LOST, after=60)
    assert not open_gaps(read_heads(LocalStorage(tmp_path))), (
        "the night would take it for one of the source"
    )
    recording.start(Retention.NEW)
    recording.connect(Retention.NEW, after=5)

    assert [(gap.target, gap.rule) for gap in recording.gaps] == [
        ("erp", "disconnected"), ("erp", "session-lost"),
    ]  # fmt: skip
    assert [seconds for _, seconds in recording.rules] == [1, 5]


def test_a_tap_that_was_removed_for_a_while_missed_that_time(recording: Recording) -> None:
    recording.tap = "erp"
    recording.start(Retention.NEW)
    recording.connect(Retention.NEW)
    recording.recorder.check()
    recording.recorder.stopped(recording.time)
    recording.tap = None
    recording.start(Retention.KEPT)
    recording.connect(Retention.KEPT, after=3_000)
    recording.tap = "erp"
    recording.start(Retention.NEW)
    recording.connect(Retention.NEW, after=600)

    assert ("session-lost", 3_600) in recording.rules


def test_a_lost_session_of_a_tap_had_the_messages_since_the_last_one(recording: Recording) -> None:
    recording.tap = "erp"
    recording.start(Retention.NEW)
    recording.connect(Retention.NEW)
    recording.recorder.last_message = recording.time
    recording.lose(LOST, after=60)
    recording.connect(Retention.NEW, after=5)

    assert ("session-lost", 65) in recording.rules


def test_the_log_calls_no_absence_a_gap(
    recording: Recording, caplog: pytest.LogCaptureFixture
) -> None:
    """The broker kept the messages. Only the night tells how long no process ran: the last sign of
    the source is seconds older than the last row."""
    caplog.set_level("INFO")
    recording.connect(Retention.KEPT)
    recording.start(Retention.KEPT)  # after a kill
    recording.connect(Retention.KEPT, after=30)
    recording.lose(LOST, after=10)
    recording.connect(Retention.KEPT, after=10)

    texts = [each.getMessage() for each in caplog.records]
    found = [each.partition(": from")[0] for each in texts if "away" in each]
    assert found == [
        "source was away while the gateway did not run, and its broker kept the messages",
        "source was away for 10.0 s, and its broker kept the messages",
    ]
    assert "gap" not in "".join(texts)


def test_the_log_says_that_a_gap_without_a_run_begins_before_it(
    recording: Recording, caplog: pytest.LogCaptureFixture
) -> None:
    recording.connect(Retention.NOTHING)
    recording.start(Retention.NOTHING)  # after a kill
    recording.connect(Retention.NOTHING, after=30)

    (found,) = (each.getMessage() for each in caplog.records)
    assert found.startswith("source gap of at most 30.0 s, not-running: from ")


def test_a_gap_has_no_column_of_a_message(recording: Recording) -> None:
    recording.connect(Retention.NEW)
    recording.lose(LOST, after=60)
    recording.connect(Retention.NEW, after=5)

    of_messages = {"source_time", "received", "redelivered", "size", "hash", "attempt", "mode"}
    assert recording.rows
    assert all(not of_messages & {*each.common, *each.columns} for each in recording.rows)
