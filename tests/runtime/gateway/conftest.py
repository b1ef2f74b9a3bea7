"""The brokers of the tests of a whole gateway, and a working folder for its files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.runtime import pump
from tests.runtime.gateway.running import BrokerClient


@pytest.fixture(autouse=True)
def working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in an empty folder, so that configurations have relative paths."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture(autouse=True)
def quick_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the time that each stop waits for a quiet source."""
    monkeypatch.setattr(pump, "RECEIVE_TIMEOUT", 0.05)


@pytest.fixture
def plant() -> Iterator[BrokerClient]:
    """A client of the broker `plant`, with the naming rules of MQTT."""
    client = BrokerClient("plant", "mqtt")
    yield client
    client.close()


@pytest.fixture
def ems() -> Iterator[BrokerClient]:
    """A client of the broker `ems`, with the naming rules of TIBCO EMS."""
    client = BrokerClient("ems", "ems")
    yield client
    client.close()


@pytest.fixture
def sensors() -> Iterator[BrokerClient]:
    """A client of the broker `sensors`, with the naming rules of YAMI4."""
    client = BrokerClient("sensors", "yami4")
    yield client
    client.close()


@pytest.fixture
def last() -> Iterator[BrokerClient]:
    """A client of the broker `ems2`, with the naming rules of TIBCO EMS."""
    client = BrokerClient("ems2", "ems")
    yield client
    client.close()
