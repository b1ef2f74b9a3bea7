"""A real rabbitmq-server: one node for all tests of a process, and a vhost for each test."""

from __future__ import annotations

import base64
import json
import os
import shutil
import signal
import socket
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from gateway.endpoints.settings.rabbitmq import RabbitmqSettings
from tests.brokers.mosquitto import free_port
from tests.waiting import PATIENCE, until

FOLDERS = ("/usr/lib/rabbitmq/bin", *os.environ.get("PATH", "").split(os.pathsep))
PROGRAM = shutil.which("rabbitmq-server", path=os.pathsep.join(FOLDERS))
EPMD = shutil.which("epmd")
PLUGINS = "[rabbitmq_management, rabbitmq_mqtt]."
_numbers = count()


class RabbitmqServer:
    """A node with its own Erlang port mapper; durable queues survive `stop` and `kill`. Mutable."""

    def __init__(self, program: str, folder: Path) -> None:
        self.port, self.mqtt_port, self._web_port = free_port(), free_port(), free_port()
        self.url = f"amqp://guest:guest@127.0.0.1:{self.port}/"
        self.folder = folder
        self._program = Path(program)
        config = folder / "rabbitmq.conf"
        config.write_text(
            f"listeners.tcp.1 = 127.0.0.1:{self.port}\n"
            f"mqtt.listeners.tcp.1 = 127.0.0.1:{self.mqtt_port}\n"
            "management.tcp.ip = 127.0.0.1\n"
            f"management.tcp.port = {self._web_port}\n"
            "disk_free_limit.absolute = 1MB\n"
        )
        (folder / "plugins").write_text(PLUGINS)
        self._epmd_port = free_port()
        self._environment = os.environ | {
            "HOME": str(folder),  # of the cookie
            "ERL_EPMD_PORT": str(self._epmd_port),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "ERL_EPMD_RELAXED_COMMAND_CHECK": "1",
            "RABBITMQ_CONF_ENV_FILE": str(folder / "no.conf"),
            "RABBITMQ_NODENAME": f"gateway-{os.getpid()}@localhost",
            "RABBITMQ_CONFIG_FILE": str(config),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
            "RABBITMQ_MNESIA_BASE": str(folder / "mnesia"),
            "RABBITMQ_LOG_BASE": str(folder / "log"),
            "RABBITMQ_DIST_PORT": str(free_port()),
            "RUNNING_UNDER_SYSTEMD": "1",  # the script becomes the node: no process between
        }
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        with (self.folder / "output").open("ab") as output:
            self._process = subprocess.Popen(  # noqa: S603  # a program the machine has
                [str(self._program)], env=self._environment, stdout=output, stderr=output
            )
        until(self._answers, "rabbitmq-server does not listen", 2 * PATIENCE)

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def freeze(self) -> None:
        """Suspend the node; its connections stay open and silent."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        if self.is_running and self._process is not None:
            self._process.send_signal(signal.SIGCONT)

    def ctl(self, *arguments: str) -> None:
        """Run rabbitmqctl."""
        command = [str(self._program.with_name("rabbitmqctl")), "--node"]
        answer = self._call([*command, self._environment["RABBITMQ_NODENAME"], *arguments])
        assert not answer.returncode, answer.stdout

    def _call(self, command: list[str]) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(  # noqa: S603  # a program the machine has
            command, env=self._environment, timeout=2 * PATIENCE, check=False,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip

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
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
            self.api("GET", "overview")
        except OSError:
            return False
        return True

    def _end(self, number: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is not None and process.poll() is None:
            process.send_signal(number)
            process.send_signal(signal.SIGCONT)
            process.wait(PATIENCE)
            if EPMD is not None:  # the next start brings another one
                self._call([EPMD, "-port", str(self._epmd_port), "-kill"])


class Vhost:
    """The vhost of one test, and the node that all tests of the process share."""

    def __init__(self, server: RabbitmqServer, name: str) -> None:
        self.server, self.name = server, name
        self.url = server.url + name
        self.settings = RabbitmqSettings(url=self.url, backoff_min=0.05)

    def api(self, method: str, kind: str, rest: str = "", body: object = None) -> Any:  # noqa: ANN401  # any JSON
        """Ask the management plugin about `kind` in this vhost."""
        return self.server.api(method, f"{kind}/{self.name}{rest}", body)

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
    pytest.importorskip("pika")
    if PROGRAM is None:
        pytest.skip("rabbitmq-server is not installed")
    server = RabbitmqServer(PROGRAM, tmp_path_factory.mktemp("rabbitmq"))
    try:
        server.start()
        yield server
    finally:
        server.stop()


@pytest.fixture
def rabbitmq(session_rabbitmq: RabbitmqServer) -> Iterator[Vhost]:
    """Return a new vhost; the node is started again if the previous test ended it.

    A test may end or freeze the node.
    """
    if not session_rabbitmq.is_running:
        session_rabbitmq.start()
    vhost = Vhost(session_rabbitmq, f"test-{next(_numbers)}")
    vhost.api("PUT", "vhosts")
    yield vhost
    session_rabbitmq.thaw()
    if session_rabbitmq.is_running:
        try:
            vhost.api("DELETE", "vhosts")
        except urllib.error.URLError as error:
            pytest.fail(f"the vhost cannot be deleted: {error}")
