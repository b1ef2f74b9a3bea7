"""Certificates that do not fit, and a port that nobody listens at: one error for every kind.

The error names the address, the cause, and what to do; it is not only a driver's text.
"""

from __future__ import annotations

import re
import socket
import ssl
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from gateway.endpoints.base import Subscription
from gateway.endpoints.registry import make_sink, make_source
from gateway.endpoints.settings.amqp import AmqpSettings
from gateway.endpoints.settings.base import EndpointSettings, Server
from gateway.endpoints.settings.jms import JmsSettings
from gateway.endpoints.settings.kafka import KafkaSettings
from gateway.endpoints.settings.mqtt import MqttSettings, MqttTlsSettings
from gateway.endpoints.settings.nats import NatsSettings
from gateway.endpoints.settings.rabbitmq import RabbitmqSettings
from gateway.endpoints.settings.solace import SolaceSettings
from gateway.endpoints.settings.yami4 import Yami4Settings
from gateway.endpoints.tls import describe_certificate
from gateway.errors import EndpointError
from gateway.trial.brokers.activemq import FACTORY, client_jars
from gateway.trial.brokers.listening import free_port
from gateway.trial.brokers.yami4 import Yami4Broker
from tests.brokers.controlled_smf import SmfBroker
from tests.brokers.hostile_servers import serving, tls_relaying
from tests.brokers.kafka_server import KafkaServer
from tests.brokers.mosquitto import Mosquitto
from tests.brokers.nats_server import NatsServer
from tests.brokers.rabbitmq_server import Vhost
from tests.brokers.test_mqtt_tls import make_certificate, openssl

pytestmark = pytest.mark.broker
KINDS = ["mqtt", "yami4", "rabbitmq", "amqp", "nats"]  # their TLS is Python's
OF_LIBRARIES = ["solace", "jms", "kafka"]
PASSWORD = "changeit"  # noqa: S105  # of the key stores of Java
SEE_STORES = "; see the certificates of the server and of the endpoint: `trustStore` and `keyStore`"
Make = Callable[[int, MqttTlsSettings | None], EndpointSettings]

MAKE: dict[str, Make] = {
    "mqtt": lambda port, tls: MqttSettings(host="127.0.0.1", port=port, tls=tls),
    "yami4": lambda port, tls: Yami4Settings(
        url=f"tcp{'s' if tls else ''}://127.0.0.1:{port}", tls=tls
    ),
    "rabbitmq": lambda port, tls: RabbitmqSettings(
        url=f"amqp{'s' if tls else ''}://127.0.0.1:{port}/", tls=tls
    ),
    "amqp": lambda port, tls: AmqpSettings(
        url=f"amqp{'s' if tls else ''}://guest:guest@127.0.0.1:{port}/", tls=tls
    ),
    "nats": lambda port, tls: NatsSettings(
        url=f"{'tls' if tls else 'nats'}://127.0.0.1:{port}", tls=tls, jetstream=False
    ),
    "solace": lambda port, tls: SolaceSettings(
        url=f"tcp{'s' if tls else ''}://127.0.0.1:{port}", tls=tls
    ),
    "kafka": lambda port, tls: KafkaSettings(
        bootstrap_servers=(f"127.0.0.1:{port}",), tls=tls, connect_timeout=2
    ),
    "jms": lambda port, tls: JmsSettings(
        urls=(f"{'ssl' if tls else 'tcp'}://127.0.0.1:{port}",),
        classpath=client_jars(),
        factory="org.apache.activemq.ActiveMQSslConnectionFactory" if tls else FACTORY,
        properties=() if tls is None else _stores(tls),
    ),
}


def _stores(tls: MqttTlsSettings) -> tuple[str, ...]:
    """Return the properties of ActiveMQ for the files of these settings."""
    trusted = Path(f"{tls.ca_file}.p12")
    if not trusted.exists():
        options = f"-importcert -noprompt -storetype PKCS12 -storepass {PASSWORD}".split()
        files = ["-file", str(tls.ca_file), "-keystore", str(trusted)]
        subprocess.run(["keytool", *options, *files], check=True, capture_output=True)  # noqa: S603, S607  # our own
    found = [f"trustStore={trusted}", f"trustStorePassword={PASSWORD}"]
    if tls.cert_file is not None:
        own = Path(f"{tls.cert_file}.p12")
        files = ["-in", tls.cert_file, "-inkey", str(tls.key_file), "-out", str(own)]
        openssl("pkcs12", "-export", *files, "-passout", f"pass:{PASSWORD}")
        found += [f"keyStore={own}", f"keyStorePassword={PASSWORD}"]
    return tuple(found)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("certificates")
    make_certificate(found, "authority", None)
    make_certificate(found, "stranger", None)
    make_certificate(found, "broker", "authority", "subjectAltName=IP:127.0.0.1")
    make_certificate(found, "other", "stranger", "extendedKeyUsage=clientAuth")
    return found


