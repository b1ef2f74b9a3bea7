"""A reload that renames an endpoint which is also a target, with messages on their way."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from gateway.config.load import load
from gateway.runtime.gateway import Gateway
from gateway.runtime.pump import Pump
from tests.archived import archived
from tests.brokers.mosquitto import Mosquitto
from tests.brokers.running import Client
from tests.waiting import PATIENCE, until

pytestmark = [pytest.mark.broker, pytest.mark.usefixtures("journals_stay")]
RENAMES, COUNT = 3, 300  # messages before each rename, and behind the last one
CONFIG = """\
gateway: {{name: renaming}}
archive: {{path: {folder}/archive}}
endpoints:
  {name}:
    kind: mqtt
    host: 127.0.0.1
    port: {port}
    backoff_min: 0.05
    {was}
routes:
  around:
    from: {{endpoint: {name}, pattern: "src/{{rest...}}"}}
    to: {{endpoint: {name}, template: "dst/{{rest...}}"}}
"""


def is_connected(pump: Pump) -> bool:
    return pump.state.connection.value == "connected"


def test_the_connections_of_a_renamed_endpoint_do_not_end_each_other(
    tmp_path: Path, mosquitto: Mosquitto, caplog: pytest.LogCaptureFixture
) -> None:
    """Both sinks have one client id, so the broker ends the older one of two connections."""
    config = tmp_path / "gateway.yaml"

    def rename(name: str, was: str = "") -> None:
        text = CONFIG.format(folder=tmp_path, port=mosquitto.port, name=name, was=was)
        config.write_text(text)

    rename("site")
    out, publisher = Client(mosquitto.port, "dst/#"), Client(mosquitto.port)
    gateway = Gateway(load(config))
    gateway.start()
    until(partial(is_connected, gateway.pumps["site"]))
    sent = 0
    for number in range(RENAMES + 1):
        for _ in range(COUNT):
            publisher.publish(f"src/{sent % 3}", b"%d" % sent)
            sent += 1
        if number < RENAMES:
            rename(f"site{number}", "was: site")
            gateway.reload(load(config))
            (pump,) = gateway.pumps.values()
            until(partial(is_connected, pump))
    out.wait_for(lambda arrived: len({*arrived}) == sent)
    gateway.stop(PATIENCE)
    publisher.close()
    out.close()

    assert "the broker closed the connection" not in caplog.text
    rows = archived(tmp_path)
    gaps = {row["endpoint"] for row in rows if row["leg"] == "gap" and row["rule"] == "away"}
    assert gaps == {f"site{number}" for number in range(RENAMES)}
    again = len(out.arrived) - sent
    marked = [row for row in rows if row["leg"] == "delivered" and row["redelivered"]]
    assert again <= len(marked)
    for name in range(3):
        numbers = [int(payload) for topic, payload in out.arrived if topic == f"dst/{name}"]
        assert [*dict.fromkeys(numbers)] == sorted({*numbers})
