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
        "ems: connected to memory:ems:default (N s)",
    ]


@pytest.mark.broker
def test_an_address_is_no_secret_and_a_password_is(
    tmp_path: Path,
    mosquitto: Mosquitto,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Not even where a user name or a password has the text of a host."""
    for name, value in {"HOST": "localhost", "NAME": "localhost", "WORD": "no:such:"}.items():
        monkeypatch.setenv(name, value)
    file, away = tmp_path / "gateway.yaml", free_port()
    log_in = 'username: "${env:NAME}", password: "${env:WORD}"'
    file.write_text(
        f"""\
endpoints:
  plant: {{kind: mqtt, host: "${{env:HOST}}", port: {mosquitto.port}, {log_in}}}
  office: {{kind: mqtt, host: localhost, port: {away}, client_id: "no:such:"}}
routes: {{r: {{from: {{endpoint: plant, pattern: a}}, to: {{endpoint: office, template: b}}}}}}
"""
    )

    assert main(["connect", str(file)]) == 1

    plant, office = capsys.readouterr().out.splitlines()
    assert plant.startswith(f"plant: connected to localhost:{mosquitto.port} (")
    assert office.startswith("office: ")
    assert f"localhost:{away}" in office
    assert "no:such:" not in office


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
