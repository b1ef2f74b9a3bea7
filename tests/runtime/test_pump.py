"""A pump whose source is replaced by a reload, or always has more when it stops."""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from time import monotonic

import pytest

from gateway.archive.journal.local_head import LocalHead
from gateway.archive.journal.records import Rows
from gateway.clock import now
from gateway.config.load import load
from gateway.endpoints.base import Batch
from gateway.endpoints.continuity import Continuity, Retention
from gateway.errors import NotConnectedError, TakenOverError
from gateway.model.message import NO_HEADERS, Headers, Message
from gateway.model.outcome import Settlement
from gateway.routing.origin_path import GatewayIdentity
from gateway.runtime.context import GatewayContext
from gateway.runtime.delivery.duplicates import SettledBatch
from gateway.runtime.delivery.lane_limits import LaneLimits
from gateway.runtime.delivery.rows import fingerprint, message_ids
from gateway.runtime.inbound.echo_cache import EchoCache
from gateway.runtime.outbound.lane import Lane
from gateway.runtime.outbound.sink_binding import SinkBinding
from gateway.runtime.pump import Pump
from gateway.runtime.record.batch_recorder import BatchRecorder
from gateway.runtime.record.connection_log import ConnectionLog
from gateway.runtime.record.counters import ConnectionState, EndpointState, RouteCounters
from gateway.runtime.wiring import make_source_binding
from tests.runtime.one_route import ONE_ROUTE
from tests.runtime.targets import ScriptedSink
from tests.waiting import PATIENCE, until

TEST = GatewayIdentity("test")


class OneBatchSource:
    """A source with one batch; `closed` says whether the batch was settled before the close."""

    def __init__(self, *names: str, headers: Headers = NO_HEADERS) -> None:
        self._left = [Batch([Message(name, b"x", headers) for name in names], self._settle)]
        self._quiet = threading.Event()
        self.unsettled = bool(names)
        self.closed = ""

    def open(self) -> None:
        """Connect at once."""

    def receive(self, timeout: float) -> Batch | None:
        if self._left and self._left[0].messages:
            return self._left.pop()
        self._quiet.wait(timeout)
        return None

    def close(self) -> None:
        self.closed = self.closed or ("unsettled" if self.unsettled else "settled")

    def _settle(self, _: Sequence[Settlement]) -> None:
        self.unsettled = False


class EndlessSource(OneBatchSource):
    """A source of a broker that keeps nothing and always has one more message for it."""

    def __init__(self) -> None:
        super().__init__()
        self.continuity = Continuity(Retention.NOTHING)
        self.left = sys.maxsize  # messages, before nothing more comes

    def receive(self, timeout: float) -> Batch | None:
        del timeout
        self.left -= 1
        return Batch([Message("other", b"x")], self._settle) if self.left > 0 else None

    def end_intake(self) -> None:
        self.left = 10

    @property
    def intake_ended(self) -> bool:
        return self.left <= 10


def test_a_stop_ends_the_intake_of_a_source_that_always_has_more(tmp_path: Path) -> None:
    file = tmp_path / "gateway.yaml"
    file.write_text(ONE_ROUTE)
    source = EndlessSource()
    recorder = BatchRecorder({"all": RouteCounters()}, archive=lambda _, then: then())
    connections = ConnectionLog(LocalHead(tmp_path, "test", "test"), {"here": ""})
    context = GatewayContext(
        GatewayIdentity("test"), {}, recorder, message_ids(1), EchoCache(), {}, connections
    )
    pump = Pump(
        make_source_binding(load(file), "here", source), EndpointState("here", "source"), context
    )
    pump.start()
    until(lambda: pump.state.messages > 0)

    pump.stop_receiving(monotonic() + 2 * PATIENCE)
    until(pump.idle)

    assert source.left == 0
    pump.close()


class AnsweringSource(EndlessSource):
    """A quiet source: what its broker has sent, and then its answer, come after two empty looks."""

    def __init__(self) -> None:
        super().__init__()
        self.left = 1
        self._looks = 0

    @property
    def intake_ended(self) -> bool:
        return self._looks > 3

    def receive(self, timeout: float) -> Batch | None:
        if self.left:
            self.left = 0
            return Batch([Message("other", b"x")], self._settle)
        if self._looks:
            self._looks += 1
            return Batch([Message("other", b"y")], self._settle) if self._looks == 3 else None
        self._quiet.wait(timeout)
        return None

    def end_intake(self) -> None:
        self._looks = 1


