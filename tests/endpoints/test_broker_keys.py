"""One broker has one key, however its address is written: cycles and echoes are known by it."""

from __future__ import annotations

import pytest

from gateway.endpoints.settings.base import EndpointSettings
from gateway.endpoints.settings.jms import JmsSettings
from gateway.endpoints.settings.mqtt import MqttSettings
from gateway.endpoints.settings.nats import NatsSettings
from gateway.endpoints.settings.rabbitmq import RabbitmqSettings
from gateway.endpoints.settings.solace import SolaceSettings
from gateway.endpoints.settings.yami4 import Yami4Settings

ONE = [
    pytest.param(MqttSettings(host="Plant"), MqttSettings(host="plant:1883"), id="mqtt"),
    pytest.param(
        NatsSettings(url="nats://A, nats://b:4222"), NatsSettings(url="tls://b,tls://a"), id="nats"
    ),
    pytest.param(
        RabbitmqSettings(url="amqp://u:p@Plant/"), RabbitmqSettings(url="amqp://plant:5672"),
        id="rabbitmq",
    ),
    pytest.param(
        SolaceSettings(url="Plant"), SolaceSettings(url="tcp://plant:55555"), id="solace"
    ),
    pytest.param(
        Yami4Settings(url="tcp://Plant:1"), Yami4Settings(url="tcp://plant:1"), id="yami4"
    ),
    pytest.param(
        JmsSettings(properties=(" hostName = a ", "port= 1")),
        JmsSettings(properties=("port=1", "hostName=a")),
        id="jms-properties",
    ),
]  # fmt: skip
TWO = [
    pytest.param(MqttSettings(host="a"), MqttSettings(host="a", port=1), id="mqtt"),
    pytest.param(NatsSettings(url="nats://a"), NatsSettings(url="nats://a:1"), id="nats"),
    pytest.param(
        RabbitmqSettings(url="amqp://a/x"), RabbitmqSettings(url="amqp://a/X"), id="rabbitmq-vhost"
    ),
    pytest.param(SolaceSettings(vpn="a"), SolaceSettings(vpn="b"), id="solace-vpn"),
    pytest.param(
        Yami4Settings(url="unix:///A"), Yami4Settings(url="unix:///a"), id="yami4-socket"
    ),
    pytest.param(
        JmsSettings(urls=("mq://x",), properties=("hostName = a",)),
        JmsSettings(urls=("mq://x",), properties=("hostName = b",)),
        id="jms-properties",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("one", "other"), ONE)
def test_the_spelling_of_an_address_makes_no_second_broker(
    one: EndpointSettings, other: EndpointSettings
) -> None:
    assert one.broker_key == other.broker_key


@pytest.mark.parametrize(("one", "other"), TWO)
def test_ports_vhosts_and_vpns_make_another_broker(
    one: EndpointSettings, other: EndpointSettings
) -> None:
    assert one.broker_key != other.broker_key
