"""What a start costs that no fast machine hides: the packages it loads, and who waits for whom."""

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
from gateway.runtime.monitor.counters import Connection
from gateway.web.observer import FRESH, SOON, Observer
from tests.brokers.mosquitto import StartMosquitto, free_port
from tests.waiting import PATIENCE, until
from tests.web.test_run import CONFIG, get

LATER: Final = frozenset(  # for a day's end, other commands, other endpoints, other sections
    [
        "amqtt", "jpype", "lark", "numpy", "opentelemetry", "pyarrow", "pyspark", "pytest",
        "regex", "requests", "rich", "selenium", "solace",
    ]
)  # fmt: skip
MEMORY: Final = """\
endpoints:
  a: {kind: memory, dialect: mqtt, broker: one}
  b: {kind: memory, dialect: ems, broker: two}
routes: {r: {from: {endpoint: a, pattern: "x/#"}, to: {endpoint: b}}}
"""


@pytest.mark.broker
def test_a_gateway_is_ready_before_it_loads_what_it_needs_later(
    tmp_path: Path, start_mosquitto: StartMosquitto
) -> None:
    source, target, port = start_mosquitto(), start_mosquitto(), free_port()
    config, said = tmp_path / "gateway.yaml", tmp_path / "imports"
    values = {"source": source.port, "target": target.port, "spool": tmp_path / "spool"}
    archive = f"archive: {{path: {tmp_path / 'archive'}}}\n"
    config.write_text(CONFIG.format(port=port, **values) + archive)
    with said.open("w") as errors:
        process = subprocess.Popen(  # noqa: S603  # our own command
            [sys.executable, "-X", "importtime", "-m", "gateway", "run", str(config)],
            stderr=errors,
        )
    try:
        deadline = monotonic() + PATIENCE
        while get(f"http://127.0.0.1:{port}/readyz")[0] != 200:
            assert monotonic() < deadline, said.read_text()[-2000:]
            with pytest.raises(subprocess.TimeoutExpired):  # a pause that ends with the process
                process.wait(0.05)
        text = said.read_text()
    finally:
        process.kill()
        process.wait(PATIENCE)

    loaded = {name.partition(".")[0] for name in re.findall(r"\| +([\w.]+)$", text, re.MULTILINE)}
    assert {"gateway", "paho", "h11", "yaml"} <= loaded  # the list is one
    assert loaded & LATER == set()


def test_who_waits_for_it_to_be_ready_does_not_wait_for_an_old_answer(tmp_path: Path) -> None:
    file = tmp_path / "gateway.yaml"
    file.write_text(MEMORY)
    running = Gateway(load(file))
    now = 0.0
    observer = Observer(running, "gateway.yaml", 80.0, lambda: now)
    running.start()
    try:
        until(lambda: all(end.connection is Connection.CONNECTED for end in running.states))
        lane = running.lanes["b"]
        lane.state.connection = Connection.LOST
        before = observer.moment()
        assert before.reasons
        lane.state.connection = Connection.CONNECTED
        now = SOON
        ready = observer.moment()
        assert not ready.reasons
        now += FRESH * 0.9
        assert observer.moment() is ready  # and then one look serves everybody
    finally:
        running.stop(PATIENCE)
