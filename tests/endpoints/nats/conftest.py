"""The settings of a stream of one server."""

from __future__ import annotations

import pytest

from gateway.endpoints.settings.nats import NatsSettings
from tests.brokers.nats_server import NatsServer


@pytest.fixture
def settings(nats_server: NatsServer) -> NatsSettings:
    return NatsSettings(url=nats_server.url, stream="T", create_stream=True, subjects=("t.>",))
