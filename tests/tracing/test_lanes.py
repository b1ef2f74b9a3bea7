"""What a traced lane tells of its messages, and what it costs those that are not traced."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.archive.journal.records import Rows
from gateway.config.process import TracingRef
from gateway.endpoints.jms.names import write_name
from gateway.endpoints.solace.properties import properties_of
from gateway.model.message import Headers, Message
from gateway.model.outcome import ACCEPTED, SPOOLED, Settlement, rejected
from gateway.runtime.monitor.counters import EndpointState
from gateway.runtime.monitor.tracing import Sampler, TracedLanes, open_spans
from gateway.runtime.outbound.backlog import Parcel
from gateway.runtime.outbound.lane import Lane, Outlet
from gateway.runtime.outbound.spool_codec import End
from gateway.tracing import spans as exporting
from gateway.tracing.context import context_of
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


def parcel(answers: list[Settlement], *messages: Message) -> Parcel:
    names = [message.address for message in messages]
    common = {"route": "r", "endpoint": "target", "system": "mqtt", "received": 1_000}
    columns = {"name": names, "source_name": [f"from/{name}" for name in names]}
    end = End(tuple(range(len(messages))), Rows(len(messages), common, columns), "source")  # type: ignore[arg-type]  # cells
    return Parcel(messages, 1, lambda settled, _: answers.extend(settled), lambda: [end])


@contextmanager
def lanes(
    sink: ScriptedSink, share: float, carries: frozenset[str] = frozenset({"properties"})
) -> Iterator[tuple[Collector, TracedLanes]]:
    lane = Lane(Outlet(sink, "mqtt", carries, (0.01, 0.02)), EndpointState("target", "sink"))
    with collecting() as (collector, url), pytest.MonkeyPatch.context() as patch:
        patch.setattr(exporting, "PAUSE", 20)  # milliseconds; a test need not wait for a batch
        spans = open_spans(TracingRef(otlp=url), "test")
        lane.start()
        until(lambda: lane.direct)
        try:
            yield collector, TracedLanes({"target": lane}, spans, Sampler(share, lambda: 0.5))
        finally:
            lane.stop()
            spans.close()


@pytest.mark.parametrize(
    ("answer", "failed"),
    [
        pytest.param(ACCEPTED, "", id="accepted"),
        pytest.param(SPOOLED, "", id="spooled"),
        pytest.param(rejected("too-long", "secret"), "too-long", id="refused"),
    ],
)
def test_a_span_says_how_its_message_ended(answer: Settlement, failed: str) -> None:
    sink, answers = ScriptedSink(), list[Settlement]()
    sink.answer = lambda _: answer
    with lanes(sink, 0) as (collector, traced):
        traced["target"].deliver(parcel(answers, PLAIN, SAMPLED))
        until(lambda: answers == [answer] * 2)
        collector.wait_for(lambda spans: len(spans) == 1)

    (span,) = collector.spans
    assert (span.facts["gateway.outcome"], span.failed) == (answer.outcome.value, failed)
    assert span.facts["messaging.destination.name"] == "sampled"
    assert span.facts["gateway.source.name"] == "from/sampled"
    assert span.began == 1_000_000  # the receipt, of a thousand microseconds, in nanoseconds
    assert "secret" not in str(span)


def test_a_message_that_is_sent_again_keeps_its_span() -> None:
    sink, answers = ScriptedSink(), list[Settlement]()
    with lanes(sink, 1) as (collector, traced):
        sink.mute = True
        traced["target"].deliver(parcel(answers, SAMPLED))
        sink.mute = False
        sink.drop()
        sink.up = True
        until(lambda: answers == [ACCEPTED])
        collector.wait_for(lambda spans: len(spans) == 1)

    (span,) = collector.spans
    contexts = [context_of(message.headers.properties) for message in sink.got]
    assert [f"{each.span:016x}" for each in contexts if each] == [span.span, span.span]
    assert span.facts["gateway.attempts"] == 2


def test_messages_that_are_not_traced_go_on_as_the_objects_they_are() -> None:
    sink, answers = ScriptedSink(), list[Settlement]()
    off = replace(SAMPLED, headers=Headers(properties={"traceparent": TEXT[:-1] + "0"}))
    with lanes(sink, 0.5) as (collector, traced):
        whole = parcel(answers, PLAIN, off)
        traced["target"].deliver(whole)
        until(lambda: len(answers) == 2)

    assert sink.got[0] is PLAIN
    assert sink.got[1] is off
    assert collector.spans == []


def test_a_target_without_properties_gets_the_message_as_it_was() -> None:
    sink, answers = ScriptedSink(), list[Settlement]()
    with lanes(sink, 0.6, frozenset()) as (collector, traced):
        traced["target"].deliver(parcel(answers, PLAIN, SAMPLED))
        collector.wait_for(lambda spans: len(spans) == 2)

    assert sink.got[0] is PLAIN
    assert sink.got[1] is SAMPLED


def test_the_names_of_w3c_are_their_own_names_everywhere() -> None:
    """MQTT is in test_relay.py; YAMI4 keeps properties as they are."""
    spelled = properties_of(SAMPLED.headers, "", lambda: 0)

    assert [write_name(name) for name in ("traceparent", "tracestate")] == [
        "traceparent",
        "tracestate",
    ]
    assert spelled["traceparent"] == TEXT


def test_a_missing_package_is_said_before_anything_is_opened(tmp_path: Path) -> None:
    (tmp_path / "gateway.yaml").write_text(CONFIG)

    done = subprocess.run(  # noqa: S603  # our own command
        [sys.executable, "-c", MISSING, "gateway.yaml"],
        capture_output=True, text=True, timeout=PATIENCE, check=False, cwd=tmp_path,
    )  # fmt: skip

    assert done.returncode == 2
    assert "tracing: the module 'opentelemetry" in done.stderr
    assert "run `pip install 'gateway[otel]'`" in done.stderr
    assert not (tmp_path / "archive").exists()


def test_without_the_section_the_sdk_is_not_even_loaded(tmp_path: Path) -> None:
    (tmp_path / "gateway.yaml").write_text(CONFIG.replace("tracing", "# tracing"))
    code = (
        "import sys; from pathlib import Path; from gateway.config.load import load;"
        "from gateway.runtime.gateway import Gateway;"
        "bridge = Gateway(load(Path('gateway.yaml'))); bridge.start();"
        "pumps = bridge.pumps.values();"
        "print(all(pump._around.lanes is bridge.lanes for pump in pumps),"
        " 'opentelemetry' in sys.modules); bridge.stop(3)"
    )

    done = subprocess.run(  # noqa: S603  # our own code
        [sys.executable, "-c", code],
        capture_output=True, text=True, timeout=PATIENCE, check=True, cwd=tmp_path,
    )  # fmt: skip

    assert done.stdout.split() == ["True", "False"]