def test_a_stop_waits_for_what_the_broker_has_sent(tmp_path: Path) -> None:
    """It keeps nothing: what comes behind an empty look would be lost, and in no gap."""
    file = tmp_path / "gateway.yaml"
    file.write_text(ONE_ROUTE)
    source, state = AnsweringSource(), EndpointState("here", "source")
    recorder = BatchRecorder({"all": RouteCounters()}, archive=lambda _, then: then())
    connections = ConnectionLog(LocalHead(tmp_path, "test", "test"), {"here": ""})
    context = GatewayContext(
        GatewayIdentity("test"), {}, recorder, message_ids(1), EchoCache(), {}, connections
    )
    pump = Pump(make_source_binding(load(file), "here", source), state, context)
    pump.start()
    until(lambda: state.messages == 1)

    pump.stop_receiving(monotonic() + 2 * PATIENCE)
    until(pump.idle)

    assert state.messages == 2
    pump.close()


class SourceWithoutEnd(EndlessSource):
    """A source whose broker keeps nothing and marks no end: it has ten more at a stop."""

    empty_at = 0  # when it had no more

    @property
    def intake_ended(self) -> bool:
        return True

    def receive(self, timeout: float) -> Batch | None:
        if not timeout:
            self.left = min(self.left, 10)
        batch = super().receive(timeout)
        self.empty_at = self.empty_at if batch is not None else now()
        return batch


def test_the_gap_of_a_source_without_an_end_begins_when_it_has_no_more(tmp_path: Path) -> None:
    file = tmp_path / "gateway.yaml"
    file.write_text(ONE_ROUTE)
    rows: list[Rows] = []
    recorder = BatchRecorder({"all": RouteCounters()}, archive=lambda found, _: rows.extend(found))
    connections = ConnectionLog(LocalHead(tmp_path, "test", "test"), {"here": ""})
    context = GatewayContext(
        GatewayIdentity("test"), {}, recorder, message_ids(1), EchoCache(), {}, connections
    )
    source, state = SourceWithoutEnd(), EndpointState("here", "source")
    pump = Pump(make_source_binding(load(file), "here", source), state, context)
    pump.start()
    until(lambda: pump.state.messages > 0)

    pump.stop_receiving(monotonic() + 2 * PATIENCE)
    until(pump.idle)

    (gap,) = (each for each in rows if each.common.get("rule") == "not-running")
    assert int(str(gap.common["begin"])) >= source.empty_at
    pump.close()


