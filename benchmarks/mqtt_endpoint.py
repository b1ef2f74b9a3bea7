"""Measures how fast the MQTT endpoint receives and publishes, and a plain paho client.

    python -m benchmarks.mqtt_endpoint [--messages 20000] [--qos 1] [--version 5]

The broker is mosquitto on a free loopback port. Each figure is the rate of one side, in this
process. For the receivers, another process publishes as fast as the endpoint can. Compare only
ratios within one run.
"""

from __future__ import annotations

import argparse
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from paho.mqtt.client import Client
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion

from gateway.endpoints.base import Subscription
from gateway.endpoints.registry import make_sink, make_source
from gateway.endpoints.settings.mqtt import MqttSettings
from gateway.model.message import DeliveryMode, Headers, Message
from gateway.model.outcome import ACCEPTED

BATCH = 500
PAYLOAD = b"x" * 100
TOPICS = 1_000
ANSWER_TIMEOUT = 60.0


@contextmanager
def mosquitto() -> Iterator[int]:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder, "mosquitto.conf")
        config.write_text(
            f"listener {port} 127.0.0.1\nallow_anonymous true\n"
            "max_queued_messages 0\nmax_inflight_messages 0\n"
        )
        broker = subprocess.Popen(  # noqa: S603
            ["mosquitto", "-c", str(config)],  # noqa: S607
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            wait_for_port(port)
            yield port
        finally:
            broker.terminate()
            broker.wait()


def wait_for_port(port: int) -> None:
    deadline = time.monotonic() + 10
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)
        else:
            return


def endpoint_publishes(settings: MqttSettings, total: int) -> float:
    sink = make_sink(settings, instance="publish")
    sink.open()
    headers = Headers(mode=DeliveryMode(settings.qos))
    messages = [Message(f"t/{i % TOPICS}", PAYLOAD, headers) for i in range(BATCH)]
    answered = threading.Semaphore(0)
    started = time.perf_counter()
    for _ in range(total // BATCH):
        sink.send(messages, lambda _settlements: answered.release())
    for _ in range(total // BATCH):
        assert answered.acquire(timeout=ANSWER_TIMEOUT)
    seconds = time.perf_counter() - started
    sink.close()
    return total // BATCH * BATCH / seconds


def endpoint_receives(settings: MqttSettings, total: int, load: Callable[[], None]) -> float:
    source = make_source(settings, [Subscription("t/#")], instance="receive")
    source.open()
    load()
    count = 0
    started = 0.0
    while count < total:
        batch = source.receive(ANSWER_TIMEOUT)
        assert batch is not None
        started = started or time.perf_counter()
        count += len(batch.messages)
        batch.settle([ACCEPTED] * len(batch.messages))
    seconds = time.perf_counter() - started
    source.close()
    return count / seconds


def plain_client(settings: MqttSettings, name: str) -> Client:
    version = (
        MQTTProtocolVersion.MQTTv5 if settings.version == "5" else MQTTProtocolVersion.MQTTv311
    )
    client = Client(CallbackAPIVersion.VERSION2, client_id=name, protocol=version)
    client.max_inflight_messages_set(0)
    return client


def paho_publishes(settings: MqttSettings, total: int) -> float:
    client = plain_client(settings, "plain-publish")
    answered, done = [0], threading.Event()

    def on_publish(*_: object) -> None:
        answered[0] += 1
        if answered[0] == total:
            done.set()

    client.on_publish = on_publish
    client.connect(settings.host, settings.port)
    client.loop_start()
    started = time.perf_counter()
    for i in range(total):
        client.publish(f"t/{i % TOPICS}", PAYLOAD, settings.qos)
    assert done.wait(ANSWER_TIMEOUT)
    seconds = time.perf_counter() - started
    client.disconnect()
    client.loop_stop()
    return total / seconds


def paho_receives(settings: MqttSettings, total: int, load: Callable[[], None]) -> float:
    client = plain_client(settings, "plain-receive")
    times: list[float] = []
    ready, done = threading.Event(), threading.Event()

    def on_message(*_: object) -> None:
        times.append(time.perf_counter())
        if len(times) == total:
            done.set()

    client.on_message = on_message
    client.on_subscribe = lambda *_: ready.set()
    client.connect(settings.host, settings.port)
    client.subscribe("t/#", settings.qos)
    client.loop_start()
    assert ready.wait(ANSWER_TIMEOUT)
    load()
    assert done.wait(ANSWER_TIMEOUT)
    client.disconnect()
    client.loop_stop()
    return total / (times[-1] - times[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=20_000)
    parser.add_argument("--qos", type=int, default=1, choices=(0, 1, 2))
    parser.add_argument("--version", default="5", choices=("3.1.1", "5"))
    parser.add_argument("--publish-to", type=int, help=argparse.SUPPRESS)
    a = parser.parse_args()
    total = a.messages // BATCH * BATCH
    if a.publish_to:
        settings = MqttSettings(host="127.0.0.1", port=a.publish_to, qos=a.qos, version=a.version)
        endpoint_publishes(settings, total)
        return
    with mosquitto() as port:
        settings = MqttSettings(
            host="127.0.0.1", port=port, qos=a.qos, version=a.version, session_expiry=0
        )

        def load() -> None:
            subprocess.Popen(  # noqa: S603
                [sys.executable, "-m", "benchmarks.mqtt_endpoint", *sys.argv[1:],
                 "--publish-to", str(port)]
            )  # fmt: skip

        rows = (
            ("publish", paho_publishes(settings, total), endpoint_publishes(settings, total)),
            (
                "receive",
                paho_receives(settings, total, load),
                endpoint_receives(settings, total, load),
            ),
        )
    print(f"MQTT {a.version}, QoS {a.qos}, {total:,} messages of {len(PAYLOAD)} bytes")
    for name, plain, endpoint in rows:
        print(
            f"{name}: paho {plain:9,.0f}/s   endpoint {endpoint:9,.0f}/s   x {endpoint / plain:.1f}"
        )


if __name__ == "__main__":
    main()
