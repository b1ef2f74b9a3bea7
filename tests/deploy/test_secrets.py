"""Secrets of a configuration appear in no output and in no file."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.brokers.mosquitto import StartMosquitto
from tests.brokers.running import Client, Process
from tests.waiting import PATIENCE

SECRETS = {
    "MQTT": 'first-"quoted"-pass',
    "SMF": "second/pass word",
    "TOKEN": "third-token-of-32-chars",
}
PAYLOAD = "a confidential payload"
CONFIG = """\
gateway: {{name: secrets}}
endpoints:
  open: {{kind: mqtt, host: 127.0.0.1, port: {open}}}
  closed:
    kind: mqtt
    host: 127.0.0.1
    port: {closed}
    username: me
    password: ${{env:MQTT}}
    backoff_max: 0.6
  smf:
    kind: solace
    url: tcp://127.0.0.1:{open}
    password: ${{env:SMF}}
    backoff_max: 0.6
routes:
  one: {{from: {{endpoint: open, pattern: "src/#"}}, to: {{endpoint: closed}}}}
  two: {{from: {{endpoint: open, pattern: "out/#"}}, to: {{endpoint: smf}}}}
archive: {{path: {folder}/archive}}
spool: {{path: {folder}/spool}}
web: {{port: 0, token: "${{env:TOKEN}}"}}
"""
COMMANDS = [
    pytest.param(("check",), id="check"),
    pytest.param(("check", "--format", "json"), id="check-json"),
    pytest.param(("explain", "src/a", "--config"), id="explain"),
]


def config(folder: Path, *, port: int = 1883, closed: int = 1884) -> Path:
    file = folder / "gateway.yaml"
    file.write_text(CONFIG.format(open=port, closed=closed, folder=folder))
    return file


def hidden(text: str) -> bool:
    """Return whether no secret is in the text, in any encoding."""
    spelled = {form for secret in SECRETS.values() for form in (secret, json.dumps(secret)[1:-1])}
    return not any(each in text for each in spelled)


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603
        [sys.executable, "-m", "gateway", *map(str, arguments)],
        capture_output=True, text=True, timeout=60, check=False, env=SECRETS,
    )  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_prints_a_secret(tmp_path: Path, command: tuple[str, ...]) -> None:
    done = run(*command, config(tmp_path))

    assert done.returncode == 0, done.stderr
    assert hidden(done.stdout + done.stderr)


def test_no_finding_has_a_secret(tmp_path: Path) -> None:
    file = config(tmp_path)
    file.write_text(
        file.read_text()
        .replace("backoff_max: 0.6", "backoff_max: ${env:MQTT}")
        .replace("username: me", "version: ${env:SMF}")
    )
    done = run("check", file)

    assert done.returncode == 1
    assert "expected a duration such as 1.5s, not '${env:MQTT}'" in done.stdout
    assert hidden(done.stdout + done.stderr)


def test_a_literal_secret_is_an_error_that_does_not_repeat_it(tmp_path: Path) -> None:
    file = config(tmp_path)
    file.write_text(file.read_text().replace("${env:SMF}", "written-out"))
    done = run("check", file)

    assert done.returncode == 1
    assert "the file contains a secret; write ${env:NAME} or ${file:/path}" in done.stdout
    assert "written-out" not in done.stdout + done.stderr


@pytest.mark.broker
def test_a_run_logs_and_stores_no_secret_and_no_payload(
    tmp_path: Path, start_mosquitto: StartMosquitto, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "passwords").write_text("")
    opened = start_mosquitto()
    closed = start_mosquitto("allow_anonymous false", f"password_file {tmp_path / 'passwords'}")
    for name, secret in SECRETS.items():
        monkeypatch.setenv(name, secret)
    gateway = Process(config(tmp_path, port=opened.port, closed=closed.port))
    try:
        gateway.wait_for("running")
        gateway.process.send_signal(signal.SIGUSR1)
        gateway.wait_for("closed", level="error")
        into = Client(opened.port)
        into.publish("src/a", PAYLOAD.encode()).wait_for_publish(PATIENCE)
        into.close()
        gateway.process.send_signal(signal.SIGHUP)
        gateway.wait_for("reloaded")
    finally:
        assert gateway.end() == 0

    log = json.dumps(gateway.lines, ensure_ascii=False)
    assert hidden(log)
    assert PAYLOAD not in log
    kept = [path for folder in ("archive", "spool") for path in (tmp_path / folder).rglob("*")]
    files = [path for path in kept if path.is_file()]
    assert files
    for path in files:
        content = path.read_bytes().decode(errors="replace")
        assert hidden(content), path
        assert PAYLOAD not in content or "spool" in path.parts, path


@pytest.mark.broker
def test_the_level_of_a_running_gateway_changes_by_signals(
    tmp_path: Path, start_mosquitto: StartMosquitto, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = start_mosquitto()
    for name, secret in SECRETS.items():
        monkeypatch.setenv(name, secret)
    gateway = Process(config(tmp_path, port=opened.port, closed=1))
    gateway.wait_for("running")
    gateway.process.send_signal(signal.SIGUSR1)
    gateway.wait_for("log level raised to debug", level="info")
    gateway.process.send_signal(signal.SIGUSR2)
    gateway.wait_for("log level restored", level="info")

    assert gateway.end() == 0
