"""Log-in, factories and addresses of JMS connections."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest

from gateway.endpoints.base import Subscription, address_of
from gateway.endpoints.jms import open_sink, open_source
from gateway.endpoints.jms.connection import connect
from gateway.endpoints.jms.jvm import open_library
from gateway.errors import DriverMissingError, EndpointError, NotConnectedError
from gateway.model.message import Message
from tests.brokers.controlled_activemq import ActiveMq
from tests.brokers.jms_pairs import broker, name, pair
from tests.endpoints.exchange import collect, opened, send

__all__ = ["broker", "name"]  # fixtures

pytestmark = pytest.mark.broker


def test_the_user_name_and_password_are_sent(broker: ActiveMq) -> None:
    settings = broker.settings(username="desk", password="s3cret")  # noqa: S106  # a sample
    connection = connect(settings, open_library(settings), "desk-1")
    try:
        told = connection.connection.getConnectionInfo()

        assert (str(told.getUserName()), str(told.getPassword())) == ("desk", "s3cret")
        assert str(connection.connection.getClientID()) == "desk-1"
    finally:
        connection.close(5)


def test_a_shared_subscription_needs_jms_2(broker: ActiveMq, name: str) -> None:
    source = open_source(broker.settings(shared="workers"), [Subscription(name)])
    with pytest.raises(EndpointError, match=r"needs JMS 2\.0, and this library is older"):
        source.open()


def test_the_error_names_an_unknown_class(broker: ActiveMq) -> None:
    sink = open_sink(broker.settings(factory="com.tibco.tibjms.TibjmsConnectionFactory"))
    with pytest.raises(DriverMissingError, match=r"TibjmsConnectionFactory.*tibjms\.jar"):
        sink.open()


def test_the_error_reports_a_class_path_without_the_interfaces(broker: ActiveMq) -> None:
    jars = broker.settings().classpath
    sink = open_sink(broker.settings(classpath=tuple(j for j in jars if "jms_1.1" not in j)))
    with pytest.raises(DriverMissingError, match=r"javax\.jms or jakarta\.jms"):
        sink.open()


def test_an_unreachable_broker_is_a_temporary_error(broker: ActiveMq) -> None:
    sink = open_sink(broker.settings(urls=("tcp://127.0.0.1:9",)))
    with pytest.raises(NotConnectedError, match="amq: "):
        sink.open()


def test_the_next_server_is_tried_after_a_failure(broker: ActiveMq, name: str) -> None:
    with pair(broker, name, urls=("tcp://127.0.0.1:9", broker.url)) as (source, sink):
        send(sink, Message(name, b"x"))

        assert [m.payload for m in collect(source, 1)] == [b"x"]
        assert address_of(source) == address_of(sink) == urlsplit(broker.url).netloc


def test_the_factory_is_looked_up_in_jndi(broker: ActiveMq, name: str) -> None:
    facts = {
        "jndi_factory": "org.apache.activemq.jndi.ActiveMQInitialContextFactory",
        "jndi_url": broker.url,
        "lookup": "ConnectionFactory",
    }
    with pair(broker, name, **facts) as (source, sink):
        send(sink, Message(name, b"x"))

        assert [m.payload for m in collect(source, 1)] == [b"x"]


def test_properties_are_set_on_the_factory(broker: ActiveMq, name: str) -> None:
    facts = {"properties": ("clientIDPrefix=mine", "closeTimeout=500", "useAsyncSend=true")}
    with pair(broker, name, **facts) as (source, sink):
        send(sink, Message(name, b"x"))
        (got,) = collect(source, 1)

    assert got.payload == b"x"


def test_a_client_id_in_use_is_named_with_the_remedy(broker: ActiveMq, name: str) -> None:
    settings = broker.settings(client_id=name)
    first, second = (open_source(settings, [Subscription(name)]) for _ in range(2))
    with opened(first), pytest.raises(NotConnectedError, match="another client uses this id") as no:
        second.open()

    assert "(`client_id`)" in str(no.value)


@pytest.mark.parametrize(
    ("factory", "text"),
    [
        pytest.param("java.lang.String", "is no connection factory", id="another-class"),
        pytest.param(
            "org.apache.activemq.ActiveMQConnection", "cannot be created", id="no-constructor"
        ),
        pytest.param("org.example.Factory", "check `factory`", id="absent"),
    ],
)
def test_a_wrong_factory_is_named_with_the_remedy(
    broker: ActiveMq, factory: str, text: str
) -> None:
    with pytest.raises(EndpointError, match=text) as caught:
        open_sink(broker.settings(factory=factory)).open()

    assert factory in str(caught.value)
    assert not caught.value.retryable
