"""The `gateway run` process between two real brokers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import paho.mqtt.client as paho
import pytest
from paho.mqtt.enums import CallbackAPIVersion

from gateway.archive.reader import read_rows
from tests.brokers.mosquitto import Mosquitto, StartMosquitto

pytestmark = pytest.mark.broker

CONFIG = """\
gateway: {{name: test}}
endpoints:
  source: {{kind: mqtt, host: 127.0.0.1, port: {source}, backoff_min: 0.05, backoff_max: 0.2}}
  target: {{kind: mqtt, host: 127.0.0.1, port: {target}, backoff_min: 0.05, backoff_max: 0.2}}
routes:
  relay:
    from: {{endpoint: source, pattern: "src/{{rest...}}"}}
    to: {{endpoint: target, template: "dst/{{rest...}}"}}
archive: {{path: {archive}}}
"""


class Process:
    """A running `gateway run` and its log lines; mutable, the log grows."""

    def __init__(self, config: Path, environment: Mapping[str, str] | None = None) -> None:
        self.lines: list[dict[str, object]] = []
        self._changed = threading.Condition()
        self.process = subprocess.Popen(  # noqa: S603  # our own command
            [sys.executable, "-m", "gateway", "run", str(config), "--log-format", "json"],
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **(environment or {})},
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def wait_for(self, message: str, times: int = 1, **facts: object) -> None:
        def seen() -> bool:
            found = [
                line
                for line in self.lines
                if str(line["message"]).startswith(message) and facts.items() <= line.items()
            ]
            return len(found) >= times

        with self._changed:
            assert self._changed.wait_for(seen, timeout=20), (message, self.lines)

    def connected(self) -> None:
        self.wait_for("connected", endpoint="source", side="source")
        self.wait_for("connected", endpoint="target", side="sink")

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        if self.process.poll() is None:
            self.process.send_signal(number)
        code = self.process.wait(timeout=30)
        self._reader.join(timeout=5)
        return code

    def _read(self) -> None:
        assert self.process.stderr is not None
        with self.process.stderr as stream:
            for line in stream:
                with self._changed:
                    self.lines.append(json.loads(line))
                    self._changed.notify_all()


class Client:
    """A plain client that publishes with QoS 1 and keeps what arrives; mutable."""

    def __init__(self, port: int, pattern: str = "") -> None:
        self.arrived: list[tuple[str, bytes]] = []
        self._changed = threading.Condition()
        self._ready = threading.Event()
        name = f"test-{pattern or 'publisher'}"
        self._client = paho.Client(CallbackAPIVersion.VERSION2, client_id=name, clean_session=False)
        self._client.max_queued_messages_set(0)
        self._client.on_message = self._on_message
        self._client.on_subscribe = lambda *_: self._ready.set()
        self._client.reconnect_delay_set(1, 1)
        self._client.connect("127.0.0.1", port)
        self._client.loop_start()
        if pattern:
            self._client.subscribe(pattern, 1)
            assert self._ready.wait(10)

    def publish(self, topic: str, payload: bytes) -> paho.MQTTMessageInfo:
        return self._client.publish(topic, payload, qos=1)

    def wait_for(self, done: Callable[[list[tuple[str, bytes]]], bool]) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: done(self.arrived), timeout=30)

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()

    def _on_message(self, _client: object, _data: object, message: paho.MQTTMessage) -> None:
        with self._changed:
            self.arrived.append((message.topic, bytes(message.payload)))
            self._changed.notify_all()


@contextmanager
def bridged(folder: Path, source: Mosquitto, target: Mosquitto) -> Iterator[Process]:
    config = folder / "gateway.yaml"
    text = CONFIG.format(source=source.port, target=target.port, archive=folder / "archive")
    config.write_text(text)
    process = Process(config)
    try:
        process.connected()
        yield process
    finally:
        process.end(signal.SIGKILL)


@contextmanager
def clients(source: Mosquitto, target: Mosquitto) -> Iterator[tuple[Client, Client]]:
    into, out = Client(source.port), Client(target.port, "dst/#")
    try:
        yield into, out
    finally:
        into.close()
        out.close()


def archived(folder: Path) -> list[dict[str, object]]:
    return list(read_rows(folder / "archive", datetime.now(tz=UTC).date()))


def test_it_bridges_archives_and_stops_cleanly(
    tmp_path: Path, start_mosquitto: StartMosquitto
) -> None:
    source, target = start_mosquitto(), start_mosquitto()
    with bridged(tmp_path, source, target) as gateway, clients(source, target) as (into, out):
        for number in range(500):
            into.publish(f"src/v1.2//{number}", b"%d" % number)
        out.wait_for(lambda arrived: len(arrived) >= 500)
        assert gateway.end() == 0

    assert out.arrived == [(f"dst/v1.2//{n}", b"%d" % n) for n in range(500)]
    legs = Counter(row["leg"] for row in archived(tmp_path))
    assert legs == {"received": 500, "delivered": 500}
    assert gateway.lines[-1]["message"] == "stopped"


def test_a_target_that_dies_and_comes_back_gets_everything_in_order(
    tmp_path: Path, start_mosquitto: StartMosquitto
) -> None:
    source, target = start_mosquitto(), start_mosquitto()
    with bridged(tmp_path, source, target) as gateway, clients(source, target) as (into, out):
        into.publish("src/a", b"0")
        out.wait_for(lambda arrived: len(arrived) >= 1)
        target.stop()
        gateway.wait_for("target", level="warning")  # though nothing was sent meanwhile
        for number in range(1, 300):
            into.publish("src/a", b"%d" % number).wait_for_publish(10)
        target.start()
        out.wait_for(lambda arrived: arrived[-1][1] == b"299")
        assert gateway.end() == 0

    firsts = list(dict.fromkeys(payload for _, payload in out.arrived))
    assert firsts == [b"%d" % number for number in range(300)]


def test_a_killed_gateway_loses_nothing(tmp_path: Path, start_mosquitto: StartMosquitto) -> None:
    source, target = start_mosquitto(), start_mosquitto()
    with clients(source, target) as (into, out):
        for life in range(3):
            with bridged(tmp_path, source, target):
                for number in range(life * 1000, (life + 1) * 1000):
                    into.publish("src/a", b"%d" % number)
                out.wait_for(lambda arrived, floor=life * 1000: len(arrived) > floor)  # type: ignore[misc]  # a default binds it now
        with bridged(tmp_path, source, target) as gateway:
            wanted = {b"%d" % number for number in range(3000)}
            out.wait_for(lambda arrived: {payload for _, payload in arrived} >= wanted)
            assert gateway.end() == 0

    rows = archived(tmp_path)
    received = {row["id"] for row in rows if row["leg"] == "received"}
    delivered = {row["id"] for row in rows if row["leg"] == "delivered"}
    assert received == delivered  # a killed run leaves no half record
    assert len(received) >= 3000


def test_wrong_credentials_are_said_and_asked_for_again_seldom(
    tmp_path: Path, start_mosquitto: StartMosquitto
) -> None:
    (tmp_path / "passwords").write_text("")
    closed = start_mosquitto("allow_anonymous false", f"password_file {tmp_path / 'passwords'}")
    config = tmp_path / "gateway.yaml"
    text = CONFIG.format(source=closed.port, target=closed.port, archive=tmp_path / "archive")
    config.write_text(text.replace("backoff_max: 0.2", "backoff_max: 60"))
    gateway = Process(config)

    gateway.wait_for("source", level="error")
    gateway.wait_for("target", level="error")

    assert gateway.end() == 0
    assert sum(line["level"] == "error" for line in gateway.lines) == 2


def test_a_second_signal_exits_at_once(tmp_path: Path, start_mosquitto: StartMosquitto) -> None:
    source, target = start_mosquitto(), start_mosquitto()
    with bridged(tmp_path, source, target) as gateway, clients(source, target) as (into, _):
        target.freeze()
        into.publish("src/a", b"never answered").wait_for_publish(10)
        gateway.process.send_signal(signal.SIGTERM)
        gateway.wait_for("stopping")
        assert gateway.end() == 128 + signal.SIGTERM


def test_a_bad_configuration_connects_nowhere(tmp_path: Path) -> None:
    config = tmp_path / "gateway.yaml"
    config.write_text("endpoints: {a: {kind: mqtt, prot: 1}}\nroutes: {}\n")

    done = subprocess.run(  # noqa: S603  # our own command
        [sys.executable, "-m", "gateway", "run", str(config)],
        capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip

    assert done.returncode == 1
    assert f"{config}:1:29: unknown field 'prot'; did you mean 'port'?" in done.stderr
    assert not (tmp_path / "archive").exists()
