"""The web server of `gateway run` between two real brokers, one of which is killed."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import Any, Final
from urllib.error import HTTPError
from urllib.request import ProxyHandler, build_opener

import pytest
from paho.mqtt import publish

from gateway.trial.brokers.listening import free_port
from tests.brokers.mosquitto import Mosquitto, StartMosquitto
from tests.brokers.running import Process
from tests.waiting import PATIENCE

pytestmark = pytest.mark.broker

DETECTION_TIMEOUT: Final = 15.0  # seconds until a killed broker is visible everywhere
CONFIG = """\
gateway: {{name: test, heartbeat_seconds: 1}}
endpoints:
  source: {{kind: mqtt, host: 127.0.0.1, port: {source}, backoff_min: 0.1, backoff_max: 1}}
  target: {{kind: mqtt, host: 127.0.0.1, port: {target}, backoff_min: 0.1, backoff_max: 1}}
routes:
  relay:
    from: {{endpoint: source, pattern: "src/{{rest...}}"}}
    to: {{endpoint: target, template: "dst/{{rest...}}"}}
    heartbeat: src/heartbeat
spool: {{path: {spool}}}
web: {{port: {port}}}
"""

NAMES = """\
gateway: {{name: names}}
endpoints:
  plant: {{kind: mqtt, host: 127.0.0.1, port: {plant}}}
  office: {{kind: mqtt, host: 127.0.0.1, port: {office}, limits: {{bytes: 200}}}}
routes:
  lines:
    from: {{endpoint: plant, pattern: "line/{{rest...}}"}}
    to: {{endpoint: office, template: "office/{{rest...}}"}}
web: {{port: {port}}}
"""


def get(url: str) -> tuple[int, str]:
    """Return status and body; the status is 0 without a response."""
    try:
        with build_opener(ProxyHandler({})).open(url, timeout=PATIENCE) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as error:
        with error:
            return error.code, error.read().decode()
    except OSError:
        return 0, ""


def within(seconds: float, done: Callable[[], bool], process: Process) -> float:
    """Wait until `done`; return how many seconds it took."""
    start = monotonic()
    while not done():
        assert monotonic() - start < seconds, process.lines[-5:]
        with pytest.raises(subprocess.TimeoutExpired):  # a pause that ends with the process
            process.process.wait(0.05)
    return monotonic() - start


@contextmanager
def running_gateway(
    folder: Path, source: Mosquitto, target: Mosquitto
) -> Iterator[tuple[Process, str]]:
    port = free_port()
    config = folder / "gateway.yaml"
    values = {"source": source.port, "target": target.port, "spool": folder / "spool"}
    config.write_text(CONFIG.format(port=port, **values))
    process = Process(config)
    try:
        yield process, f"http://127.0.0.1:{port}"
    finally:
        process.end(signal.SIGKILL)


def status(url: str) -> Any:  # noqa: ANN401  # JSON
    return json.loads(get(f"{url}/api/status")[1])


@pytest.mark.parametrize(
    "end",
    [
        pytest.param(Mosquitto.kill, id="killed", marks=pytest.mark.nightly),
        pytest.param(Mosquitto.freeze, id="frozen"),
    ],
)
def test_a_dead_broker_and_its_return_are_visible_everywhere(
    tmp_path: Path, start_mosquitto: StartMosquitto, end: Callable[[Mosquitto], None]
) -> None:
    source, target = start_mosquitto(), start_mosquitto()
    with running_gateway(tmp_path, source, target) as (process, url):
        within(20, lambda: get(f"{url}/readyz")[0] == 200, process)
        within(20, lambda: status(url)["routes"][0]["delivered"] > 0, process)

        end(target)
        within(DETECTION_TIMEOUT, lambda: get(f"{url}/readyz")[0] == 503, process)

        found = status(url)
        assert found["ready"] is False
        assert any("target" in reason or "relay" in reason for reason in found["reasons"])
        assert "gateway_ready 0.0\n" in get(f"{url}/metrics")[1]
        assert get(f"{url}/healthz") == (200, "ok\n")

        target.thaw() if end is Mosquitto.freeze else target.start()
        within(30, lambda: get(f"{url}/readyz")[0] == 200, process)
        assert process.end() == 0


def test_the_names_that_pass_are_seen(tmp_path: Path, start_mosquitto: StartMosquitto) -> None:
    plant, office = start_mosquitto(), start_mosquitto()
    port = free_port()
    config = tmp_path / "gateway.yaml"
    config.write_text(NAMES.format(plant=plant.port, office=office.port, port=port))
    process = Process(config)

    def passed() -> list[tuple[str, str, str]]:
        tail = json.loads(get(f"http://127.0.0.1:{port}/api/tail?route=lines")[1])
        assert "secret" not in str(tail)
        return [
            (each["name"], each["copies"][0]["name"], each["copies"][0]["rule"])
            for each in tail["messages"]
        ]

    try:
        process.wait_for("connected", endpoint="office", side="sink")
        assert passed() == []  # the first question begins the view
        for name in ("line/1", "line/2/" + "x" * 300):
            publish.single(name, b"secret", qos=1, hostname="127.0.0.1", port=plant.port)

        within(PATIENCE, lambda: len(passed()) == 2, process)
        (_, _, rule), good = passed()
        assert (rule, good) == ("too-long", ("line/1", "office/1", ""))
        assert process.end() == 0
    finally:
        process.end(signal.SIGKILL)


def test_the_server_answers_without_brokers_and_needs_little_memory(tmp_path: Path) -> None:
    port, closed = free_port(), free_port()
    config = tmp_path / "gateway.yaml"
    values = {"source": closed, "target": closed, "spool": tmp_path / "spool"}
    config.write_text(CONFIG.format(port=port, **values))
    process = Process(config)
    url = f"http://127.0.0.1:{port}"
    try:
        within(10, lambda: get(f"{url}/healthz")[0] == 200, process)
        code, text = get(f"{url}/readyz")
        assert code == 503
        assert "endpoint source (source): " in text
        assert "endpoint target (sink): " in text
        done = subprocess.run(  # noqa: S603  # our own command
            [sys.executable, "-m", "gateway", "status", "--json", "--url", url],
            capture_output=True, text=True, timeout=PATIENCE, check=False,
        )  # fmt: skip
        metrics = get(f"{url}/metrics")[1]
        memory = re.search(r"^process_resident_memory_bytes (\S+)$", metrics, re.MULTILINE)
        assert memory is not None
        assert float(memory[1]) < 60 << 20
        assert (done.returncode, json.loads(done.stdout)["gateway"]) == (1, "test")
        assert process.end() == 0
        assert get(f"{url}/healthz")[0] == 0
    finally:
        process.end(signal.SIGKILL)


def test_a_port_in_use_is_an_error_before_any_connection(
    tmp_path: Path, start_mosquitto: StartMosquitto
) -> None:
    broker = start_mosquitto()
    config = tmp_path / "gateway.yaml"
    values = {"source": broker.port, "target": broker.port, "spool": tmp_path / "spool"}
    config.write_text(CONFIG.format(port=broker.port, **values))

    done = subprocess.run(  # noqa: S603  # our own command
        [sys.executable, "-m", "gateway", "run", str(config)],
        capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip

    assert done.returncode == 2
    used = f"web: cannot listen at 127.0.0.1:{broker.port}: Address already in use"
    assert f"{used}; stop the other process, such as a second gateway, or change" in done.stderr
    assert not (tmp_path / "spool").exists()
