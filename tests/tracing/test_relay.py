"""`gateway run` between two mosquitto brokers, with traces to a collector."""

from __future__ import annotations

import queue
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import paho.mqtt.client as paho
import pytest
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from gateway.trial.brokers.listening import free_port
from tests.brokers.mosquitto import Mosquitto, StartMosquitto
from tests.brokers.running import Process
from tests.tracing.collector import collecting
from tests.waiting import PATIENCE

pytestmark = pytest.mark.broker

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
STATE: Final = "congo=t61rcWkgMzE"
CONFIG = """\
gateway: {{name: plant-1}}
endpoints:
  source: {{kind: mqtt, host: 127.0.0.1, port: {source}, version: "5"}}
  target: {{kind: mqtt, host: 127.0.0.1, port: {target}, version: "{version}"}}
routes:
  relay:
    from: {{endpoint: source, pattern: "src/{{rest...}}"}}
    to: {{endpoint: target, template: "dst/{{rest...}}"}}
tracing: {{otlp: "{collector}", sample: {sample}, token: "${{env:COLLECTOR_TOKEN}}"}}
"""
Arrived = tuple[str, list[tuple[str, str]]]  # name and user properties


class Client:
    """An MQTT 5.0 client that sends, and queues the messages it receives."""

    def __init__(self, port: int, pattern: str = "") -> None:
        self.arrived: queue.Queue[Arrived] = queue.Queue()
        self._subscribed: queue.Queue[None] = queue.Queue()
        self._client = paho.Client(CallbackAPIVersion.VERSION2, protocol=paho.MQTTv5)
        self._client.on_message = self._on_message
        self._client.on_subscribe = lambda *_: self._subscribed.put(None)
        self._client.connect("127.0.0.1", port)
        self._client.loop_start()
        if pattern:
            self._client.subscribe(pattern, 1)
            self._subscribed.get(timeout=PATIENCE)

    def send(self, name: str, *pairs: tuple[str, str]) -> None:
        properties = Properties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]  # paho's
        if pairs:
            properties.UserProperty = list(pairs)
        self._client.publish(name, b"x", 1, properties=properties).wait_for_publish(PATIENCE)

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()

    def _on_message(self, _client: object, _data: object, message: paho.MQTTMessage) -> None:
        pairs = getattr(message.properties, "UserProperty", [])
        self.arrived.put((message.topic, list(pairs)))


@contextmanager
def traced(
    folder: Path, source: Mosquitto, target: Mosquitto, collector: str, **facts: object
) -> Iterator[tuple[Process, Client, Client]]:
    config = folder / "gateway.yaml"
    values = {"sample": 0, "version": "5", **facts}
    text = CONFIG.format(source=source.port, target=target.port, collector=collector, **values)
    config.write_text(text)
    process = Process(config, {"COLLECTOR_TOKEN": "let-me-in"})
    into, out = Client(source.port), Client(target.port, "dst/#")
    try:
        process.connected()
        yield process, into, out
    finally:
        into.close()
        out.close()
        process.end(signal.SIGKILL)


def test_a_sampled_message_gets_a_span_and_carries_its_context(
    tmp_path: Path, start_mosquitto: StartMosquitto
) -> None:
    source, target = start_mosquitto(), start_mosquitto()
    with (
        collecting() as (collector, url),
        traced(tmp_path, source, target, url) as (process, into, out),
    ):
        context = ("traceparent", f"00-{TRACE}-{SPAN}-01")
        into.send("src/v1.2/a", context, ("tracestate", STATE), ("shift", "night"))
        name, pairs = out.arrived.get(timeout=PATIENCE)
        collector.wait_for(lambda spans: len(spans) == 1)
        assert process.end() == 0

    (span,) = collector.spans
    sent = dict(pairs)
    assert name == "dst/v1.2/a"
    assert sent["traceparent"] == f"00-{TRACE}-{span.span}-01"
    assert (sent["tracestate"], sent["shift"]) == (STATE, "night")
    assert (span.trace, span.parent, span.state) == (TRACE, SPAN, STATE)
    assert (span.name, span.failed) == ("relay relay", "")
    assert 0 < span.ended - span.began < 10_000_000_000
    assert dict(span.facts) == {
        "gateway.route": "relay",
        "gateway.source.endpoint": "source",
        "gateway.source.name": "src/v1.2/a",
        "gateway.target.endpoint": "target",
        "messaging.system": "mqtt",
        "messaging.destination.name": "dst/v1.2/a",
        "gateway.outcome": "accepted",
        "gateway.attempts": 1,
    }
    assert (span.sender["service.name"], span.sender["service.instance.id"]) == (
        "gateway",
        "plant-1",
    )
    path, headers = collector.requests[0]
    assert path == "/v1/traces"
    assert headers["Content-Type"] == "application/x-protobuf"
    assert headers["Authorization"] == "Bearer let-me-in"


