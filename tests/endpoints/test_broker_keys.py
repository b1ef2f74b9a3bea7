"""One broker has one key, however its address is written: cycles and echoes are known by it."""

from __future__ import annotations

import pytest

from gateway.endpoints.settings.base import EndpointSettings
from gateway.endpoints.settings.jms import JmsSettings
from gateway.endpoints.settings.kafka import KafkaSettings
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
        KafkaSettings(bootstrap_servers=("A", "b:9092")),
        KafkaSettings(bootstrap_servers=("B", "a:9092")),
        id="kafka",
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


SERVERS = [
    pytest.param(MqttSettings(host="A,b:1"), ("mqtt://a:1883", "mqtt://b:1"), id="mqtt"),
    pytest.param(
        NatsSettings(url="nats://A,tls://b"), ("nats://a:4222", "nats://b:4222"), id="nats"
    ),
    pytest.param(
        RabbitmqSettings(url="amqp://u:p@A/x,amqp://b/x"),
        ("amqp://a:5672/x", "amqp://b:5672/x"),
        id="rabbitmq",
    ),
    pytest.param(
        KafkaSettings(bootstrap_servers=("A", "[::1]:1")),
        ("kafka://a:9092", "kafka://[::1]:1"),
        id="kafka",
    ),
    pytest.param(
        SolaceSettings(url="A,b", vpn="v"), ("tcp://a:55555/v", "tcp://b:55555/v"), id="solace"
    ),
    pytest.param(Yami4Settings(url="tcp://a:1"), ("tcp://a:1",), id="yami4"),
    pytest.param(
        JmsSettings(urls=("failover:(tcp://A:1,tcp://b:2)",)), ("jms://a:1", "jms://b:2"), id="jms"
    ),
    pytest.param(JmsSettings(properties=("hostName=a",)), ("hostname=a",), id="jms-properties"),
]


@pytest.mark.parametrize(("settings", "expected"), SERVERS)
def test_each_server_has_a_key(settings: EndpointSettings, expected: tuple[str, ...]) -> None:
    assert settings.broker_keys == expected


DURABLE = [
    pytest.param(MqttSettings(), "", id="mqtt"),
    pytest.param(NatsSettings(name="bus").for_gateway("g", "bus"), "g-bus-r", id="nats"),
    pytest.param(NatsSettings(jetstream=False).for_gateway("g", "bus"), "", id="core-nats"),
    pytest.param(RabbitmqSettings(name="work").for_gateway("g", "work"), "g-work", id="rabbitmq"),
    pytest.param(KafkaSettings(name="lake").for_gateway("g", "lake"), "g-lake-r", id="kafka"),
    pytest.param(SolaceSettings(name="core"), "gateway/core/r", id="solace"),
    pytest.param(NatsSettings(name="new").for_gateway("g", "old"), "g-old-r", id="was-nats"),
    pytest.param(RabbitmqSettings(name="new").for_gateway("g", "old"), "g-old", id="was-rabbitmq"),
    pytest.param(SolaceSettings(name="new").for_gateway("g", "old"), "gateway/old/r", id="was-smf"),
    pytest.param(SolaceSettings(queue="q/{instance}"), "q/r", id="solace-queue"),
    pytest.param(SolaceSettings(guaranteed=False), "", id="solace-direct"),
]


@pytest.mark.parametrize(("settings", "expected"), DURABLE)
def test_a_source_says_the_durable_queue_or_consumer_that_it_reads(
    settings: EndpointSettings, expected: str
) -> None:
    assert settings.durable_name("r") == expected


def test_the_readers_of_a_queue_group_of_core_nats_divide_the_messages() -> None:
    assert NatsSettings(jetstream=False, queue_group="g").group("a.>") == "g"
    assert not NatsSettings(queue_group="g").group("a.>")
