"""Fixtures with a running ActiveMQ; they skip with the reason when it is not installed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gateway.trial.brokers.activemq import QUICK_JAVA, missing
from tests.brokers.controlled_activemq import ActiveMq, running


@pytest.fixture(scope="session")
def session_activemq(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ActiveMq]:
    """Run one broker for all tests of this process, since a start of Java is slow."""
    if why := missing():
        pytest.skip(why)
    with running(tmp_path_factory.mktemp("activemq"), QUICK_JAVA) as broker:
        yield broker


@pytest.fixture
def activemq(session_activemq: ActiveMq) -> Iterator[ActiveMq]:
    """Return the broker of this process, started again if the previous test ended it.

    A test may end or freeze it. Each test uses its own client ids and destinations.
    """
    if not session_activemq.is_running:
        session_activemq.start()
    yield session_activemq
    session_activemq.thaw()
