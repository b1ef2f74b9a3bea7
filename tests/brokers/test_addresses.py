"""A gateway whose endpoint has two brokers: traffic goes on at the second, and may return."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from rich.console import Console

from gateway.archive.gaps import merge_gaps
from gateway.cli.live.dashboard import dashboard
from gateway.config.load import load
from gateway.endpoints.base import Subscription
from gateway.endpoints.mqtt import addresses, open_source
from gateway.endpoints.settings.mqtt import MqttSettings
from gateway.model.outcome import ACCEPTED
from gateway.runtime.gateway import Gateway
from gateway.web.snapshot import snapshot_json
from gateway.web.status_cache import StatusCache
from tests.archived import archived
from tests.brokers.mosquitto import Mosquitto, StartMosquitto
from tests.brokers.running import Client
from tests.waiting import PATIENCE, until

pytestmark = [pytest.mark.broker, pytest.mark.usefixtures("journals_stay")]

CONFIG = """\
endpoints:
  plant:
    {{kind: mqtt, host: "127.0.0.1:{0}, 127.0.0.1:{1}", backoff_min: 0.05, fail_back: {2}}}
routes:
  relay:
    from: {{endpoint: plant, pattern: "src/{{rest...}}"}}
    to: {{endpoint: plant, template: "dst/{{rest...}}"}}
archive: {{path: archive}}
"""


@pytest.fixture
def brokers(start_mosquitto: StartMosquitto) -> tuple[Mosquitto, Mosquitto]:
    return start_mosquitto(), start_mosquitto()


@contextmanager
def running(folder: Path, *values: object) -> Iterator[Gateway]:
    config = folder / "gateway.yaml"
    config.write_text(CONFIG.format(*values))
    gateway = Gateway(load(config))
    gateway.start()
    try:
        yield gateway
    finally:
        gateway.stop(PATIENCE)


def shown(gateway: Gateway) -> dict[tuple[str, str], str]:
    """The connection and its address that the status shows for each side."""
    status = snapshot_json(StatusCache(gateway, "gateway.yaml", 80.0).snapshot())
    ends = status["endpoints"]
    assert isinstance(ends, list)
    return {(each["side"], each["connection"]): each["address"] for each in ends}


def both_at(broker: Mosquitto) -> dict[tuple[str, str], str]:
    address = f"127.0.0.1:{broker.port}"
    return {("source", "connected"): address, ("sink", "connected"): address}


def relays(broker: Mosquitto, payload: bytes) -> None:
    """Publish at the broker, and wait for the copy there."""
    with closing(Client(broker.port, "dst/#")) as client:
        client.publish("src/x", payload).wait_for_publish(PATIENCE)
        client.wait_for(lambda arrived: ("dst/x", payload) in arrived)


class Session:
    """The gateway's session at one broker, and what it has. Mutable."""

    def __init__(self, broker: Mosquitto) -> None:
        settings = MqttSettings(host="127.0.0.1", port=broker.port, client_id="gateway-plant")
        self._source = open_source(settings, [Subscription("src/#")])
        self._source.open()
        self._payloads: list[object] = []

    def payloads(self) -> list[object]:
        batch = self._source.receive(0.0)
        if batch is not None:
            batch.settle([ACCEPTED] * len(batch.messages))
            self._payloads += [each.payload for each in batch.messages]
        return self._payloads

    def close(self) -> None:
        self._source.close()


def test_traffic_goes_on_at_the_next_broker(
    tmp_path: Path, brokers: tuple[Mosquitto, Mosquitto]
) -> None:
    first, second = brokers
    with running(tmp_path, first.port, second.port, "false") as gateway:
        until(lambda: shown(gateway) == both_at(first))
        relays(first, b"1")
        first.kill()
        until(lambda: shown(gateway) == both_at(second))
        relays(second, b"2")

        status = snapshot_json(StatusCache(gateway, "gateway.yaml", 80.0).snapshot())
        lines = "\n".join(map(str, dashboard(status, None, Console(width=160))))
        assert f"127.0.0.1:{second.port}" in lines

    (gap,) = merge_gaps(row for row in archived(tmp_path) if row["leg"] == "gap")
    assert (gap.rule, gap.endpoint, gap.counts) == ("session-lost", "plant", True)


def test_traffic_returns_to_the_first_broker_without_loss(
    tmp_path: Path, brokers: tuple[Mosquitto, Mosquitto], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(addresses, "ASK_INTERVAL", 0.05)
    first, second = brokers
    first.kill()
    with running(tmp_path, first.port, second.port, "true") as gateway:
        until(lambda: shown(gateway) == both_at(second))
        with closing(Client(second.port, "dst/#")) as client:
            sent = [f"{number}".encode() for number in range(2_000)]
            for payload in sent[:1_000]:
                client.publish("src/x", payload)
            first.start()
            with closing(Client(first.port, "dst/#")) as returned:
                for payload in sent[1_000:]:
                    client.publish("src/x", payload)
                client.publish("other", b"").wait_for_publish(PATIENCE)
                until(lambda: shown(gateway) == both_at(first))
                with closing(Session(second)) as left:  # what came later waits there
                    until(lambda: {*got(client, returned), *left.payloads()} == {*sent})
                arrived = got(client, returned)
        relays(first, b"first again")

    rows = archived(tmp_path)
    assert sum(row["leg"] == "received" for row in rows) == len(arrived) + 1
    assert len(set(arrived)) == len(arrived)


def got(*clients: Client) -> list[bytes]:
    return [payload for each in clients for _, payload in each.arrived]
