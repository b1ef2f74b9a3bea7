"""Real nats-servers for a test, on free loopback ports and with temporary folders."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

import pytest

from gateway.trial.brokers.listening import free_port
from tests.brokers import servers
from tests.brokers.server_process import ServerProcess

LARGE = "max_payload: 8388608"


def nats_command() -> list[str]:
    """Return the server's command; skip the test without it, or without the library."""
    if find_spec("nats") is None:
        pytest.skip("nats-py is not installed: gateway[nats]")
    return servers.required("nats-server")


class NatsServer(ServerProcess):
    """A server process with JetStream; its streams survive `stop` and `kill`. Mutable."""

    store = "jetstream"

    def __init__(self, command: Sequence[str], folder: Path, lines: Sequence[str]) -> None:
        config = self._config = folder / "nats.conf"
        port = free_port()
        self._health = free_port()
        options: list[str | Path] = ["-a", "127.0.0.1", "-p", str(port), "-js", "-sd", folder]
        options += ["-m", str(self._health)]
        super().__init__(folder, port, [*command, *options, "-c", config])
        config.write_text("\n".join([LARGE, *lines, ""]))
        self.url = f"nats://127.0.0.1:{port}"

    def configure(self, change: tuple[str, str]) -> None:
        """Put another text in place of one of its configuration, for the next start or reload."""
        self._config.write_text(self._config.read_text().replace(*change))

    def reload(self, change: tuple[str, str]) -> None:
        """Have it read its configuration again, after a change."""
        self.configure(change)
        self.send(signal.SIGHUP)

    def _answers(self) -> bool:
        """Return whether JetStream works: in a cluster, whether it has a leader and is current."""
        asked = HTTPConnection("127.0.0.1", self._health, timeout=1)
        with closing(asked), suppress(OSError, HTTPException):
            asked.request("GET", "/healthz")
            return asked.getresponse().status == HTTPStatus.OK
        return False


class StartNats(Protocol):
    def __call__(self, *lines: str) -> NatsServer:
        """Start a server with these lines in its configuration."""

    def cluster(self, size: int) -> list[NatsServer]:
        """Start servers that know each other."""


class _Starter:
    def __init__(self, command: Sequence[str], folder: Path) -> None:
        self._command, self._folder = command, folder
        self.started: list[NatsServer] = []

    def __call__(self, *lines: str) -> NatsServer:
        server = self._make(lines)
        server.start()
        return server

    def cluster(self, size: int) -> list[NatsServer]:
        ports = [free_port() for _ in range(size)]
        routes = ", ".join(f"nats://127.0.0.1:{port}" for port in ports)
        servers = []
        for number, port in enumerate(ports):
            own = f'cluster {{name: c, listen: "127.0.0.1:{port}", routes: [{routes}]}}'
            servers.append(self._make([f"server_name: s{number}", own]))
        for server in servers:
            server.launch()
        for server in servers:
            server.wait()
        return servers

    def _make(self, lines: Sequence[str]) -> NatsServer:
        folder = self._folder / f"nats-{len(self.started)}"
        folder.mkdir()
        server = NatsServer(self._command, folder, lines)
        self.started.append(server)
        return server


@pytest.fixture
def start_nats(tmp_path: Path) -> Iterator[StartNats]:
    starter = _Starter(nats_command(), tmp_path)
    yield starter
    for server in starter.started:
        server.kill()


@pytest.fixture
def nats_server(start_nats: StartNats) -> NatsServer:
    return start_nats()
