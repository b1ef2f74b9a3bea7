"""Traces of an imported bridge at its brokers: its state, RETAIN, and a way over WebSocket."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from paho.mqtt import publish

from gateway.cli import main
from gateway.config.load import load
from gateway.trial.brokers.listening import free_port
from tests.brokers.mosquitto import Mosquitto, StartMosquitto
from tests.brokers.running import Client, Process
from tests.brokers.test_imported_bridge import sides
from tests.brokers.test_states import Told
from tests.waiting import PATIENCE

pytestmark = pytest.mark.broker

HEAD = "connection c\naddress 127.0.0.1:{port}\nbridge_protocol_version mqttv50\n"
NAMED = "notification_topic bridge/c\n"
FAST = "restart_timeout 1\n"
ALL = "topic # both 1\n"


@contextmanager
def told(broker: Mosquitto, name: str) -> Iterator[Told]:
    reader = Told(broker.port, name)
    try:
        yield reader
    finally:
        reader.close()


def retained(broker: Mosquitto, name: str, payload: bytes) -> None:
    """Wait for a new subscriber to be told `payload`."""
    with told(broker, name) as reader:
        reader.wait_for(payload)


def imported(folder: Path, local: int, bridge: str, status: int = 0) -> Path:
    """Import a bridge of a broker at the port `local`; `status` is that of the command."""
    file, mapping = folder / "m.conf", folder / "m.yaml"
    file.write_text(f"listener {local}\n{bridge}")
    assert main(["import", "mosquitto", str(file), "-o", str(mapping)]) == status
    mapping.write_text(mapping.read_text().replace("web: {}", "web: {port: 0}"))
    assert main(["check", "--strict", str(mapping)]) == 0
    return mapping


@pytest.mark.parametrize(
    ("lines", "status"), [(NAMED, 0), ("", 1)], ids=["under-its-name", "under-another-name"]
)
def test_the_state_is_1_while_the_gateway_runs_and_0_after_a_stop_and_a_kill(
    tmp_path: Path, start_mosquitto: StartMosquitto, lines: str, status: int
) -> None:
    local, remote = start_mosquitto(), start_mosquitto()
    bridge = HEAD.format(port=remote.port) + lines + ALL
    mapping = imported(tmp_path, local.port, bridge, status)
    (name,) = {each.name for each in load(mapping).state}

    with told(local, name) as here, told(remote, name) as there:
        for number in (signal.SIGTERM, signal.SIGKILL):
            process = Process(mapping)
            try:
                for reader in (here, there):
                    reader.wait_for(b"1")
            finally:
                process.end(number)
            for broker, reader in ((local, here), (remote, there)):
                reader.wait_for(b"0")
                retained(broker, name, b"0")


def test_the_state_follows_the_other_broker(
    tmp_path: Path, start_mosquitto: StartMosquitto
) -> None:
    local, remote = start_mosquitto(), start_mosquitto()
    bridge = HEAD.format(port=remote.port) + NAMED + FAST + ALL
    process = Process(imported(tmp_path, local.port, bridge))
    try:
        with told(local, "bridge/c") as here:
            here.wait_for(b"1")
            remote.stop()
            here.wait_for(b"0")
            remote.start()
            here.wait_for(b"1")
            retained(remote, "bridge/c", b"1")
    finally:
        process.end(signal.SIGKILL)


SIDES = [  # measured with a bridge of mosquitto 2.0.11
    pytest.param("", {b"1"}, id="both-sides"),
    pytest.param("notifications_local_only true\n", set(), id="local"),
]


@pytest.mark.parametrize(("lines", "expected"), SIDES)
def test_the_mapping_tells_the_brokers_that_the_bridge_told(
    tmp_path: Path, start_mosquitto: StartMosquitto, lines: str, expected: set[bytes]
) -> None:
    """Its route reads every name, and carries no state to the other broker."""
    local, remote = start_mosquitto(), start_mosquitto()
    bridge = HEAD.format(port=remote.port) + NAMED + FAST + lines + ALL
    process = Process(imported(tmp_path, local.port, bridge))
    try:
        for side in ("source", "sink"):
            process.wait_for("connected", endpoint="c", side=side)
        retained(local, "bridge/c", b"1")
        found = states_there(local, remote)
    finally:
        process.end(signal.SIGKILL)

    assert found == expected


def states_there(local: Mosquitto, remote: Mosquitto) -> set[bytes]:
    """Return what the remote broker keeps, after a message that went behind it has crossed."""
    with sides(local, remote) as (here, there):
        here.sends("mark/1", b"x", there)
        return {load for name, load in there.arrived if name == "bridge/c"} - {b"0"}


def test_a_remote_broker_that_keeps_nothing_gets_messages_without_retain(
    tmp_path: Path, start_mosquitto: StartMosquitto
) -> None:
    local = start_mosquitto()
    remote = start_mosquitto("allow_anonymous true", "retain_available false")
    lines = "notifications_local_only true\nbridge_outgoing_retain false\ntopic a/# out 1\n"
    bridge = HEAD.format(port=remote.port) + NAMED + FAST + lines
    there = Client(remote.port, "a/#")
    process = Process(imported(tmp_path, local.port, bridge))
    try:
        with told(local, "bridge/c") as here, told(local, "a/1") as near:
            here.wait_for(b"1")
            process.wait_for("connected", endpoint="c-local", side="source")
            process.wait_for("connected", endpoint="c", side="sink")
            publish.single("a/1", b"x", 1, retain=True, port=local.port)
            near.wait_for(b"x")
            there.wait_for(lambda arrived: ("a/1", b"x") in arrived)
    finally:
        process.end(signal.SIGKILL)
        there.close()


def crosses(one: Mosquitto, other: Mosquitto) -> None:
    """Send a message at `one`, and wait for it at `other`."""
    with ExitStack() as clients:
        there, here = Client(other.port, "a/#"), Client(one.port)
        clients.callback(there.close)
        clients.callback(here.close)
        here.publish("a/1", b"x").wait_for_publish(PATIENCE)
        there.wait_for(lambda arrived: ("a/1", b"x") in arrived)


def test_a_broker_with_a_listener_of_websockets_only_is_reached(
    tmp_path: Path, start_mosquitto: StartMosquitto
) -> None:
    """It has a plain listener for the test's own clients, and the imported file has none."""
    local, remote = start_mosquitto(websocket=free_port()), start_mosquitto()
    bridge = f"protocol websockets\n{HEAD.format(port=remote.port)}{NAMED}topic a/# out 1\n"
    process = Process(imported(tmp_path, local.websocket, bridge))
    try:
        for endpoint, side in (("c-local", "source"), ("c", "sink")):
            process.wait_for("connected", endpoint=endpoint, side=side)
        crosses(local, remote)
        retained(local, "bridge/c", b"1")
    finally:
        process.end(signal.SIGKILL)


def test_a_bridge_of_nanomq_over_websockets_carries_messages(
    tmp_path: Path, start_mosquitto: StartMosquitto
) -> None:
    local, remote = start_mosquitto(), start_mosquitto(websocket=free_port())
    file, mapping = tmp_path / "nanomq.conf", tmp_path / "n.yaml"
    file.write_text(
        f'listeners.tcp {{ bind = "127.0.0.1:{local.port}" }}\n'
        f'bridges.mqtt.hub {{\n  server = "ws://127.0.0.1:{remote.websocket}/mqtt"\n'
        '  proto_ver = 5\n  forwards = [{ local_topic = "a/#", remote_topic = "", qos = 1 }]\n}\n'
    )
    assert main(["import", "nanomq", str(file), "-o", str(mapping)]) == 0
    mapping.write_text(mapping.read_text().replace("web: {}", "web: {port: 0}"))
    assert main(["check", str(mapping)]) == 0
    process = Process(mapping)
    try:
        for endpoint, side in (("hub-local", "source"), ("hub", "sink")):
            process.wait_for("connected", endpoint=endpoint, side=side)
        crosses(local, remote)
    finally:
        process.end(signal.SIGKILL)
