"""A log-in at RabbitMQ with a client certificate: EXTERNAL, by AMQP 0-9-1 and by 1.0."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.endpoints.base import Subscription
from gateway.endpoints.registry import make_sink, make_source
from gateway.endpoints.settings.amqp import AmqpSettings
from gateway.endpoints.settings.base import TlsSettings
from gateway.endpoints.settings.rabbitmq import RabbitmqSettings
from gateway.errors import EndpointError
from gateway.model.message import Headers, Message
from gateway.model.outcome import ACCEPTED
from gateway.trial.brokers.listening import free_port
from gateway.trial.brokers.rabbitmq import PROGRAM, RabbitmqNode
from tests.brokers import servers
from tests.brokers.rabbitmq_server import skip_without_rabbitmq
from tests.brokers.test_mqtt_tls import make_certificate
from tests.endpoints.exchange import collect, opened, send
from tests.printed_commands import ROOT, fences

USER = "gateway-of-the-plant"


class Node(RabbitmqNode):
    """A node of the supply `suite` with the plug-in. Mutable."""

    suite = ""

    def command(self, tool: str) -> list[str]:
        return servers.command(tool, self.suite)

    def ctl(self, *arguments: str) -> None:
        answer = self.run("rabbitmqctl", "--node", self.name, *arguments)
        assert not answer.returncode, answer.stdout


@pytest.fixture(
    scope="module",
    params=[RabbitmqSettings, pytest.param(AmqpSettings, marks=pytest.mark.nightly)],
)
def settings(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RabbitmqSettings | AmqpSettings]:
    """Settings for a node that knows one user, whose certificate names it."""
    kind = request.param
    suite = servers.current() if kind is AmqpSettings else servers.supply()
    skip_without_rabbitmq()
    servers.required(PROGRAM, suite)
    folder, port = tmp_path_factory.mktemp("rabbitmq-certificate"), free_port()
    make_certificate(folder, "authority", None)
    make_certificate(folder, "broker", "authority", "subjectAltName=IP:127.0.0.1")
    for name in (USER, "unknown"):
        make_certificate(folder, name, "authority", "extendedKeyUsage=clientAuth")
    node = Node(
        folder,
        [
            f"listeners.ssl.1 = 127.0.0.1:{port}",
            f"ssl_options.cacertfile = {folder}/authority.pem",
            f"ssl_options.certfile = {folder}/broker.pem",
            f"ssl_options.keyfile = {folder}/broker.key",
            *printed_lines(),
        ],
        ["rabbitmq_auth_mechanism_ssl"],
    )
    node.suite = suite
    try:
        node.start()
        node.ctl("await_startup")  # it listens before
        node.ctl("add_user", USER, "no password is used")
        node.ctl("set_permissions", USER, ".*", ".*", ".*")
        yield kind(
            url=f"amqps://127.0.0.1:{port}/", login="certificate", queue="readings",
            tls=certificate(folder, USER),
        )  # fmt: skip
    finally:
        node.kill()


def printed_lines() -> list[str]:
    """Return the lines of `rabbitmq.conf` that the page shows."""
    (block,) = fences("ini", (ROOT / "docs/rabbitmq.md").read_text(encoding="utf-8"))
    return block.splitlines()


def certificate(folder: Path, name: str) -> TlsSettings:
    return TlsSettings(
        ca_file=f"{folder}/authority.pem",
        cert_file=f"{folder}/{name}.pem",
        key_file=f"{folder}/{name}.key",
    )


@pytest.mark.broker
@pytest.mark.nightly
def test_the_user_is_the_one_of_the_certificate(settings: RabbitmqSettings | AmqpSettings) -> None:
    source, sink = make_source(settings, [Subscription("plant.#")]), make_sink(settings)
    with opened(source, sink):
        said = Message("plant.1", b"21.5", Headers(mode=settings.mode))
        assert send(sink, said) == [ACCEPTED]
        assert [each.payload for each in collect(source, 1)] == [b"21.5"]


@pytest.mark.broker
def test_a_certificate_without_a_user_is_refused(settings: RabbitmqSettings | AmqpSettings) -> None:
    assert settings.tls is not None
    folder = Path(str(settings.tls.ca_file)).parent
    sink = make_sink(replace(settings, tls=certificate(folder, "unknown")))

    with pytest.raises(EndpointError, match=r"(?i)refused") as caught:
        sink.open()

    assert not caught.value.retryable


@pytest.mark.parametrize("kind", [RabbitmqSettings, AmqpSettings])
def test_without_a_certificate_it_is_a_finding(
    kind: type[RabbitmqSettings | AmqpSettings],
) -> None:
    (fault,) = kind(login="certificate").faults()

    assert fault.key == "login"
    assert fault.reason == "there is no client certificate"
