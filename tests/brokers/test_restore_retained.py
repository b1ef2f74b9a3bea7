"""`restore_retained`: a target whose broker lost what it retained gets it again, and no other."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from gateway.endpoints.base import Subscription
from gateway.endpoints.registry import make_sink, make_source
from gateway.endpoints.settings.mqtt import MqttSettings
from gateway.model.message import DeliveryMode, Headers, Message
from tests.archived import archived
from tests.brokers.mosquitto import OPEN, StartMosquitto
from tests.brokers.running import Process
from tests.endpoints.exchange import QUIET, collect, opened, send
from tests.waiting import until

pytestmark = pytest.mark.broker

CONFIG = """\
gateway: {{name: plant-1}}
endpoints:
  source: {{kind: mqtt, host: 127.0.0.1, port: {source}, {fast}}}
  target: {{kind: mqtt, host: 127.0.0.1, port: {target}, version: '{version}', {fast},
    restore_retained: true}}
  other: {{kind: mqtt, host: 127.0.0.1, port: {other}, version: '{version}', {fast}}}
routes:
  up:
    from: {{endpoint: source, pattern: "line/#"}}
    to: [{{endpoint: target}}, {{endpoint: other}}]
archive: {{path: {folder}/archive}}
"""
FAST = "backoff_min: 0.05, backoff_max: 0.2"
RETAINED = Headers(mode=DeliveryMode.AT_LEAST_ONCE, retained=True)
MADE = "its broker began empty"


def kept(port: int, count: int) -> set[tuple[str, bytes]]:
    """Return what a new subscriber gets, once it is so many messages."""
    settings = MqttSettings(host="127.0.0.1", port=port, session_expiry=0, client_id="reader")
    reader = make_source(settings, [Subscription("line/#")])
    with opened(reader):
        got = collect(reader, count)
        assert reader.receive(QUIET) is None
    return {(each.address, bytes(each.payload)) for each in got if each.headers.retained}  # type: ignore[arg-type]  # bytes


@pytest.mark.parametrize("version", ["3.1.1", "5"])
def test_a_target_that_began_empty_gets_what_is_retained(
    tmp_path: Path, start_mosquitto: StartMosquitto, version: str
) -> None:
    source, other = start_mosquitto(), start_mosquitto()
    target = start_mosquitto(*OPEN)
    config = tmp_path / "gateway.yaml"
    config.write_text(
        CONFIG.format(
            source=source.port, target=target.port, other=other.port, version=version,
            folder=tmp_path, fast=FAST,
        )
    )  # fmt: skip
    publisher = make_sink(MqttSettings(host="127.0.0.1", port=source.port, client_id="lamps"))
    lamps = {(f"line/{number}", b"%d" % number) for number in range(5)}
    process = Process(config)
    try:
        process.connected()
        process.wait_for("retained messages are restored", endpoint="target")
        with opened(publisher):
            send(publisher, *(Message(name, payload, RETAINED) for name, payload in sorted(lamps)))
        until(lambda: kept(target.port, 5) == lamps)
        target.kill()
        (target.folder / "mosquitto.db").unlink(missing_ok=True)
        target.start()
        process.wait_for("retained messages are restored", times=2, endpoint="target")
        assert kept(target.port, 5) == lamps

        target.stop()  # with its database: nothing is to be restored
        target.start()
        process.wait_for("connected", times=3, endpoint="target", side="sink")
        assert process.end() == 0
    finally:
        process.end(signal.SIGKILL)

    rows = archived(tmp_path)
    delivered = [row["target"] for row in rows if row["leg"] == "delivered"]
    assert (delivered.count("target"), delivered.count("other")) == (10, 5)
    assert sum(row["leg"] == "received" and row["redelivered"] is True for row in rows) == 5
    assert sum(MADE in str(line["message"]) for line in process.lines) == 2