class SourceThatFails(EndlessSource):
    """An endless source whose connection ends by `error` while the gateway stops."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self._error = error

    def end_intake(self) -> None:
        raise self._error


@pytest.mark.parametrize(
    ("error", "rule"),
    [
        (TakenOverError("here: another client has its id"), "taken-over"),
        (RuntimeError("a fault of the driver"), "disconnected"),
    ],
    ids=["taken-over", "driver"],
)
def test_a_source_that_is_lost_at_a_stop_has_its_gap(
    tmp_path: Path, error: Exception, rule: str
) -> None:
    """An upgrade may start the next process, with the same client id, before this one ends."""
    file = tmp_path / "gateway.yaml"
    file.write_text(ONE_ROUTE)
    rows: list[Rows] = []
    recorder = BatchRecorder({"all": RouteCounters()}, archive=lambda found, _: rows.extend(found))
    connections = ConnectionLog(LocalHead(tmp_path, "test", "test"), {"here": ""})
    context = GatewayContext(
        GatewayIdentity("test"), {}, recorder, message_ids(1), EchoCache(), {}, connections
    )
    source, state = SourceThatFails(error), EndpointState("here", "source")
    pump = Pump(make_source_binding(load(file), "here", source), state, context)
    pump.start()
    until(lambda: pump.state.messages > 0)

    pump.stop_receiving(monotonic() + 2 * PATIENCE)
    until(pump.idle)

    assert {each.common["rule"] for each in rows} == {rule}
    pump.close()


def lane_to(sink: ScriptedSink) -> tuple[Lane, GatewayContext]:
    """Return the lane of the one target, and the context of a gateway with it."""
    binding = SinkBinding(sink, "mqtt", frozenset(), LaneLimits((0.01, 0.02)))
    lane, recorder = (
        Lane(binding, EndpointState("there", "sink")),
        BatchRecorder({"all": RouteCounters()}),
    )
    return lane, GatewayContext(
        GatewayIdentity("test"), {"there": lane}, recorder, message_ids(1), EchoCache(), {}
    )


def test_a_replaced_source_is_closed_after_its_batch_is_settled(tmp_path: Path) -> None:
    """Otherwise its broker delivers the batch again to the new source."""
    file = tmp_path / "gateway.yaml"
    file.write_text(ONE_ROUTE)
    configuration = load(file)
    sink = ScriptedSink()
    sink.mute = True
    lane, context = lane_to(sink)
    before, after = OneBatchSource("a/1", "a/2"), OneBatchSource()
    pump = Pump(
        make_source_binding(configuration, "here", before), EndpointState("here", "source"), context
    )
    lane.start()
    pump.start()
    until(lambda: len(sink.received) == 2)

    pump.rebind(make_source_binding(configuration, "here", after))
    answer = threading.Timer(1, sink.answer_all)  # while the pump waits for it
    answer.start()
    until(lambda: not pump.rebinding)

    answer.join()
    pump.close()
    lane.stop()
    assert before.closed == "settled"


def test_a_duplicate_of_a_message_without_a_route_waits_for_nothing(tmp_path: Path) -> None:
    """A reload may add the route before its broker delivers the message again."""
    file = tmp_path / "gateway.yaml"
    file.write_text(ONE_ROUTE)
    source = OneBatchSource("other/1", headers=Headers(source_id="ID:1"))
    recorder = BatchRecorder({"all": RouteCounters()})
    context = GatewayContext(TEST, {}, recorder, message_ids(1), EchoCache(), {})
    pump = Pump(
        make_source_binding(load(file), "here", source), EndpointState("here", "source"), context
    )
    pump.start()
    until(lambda: not source.unsettled)
    pump.close()

    settled: list[bool] = []
    identity = ("other/1", "ID:1", fingerprint(b"x")[1])
    earlier = pump.duplicates.find_or_add(identity, SettledBatch())
    assert earlier is not None
    earlier.when_settled(lambda: settled.append(True))
    assert settled


def test_a_duplicate_is_settled_after_its_original(tmp_path: Path) -> None:
    """Otherwise its broker forgets a message that no target has yet."""
    file = tmp_path / "gateway.yaml"
    file.write_text(ONE_ROUTE)
    sink, settled = ScriptedSink(), list[str]()
    sink.mute = True
    lane, context = lane_to(sink)
    source, state = OneBatchSource("a/1"), EndpointState("here", "source")

    def noted(name: str) -> Batch:
        return Batch([Message("a/1", b"x", Headers(source_id="1"))], lambda _: settled.append(name))

    source._left = [noted("duplicate"), noted("original")]  # noqa: SLF001  # the last one first
    pump = Pump(make_source_binding(load(file), "here", source), state, context)
    lane.start()
    pump.start()
    until(lambda: state.messages == 2 and len(sink.received) == 1)

    sink.answer_all()
    until(lambda: len(settled) == 2)

    assert settled == ["original", "duplicate"]
    pump.close()
    lane.stop()


class Properties(dict[str, str]):
    """The properties of one message, which a test can see being forgotten."""


class BreakingSource(OneBatchSource):
    """Each of its connections brings all messages again, in one batch with a new one, and ends."""

    def __init__(self, connections: int) -> None:
        super().__init__()
        self.left = connections
        self.seen: list[weakref.ref[Properties]] = []
        self._messages = 0

    def open(self) -> None:
        self._messages += 1
        self._left = [Batch([self._message(n) for n in range(self._messages)], lambda _: None)]

    def receive(self, timeout: float) -> Batch | None:
        if not self._left and self.left:
            self.left -= 1
            raise NotConnectedError("here: it breaks")
        return super().receive(timeout)

    def _message(self, number: int) -> Message:
        self.seen.append(weakref.ref(properties := Properties()))
        return Message(f"a/{number}", b"x", Headers(source_id=str(number), properties=properties))


def test_messages_that_come_again_while_a_target_is_away_take_no_room(tmp_path: Path) -> None:
    """Each connection of a source brings what is not settled, and no lane limits duplicates."""
    file = tmp_path / "gateway.yaml"
    file.write_text(ONE_ROUTE)
    sink = ScriptedSink()
    sink.up = False
    lane, context = lane_to(sink)
    source, state = BreakingSource(40), EndpointState("here", "source")
    made = make_source_binding(load(file), "here", source)
    pump = Pump(replace(made, backoff=(0.001, 0.001)), state, context)
    lane.start()
    pump.start()
    until(lambda: not source.left and state.connection is ConnectionState.CONNECTED)

    until(lambda: sum(each() is not None for each in source.seen) <= 2 * 41)

    sink.up = True
    until(lambda: len(sink.received) == 41)
    until(lambda: pump.settled)
    pump.close()
    lane.stop()
