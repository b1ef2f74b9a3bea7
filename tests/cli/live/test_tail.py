"""`gateway tail` shows the messages of a route, and takes none from another reader."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.cli import main
from gateway.endpoints.base import Subscription
from gateway.endpoints.registry import make_sink, make_source
from gateway.endpoints.settings.mqtt import MqttSettings
from gateway.model.message import DeliveryMode, Headers, Message
from gateway.model.outcome import ACCEPTED
from tests.brokers.mosquitto import OPEN, Mosquitto, StartMosquitto
from tests.waiting import PATIENCE, until

CONFIG = """\
endpoints:
  plant: {{kind: mqtt, port: {port}}}
  ems: {{kind: memory, dialect: ems}}
  work: {{kind: rabbitmq}}
  queues: {{kind: jms, destination: queue, urls: ["tcp://127.0.0.1:1"]}}
  direct: {{kind: solace, url: "tcp://127.0.0.1:1", guaranteed: true}}
routes:
  temperatures:
    from: {{endpoint: plant, pattern: "line/{{n}}/{{rest...}}", exclude: [line/9/#]}}
    to: {{endpoint: ems, template: "L.{{n}}.{{rest...}}", headers: {{set: {{line: "{{n}}"}}}}}}
  shared:
    from: {{endpoint: plant, pattern: "$share/g/s/{{n}}"}}
    to: {{endpoint: ems, template: "S.{{n}}"}}
  memory:
    from: {{endpoint: ems, pattern: "M.{{n}}"}}
    to: {{endpoint: plant, template: "m/{{n}}"}}
  rabbit:
    from: {{endpoint: work, pattern: "r.{{n}}"}}
    to: {{endpoint: plant, template: "rabbit/{{n}}"}}
  queue:
    from: {{endpoint: queues, pattern: "Q"}}
    to: {{endpoint: plant, template: "q"}}
"""


def written(folder: Path, port: int = 1) -> Path:
    file = folder / "gateway.yaml"
    file.write_text(CONFIG.format(port=port))
    return file


def test_without_a_route_the_routes_are_listed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["tail", str(written(tmp_path))]) == 0

    first, *others = capsys.readouterr().out.splitlines()
    assert first == "temperatures: plant line/{n}/{rest...}"
    assert [each.partition(":")[0] for each in others] == ["shared", "memory", "rabbit", "queue"]


def started(file: Path, broker: Mosquitto, *options: str) -> subprocess.Popen[str]:
    words = [sys.executable, "-m", "gateway", "tail", str(file), "temperatures", *options]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)  # noqa: S603  # this command
    until(lambda: re.search(r"-tail-[0-9a-f]{8} 1 line/\+/#", broker.log) is not None)
    return process


@pytest.mark.broker
def test_the_messages_of_a_route_are_shown_and_reach_every_other_reader(
    tmp_path: Path, start_mosquitto: StartMosquitto
) -> None:
    broker = start_mosquitto(*OPEN, "log_type all")
    settings = MqttSettings(name="plant", port=broker.port, client_id="gateway-plant")
    reader = make_source(settings, [Subscription("line/#")])
    sink = make_sink(settings)
    reader.open()
    sink.open()
    names = ["line/1/v1.2", "line/9/x", "line/2/\u2028"]
    received: list[str] = []

    def all_received() -> bool:
        batch = reader.receive(0.1)
        if batch is not None:
            received.extend(each.address for each in batch.messages)
            batch.settle([ACCEPTED] * len(batch.messages))
        return len(received) == len(names)

    with started(written(tmp_path, broker.port), broker, "--payload", "--count", "2") as tail:
        try:
            headers = Headers(DeliveryMode.AT_LEAST_ONCE, content_type="text/plain")
            sink.send([Message(name, b"21\x1b[2J", headers) for name in names], lambda _: None)
            until(all_received)
            out, _ = tail.communicate(timeout=PATIENCE)
        finally:
            tail.kill()
            reader.close()
            sink.close()

    assert tail.returncode == 0
    assert received == names
    assert re.sub(r"[\d:.]+Z", "TIME", out) == (
        "TIME plant line/1/v1.2\n"
        "  -> ems L.1.v1%2E2\n"
        "     message mode at_least_once, content_type text/plain\n"
        "       property line = '1'\n"
        "       payload, bytes: 21\\x1b[2J\n"
        "TIME plant line/2/\\u2028\n"
        "  -> ems L.2.\\u2028\n"
        "     message mode at_least_once, content_type text/plain\n"
        "       property line = '2'\n"
        "       payload, bytes: 21\\x1b[2J\n"
    )


@pytest.mark.broker
def test_an_interrupt_ends_it(tmp_path: Path, start_mosquitto: StartMosquitto) -> None:
    broker = start_mosquitto(*OPEN, "log_type all")
    with started(written(tmp_path, broker.port), broker) as tail:
        tail.send_signal(signal.SIGINT)
        try:
            assert tail.wait(PATIENCE) == 0
        finally:
            tail.kill()


@pytest.mark.parametrize(
    ("route", "reason"),
    [
        ("none", "'none' is no route; known are temperatures, shared, memory, rabbit, queue"),
        ("shared", "route 'shared': its source divides the messages"),
        ("queue", "route 'queue': its source divides the messages"),
        ("memory", "ems: kind memory has no reader that leaves the messages"),
        ("rabbit", "work: kind rabbitmq has no reader that leaves the messages"),
    ],
)
def test_a_route_whose_messages_it_would_take_is_refused(
    tmp_path: Path, route: str, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["tail", str(written(tmp_path)), route]) == 2

    assert reason in capsys.readouterr().err
