"""A tap at a mosquitto that keeps its session: what a stop leaves there is not called lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.archive.gaps import SourceGap, merge_gaps
from gateway.config.load import load
from gateway.runtime.gateway import CLOSE_TIMEOUT, Gateway
from tests.archived import archived
from tests.brokers.mosquitto import StartMosquitto
from tests.brokers.running import CONFIG, Client
from tests.waiting import PATIENCE, until

pytestmark = pytest.mark.broker
MESSAGES = 10_000


def tapped(folder: Path, port: int) -> Gateway:
    """Start a gateway between names of one broker, whose tap is connected."""
    text = CONFIG.format(source=port, target=port, archive=folder / "archive")
    observed = text.replace('"dst/{rest...}"', '"dst/{rest...}", observe: "dst/#"')
    (folder / "gateway.yaml").write_text(observed)
    gateway = Gateway(load(folder / "gateway.yaml"))
    gateway.start()
    (tap,) = gateway.taps.values()
    until(lambda: tap.state.connection.value == "connected")
    return gateway


def publish(port: int) -> None:
    """Publish while no gateway runs; the broker keeps all for the tap."""
    publisher = Client(port)
    for sent in [publisher.publish("dst/a", b"%d" % number) for number in range(MESSAGES)]:
        sent.wait_for_publish(PATIENCE)
    publisher.close()


def gaps_of_tap(folder: Path) -> list[SourceGap]:
    """Return the gaps but that before the first connection."""
    rows = (row for row in archived(folder) if row["leg"] == "gap" and row["target"])
    return merge_gaps(rows)[1:]


@pytest.fixture
def port(tmp_path: Path, start_mosquitto: StartMosquitto) -> int:
    """The port of a broker that has messages for the tap of a gateway that ran."""
    broker = start_mosquitto()
    assert tapped(tmp_path, broker.port).stop(PATIENCE)
    publish(broker.port)
    return broker.port


@pytest.mark.nightly
def test_a_stop_records_what_the_broker_has_for_the_tap(tmp_path: Path, port: int) -> None:
    assert tapped(tmp_path, port).stop(PATIENCE)

    observed = [row for row in archived(tmp_path) if row["leg"] == "observed"]
    assert len(observed) == MESSAGES
    assert not any(gap.counts for gap in gaps_of_tap(tmp_path))


def test_a_tap_without_time_has_a_gap_until_it_is_back(tmp_path: Path, port: int) -> None:
    tapped(tmp_path, port).stop(CLOSE_TIMEOUT)
    (gap,) = gaps_of_tap(tmp_path)
    assert gap.counts

    assert tapped(tmp_path, port).stop(PATIENCE)
    assert not any(gap.counts for gap in gaps_of_tap(tmp_path))
