"""`gateway connect` opens every endpoint once, and leaves its broker as it was."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gateway.cli import main
from gateway.trial.brokers.listening import free_port
from tests.brokers.mosquitto import Mosquitto, StartMosquitto

CONFIG = """\
endpoints:
  plant: {{kind: mqtt, port: {port}, username: gateway, password: "${{env:PLANT_PASSWORD}}"}}
  office: {{kind: mqtt, port: {other}}}
  ems: {{kind: memory, dialect: ems}}
routes:
  r:
    from: {{endpoint: plant, pattern: "line/{{rest...}}"}}
    to: {{endpoint: ems, template: "line.{{rest...}}"}}
"""


def connect(folder: Path, port: int, other: int) -> int:
    file = folder / "gateway.yaml"
    file.write_text(CONFIG.format(port=port, other=other))
    return main(["connect", str(file)])


@pytest.mark.broker
def test_every_broker_answers(
    tmp_path: Path,
    start_mosquitto: StartMosquitto,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("PLANT_PASSWORD", "secret-of-the-plant")
    plant, office = start_mosquitto(), start_mosquitto()

    assert connect(tmp_path, plant.port, office.port) == 0

    lines = capsys.readouterr().out.splitlines()
    assert [re.sub(r"[\d.]+ s\)", "N s)", each) for each in lines] == [
        f"plant: connected to localhost:{plant.port} (N s)",
        f"office: connected to localhost:{office.port} (N s)",
        "ems: connected to memory:default (N s)",
    ]


@pytest.mark.broker
def test_the_address_in_use_of_several(
    tmp_path: Path, mosquitto: Mosquitto, capsys: pytest.CaptureFixture[str]
) -> None:
    file, away = tmp_path / "gateway.yaml", free_port()
    file.write_text(
        "endpoints:\n"
        f"  plant: {{kind: mqtt, host: '127.0.0.1:{away}, 127.0.0.1:{mosquitto.port}'}}\n"
        "routes: {r: {from: {endpoint: plant, pattern: a}, to: {endpoint: plant, template: b}}}\n"
    )

    assert main(["connect", str(file)]) == 0

    line = capsys.readouterr().out
    assert line.startswith(f"plant: connected to 127.0.0.1:{mosquitto.port} (")


@pytest.mark.broker
def test_a_broker_that_is_away_or_refuses_hides_no_other(
    tmp_path: Path,
    start_mosquitto: StartMosquitto,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("PLANT_PASSWORD", "secret-of-the-plant")
    plant = start_mosquitto("allow_anonymous false")

    assert connect(tmp_path, plant.port, free_port()) == 1

    refused, away, connected = capsys.readouterr().out.splitlines()
    assert refused.startswith("plant: ")
    assert "not authorised" in refused
    assert away.startswith("office: ")
    assert "refused" in away
    assert connected.startswith("ems: connected")
    assert "secret-of-the-plant" not in refused
