"""A JMS sink whose server has no room, and says so: it refuses in place of letting senders wait."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.endpoints.jms import jvm, open_sink
from gateway.model.message import NO_HEADERS, Headers, Message
from gateway.model.outcome import NO_ROOM, Outcome, Settlement
from gateway.trial.brokers.activemq import missing
from tests.brokers.controlled_activemq import ActiveMq
from tests.brokers.jms_pairs import PERSISTENT
from tests.endpoints.exchange import Answer, opened, send
from tests.waiting import until

pytestmark = pytest.mark.broker

ROOM = 1 << 20  # bytes
BODY = bytes(ROOM // 16)


class FullActiveMq(ActiveMq):
    """A broker in the process of the test: a URI sets no `sendFailIfNoSpace`. Mutable."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        jvm.start_jvm(())
        self._library = jvm.load_library(tuple(self.jars), "auto", "")
        self.service = self._library.run(self._serve)

    def _serve(self) -> jvm.Java:
        service = self._library.find("org.apache.activemq.broker.BrokerService")()
        service.setPersistent(False)
        service.setUseJmx(False)
        service.setUseShutdownHook(False)
        service.getSystemUsage().getMemoryUsage().setLimit(ROOM)
        service.getSystemUsage().setSendFailIfNoSpace(True)
        service.addConnector(jvm.text(self.url))
        service.start()
        return service

    def purge(self, queue: str) -> None:
        name = self._library.find("org.apache.activemq.command.ActiveMQQueue")(queue)
        self.service.getDestination(name).purge()


@pytest.fixture(scope="module")
def full_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FullActiveMq]:
    if why := missing():
        pytest.skip(why)
    broker = FullActiveMq(tmp_path_factory.mktemp("full"))
    try:
        yield broker
    finally:
        broker.service.stop()


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


def test_no_message_passes_one_that_had_no_room(full_broker: FullActiveMq) -> None:
    """A consumer makes room while the messages are refused, one after the other."""
    sink = open_sink(full_broker.settings(properties=("alwaysSyncSend=true",), batch=1))
    full = [Message("queue:full", BODY, PERSISTENT)] * 32
    small = [Message("queue:full", b"", PERSISTENT)] * 2_000
    first, second = Answer(), Answer()
    with opened(sink):
        assert send(sink, *full)[-1].rule == NO_ROOM.rule
    with opened(sink):
        before = sink.counts["calls"]
        sink.send(small, first)
        sink.send(small, second)
        until(lambda: sink.counts["calls"] > before)
        full_broker.purge("full")
        answers = [*first.wait(), *second.wait()]

    outcomes = [each.outcome for each in answers]
    assert outcomes == sorted(outcomes, key=[Outcome.ACCEPTED, Outcome.RETRY].index)
