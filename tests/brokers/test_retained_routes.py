"""Routes with `retained: ignore` at a real broker: they leave out what came before them only."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gateway.config.load import load
from gateway.endpoints.base import Subscription
from gateway.endpoints.registry import make_sink, make_source
from gateway.endpoints.settings.mqtt import MqttSettings
from gateway.model.message import DeliveryMode, Headers, Message
from gateway.runtime.gateway import Gateway
from tests.archived import archived
from tests.brokers.mosquitto import OPEN, Mosquitto, StartMosquitto
from tests.endpoints.exchange import collect, opened, send
from tests.waiting import PATIENCE, until

pytestmark = [pytest.mark.broker, pytest.mark.usefixtures("journals_stay")]

LIVE = Headers(mode=DeliveryMode.AT_LEAST_ONCE)
RETAINED = replace(LIVE, retained=True)
CONFIG = """\
gateway: {{name: retained}}
endpoints:
  source: {{kind: mqtt, host: 127.0.0.1, port: {port}, version: '{version}'}}
  target: {{kind: memory, dialect: mqtt, broker: retained}}
routes:
  news:
    from: {{endpoint: source, pattern: "src/{{rest...}}"}}
    to: {{endpoint: target, template: "news/{{rest...}}"}}
    retained: ignore
{others}archive: {{path: {archive}}}
"""
ALL = """\
  all:
    from: {endpoint: source, pattern: "src/{rest...}"}
    to: {endpoint: target, template: "all/{rest...}"}
"""


@pytest.mark.parametrize("version", ["3.1.1", "5"])
@pytest.mark.parametrize("others", ["", ALL], ids=["alone", "beside-another"])
def test_a_route_that_ignores_retained_messages_takes_live_ones_that_the_broker_retains(
    tmp_path: Path, mosquitto: Mosquitto, version: str, others: str
) -> None:
    config = tmp_path / "gateway.yaml"
    config.write_text(
        CONFIG.format(
            port=mosquitto.port, version=version, others=others, archive=tmp_path / "archive"
        )
    )
    sink = make_sink(MqttSettings(host="127.0.0.1", port=mosquitto.port, version=version))
    gateway = Gateway(load(config))
    with opened(sink):
        send(sink, Message("src/before", b"", RETAINED), Message("src/before", b"x", RETAINED))
        gateway.start()
        try:
            state = gateway.pumps["source"].state
            until(lambda: state.connection.value == "connected")
            send(sink, Message("src/live", b"x", RETAINED), Message("src/end", b"x", LIVE))
            until(lambda: state.messages == (3 if others else 2))
        finally:
            gateway.stop(PATIENCE)

    names = {str(row["name"]) for row in archived(tmp_path) if row["leg"] == "delivered"}
    assert {each for each in names if each.startswith("news/")} == {"news/live", "news/end"}
    assert not others or {"all/before", "all/live", "all/end"} <= names


RULED = """\
gateway: {{name: retained}}
endpoints:
  source: {{kind: mqtt, host: 127.0.0.1, port: {source}}}
  target: {{kind: mqtt, host: 127.0.0.1, port: {target}, version: '{version}'}}
routes:
  r:
    from: {{endpoint: source, pattern: "src/{{rest...}}"}}
    to: {{endpoint: target, template: "to/{{rest...}}", headers: {{{rules}}}}}
archive: {{path: {archive}}}
"""


@pytest.mark.parametrize("version", ["3.1.1", "5"])
@pytest.mark.parametrize(
    ("rules", "retained"),
    [("set: {retained: false}", False), ("drop: [retained]", False),
     ("map: {retained: {true: false, false: true}}", False), ("set: {retained: true}", True)],
)  # fmt: skip
def test_a_rule_clears_or_sets_the_flag_at_a_target(
    tmp_path: Path, start_mosquitto: StartMosquitto, version: str, rules: str, retained: bool
) -> None:
    """A broker that keeps no retained messages refuses the flag: 3.1.1 ends the connection."""
    source = start_mosquitto()
    target = start_mosquitto(*OPEN, *([] if retained else ["retain_available false"]))
    config = tmp_path / "gateway.yaml"
    config.write_text(
        RULED.format(
            source=source.port, target=target.port, version=version, rules=rules,
            archive=tmp_path / "archive",
        )
    )  # fmt: skip
    sink = make_sink(MqttSettings(host="127.0.0.1", port=source.port))
    at_target = MqttSettings(host="127.0.0.1", port=target.port, client_id="reader")
    gateway = Gateway(load(config))
    flag = replace(LIVE, retained=not retained)
    with opened(sink):
        gateway.start()
        try:
            until(lambda: gateway.pumps["source"].state.connection.value == "connected")
            send(sink, Message("src/a", b"x", flag))
            until(lambda: gateway.counters["r"].delivered == 1)
        finally:
            gateway.stop(PATIENCE)

    assert not [row for row in archived(tmp_path) if row["leg"] == "dead"]
    if retained:
        reader = make_source(at_target, [Subscription("to/#")])
        with opened(reader):
            (kept,) = collect(reader, 1)
        assert (kept.address, kept.headers.retained) == ("to/a", True)