def test_a_message_that_is_not_sampled_passes_unchanged(
    tmp_path: Path, start_mosquitto: StartMosquitto
) -> None:
    source, target = start_mosquitto(), start_mosquitto()
    given = [("traceparent", f"00-{TRACE}-{SPAN}-00"), ("tracestate", STATE)]
    with (
        collecting() as (collector, url),
        traced(tmp_path, source, target, url) as (process, into, out),
    ):
        into.send("src/not-sampled", *given)
        into.send("src/no-context")
        into.send("src/sampled", ("traceparent", f"00-{TRACE}-{SPAN}-01"))
        arrived = dict(out.arrived.get(timeout=PATIENCE) for _ in range(3))
        assert process.end() == 0  # queued spans are exported first

    assert [pair for pair in arrived["dst/not-sampled"] if pair[0].startswith("trace")] == given
    assert not any(name == "traceparent" for name, _ in arrived["dst/no-context"])
    assert [span.facts["gateway.source.name"] for span in collector.spans] == ["src/sampled"]


def test_selected_messages_without_a_context_begin_traces(
    tmp_path: Path, start_mosquitto: StartMosquitto
) -> None:
    source, target = start_mosquitto(), start_mosquitto()
    with (
        collecting() as (collector, url),
        traced(tmp_path, source, target, url, sample=1) as (process, into, out),
    ):
        into.send("src/a")
        into.send("src/b", ("traceparent", "no context"), ("tracestate", STATE))
        arrived = dict(out.arrived.get(timeout=PATIENCE) for _ in range(2))
        assert process.end() == 0

    assert [span.parent for span in collector.spans] == ["", ""]
    sent = {name: dict(pairs) for name, pairs in arrived.items()}
    assert {name: pairs["traceparent"] for name, pairs in sent.items()} == {
        str(span.facts["messaging.destination.name"]): f"00-{span.trace}-{span.span}-01"
        for span in collector.spans
    }
    assert len({span.trace for span in collector.spans}) == 2
    assert not any("tracestate" in pairs for pairs in sent.values())  # of an invalid context


def test_a_target_without_properties_gets_no_context_and_the_span_is_exported(
    tmp_path: Path, start_mosquitto: StartMosquitto
) -> None:
    source, target = start_mosquitto(), start_mosquitto()
    with (
        collecting() as (collector, url),
        traced(tmp_path, source, target, url, version="3.1.1") as (process, into, out),
    ):
        into.send("src/a", ("traceparent", f"00-{TRACE}-{SPAN}-01"))
        assert out.arrived.get(timeout=PATIENCE) == ("dst/a", [])
        assert process.end() == 0

    assert [(span.trace, span.parent) for span in collector.spans] == [(TRACE, SPAN)]


def test_an_unreachable_collector_is_logged_once_and_delays_no_message(
    tmp_path: Path, start_mosquitto: StartMosquitto
) -> None:
    source, target = start_mosquitto(), start_mosquitto()
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with traced(tmp_path, source, target, url, sample=1) as (process, into, out):
        with collecting(port) as (collector, _):
            collector.status = 503
            for number in range(3):  # a batch each
                into.send(f"src/{number}")
                assert out.arrived.get(timeout=PATIENCE)[0] == f"dst/{number}"
                collector.wait_for_requests(number + 1)
            process.wait_for(f"cannot export traces to {url}: the collector answered 503")
            collector.status = 200
            into.send("src/back")
            process.wait_for(f"traces are exported to {url} again")
            collector.wait_for(lambda spans: len(spans) == 1)
        into.send("src/away")  # the collector has ended
        process.wait_for(f"cannot export traces to {url}", times=2)
        assert process.end() == 0

    warnings = [str(line["message"]) for line in process.lines if line["level"] == "warning"]
    assert [text.split(": ")[-1] for text in warnings if "cannot export" in text] == [
        "the collector answered 503 Service Unavailable; they are dropped",
        "[Errno 111] Connection refused; they are dropped",
    ]


def test_a_collector_that_never_answers_does_not_delay_a_stop(
    tmp_path: Path, start_mosquitto: StartMosquitto
) -> None:
    source, target = start_mosquitto(), start_mosquitto()
    silent = start_mosquitto()
    silent.freeze()  # it accepts connections and sends nothing
    url = f"http://127.0.0.1:{silent.port}"
    with traced(tmp_path, source, target, url, sample=1) as (process, into, out):
        into.send("src/a")
        assert out.arrived.get(timeout=PATIENCE)[0] == "dst/a"
        assert process.end() == 0

    assert process.lines[-1]["message"] == "stopped"
