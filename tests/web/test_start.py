"""The cost of a start: the packages it loads, and the delay until readiness is visible."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from time import monotonic
from typing import Final

import pytest

from gateway.config.load import load
from gateway.runtime.gateway import Gateway
from gateway.runtime.record.counters import ConnectionState
from gateway.trial.brokers.listening import free_port
from gateway.web.status_cache import MAX_AGE, MAX_AGE_NOT_READY, StatusCache
from tests.brokers.mosquitto import StartMosquitto
from tests.waiting import PATIENCE, until
from tests.web.test_run import CONFIG, get

LOADED_LATER: Final = frozenset(  # by the end of a day, other commands, endpoints and sections
    [
        "amqtt", "jinja2", "jpype", "lark", "numpy", "opentelemetry", "paho", "pyarrow", "pyspark",
        "pytest", "regex", "requests", "rich", "selenium", "solace",
    ]
)  # fmt: skip
MEMORY: Final = """\
endpoints:
  a: {kind: memory, dialect: mqtt, broker: one}
  b: {kind: memory, dialect: ems, broker: two}
routes: {r: {from: {endpoint: a, pattern: "x/#"}, to: {endpoint: b}}}
"""


@pytest.mark.broker
def test_a_gateway_is_ready_before_it_loads_packages_that_it_needs_later(
    tmp_path: Path, start_mosquitto: StartMosquitto
) -> None:
    source, target, port = start_mosquitto(), start_mosquitto(), free_port()
    config, imports = tmp_path / "gateway.yaml", tmp_path / "imports"
    values = {"source": source.port, "target": target.port, "spool": tmp_path / "spool"}
    archive = f"archive: {{path: {tmp_path / 'archive'}}}\n"
    config.write_text(CONFIG.format(port=port, **values) + archive)
    with imports.open("w") as errors:
        process = subprocess.Popen(  # noqa: S603  # our own command
            [sys.executable, "-X", "importtime", "-m", "gateway", "run", str(config)],
            stderr=errors,
        )
    try:
        deadline = monotonic() + PATIENCE
        while get(f"http://127.0.0.1:{port}/readyz")[0] != 200:
            assert monotonic() < deadline, imports.read_text()[-2000:]
            with pytest.raises(subprocess.TimeoutExpired):  # a pause that ends with the process
                process.wait(0.05)
        text = imports.read_text()
    finally:
        process.kill()
        process.wait(PATIENCE)

    loaded = {name.partition(".")[0] for name in re.findall(r"\| +([\w.]+)$", text, re.MULTILINE)}
    assert {"gateway", "h11", "yaml"} <= loaded  # the list was parsed
    assert loaded & LOADED_LATER == set()


def test_a_client_that_waits_for_readiness_gets_no_outdated_status(tmp_path: Path) -> None:
    file = tmp_path / "gateway.yaml"
    file.write_text(MEMORY)
    running = Gateway(load(file))
    now = 0.0
    cache = StatusCache(running, "gateway.yaml", 80.0, lambda: now)
    running.start()
    try:
        until(lambda: all(end.connection is ConnectionState.CONNECTED for end in running.states))
        lane = running.lanes["b"]
        lane.state.connection = ConnectionState.LOST
        before = cache.snapshot()
        assert before.reasons
        lane.state.connection = ConnectionState.CONNECTED
        now = MAX_AGE_NOT_READY
        ready = cache.snapshot()
        assert not ready.reasons
        now += MAX_AGE * 0.9
        assert cache.snapshot() is ready  # one snapshot serves all clients
    finally:
        running.stop(PATIENCE)
