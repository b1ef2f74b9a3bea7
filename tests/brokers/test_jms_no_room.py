"""A JMS sink whose server has no room, and says so: it refuses in place of letting senders wait."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gateway.endpoints.jms import jvm, open_sink
from gateway.model.message import NO_HEADERS, Headers, Message
from gateway.model.outcome import NO_ROOM, Settlement
from gateway.trial.brokers.activemq import missing
from tests.brokers.controlled_activemq import ActiveMq
from tests.brokers.jms_pairs import PERSISTENT
from tests.endpoints.exchange import opened, send

pytestmark = pytest.mark.broker

ROOM = 1 << 20  # bytes
BODY = bytes(ROOM // 16)


@pytest.fixture(scope="module")
def full_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ActiveMq]:
    """Run a broker in the process of the test: a URI sets no `sendFailIfNoSpace`."""
    if why := missing():
        pytest.skip(why)
    broker = ActiveMq(tmp_path_factory.mktemp("full"))
    jvm.start_jvm(())
    library = jvm.load_library(tuple(broker.jars), "auto", "")
    service = library.run(lambda: serve(library, broker.url))
    try:
        yield broker
    finally:
        service.stop()


def serve(library: jvm.JmsLibrary, url: str) -> jvm.Java:
    service = library.find("org.apache.activemq.broker.BrokerService")()
    service.setPersistent(False)
    service.setUseJmx(False)
    service.setUseShutdownHook(False)
    service.getSystemUsage().getMemoryUsage().setLimit(ROOM)
    service.getSystemUsage().setSendFailIfNoSpace(True)
    service.addConnector(jvm.text(url))
    service.start()
    return service


@pytest.mark.parametrize(
    ("headers", "properties"),
    [
        pytest.param(PERSISTENT, (), id="connection-ends"),
        pytest.param(PERSISTENT, ("alwaysSyncSend=true",), id="message-of-a-transaction"),
        pytest.param(NO_HEADERS, ("alwaysSyncSend=true",), id="message"),
    ],
)
def test_a_message_without_room_at_the_server_is_not_suspected_of_breaking_connections(
    full_broker: ActiveMq, headers: Headers, properties: tuple[str, ...]
) -> None:
    """ActiveMQ ends the connection of a sender that does not wait for each answer."""
    sink = open_sink(full_broker.settings(properties=properties))
    answers: list[Settlement] = []
    for _ in range(2):  # the first batch can fill the server
        with opened(sink):
            answers = send(sink, *(Message("queue:full", BODY, headers) for _ in range(32)))

    assert {(each.outcome, each.rule) for each in answers} == {(NO_ROOM.outcome, NO_ROOM.rule)}
    assert "ResourceAllocationException" in answers[0].reason
