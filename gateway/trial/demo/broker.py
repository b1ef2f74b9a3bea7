"""An MQTT broker for the demo: mosquitto if installed, else amqtt from PyPI."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from gateway.errors import DriverMissingError
from gateway.extras import install_command
from gateway.trial.brokers.listening import free_port, running_process

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
        # what it writes for each client would fill the folder, and goes with it unread
        with running_process(name, port, command, Path(folder), Path(os.devnull)):
            yield name, port


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
        f" or `{install_command('demo')}`"
    )
