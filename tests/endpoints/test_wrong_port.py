"""TLS against a port without it, and the reverse: the error names the fault and the remedy."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.endpoints.base import Subscription
from gateway.endpoints.registry import make_source
from gateway.endpoints.settings.amqp import AmqpSettings
from gateway.endpoints.settings.base import EndpointSettings
from gateway.endpoints.settings.kafka import KafkaSettings
from gateway.endpoints.settings.mqtt import MqttSettings, MqttTlsSettings
from gateway.endpoints.settings.nats import NatsSettings
from gateway.endpoints.settings.rabbitmq import RabbitmqSettings
from gateway.endpoints.settings.solace import SolaceSettings
from gateway.endpoints.settings.yami4 import Yami4Settings
from gateway.endpoints.tls import EXPECTS_TLS, WITHOUT_TLS, encryption_hint
from gateway.errors import EndpointError
from gateway.trial.brokers.yami4 import Yami4Broker
from tests.brokers.controlled_activemq import ActiveMq
from tests.brokers.controlled_smf import SmfBroker
from tests.brokers.hostile_servers import serving, tls_relaying
from tests.brokers.kafka_server import KafkaServer
from tests.brokers.mosquitto import Mosquitto
from tests.brokers.nats_server import NatsServer
from tests.brokers.rabbitmq_server import Vhost
from tests.brokers.test_mqtt_tls import make_certificate

pytestmark = pytest.mark.broker
Make = Callable[[int, bool], EndpointSettings]
KINDS = ["mqtt", "solace", "yami4", "jms", "rabbitmq", "amqp", "nats", "kafka"]


@pytest.fixture
def ports(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[int, int, Make]]:
    """Yield a broker's plain port, its port with TLS, and a maker of settings for a port."""
    make_certificate(tmp_path, "localhost", None)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "localhost.pem", tmp_path / "localhost.key")
    with ExitStack() as stack:
        port, make = start(request, stack)
        if request.param == "nats":  # it turns to TLS behind its first line
            files = f'cert_file: "{tmp_path}/localhost.pem", key_file: "{tmp_path}/localhost.key"'
            encrypted: NatsServer = request.getfixturevalue("start_nats")(f"tls {{{files}}}")
            yield port, encrypted.port, make
        else:
            yield port, stack.enter_context(serving(tls_relaying(port, context))), make


def start(  # noqa: PLR0911  # one kind each
    request: pytest.FixtureRequest, stack: ExitStack
) -> tuple[int, Make]:
    kind, trusting = request.param, MqttTlsSettings(verify=False)
    if kind == "mqtt":
        broker: Mosquitto = request.getfixturevalue("mosquitto")
        plain = MqttSettings(host="127.0.0.1")
        return broker.port, lambda port, tls: replace(
            plain, port=port, tls=trusting if tls else None
        )
    if kind == "solace":
        pytest.importorskip("solace.messaging")
        smf = stack.enter_context(SmfBroker())
        return smf.port, lambda port, tls: SolaceSettings(
            url=f"{'tcps' if tls else 'tcp'}://127.0.0.1:{port}", tls=trusting
        )
    if kind == "yami4":
        yami4 = stack.enter_context(Yami4Broker())
        return int(yami4.url.rpartition(":")[2]), lambda port, tls: Yami4Settings(
            url=f"{'tcps' if tls else 'tcp'}://127.0.0.1:{port}", tls=trusting
        )
    if kind == "nats":
        nats: NatsServer = request.getfixturevalue("nats_server")
        return nats.port, lambda port, tls: NatsSettings(
            url=f"{'tls' if tls else 'nats'}://127.0.0.1:{port}", tls=trusting if tls else None
        )
    if kind == "kafka":
        kafka: KafkaServer = request.getfixturevalue("kafka_server")
        return kafka.port, lambda port, tls: KafkaSettings(
            bootstrap_servers=(f"127.0.0.1:{port}",), tls=trusting if tls else None
        )
    if kind == "amqp":
        of_4: Vhost = request.getfixturevalue("rabbitmq_4")
        return of_4.server.port, lambda port, tls: AmqpSettings(
            url=f"amqp{'s' if tls else ''}://guest:guest@127.0.0.1:{port}/",
            tls=trusting if tls else None,
        )
    if kind == "rabbitmq":
        vhost: Vhost = request.getfixturevalue("rabbitmq")
        port = vhost.server.port
        return port, lambda port, tls: RabbitmqSettings(
            url=f"{'amqps' if tls else 'amqp'}://guest:guest@127.0.0.1:{port}/{vhost.name}",
            tls=trusting if tls else None,
        )
    activemq: ActiveMq = request.getfixturevalue("activemq")
    return activemq.port, lambda port, tls: activemq.settings(
        urls=(f"{'ssl' if tls else 'tcp'}://127.0.0.1:{port}",)
    )


def test_a_host_that_no_name_server_can_know_gives_no_hint() -> None:
    assert encryption_hint(Yami4Settings(url="tcp://a..b:61616")) == ""


@pytest.mark.parametrize("ports", KINDS, indirect=True)
def test_an_error_says_which_port_speaks_tls(ports: tuple[int, int, Make]) -> None:
    plain, encrypted, make = ports
    for settings, text in [
        (make(plain, True), WITHOUT_TLS),
        (make(encrypted, False), EXPECTS_TLS),
    ]:
        source = make_source(settings, [Subscription("a")])
        with suppress(EndpointError):
            source.open()  # its end may be an accident
        with pytest.raises(EndpointError) as caught:
            source.open()
        source.close()

        assert text in str(caught.value)
