"""An MQTT target that closes the connection for a name it does not take, as hosted brokers do."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from gateway.endpoints.mqtt import open_sink
from gateway.endpoints.settings.mqtt import MqttSettings
from gateway.model.message import DeliveryMode, Headers, Message
from gateway.model.outcome import Outcome, Settlement
from gateway.runtime.delivery.lane_limits import LaneLimits
from gateway.runtime.outbound.lane import Lane
from gateway.runtime.outbound.sink_binding import SinkBinding
from gateway.runtime.record.counters import EndpointState
from tests.runtime.outbound_batches import batch_of
from tests.waiting import until

BACKOFF = (0.5, 30.0)  # as by default
ONCE = Headers(mode=DeliveryMode.AT_LEAST_ONCE)


class ClosingBroker:
    """A broker of MQTT 3.1.1 that hangs up at a topic with a full stop. Mutable: by its thread."""

    def __init__(self) -> None:
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._server.getsockname()[1]
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        self._thread.join()

    def _run(self) -> None:
        while True:
            try:
                sock, _ = self._server.accept()
            except OSError:
                return
            with closing(sock), closing(sock.makefile("rb")) as file:
                try:
                    while packet := self._read(file.read):
                        if not self._answer(sock, *packet):
                            break
                except OSError:
                    continue

    def _read(self, read: Callable[[int], bytes]) -> tuple[int, bytes] | None:
        head = read(1)
        size = shift = 0
        while head:
            part = read(1)
            if not part:
                return None
            size |= (part[0] & 127) << shift
            shift += 7
            if part[0] < 128:
                return head[0], read(size)
        return None

    def _answer(self, sock: socket.socket, kind: int, body: bytes) -> bool:
        if kind >> 4 == 1:
            sock.sendall(b"\x20\x02\x00\x00")
        elif kind >> 4 == 12:
            sock.sendall(b"\xd0\x00")
        elif kind >> 4 == 3:
            end = 2 + int.from_bytes(body[:2], "big")
            topic = body[2:end].decode()
            if "." in topic:
                return False
            sock.sendall(b"\x40\x02" + body[end : end + 2])
        return True


@contextmanager
def nats_broker(folder: Path) -> Iterator[int]:
    """A nats-server with its MQTT listener, which takes no full stop in a topic."""
    with (
        socket.create_server(("127.0.0.1", 0)) as free,
        socket.create_server(("127.0.0.1", 0)) as b,
    ):
        port, client = free.getsockname()[1], b.getsockname()[1]
    config = folder / "nats.conf"
    store = json.dumps(str(folder / "store"))
    config.write_text(
        f'server_name: test\nlisten: "127.0.0.1:{client}"\njetstream {{ store_dir: {store} }}\n'
        f'mqtt {{ listen: "127.0.0.1:{port}" }}\n'
    )
    server = subprocess.Popen(  # noqa: S603  # our own file
        ["nats-server", "-c", str(config)],  # noqa: S607  # from the PATH
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        until(lambda: _listens(port))
        yield port
    finally:
        server.terminate()
        server.wait()


def _listens(port: int) -> bool:
    with socket.socket() as sock:
        return sock.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture(params=["scripted", "nats-server"])
def port(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[int]:
    if request.param == "scripted":
        broker = ClosingBroker()
        with closing(broker):
            yield broker.port
        return
    if shutil.which("nats-server") is None:
        pytest.skip("nats-server is not installed")
    with nats_broker(tmp_path) as port:
        yield port


def test_a_hundred_names_that_a_broker_hangs_up_for_delay_a_thousand_messages_by_seconds(
    port: int, caplog: pytest.LogCaptureFixture
) -> None:
    names = [f"a/b.{n}" if n % 10 == 3 else f"a/{n}" for n in range(1_000)]
    rules: dict[str, str] = {}
    settings = MqttSettings(name="t", host="127.0.0.1", port=port, version="3.1.1", client_id="t")
    binding = SinkBinding(open_sink(settings), "mqtt", frozenset(), LaneLimits(BACKOFF))
    lane = Lane(binding, EndpointState("t", "sink"))
    lane.start()
    try:
        for start in range(0, len(names), 50):
            part = names[start : start + 50]

            def done(
                settlements: Sequence[Settlement], _attempts: int, part: list[str] = part
            ) -> None:
                rules.update(
                    (name, each.rule if each.outcome is Outcome.REJECTED else "")
                    for name, each in zip(part, settlements, strict=True)
                )

            messages = [Message(name, b"x", ONCE) for name in part]
            lane.deliver(batch_of(messages, done))
        until(lambda: len(rules) == len(names), "every message has its outcome")
    finally:
        lane.stop()

    assert rules == {name: "poisoned" if "." in name else "" for name in names}
    (hint,) = [each.getMessage() for each in caplog.records if "`limits:" in each.getMessage()]
    assert 'write `limits: {forbidden_characters: "."}` at the endpoint' in hint
