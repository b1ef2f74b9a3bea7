"""A sink and a source at one destination of ActiveMQ, and a plain session beside them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

import pytest

from gateway.endpoints.base import Subscription
from gateway.endpoints.jms import JmsSink, JmsSource, jvm, open_sink, open_source
from gateway.endpoints.jms.connection import connect
from gateway.endpoints.jms.jvm import open_library
from gateway.model.message import DeliveryMode, Headers
from tests.brokers.controlled_activemq import ActiveMq
from tests.endpoints.exchange import opened

MEGABYTE = 1_048_576
NOW = time.time_ns() // 1_000_000 * 1_000
PERSISTENT = Headers(mode=DeliveryMode.AT_LEAST_ONCE)
_numbers = count()


@pytest.fixture
def broker(activemq: ActiveMq) -> ActiveMq:
    return activemq


@pytest.fixture
def name() -> str:
    return f"test{next(_numbers)}"


@contextmanager
def pair(
    broker: ActiveMq, *patterns: str, **changes: object
) -> Iterator[tuple[JmsSource, JmsSink]]:
    settings = broker.settings(**changes)
    source = open_source(settings, [Subscription(pattern) for pattern in patterns])
    sink = open_sink(settings)
    with opened(source, sink):
        yield source, sink


@contextmanager
def plain_session(broker: ActiveMq) -> Iterator[tuple[jvm.Java, jvm.JmsLibrary]]:
    """Open a session as another JMS program does."""
    settings = broker.settings()
    library = open_library(settings)
    connection = connect(settings, library, "")
    connection.connection.start()
    try:
        yield connection.connection.createSession(False, 1), library
    finally:
        connection.close(5)
