"""A real mosquitto for a test, on a free loopback port and with a temporary folder."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

import pytest

from gateway.trial.brokers.listening import free_port
from tests.brokers import servers
from tests.brokers.server_process import ServerProcess

OPEN = ("allow_anonymous true",)
UNBOUNDED = ("max_queued_messages 0", "max_inflight_messages 0", "max_packet_size 268435455")


class Mosquitto(ServerProcess):
    """A broker process; its stored messages survive `stop`, not `kill`.

    Its WebSocket listener is above the plain one, without which 2.0.11 ends: it opens first.
    Mutable.
    """

    store = "mosquitto.db"

    def __init__(
        self, command: Sequence[str], folder: Path, lines: tuple[str, ...], websocket: int = 0
    ) -> None:
        self.websocket = websocket  # its port; 0: none
        config = folder / "mosquitto.conf"
        super().__init__(folder, free_port(), [*command, "-c", config])
        user = ["user root"] if os.geteuid() == 0 else []
        config.write_text(
            "\n".join(
                [
                    *([f"listener {websocket}", "protocol websockets"] if websocket else ()),
                    f"listener {self.port} 127.0.0.1",
                    *user,
                    "persistence true",
                    f"persistence_location {folder}/",
                    *UNBOUNDED,
                    *lines,
                    "",
                ]
            )
        )

    def reread(self) -> None:
        """Have it reload its passwords and access lists."""
        self.send(signal.SIGHUP)


class StartMosquitto(Protocol):
    def __call__(self, *lines: str, websocket: int = 0) -> Mosquitto:
        """Start a broker with these lines in its configuration; anonymous without any.

        `websocket` is the port of a further listener.
        """


@pytest.fixture
def start_mosquitto(tmp_path: Path) -> Iterator[StartMosquitto]:
    command = servers.required("mosquitto")
    started: list[Mosquitto] = []

    def start(*lines: str, websocket: int = 0) -> Mosquitto:
        folder = tmp_path / f"mosquitto-{len(started)}"
        folder.mkdir()
        broker = Mosquitto(command, folder, lines or OPEN, websocket)
        started.append(broker)
        broker.start()
        return broker

    yield start
    for broker in started:
        broker.kill()


@pytest.fixture
def mosquitto(start_mosquitto: StartMosquitto) -> Mosquitto:
    return start_mosquitto()
