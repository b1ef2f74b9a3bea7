"""A planned stop over a broker that keeps nothing delivers what was received."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator

import pytest

from gateway.endpoints.base import Source, Subscription
from gateway.endpoints.registry import make_sink, make_source
from gateway.endpoints.settings.memory import MemorySettings
from gateway.endpoints.settings.yami4 import Yami4Settings
from gateway.model.message import DeliveryMode, Headers, Message
from gateway.runtime.gateway import Gateway
from gateway.runtime.status import take_status
from gateway.trial.brokers.listening import free_port
from gateway.trial.brokers.yami4 import Yami4Broker, Yami4BrokerOptions
from tests.endpoints.exchange import collect, send
from tests.runtime.gateway.running import configured, wait_until_connected
from tests.systems import SYSTEMS
from tests.waiting import PATIENCE, until

pytestmark = pytest.mark.usefixtures("journals_stay")

COUNT = 5_000  # more than one batch
CONFIRMED = Headers(mode=DeliveryMode.AT_LEAST_ONCE)
YAML = """\
gateway: {name: test}
endpoints:
  sensors: {kind: yami4, url: "tcp://127.0.0.1:PORT"}
  slow: {kind: memory, dialect: ems, broker: slow}
archive: {path: archive}
routes:
  relay:
    from: {endpoint: sensors, pattern: "a.{rest...}"}
    to: {endpoint: slow, template: "a.{rest...}"}
"""


@pytest.fixture
def reader() -> Iterator[Source]:
    """A subscriber whose queue is full with one message, so that the target waits for it."""
    settings = MemorySettings(name="reader", dialect="ems", broker="slow", capacity=1)
    source = make_source(settings, [Subscription(SYSTEMS["ems"].everything)])
    source.open()
    yield source
    source.close()


@pytest.fixture
def busy_gateway(reader: Source) -> Iterator[Gateway]:  # noqa: ARG001  # its queue is there first
    """A gateway whose target waits for the reader, and whose source was sent COUNT messages."""
    url = f"tcp://127.0.0.1:{(port := free_port())}"
    with Yami4Broker(url, Yami4BrokerOptions(max_client_queue=COUNT)):
        gateway = Gateway(configured(YAML.replace("PORT", str(port))))
        gateway.start()
        wait_until_connected(gateway)
        publisher = make_sink(Yami4Settings(name="publisher", url=url))
        publisher.open()
        send(publisher, *(Message("a.b", b"x", CONFIRMED) for _ in range(COUNT)))
        until(lambda: gateway.pumps["sensors"].state.messages > 0)
        yield gateway
        gateway.stop(0)
        publisher.close()


def test_a_stop_relays_what_was_received(busy_gateway: Gateway, reader: Source) -> None:
    stop = threading.Thread(target=busy_gateway.stop, args=(PATIENCE,))
    stop.start()

    assert len(collect(reader, COUNT)) == COUNT
    stop.join(PATIENCE)


def test_the_status_names_the_gap_with_its_seconds(busy_gateway: Gateway, reader: Source) -> None:
    stop = threading.Thread(target=busy_gateway.stop, args=(PATIENCE,))
    stop.start()
    collect(reader, COUNT)
    stop.join(PATIENCE)
    after = Gateway(busy_gateway.configuration)
    after.start()
    try:
        wait_until_connected(after)
        (source,) = [each for each in take_status(after).endpoints if each.side == "source"]
    finally:
        after.stop(0)

    assert re.fullmatch(r"last gap: (?:at most )?\d+\.\d s until \S+Z, not-running", source.gap)
