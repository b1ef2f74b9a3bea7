"""The example of `docs/ems.md` runs: its broker, its configuration, its message."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from gateway.brokers.activemq import client_jars, free_ports, missing
from gateway.cli import main
from tests.brokers.mosquitto import Mosquitto
from tests.brokers.running import Client, Process

pytestmark = pytest.mark.broker

PAGE = (Path(__file__).parents[2] / "docs/ems.md").read_text(encoding="utf-8")
EMS, ACTIVEMQ = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def url() -> str:
    return f"tcp://127.0.0.1:{free_ports(1)[0]}"


def test_the_configuration_for_ems_has_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("EMS_PASSWORD", "secret")
    file = tmp_path / "gateway.yaml"
    file.write_text(EMS)

    assert main(["check", str(file)]) == 0
    assert "core (ems) queue:orders.{desk}" in capsys.readouterr().out


def test_the_example_of_the_page_carries_messages(
    tmp_path: Path, mosquitto: Mosquitto, url: str
) -> None:
    if why := missing():
        pytest.skip(why)
    file = tmp_path / "gateway.yaml"
    text = ACTIVEMQ.replace("tcp://127.0.0.1:61616", url).replace("1883", str(mosquitto.port))
    file.write_text(text.replace("path: archive", f"path: {tmp_path / 'archive'}"))
    command = [sys.executable, "-m", "gateway.brokers.activemq", url.rpartition(":")[2]]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as broker:  # noqa: S603  # the package
        assert broker.stdout is not None
        lines = [broker.stdout.readline() for _ in range(3 + len(client_jars()))]
        try:
            printed = yaml.safe_load("".join(lines))
            core = yaml.safe_load(text)["endpoints"]["core"]
            assert printed == {key: core[key] for key in ("urls", "factory", "classpath")}
            assert send_and_receive(file, mosquitto) == [("confirmed/fx", b"hello")]
        finally:
            broker.terminate()

    assert broker.returncode == 0


def send_and_receive(file: Path, mosquitto: Mosquitto) -> list[tuple[str, bytes]]:
    gateway = Process(file)
    into, out = Client(mosquitto.port), Client(mosquitto.port, "confirmed/#")
    try:
        for side in ("source", "sink"):
            gateway.wait_for("connected", endpoint="core", side=side)
            gateway.wait_for("connected", endpoint="plant", side=side)
        into.publish("orders/fx", b"hello")
        out.wait_for(lambda arrived: len(arrived) > 0)
    finally:
        into.close()
        out.close()
        assert gateway.end() == 0
    return out.arrived
