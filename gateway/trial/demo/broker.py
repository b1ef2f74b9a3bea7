"""An MQTT broker for the demo: mosquitto if installed, else amqtt from PyPI."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from importlib.util import find_spec
from pathlib import Path
from threading import Event
from time import monotonic

from gateway.errors import DriverMissingError, NotConnectedError

START_TIMEOUT = 10.0  # seconds

_MOSQUITTO = """\
listener {port} 127.0.0.1
allow_anonymous true
max_queued_messages 0
max_inflight_messages 0
"""
_AMQTT = """\
listeners:
  default: {{type: tcp, bind: "127.0.0.1:{port}"}}
plugins:
  amqtt.plugins.authentication.AnonymousAuthPlugin: {{allow_anonymous: true}}
"""


@contextmanager
def mqtt_broker() -> Iterator[tuple[str, int]]:
    """Run a broker for the duration of the block; yield its program and its port on loopback.

    Raises:
        DriverMissingError: neither broker is installed.
        NotConnectedError: the broker did not start.
    """
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="gateway-broker-") as folder:
        name, command = _command(port, Path(folder))
        process = subprocess.Popen(  # noqa: S603  # a fixed command
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder
        )
        try:
            wait_until_it_listens(name, port, process)
            yield name, port
        finally:
            process.terminate()
            try:
                process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def free_port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _command(port: int, folder: Path) -> tuple[str, list[str]]:
    file = folder / "broker.conf"
    if mosquitto := shutil.which("mosquitto") or shutil.which("mosquitto", path="/usr/sbin"):
        file.write_text(_MOSQUITTO.format(port=port))
        return "mosquitto", [mosquitto, "-c", str(file)]
    if find_spec("amqtt") is not None:
        file.write_text(_AMQTT.format(port=port))
        return "amqtt", [sys.executable, "-m", "amqtt.scripts.broker_script", "-c", str(file)]
    raise DriverMissingError(
        "demo: no MQTT broker is installed; run `apt-get install mosquitto`"
        " or `pip install 'gateway[demo]'`"
    )


def wait_until_it_listens(name: str, port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = monotonic() + START_TIMEOUT
    pause = Event()
    while monotonic() < deadline and process.poll() is None:
        with closing(socket.socket()) as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        pause.wait(0.05)
    raise NotConnectedError(f"demo: {name} did not start on port {port}")
