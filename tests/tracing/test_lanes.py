"""A traced lane: spans of traced messages, and unchanged other messages."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from gateway.archive.journal.records import Rows
from gateway.clock import now
from gateway.config.process import TracingSettings
from gateway.endpoints.jms.property_names import encode_property_name
from gateway.endpoints.solace.message_properties import build_properties
from gateway.model.dead_letter_rule import TOO_LONG
from gateway.model.message import Headers, Message
from gateway.model.outcome import ACCEPTED, SPOOLED, Settlement, rejected
from gateway.runtime.delivery.lane_limits import LaneLimits
from gateway.runtime.delivery.outbound_batch import OutboundBatch, PendingRow
from gateway.runtime.monitor.tracing import Tracer, open_span_recorder
from gateway.runtime.outbound.lane import Lane
from gateway.runtime.outbound.sink_binding import SinkBinding
from gateway.runtime.record.counters import EndpointState
from gateway.tracing import spans as exporting
from gateway.tracing.context import context_of
from tests.runtime.outbound_batches import batch_of as answering
from tests.runtime.targets import ScriptedSink
from tests.tracing.collector import Collector, collecting
from tests.waiting import PATIENCE, until

TEXT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
SAMPLED = Message("sampled", b"", Headers(properties={"traceparent": TEXT}))
PLAIN = Message("plain", b"")
MISSING = """\
import sys
sys.modules["opentelemetry"] = None
from gateway.cli import main
sys.exit(main(["run", sys.argv[1]]))
"""
CONFIG = """\
endpoints:
  a: {kind: memory, dialect: mqtt, broker: a}
  b: {kind: memory, dialect: ems, broker: b}
