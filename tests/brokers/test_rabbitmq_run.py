"""RabbitMQ in a gateway process: bindings that follow a reload and a start, and a deleted queue."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.cli import main
from gateway.endpoints.base import Subscription
from gateway.endpoints.registry import make_sink, make_source
from gateway.endpoints.settings.mqtt import MqttSettings
from gateway.model.message import DeliveryMode, Headers, Message
from gateway.model.outcome import ACCEPTED
from tests.archived import archived
from tests.brokers.mosquitto import Mosquitto
from tests.brokers.rabbitmq_server import Vhost
from tests.brokers.running import Process
from tests.endpoints.exchange import collect, opened, send
from tests.waiting import until

pytestmark = pytest.mark.broker
QUEUE = "plant-source"
ASKING = """\
gateway: {{name: plant}}
endpoints:
  work: {{kind: rabbitmq, url: "{url}"}}
  plant: {{kind: mqtt, host: 127.0.0.1, port: {port}}}
routes:
  ask:
    from: {{endpoint: work, pattern: "ask.{{what}}"}}
    to: {{endpoint: plant, template: "ask/{{what}}"}}
  answer:
    from: {{endpoint: plant, pattern: "queue:amq/{{name}}"}}
    to: {{endpoint: work, template: "queue:amq.{{name}}"}}
    replies_within: 60
archive: {{path: {folder}/archive}}
"""


def write(folder: Path, vhost: Vhost, words: Sequence[str]) -> Path:
    """Write a mapping with a route for each word."""
    end = {"kind": "rabbitmq", "url": vhost.url, "backoff_min": 0.05, "on_unroutable": "drop"}
    routes = {
        word: {
            "from": {"endpoint": "source", "pattern": f"{word}.{{rest...}}"},
            "to": {"endpoint": "target", "template": f"out.{word}.{{rest...}}"},
        }
        for word in words
    }
    config = {
        "gateway": {"name": "plant"},
        "endpoints": {"source": end, "target": end},
        "routes": routes,
        "archive": {"path": str(folder / "archive")},
    }
    file = folder / "gateway.yaml"
    file.write_text(json.dumps(config))
    return file


@contextmanager
def running(config: Path) -> Iterator[Process]:
    process = Process(config)
    try:
        process.connected()
        yield process
    finally:
        process.end()


@pytest.mark.nightly
def test_bindings_follow_a_reload_and_a_start(tmp_path: Path, rabbitmq: Vhost) -> None:
    with running(write(tmp_path, rabbitmq, ["a", "b"])) as gateway:
        until(lambda: rabbitmq.bindings(QUEUE) == ["a.#", "b.#"])
        write(tmp_path, rabbitmq, ["b", "c"])
        gateway.process.send_signal(signal.SIGHUP)
        until(lambda: rabbitmq.bindings(QUEUE) == ["b.#", "c.#"])
    with running(write(tmp_path, rabbitmq, ["c"])):
        until(lambda: rabbitmq.bindings(QUEUE) == ["c.#"])


def test_a_deleted_queue_is_made_again_and_is_a_gap(tmp_path: Path, rabbitmq: Vhost) -> None:
    with running(write(tmp_path, rabbitmq, ["a"])) as gateway:
        rabbitmq.delete_queue(QUEUE)
        gateway.wait_for("connected", times=2, endpoint="source", side="source")
        until(lambda: rabbitmq.bindings(QUEUE) == ["a.#"])
    reasons = [row["reason"] for row in archived(tmp_path) if row["leg"] == "gap"]

    assert any("was deleted" in reason for reason in reasons), reasons


def test_a_message_past_the_limit_is_one_dead_letter_without_its_payload(
    tmp_path: Path, rabbitmq: Vhost, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path, rabbitmq, ["a"])
    config = json.loads(path.read_text())
    config["endpoints"]["source"]["max_message_in"] = 1_000
    config["spool"] = {"path": str(tmp_path / "spool")}
    path.write_text(json.dumps(config))
    headers = Headers(mode=DeliveryMode.AT_LEAST_ONCE, properties={"line": "7"})
    sizes = (1, 500_000, 2)
    sink = make_sink(rabbitmq.settings)
    reader = make_source(replace(rabbitmq.settings, queue="reader"), [Subscription("out.#")])
    with running(path), opened(reader, sink):
        said = [Message(f"a.{size}", b"1" * size, headers) for size in sizes]
        assert send(sink, *said) == [ACCEPTED] * 3
        assert [each.payload for each in collect(reader, 2)] == [b"1", b"11"]
    (row,) = [row for row in archived(tmp_path) if row["leg"] == "dead"]
    assert (row["rule"], row["source_name"], row["payload"]) == ("message-bytes", "a.500000", b"")
    assert {("property.line", "7"), ("payload_cut_from", "500000")} <= {*row["headers"]}
    assert "500000 bytes" in row["reason"]
    assert main(["dead-letters", "show", str(path)]) == 0
    assert "500000" in capsys.readouterr().out
    assert main(["dead-letters", "replay", str(path)]) == 1
    assert "its payload was not kept" in capsys.readouterr().err


def test_a_request_of_rabbitmq_is_answered_on_mqtt(
    tmp_path: Path, rabbitmq: Vhost, mosquitto: Mosquitto
) -> None:
    import pika  # noqa: PLC0415  # the fixture skips without it

    config = tmp_path / "gateway.yaml"
    config.write_text(ASKING.format(url=rabbitmq.url, port=mosquitto.port, folder=tmp_path))
    settings = MqttSettings(host="127.0.0.1", port=mosquitto.port)
    source, sink = make_source(settings, [Subscription("ask/#")]), make_sink(settings)
    connection = pika.BlockingConnection(pika.URLParameters(rabbitmq.url))
    process = Process(config)
    try:
        process.wait_for("connected", endpoint="work", side="source")
        process.wait_for("connected", endpoint="work", side="sink")
        process.wait_for("connected", endpoint="plant", side="source")
        channel = connection.channel()
        queue = channel.queue_declare("", exclusive=True).method.queue
        with opened(source, sink):
            asked = pika.BasicProperties(reply_to=queue, correlation_id="one")
            channel.basic_publish("amq.topic", "ask.time", b"?", asked)
            (request,) = collect(source, 1)
            assert request.headers.reply_to is not None
            headers = Headers(
                mode=DeliveryMode.AT_LEAST_ONCE, correlation_id=request.headers.correlation_id
            )
            assert send(sink, Message(request.headers.reply_to, b"12", headers)) == [ACCEPTED]
            until(lambda: channel.queue_declare(queue, passive=True).method.message_count == 1)
            victim = channel.queue_declare("", exclusive=True).method.queue
            forged = f"queue:{victim.replace('.', '/')}"
            assert send(sink, Message(forged, b"forged", headers)) == [ACCEPTED]
            assert send(sink, Message(request.headers.reply_to, b"13", headers)) == [ACCEPTED]
            until(lambda: channel.queue_declare(queue, passive=True).method.message_count == 2)
        assert not channel.queue_declare(victim, passive=True).method.message_count
        _, properties, body = channel.basic_get(queue, auto_ack=True)
    finally:
        process.end()
        connection.close()

    assert (properties.correlation_id, body) == ("one", b"12")
    dead = [(row["rule"], row["source_name"]) for row in archived(tmp_path) if row["leg"] == "dead"]
    assert dead == [("not-allowed", forged)]
