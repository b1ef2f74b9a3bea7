"""Names of destinations as other JMS libraries give them, read by the Java side of the endpoint."""

from __future__ import annotations

import jpype
import pytest

from gateway.endpoints.jms.jvm import JmsLibrary, open_library
from tests.brokers.controlled_activemq import ActiveMq
from tests.brokers.jms_pairs import broker

__all__ = ["broker"]  # a fixture

pytestmark = pytest.mark.broker

NAMES = [
    pytest.param("Queue", "A.B", "A.B", id="name"),
    pytest.param("Queue", "queue:///A.B", "A.B", id="uri"),
    pytest.param("Queue", "queue:///A?targetClient=1", "A", id="uri-with-properties"),
    pytest.param("Queue", "queue://QM1/A", "queue://QM1/A", id="queue-of-another-manager"),
    pytest.param("Topic", "topic://a/b", "a/b", id="topic"),
    pytest.param("Topic", "topic://a/b?brokerVersion=1", "a/b", id="topic-with-properties"),
]


@pytest.mark.parametrize(("kind", "text", "name"), NAMES)
def test_a_uri_of_ibm_mq_is_read_as_a_name(
    broker: ActiveMq, kind: str, text: str, name: str
) -> None:
    """IBM's MQQueue and MQTopic give URIs; createQueue takes the plain name."""
    library: JmsLibrary = open_library(broker.settings())
    methods = {f"get{kind}Name": lambda: text, "toString": lambda: text}
    destination = jpype.JProxy(library.find(f"javax.jms.{kind}"), dict=methods)

    assert library.find("gateway.jms.BatchPacker").name(destination) == name