routes: {r: {from: {endpoint: a, pattern: "x/#"}, to: {endpoint: b}}}
tracing: {otlp: "http://127.0.0.1:4318"}
archive: {path: archive}
"""


def batch_of(answers: list[Settlement], *messages: Message) -> OutboundBatch:
    names = [message.address for message in messages]
    common = {"route": "r", "endpoint": "target", "system": "mqtt", "received": 1_000}
    columns = {"name": names, "source_name": [f"from/{name}" for name in names]}
    end = PendingRow(tuple(range(len(messages))), Rows(len(messages), common, columns), "source")  # type: ignore[arg-type]  # cells
    return answering(messages, lambda settled, _: answers.extend(settled), [end])


@dataclass(frozen=True, slots=True)
class TracedLane:
    """A lane whose batches are traced, as the pump hands them over."""

    lane: Lane
    tracer: Tracer

    def deliver(self, batch: OutboundBatch) -> None:
        self.tracer.trace(batch, self.lane.binding.carries)
        self.lane.deliver(batch)


@contextmanager
def lanes(
    sink: ScriptedSink, share: float, carries: frozenset[str] = frozenset({"properties"})
) -> Iterator[tuple[Collector, TracedLane]]:
    lane = Lane(
        SinkBinding(sink, "mqtt", carries, LaneLimits((0.01, 0.02))),
        EndpointState("target", "sink"),
    )
    with collecting() as (collector, url), pytest.MonkeyPatch.context() as patch:
        patch.setattr(exporting, "EXPORT_INTERVAL", 20)  # milliseconds; so that the test is fast
        spans = open_span_recorder(TracingSettings(otlp=url), "test")
        lane.start()
        until(lambda: lane.direct)
        try:
            yield collector, TracedLane(lane, Tracer(spans, share, now, lambda: 0.5))
        finally:
            lane.stop()
            spans.close()


@pytest.mark.parametrize(
    ("answer", "rule"),
    [
        pytest.param(ACCEPTED, "", id="accepted"),
        pytest.param(SPOOLED, "", id="spooled"),
        pytest.param(rejected(TOO_LONG, "secret"), "too-long", id="refused"),
    ],
)
def test_a_span_has_the_outcome_of_its_message(answer: Settlement, rule: str) -> None:
    sink, answers = ScriptedSink(), list[Settlement]()
    sink.answer = lambda _: answer
    with lanes(sink, 0) as (collector, traced):
        traced.deliver(batch_of(answers, PLAIN, SAMPLED))
        until(lambda: answers == [answer] * 2)
        collector.wait_for(lambda spans: len(spans) == 1)

    (span,) = collector.spans
    assert (span.facts["gateway.outcome"], span.failed) == (answer.outcome.value, rule)
    assert span.facts["messaging.destination.name"] == "sampled"
    assert span.facts["gateway.source.name"] == "from/sampled"
    assert span.began == 1_000_000  # the receipt, of a thousand microseconds, in nanoseconds
    assert "secret" not in str(span)


def test_a_message_that_is_sent_again_keeps_its_span() -> None:
    sink, answers = ScriptedSink(), list[Settlement]()
    with lanes(sink, 1) as (collector, traced):
        sink.mute = True
        traced.deliver(batch_of(answers, SAMPLED))
        sink.mute = False
        sink.drop()
        sink.up = True
        until(lambda: answers == [ACCEPTED])
        collector.wait_for(lambda spans: len(spans) == 1)

    (span,) = collector.spans
    contexts = [context_of(message.headers.properties) for message in sink.received]
    assert [f"{each.span:016x}" for each in contexts if each] == [span.span, span.span]
    assert span.facts["gateway.attempts"] == 2


def test_messages_that_are_not_traced_pass_as_the_same_objects() -> None:
    sink, answers = ScriptedSink(), list[Settlement]()
    off = replace(SAMPLED, headers=Headers(properties={"traceparent": TEXT[:-1] + "0"}))
    with lanes(sink, 0.5) as (collector, traced):
        whole = batch_of(answers, PLAIN, off)
        traced.deliver(whole)
        until(lambda: len(answers) == 2)

    assert sink.received[0] is PLAIN
    assert sink.received[1] is off
    assert collector.spans == []


def test_a_target_without_properties_gets_the_message_unchanged() -> None:
    sink, answers = ScriptedSink(), list[Settlement]()
    with lanes(sink, 0.6, frozenset()) as (collector, traced):
        traced.deliver(batch_of(answers, PLAIN, SAMPLED))
        collector.wait_for(lambda spans: len(spans) == 2)

    assert sink.received[0] is PLAIN
    assert sink.received[1] is SAMPLED


def test_the_property_names_of_w3c_need_no_escape() -> None:
    """For MQTT see test_relay.py; YAMI4 does not change property names."""
    spelled = build_properties(SAMPLED.headers, "", lambda: 0)

    assert [encode_property_name(name) for name in ("traceparent", "tracestate")] == [
        "traceparent",
        "tracestate",
    ]
    assert spelled["traceparent"] == TEXT


def test_a_missing_package_is_an_error_before_the_archive_is_opened(tmp_path: Path) -> None:
    (tmp_path / "gateway.yaml").write_text(CONFIG)

    done = subprocess.run(  # noqa: S603  # our own command
        [sys.executable, "-c", MISSING, "gateway.yaml"],
        capture_output=True, text=True, timeout=PATIENCE, check=False, cwd=tmp_path,
    )  # fmt: skip

    assert done.returncode == 2
    assert "tracing: the module 'opentelemetry" in done.stderr
    assert "pip install 'opentelemetry-" in done.stderr
    assert not (tmp_path / "archive").exists()


def test_without_the_section_the_sdk_is_not_loaded(tmp_path: Path) -> None:
    (tmp_path / "gateway.yaml").write_text(CONFIG.replace("tracing", "# tracing"))
    code = (
        "import sys; from pathlib import Path; from gateway.config.load import load;"
        "from gateway.runtime.gateway import Gateway;"
        "bridge = Gateway(load(Path('gateway.yaml'))); bridge.start();"
        "pumps = bridge.pumps.values();"
        "print(all(pump._context.lanes is bridge.lanes for pump in pumps),"
        " 'opentelemetry' in sys.modules); bridge.stop(3)"
    )

    done = subprocess.run(  # noqa: S603  # our own code
        [sys.executable, "-c", code],
        capture_output=True, text=True, timeout=PATIENCE, check=True, cwd=tmp_path,
    )  # fmt: skip

    assert done.stdout.split() == ["True", "False"]
