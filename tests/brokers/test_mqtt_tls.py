"""MQTT over TLS with a real mosquitto, with and without a client certificate."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.endpoints.base import Subscription
from gateway.endpoints.registry import make_sink, make_source
from gateway.endpoints.settings.mqtt import MqttSettings, MqttTlsSettings
from gateway.errors import EndpointError
from gateway.model.message import DeliveryMode, Headers, Message
from gateway.model.outcome import ACCEPTED
from tests.brokers.mosquitto import Mosquitto, StartMosquitto
from tests.endpoints.exchange import Answer, collect, opened, send

pytestmark = pytest.mark.broker

ONCE = Headers(mode=DeliveryMode.AT_LEAST_ONCE)
VERSIONS = pytest.mark.parametrize("version", ["3.1.1", "5"])


def openssl(*arguments: str | Path) -> None:
    subprocess.run(  # noqa: S603
        ["openssl", *map(str, arguments)],  # noqa: S607
        check=True,
        capture_output=True,
    )


def make_certificate(folder: Path, name: str, authority: str | None, *extra: str) -> None:
    """`name`.pem and `name`.key, signed by `authority` or by itself."""
    signed = (
        ("-CA", folder / f"{authority}.pem", "-CAkey", folder / f"{authority}.key")
        if authority
        else ()
    )
    request = folder / f"{name}.csr"
    subject = ("-subj", f"/CN={name}", "-nodes", "-keyout", folder / f"{name}.key")
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1")
    if not signed:
        openssl("req", "-x509", *key, *subject, "-days", "2", "-out", folder / f"{name}.pem")
        return
    openssl("req", *key, *subject, "-out", request)
    extensions = folder / f"{name}.ext"
    extensions.write_text("\n".join(extra))
    openssl(
        "x509", "-req", "-in", request, *signed, "-CAcreateserial", "-days", "2",
        "-extfile", extensions, "-out", folder / f"{name}.pem",
    )  # fmt: skip


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("certificates")
    make_certificate(folder, "authority", None)
    make_certificate(folder, "stranger", None)
    make_certificate(folder, "broker", "authority", "subjectAltName=IP:127.0.0.1,DNS:broker.test")
    make_certificate(folder, "client", "authority", "extendedKeyUsage=clientAuth")
    openssl(
        "ec", "-in", folder / "client.key", "-aes128", "-passout", "pass:open sesame",
        "-out", folder / "locked.key",
    )  # fmt: skip
    return folder


def serve(start: StartMosquitto, folder: Path, *lines: str) -> Mosquitto:
    return start(
        "allow_anonymous true",
        f"cafile {folder}/authority.pem",
        f"certfile {folder}/broker.pem",
        f"keyfile {folder}/broker.key",
        *lines,
    )


def mqtt(broker: Mosquitto, tls: MqttTlsSettings) -> MqttSettings:
    return MqttSettings(name="m", host="127.0.0.1", port=broker.port, tls=tls)


def cross(settings: MqttSettings) -> None:
    """Send several megabytes and receive them."""
    source, sink = make_source(settings, [Subscription("t")]), make_sink(settings)
    messages = [Message("t", bytes([i]) * 40_000, ONCE) for i in range(100)]
    with opened(source, sink):
        answer = Answer()
        sink.send(messages, answer)

        assert collect(source, 100) == messages
        assert answer.wait() == [ACCEPTED] * 100


@VERSIONS
def test_large_messages_arrive_over_tls(
    start_mosquitto: StartMosquitto, certificates: Path, version: str
) -> None:
    broker = serve(start_mosquitto, certificates)
    tls = MqttTlsSettings(ca_file=str(certificates / "authority.pem"))

    cross(replace(mqtt(broker, tls), version=version))


def test_small_messages_arrive_over_tls_in_order(
    start_mosquitto: StartMosquitto, certificates: Path
) -> None:
    broker = serve(start_mosquitto, certificates)
    settings = mqtt(broker, MqttTlsSettings(ca_file=str(certificates / "authority.pem")))
    source, sink = make_source(settings, [Subscription("t")]), make_sink(settings)
    messages = [Message("t", str(i).encode(), ONCE) for i in range(5_000)]
    with opened(source, sink):
        for start in range(0, 5_000, 500):
            assert send(sink, *messages[start : start + 500]) == [ACCEPTED] * 500

        assert collect(source, 5_000) == messages


def test_a_broker_of_an_unknown_authority_is_a_permanent_error(
    start_mosquitto: StartMosquitto, certificates: Path
) -> None:
    broker = serve(start_mosquitto, certificates)
    tls = MqttTlsSettings(ca_file=str(certificates / "stranger.pem"))

    with pytest.raises(EndpointError, match="certificate verify failed") as caught:
        make_sink(mqtt(broker, tls)).open()
    assert not caught.value.retryable


def test_a_broker_of_another_name_is_a_permanent_error(
    start_mosquitto: StartMosquitto, certificates: Path
) -> None:
    broker = serve(start_mosquitto, certificates)
    tls = MqttTlsSettings(
        ca_file=str(certificates / "authority.pem"), server_hostname="elsewhere.test"
    )

    with pytest.raises(EndpointError, match="elsewhere") as caught:
        make_sink(mqtt(broker, tls)).open()
    assert not caught.value.retryable
    with opened(make_sink(mqtt(broker, replace(tls, server_hostname="broker.test")))):
        pass
    with opened(make_sink(mqtt(broker, replace(tls, verify=False)))):
        pass


@pytest.mark.parametrize("key", ["client.key", "locked.key"])
def test_mutual_tls(start_mosquitto: StartMosquitto, certificates: Path, key: str) -> None:
    broker = serve(
        start_mosquitto, certificates, "require_certificate true", "use_identity_as_username true"
    )
    bare = MqttTlsSettings(ca_file=str(certificates / "authority.pem"))
    ours = replace(
        bare,
        cert_file=str(certificates / "client.pem"),
        key_file=str(certificates / key),
        key_password="open sesame" if key == "locked.key" else None,
    )

    cross(mqtt(broker, ours))
    with pytest.raises(EndpointError, match=r"write `tls\.cert_file`") as caught:
        make_sink(mqtt(broker, bare)).open()
    assert not caught.value.retryable


def test_a_missing_or_locked_file_is_named(tmp_path: Path, certificates: Path) -> None:
    absent = MqttTlsSettings(ca_file=str(tmp_path / "absent.pem"))
    locked = MqttTlsSettings(
        cert_file=str(certificates / "client.pem"),
        key_file=str(certificates / "locked.key"),
        key_password="not it",  # noqa: S106
    )
    for tls, name in ((absent, "absent.pem"), (locked, "locked.key")):
        with pytest.raises(EndpointError, match=name) as caught:
            make_sink(MqttSettings(tls=tls)).open()
        assert not caught.value.retryable
