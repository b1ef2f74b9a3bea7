"""The long form of a kill in the table of events: `kill -9` of a gateway's process, twice."""

from __future__ import annotations

import signal
import threading
from pathlib import Path

import pytest

from gateway.config.load import load
from gateway.model.message import Headers, Message
from gateway.runtime.delivery.rows import fingerprint
from gateway.runtime.gateway import Gateway
from tests.archived import archived
from tests.brokers.mosquitto import StartMosquitto
from tests.brokers.running import Client, Process
from tests.endpoints.exchange import opened, send_all
from tests.endpoints.systems import PLACES, SYSTEMS
from tests.endpoints.written import written
from tests.waiting import PATIENCE

pytestmark = [pytest.mark.broker, pytest.mark.nightly]
RUNS, COUNT = 2, 300
SILENCE = 3.0  # seconds; the memory is written when a source was quiet for one
CONFIG = """\
gateway: {{name: killed}}
archive: {{path: {folder}/archive}}
endpoints:
  source: {source}
  target: {{kind: mqtt, host: 127.0.0.1, port: {port}}}
routes:
  relay:
    from: {{endpoint: source, pattern: "{pattern}"}}
    to: {{endpoint: target, template: "dst/{{rest...}}"}}
"""


@pytest.mark.parametrize("is_quiet", [True, False], ids=["silence", "load"])
@pytest.mark.parametrize(
    "name",
    ["mqtt-5", "solace", "nats", "rabbitmq", "rabbitmq-stream", "amqp", "jms", "kafka-partitions"],
)
def test_a_killed_gateway_loses_nothing_and_marks_what_comes_again(
    name: str,
    request: pytest.FixtureRequest,
    start_mosquitto: StartMosquitto,
    tmp_path: Path,
    *,
    is_quiet: bool,
) -> None:
    system = (SYSTEMS | PLACES)[name](request)
    target, sink, config = start_mosquitto(), system.sink(), tmp_path / "gateway.yaml"
    pattern, source = system.address("t", "{rest...}"), written(system.settings, tmp_path)
    config.write_text(
        CONFIG.format(folder=tmp_path, port=target.port, pattern=pattern, source=source)
    )
    out, sent = Client(target.port, "dst/#"), 0
    address, headers = system.address("t", "x"), Headers(mode=system.mode)
    with opened(sink):
        for _ in range(RUNS):
            process = Process(config)
            process.connected()
            numbers = range(sent, sent := sent + COUNT)
            send_all(sink, [Message(address, b"%d" % each, headers) for each in numbers])
            least = sent if is_quiet else sent - COUNT // 2
            out.wait_for(lambda arrived: len({*arrived}) >= least)  # noqa: B023  # called at once
            if is_quiet:
                threading.Event().wait(SILENCE)
            process.end(signal.SIGKILL)
        gateway = Gateway(load(config))
        gateway.start()
        sent += 1
        send_all(sink, [Message(address, b"%d" % (sent - 1), headers)])  # behind all others
        out.wait_for(lambda arrived: len({*arrived}) == sent)
        gateway.stop(PATIENCE)
    out.close()

    rows = [row for row in archived(tmp_path) if row["leg"] == "received"]
    came: dict[bytes, list[bool]] = {fingerprint(b"%d" % n)[1]: [] for n in range(sent)}
    for row in sorted(rows, key=lambda row: row["time"]):
        came[row["hash"]].append(bool(row["redelivered"]))
    assert all(came.values()), "lost"
    assert all(all(marks[1:]) for marks in came.values()), "came twice without a mark"
    if is_quiet:
        assert all(marks == [False] for marks in came.values())
