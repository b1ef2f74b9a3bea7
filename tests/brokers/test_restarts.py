"""A restart of the gateway at brokers that keep its session, with the same or with fewer patterns.

A restart is another process: it knows of the one before what that left in its files.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.endpoints.mqtt import kept_session
from gateway.endpoints.mqtt.kept_session import KeptSession
from gateway.endpoints.registry import make_sink
from gateway.endpoints.settings.mqtt import MqttSettings
from gateway.model.message import DeliveryMode, Headers, Message
from gateway.runtime.gateway import Gateway
from tests.archived import archived
from tests.brokers.mosquitto import Mosquitto
from tests.brokers.station import Station
from tests.endpoints.exchange import opened, send
from tests.waiting import until

pytestmark = [pytest.mark.broker, pytest.mark.usefixtures("journals_stay")]

ONCE = Headers(mode=DeliveryMode.AT_LEAST_ONCE)
COUNT = 20


class Plant(Station):
    """A gateway at a mosquitto, by another process each time."""

    def __init__(self, folder: Path, broker: Mosquitto, version: str, pattern: str) -> None:
        source = f"kind: mqtt, host: 127.0.0.1, port: {broker.port}, version: '{version}'"
        super().__init__(folder, source, pattern)
        self._sink = make_sink(MqttSettings(host="127.0.0.1", port=broker.port, version=version))

    def publish(self, *messages: Message) -> None:
        with opened(self._sink):
            assert len(send(self._sink, *messages)) == len(messages)

    @staticmethod
    def receives(gateway: Gateway, count: int) -> None:
        until(lambda: gateway.counters["relay"].received >= count)

    def received(self) -> list[tuple[str, bool]]:
        rows = [row for row in archived(self.folder) if row["leg"] == "received"]
        return [(str(row["name"]), bool(row["redelivered"])) for row in rows]


@pytest.fixture(autouse=True)
def sessions(monkeypatch: pytest.MonkeyPatch) -> dict[tuple[str, str], KeptSession]:
    """The memory of this process; a test clears it as the end of a process does."""
    known: dict[tuple[str, str], KeptSession] = {}
    monkeypatch.setattr(kept_session, "_sessions", known)
    return known


@pytest.mark.parametrize("version", ["3.1.1", "5"])
def test_a_restart_with_a_narrower_pattern_ends_the_old_subscription(
    tmp_path: Path,
    mosquitto: Mosquitto,
    sessions: dict[tuple[str, str], KeptSession],
    version: str,
) -> None:
    def run(pattern: str, key: str) -> list[tuple[str, bool]]:
        plant = Plant(tmp_path, mosquitto, version, pattern)
        with plant.running() as gateway:
            plant.publish(Message(f"src/a/{key}-begin", b"", ONCE))
            plant.receives(gateway, 1)
            plant.publish(*(Message(f"src/a/{key}", b"%d" % n, ONCE) for n in range(COUNT)))
            plant.publish(Message(f"src/a/{key}-end", b"", ONCE))
            plant.receives(gateway, COUNT + 2)
        return plant.received()

    run("src/{rest...}", "wide")
    sessions.clear()
    names = [name for name, _ in run("src/a/{rest...}", "narrow")]

    assert names.count("src/a/wide") == names.count("src/a/narrow") == COUNT


def test_retained_messages_that_come_again_after_a_restart_are_marked(
    tmp_path: Path, mosquitto: Mosquitto, sessions: dict[tuple[str, str], KeptSession]
) -> None:
    """A broker of 3.1.1 sends them with each SUBSCRIBE (MQTT 3.1.1, 3.8.4)."""
    kept = Headers(mode=DeliveryMode.AT_LEAST_ONCE, retained=True)
    plant = Plant(tmp_path, mosquitto, "3.1.1", "src/{rest...}")
    plant.publish(*(Message(f"src/{number}", b"x", kept) for number in range(COUNT)))
    for _ in range(2):
        with plant.running() as gateway:
            plant.receives(gateway, COUNT)
        sessions.clear()

    found = plant.received()
    assert sorted(found) == sorted(
        (f"src/{number}", again) for number in range(COUNT) for again in (False, True)
    )
