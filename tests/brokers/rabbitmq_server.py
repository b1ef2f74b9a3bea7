"""A real rabbitmq-server: one node for all tests of a process, and a vhost for each test."""

from __future__ import annotations

import base64
import json
import signal
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from gateway.endpoints.settings.rabbitmq import RabbitmqSettings
from gateway.trial.brokers.listening import free_port
from gateway.trial.brokers.rabbitmq import PROGRAM, RabbitmqNode
from tests.brokers import servers
from tests.brokers.suspending import suspend
from tests.waiting import PATIENCE, until

_numbers = count()


class RabbitmqServer(RabbitmqNode):
    """A node with the management plugin, and listeners for MQTT if asked: it starts 5 s later.

    `suite` is the supply of the server; None for this run's. `more` are lines of its configuration.
    Mutable.
    """

    def __init__(
        self,
        folder: Path,
        *,
        mqtt: bool = False,
        suite: str | None = None,
        more: Sequence[str] = (),
    ) -> None:
        self._suite = suite
        self.mqtt_port, self.web_mqtt_port = free_port(), free_port()
        self._web_port = free_port()
        lines = [
            "management.tcp.ip = 127.0.0.1",
            f"management.tcp.port = {self._web_port}",
            "disk_free_limit.absolute = 1MB",
            *more,
        ]
        plugins = ["rabbitmq_management"]
        if mqtt:
            lines.append(f"mqtt.listeners.tcp.1 = 127.0.0.1:{self.mqtt_port}")
            lines.append("web_mqtt.tcp.ip = 127.0.0.1")
            lines.append(f"web_mqtt.tcp.port = {self.web_mqtt_port}")
            plugins += ["rabbitmq_mqtt", "rabbitmq_web_mqtt"]
        super().__init__(folder, lines, plugins)

    def start(self) -> None:
        super().start()
        until(self._answers, "rabbitmq-server does not answer", 2 * PATIENCE)

    def command(self, tool: str) -> list[str]:
        return servers.command(tool, self._suite)

    def freeze(self) -> None:
        """Suspend the node; its connections stay open and silent."""
        assert self.process is not None
        suspend(self.process)

    def thaw(self) -> None:
        if self.is_running and self.process is not None:
            self.process.send_signal(signal.SIGCONT)

    def ctl(self, *arguments: str) -> None:
        """Run rabbitmqctl."""
        answer = self.run("rabbitmqctl", "--node", self.name, *arguments)
        assert not answer.returncode, answer.stdout

    def api(self, method: str, path: str, body: object = None) -> Any:  # noqa: ANN401  # any JSON
        """Ask the management plugin."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self._web_port}/api/{path}",
            None if body is None else json.dumps(body).encode(),
            {
                "Authorization": "Basic " + base64.b64encode(b"guest:guest").decode(),
                "Content-Type": "application/json",
            },
            method=method,
        )
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:  # noqa: S310
            return json.loads(answer.read() or b"null")

    def _answers(self) -> bool:
        assert self.is_running, (self.folder / "output").read_text()
        try:
            self.api("GET", "overview")
        except OSError:
            return False
        return True


class Vhost:
    """The vhost of one test, and the node that all tests of the process share."""

    def __init__(self, server: RabbitmqServer, name: str) -> None:
        self.server, self.name = server, name
        self.url = server.url + name
        self.settings = RabbitmqSettings(url=self.url, backoff_min=0.05)

    def api(self, method: str, kind: str, rest: str = "", body: object = None) -> Any:  # noqa: ANN401  # any JSON
        """Ask the management plugin about `kind` in this vhost."""
        return self.server.api(method, f"{kind}/{self.name}{rest}", body)

    def replace(self) -> None:
        """Put an empty one in its place."""
        self.api("DELETE", "vhosts")
        self.api("PUT", "vhosts")

    def bindings(self, queue: str) -> list[str]:
        """Return the patterns with which exchanges feed a queue."""
        found = self.api("GET", "bindings")
        return sorted(
            each["routing_key"] for each in found if each["source"] and each["destination"] == queue
        )

    def delete_queue(self, name: str) -> None:
        self.api("DELETE", "queues", f"/{quote(name, safe='')}")


@pytest.fixture(scope="session")
def session_rabbitmq(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RabbitmqServer]:
    """Run one node for all tests of this process, since a start of Erlang is slow."""
    yield from _running(tmp_path_factory.mktemp("rabbitmq"))


@pytest.fixture(scope="session")
def session_rabbitmq_of_mqtt(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RabbitmqServer]:
    """Run another one with a listener for MQTT."""
    yield from _running(tmp_path_factory.mktemp("rabbitmq-mqtt"), mqtt=True)


@pytest.fixture(scope="session")
def session_rabbitmq_4(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RabbitmqServer]:
    """Run a node of version 4 at least, whose AMQP 1.0 is not a plug-in."""
    suite = servers.current()
    servers.required(PROGRAM, suite)
    server = RabbitmqServer(tmp_path_factory.mktemp("rabbitmq-4"), suite=suite)
    try:
        server.start()
        yield server
    finally:
        server.kill()


def skip_without_rabbitmq() -> None:
    """Skip the test without the server, or without the library."""
    pytest.importorskip("pika", reason="pika is not installed: gateway[rabbitmq]")
    servers.required(PROGRAM)


def _running(folder: Path, *, mqtt: bool = False) -> Iterator[RabbitmqServer]:
    skip_without_rabbitmq()
    server = RabbitmqServer(folder, mqtt=mqtt)
    try:
        server.start()
        yield server
    finally:
        server.kill()


@pytest.fixture
def rabbitmq(session_rabbitmq: RabbitmqServer) -> Iterator[Vhost]:
    """Return a new vhost; the node is started again if the previous test ended it.

    A test may end or freeze the node.
    """
    yield from _new_vhost(session_rabbitmq)


@pytest.fixture
def rabbitmq_4(session_rabbitmq_4: RabbitmqServer) -> Iterator[Vhost]:
    """Return a new vhost of a node of version 4 at least."""
    yield from _new_vhost(session_rabbitmq_4)


@pytest.fixture
def rabbitmq_of_mqtt(session_rabbitmq_of_mqtt: RabbitmqServer) -> Iterator[Vhost]:
    """Return a new vhost of the node with a listener for MQTT."""
    yield from _new_vhost(session_rabbitmq_of_mqtt)


def _new_vhost(server: RabbitmqServer) -> Iterator[Vhost]:
    if not server.is_running:
        server.start()
    vhost = Vhost(server, f"test-{next(_numbers)}")
    vhost.api("PUT", "vhosts")
    yield vhost
    server.thaw()
    if server.is_running:
        try:
            vhost.api("DELETE", "vhosts")
        except urllib.error.URLError as error:
            pytest.fail(f"the vhost cannot be deleted: {error}")
