"""Fixtures with a running ActiveMQ; they skip with the reason when it is not installed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.brokers.activemq import ActiveMq, missing, running


@pytest.fixture
def activemq(tmp_path: Path) -> Iterator[ActiveMq]:
    """Run a broker for one test."""
    if why := missing():
        pytest.skip(why)
    with running(tmp_path) as broker:
        yield broker


@pytest.fixture(scope="module")
def shared_activemq(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ActiveMq]:
    """Run a broker that tests share; each test uses its own names."""
    if why := missing():
        pytest.skip(why)
    with running(tmp_path_factory.mktemp("activemq")) as broker:
        yield broker
