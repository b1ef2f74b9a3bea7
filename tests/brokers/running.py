"""A `gateway run` process with plain MQTT clients, and its archived rows, for tests."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion

from tests.brokers.mosquitto import Mosquitto
from tests.waiting import PATIENCE

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
    """A `gateway run` process and its log lines. Mutable."""

    def __init__(self, config: Path, environment: Mapping[str, str] | None = None) -> None:
        self.lines: list[dict[str, object]] = []
        self._changed = threading.Condition()
        self._ended = False  # nothing more comes
        self.process = subprocess.Popen(  # noqa: S603  # our own command
            [sys.executable, "-m", "gateway", "run", str(config), "--log-format", "json"],
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **(environment or {})},
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def wait_for(self, message: str, times: int = 1, **facts: object) -> None:
        """Wait for a log line, or fail at the end of the process, with the lines that came."""

        def seen() -> bool:
            found = [
                line
                for line in self.lines
                if str(line["message"]).startswith(message) and facts.items() <= line.items()
            ]
            return len(found) >= times

        with self._changed:
            self._changed.wait_for(lambda: seen() or self._ended, timeout=PATIENCE)
            assert seen(), (message, self.lines)

    def logged(self, message: str) -> bool:
        """Return whether a line with this message has come."""
        with self._changed:
            return any(line["message"] == message for line in self.lines)

    def connected(self) -> None:
        self.wait_for("connected", endpoint="source", side="source")
        self.wait_for("connected", endpoint="target", side="sink")

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        if self.process.poll() is None:
            self.process.send_signal(number)
        code = self.process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        return code

    def _read(self) -> None:
        assert self.process.stderr is not None
        with self.process.stderr as stream:
            for line in stream:
                with self._changed:
                    self.lines.append(_as_fields(line))
                    self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()


def _as_fields(line: str) -> dict[str, object]:
    """A line of the log; the message of one that is not JSON, as the reason of a refused start."""
    try:
        found: dict[str, object] = json.loads(line)
    except ValueError:
        return {"level": "", "message": line.rstrip()}
    return found


class Client:
    """A plain client that publishes with QoS 1 and keeps received messages. Mutable."""

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
            assert self._ready.wait(PATIENCE)

    def publish(self, topic: str, payload: bytes) -> paho.MQTTMessageInfo:
        return self._client.publish(topic, payload, qos=1)

    def wait_for(self, done: Callable[[list[tuple[str, bytes]]], bool]) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: done(self.arrived), timeout=PATIENCE)

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()

    def _on_message(self, _client: object, _data: object, message: paho.MQTTMessage) -> None:
        with self._changed:
            self.arrived.append((message.topic, bytes(message.payload)))
            self._changed.notify_all()


@contextmanager
def started(config: Path) -> Iterator[Process]:
    """Start a gateway from `source` to `target`; kill it at the end."""
    process = Process(config)
    try:
        process.connected()
        yield process
    finally:
        process.end(signal.SIGKILL)


@contextmanager
def bridged(folder: Path, source: Mosquitto, target: Mosquitto) -> Iterator[Process]:
    config = folder / "gateway.yaml"
    text = CONFIG.format(source=source.port, target=target.port, archive=folder / "archive")
    config.write_text(text)
    with started(config) as process:
        yield process


@contextmanager
def clients(source: Mosquitto, target: Mosquitto) -> Iterator[tuple[Client, Client]]:
    into, out = Client(source.port), Client(target.port, "dst/#")
    try:
        yield into, out
    finally:
        into.close()
        out.close()
