"""TLS, client certificates and tokens with the vendor's library."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("solace", reason="solace-pubsubplus is not installed: gateway[solace]")

from gateway.endpoints.base import Subscription
from gateway.endpoints.settings.base import TlsSettings
from gateway.endpoints.settings.solace import SolaceSettings
from gateway.endpoints.solace import open_sink, open_source
from gateway.errors import EndpointError
from gateway.model.outcome import ACCEPTED
from gateway.trial.brokers.smf import BrokerOptions
from tests.brokers.controlled_smf import SmfBroker
from tests.endpoints.exchange import collect, opened, send
from tests.endpoints.solace.restartable import guaranteed_message

OPENSSL = shutil.which("openssl")
pytestmark = pytest.mark.skipif(OPENSSL is None, reason="needs the openssl command")

Start = Callable[..., SolaceSettings]


def make_certificate(folder: Path, name: str) -> tuple[Path, Path]:
    """Create a self-signed certificate, and return its path and the path of its key."""
    certificate, key = folder / f"{name}.pem", folder / f"{name}.key"
    subprocess.run(  # noqa: S603  # our own arguments
        [
            OPENSSL or "openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
            "-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name}",
            "-keyout", str(key), "-out", str(certificate),
        ],
        check=True,
        capture_output=True,
    )  # fmt: skip
    return certificate, key


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("certificates")
    for name in ("localhost", "client"):
        make_certificate(made, name)
    return made


@pytest.fixture
def start(folder: Path) -> Iterator[Start]:
    with ExitStack() as stack:

        def start_broker(
            options: BrokerOptions | None = None, *, demand: bool = False
        ) -> SolaceSettings:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(folder / "localhost.pem", folder / "localhost.key")
            if demand:
                context.load_verify_locations(folder / "client.pem")
                context.verify_mode = ssl.CERT_REQUIRED
            broker = stack.enter_context(SmfBroker(options=options or BrokerOptions(), tls=context))
            trusted = TlsSettings(ca_file=str(folder / "localhost.pem"))
            url = f"tcps://localhost:{broker.port}"
            return SolaceSettings(url=url, tls=trusted, connect_timeout=5.0)

        yield start_broker


def cross(settings: SolaceSettings) -> None:
    source, sink = open_source(settings, [Subscription("a/>")]), open_sink(settings)
    with opened(source, sink):
        assert (
            send(sink, *(guaranteed_message("a/x", b"x" * 50_000) for _ in range(20)))
            == [ACCEPTED] * 20
        )
        assert len(collect(source, 20)) == 20


def refuse(settings: SolaceSettings, text: str) -> EndpointError:
    with pytest.raises(EndpointError, match=text) as caught:
        open_sink(settings).open()
    return caught.value


def test_messages_cross_with_a_ca_file(start: Start) -> None:
    cross(start())


def test_the_copy_of_a_ca_file_is_removed_or_stays_without_an_error(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def deny(*_: object, **__: object) -> None:
        raise PermissionError("not yours")

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    settings = start()
    cross(settings)
    assert not list(tmp_path.glob("gateway-solace-*"))

    sink = open_sink(settings)
    with monkeypatch.context() as patched:
        sink.open()
        patched.setattr("os.rmdir", deny)
        sink.close()


def test_messages_cross_with_a_trust_store_folder(start: Start, tmp_path: Path) -> None:
    settings = start()
    assert settings.tls is not None
    shutil.copy(str(settings.tls.ca_file), tmp_path / "any-name.pem")

    cross(replace(settings, tls=None, trust_store=str(tmp_path)))


def test_a_certificate_for_another_name_is_refused(start: Start) -> None:
    settings = start()
    other = replace(settings, url=settings.url.replace("localhost", "127.0.0.1"))

    refuse(other, "mismatch|Untrusted")
    cross(replace(other, tls=TlsSettings(verify=False)))


@pytest.mark.parametrize("scheme", ["tcps", "https", "wss"])
def test_the_error_names_a_missing_ca_file(start: Start, scheme: str) -> None:
    settings = replace(start(), tls=TlsSettings(ca_file="/none.pem"))

    refuse(
        replace(settings, url=settings.url.replace("tcps", scheme)), r"tls\.ca_file: .*none\.pem"
    )


def test_a_client_certificate_authenticates_the_client(start: Start, folder: Path) -> None:
    settings = start(BrokerOptions(users={}), demand=True)
    assert settings.tls is not None
    own = replace(
        settings.tls, cert_file=str(folder / "client.pem"), key_file=str(folder / "client.key")
    )

    cross(replace(settings, tls=own))


def test_a_token_is_read_at_every_connection(start: Start, tmp_path: Path) -> None:
    file = tmp_path / "token"
    settings = replace(
        start(BrokerOptions(users={}, tokens=frozenset({"good"}))), token_file=str(file)
    )
    refuse(settings, "token_file: .*No such file")
    file.write_text("bad\n")
    error = refuse(settings, "solace: ")
    assert "bad" not in str(error)
    file.write_text("good\n")

    cross(settings)


def test_another_server_name_is_not_supported(start: Start) -> None:
    settings = start()
    assert settings.tls is not None
    named = replace(settings, tls=replace(settings.tls, server_hostname="elsewhere"))

    refuse(named, "the library expects the name in `url`")