@pytest.fixture
def kind(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    if found == "solace":
        pytest.importorskip("solace.messaging")
    if found == "jms":
        request.getfixturevalue("activemq")  # it skips without Java
    return found


@pytest.fixture
def server(request: pytest.FixtureRequest, kind: str, folder: Path) -> Iterator[tuple[int, Make]]:
    """A broker that asks for a client certificate of `authority`."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=folder / "authority.pem")
    context.load_cert_chain(folder / "broker.pem", folder / "broker.key")
    context.verify_mode = ssl.CERT_REQUIRED
    with ExitStack() as stack:
        if kind == "nats":  # it turns to TLS behind its first line
            files = ", ".join(
                f'{key}: "{folder}/{file}"'
                for key, file in (
                    ("cert_file", "broker.pem"),
                    ("key_file", "broker.key"),
                    ("ca_file", "authority.pem"),
                )
            )
            nats: NatsServer = request.getfixturevalue("start_nats")(
                f"tls {{{files}, verify: true}}"
            )
            yield nats.port, MAKE[kind]
            return
        if kind == "mqtt":
            mosquitto: Mosquitto = request.getfixturevalue("mosquitto")
            plain = mosquitto.port
        elif kind == "solace":
            plain = stack.enter_context(SmfBroker()).port
        elif kind == "kafka":
            kafka: KafkaServer = request.getfixturevalue("kafka_server")
            plain = kafka.port
        elif kind == "jms":
            plain = request.getfixturevalue("activemq").port
        elif kind == "yami4":
            plain = int(stack.enter_context(Yami4Broker()).url.rpartition(":")[2])
        else:
            vhost: Vhost = request.getfixturevalue("rabbitmq")
            plain = vhost.server.port
        yield stack.enter_context(serving(tls_relaying(plain, context))), MAKE[kind]


def error_of(settings: EndpointSettings) -> EndpointError:
    """The error of a connection; of the second one, where the end of the first may be chance."""
    sink = make_sink(settings)
    with suppress(EndpointError):
        sink.open()
    with pytest.raises(EndpointError) as caught:
        sink.open()
    sink.close()
    return caught.value


def client(folder: Path, authority: str, name: str = "") -> MqttTlsSettings:
    trusting = MqttTlsSettings(ca_file=f"{folder}/{authority}.pem")
    if not name:
        return trusting
    return replace(trusting, cert_file=f"{folder}/{name}.pem", key_file=f"{folder}/{name}.key")


@pytest.mark.parametrize("kind", [*KINDS, *OF_LIBRARIES], indirect=True)
def test_a_server_of_an_unknown_authority(
    server: tuple[int, Make], folder: Path, kind: str
) -> None:
    port, make = server

    error = error_of(make(port, client(folder, "stranger", "other")))

    text = str(error)
    assert f"127.0.0.1:{port}" in text
    if kind == "jms":
        assert SEE_STORES in text
        return
    assert not error.retryable
    cause = "certificate is not trusted" if kind == "solace" else "TLS: .*certificate verify failed"
    assert re.search(f"127.0.0.1:{port}: .*{cause}", text)
    assert text.endswith(f"; see `tls.ca_file`, which is {folder}/stranger.pem")


@pytest.mark.parametrize("kind", [*KINDS, *OF_LIBRARIES], indirect=True)
@pytest.mark.parametrize("name", ["other", ""], ids=["of-an-unknown-authority", "absent"])
def test_a_client_certificate_that_the_server_refuses(
    server: tuple[int, Make], folder: Path, kind: str, name: str
) -> None:
    port, make = server

    text = str(error_of(make(port, client(folder, "authority", name))))

    assert f"127.0.0.1:{port}" in text
    if kind == "jms":
        assert SEE_STORES in text
        return
    assert f"127.0.0.1:{port}: TLS: " in text
    if name:
        assert text.endswith(f"may refuse our certificate, `tls.cert_file`: {folder}/{name}.pem")
    else:
        assert text.endswith("a client certificate: write `tls.cert_file` and `key_file`")


@pytest.mark.parametrize("kind", [*KINDS, *OF_LIBRARIES], indirect=True)
def test_a_port_that_nobody_listens_at(kind: str) -> None:
    port = free_port()
    source = make_source(MAKE[kind](port, None), [Subscription("a")])
    with pytest.raises(EndpointError) as caught:
        source.open()
    source.close()

    assert re.search(f"127.0.0.1:{port}.*[Cc]onnection refused", str(caught.value))


@pytest.mark.parametrize("kind", KINDS, indirect=True)
def test_the_certificate_of_a_server_is_described(server: tuple[int, Make], folder: Path) -> None:
    port, make = server
    settings = make(port, client(folder, "authority"))

    text = describe_certificate(settings, Server("127.0.0.1", port, is_encrypted=True))

    assert re.fullmatch(
        r"TLSv1\.[23], certificate commonName=broker, by commonName=authority, until \w+ .* GMT",
        text,
    )

    settings = make(port, replace(client(folder, "authority"), verify=False))
    text = describe_certificate(settings, Server("127.0.0.1", port, is_encrypted=True))
    whole = ssl.PEM_cert_to_DER_cert((folder / "broker.pem").read_text())

    assert text.endswith(f", certificate not verified, SHA-256 {sha256(whole).hexdigest()}")


@pytest.mark.parametrize("kind", KINDS)
def test_an_end_at_the_handshake_is_no_refusal_for_good(kind: str, folder: Path) -> None:
    """A server that starts, or ends, does so."""

    def hang_up(connection: socket.socket) -> None:
        if kind == "nats":
            connection.sendall(b'INFO {"tls_required":true,"max_payload":1000}\r\n')
        connection.recv(1)

    with serving(hang_up) as port:
        sink = make_sink(MAKE[kind](port, client(folder, "authority")))
        with pytest.raises(EndpointError) as caught:
            sink.open()
        sink.close()

    assert caught.value.retryable
