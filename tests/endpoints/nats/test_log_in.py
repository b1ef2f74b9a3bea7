"""Log-ins of NATS with a real server: user, token, NKey, JWT, TLS, and what a plain server gets."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.endpoints.base import Subscription
from gateway.endpoints.registry import make_sink, make_source
from gateway.endpoints.settings.base import TlsSettings
from gateway.endpoints.settings.nats import NatsSettings
from gateway.errors import EndpointError, NotConnectedError
from gateway.model.message import DeliveryMode, Headers, Message
from gateway.model.outcome import ACCEPTED, Outcome
from tests.brokers.nats_server import NatsServer, StartNats
from tests.brokers.test_mqtt_tls import make_certificate
from tests.endpoints.exchange import collect, opened, send
from tests.endpoints.nats.credentials import Key, server_lines, write_credentials
from tests.waiting import PATIENCE

Start = Callable[[StartNats, Path], tuple[NatsSettings, NatsSettings]]


def common(url: str) -> NatsSettings:
    return NatsSettings(url=url, stream="T", create_stream=True, subjects=("t.>",))


def by_user(start: StartNats, _: Path) -> tuple[NatsSettings, NatsSettings]:
    plain = common(start("authorization {user: gw, password: right}").url)
    right = replace(plain, username="gw", password="right")  # noqa: S106  # of a test
    return right, replace(right, password="wrong")  # noqa: S106  # of a test


def by_token(start: StartNats, _: Path) -> tuple[NatsSettings, NatsSettings]:
    plain = common(start("authorization {token: right}").url)
    return replace(plain, token="right"), replace(plain, token="wrong")  # noqa: S106  # of a test


def by_nkey(start: StartNats, folder: Path) -> tuple[NatsSettings, NatsSettings]:
    key, other = Key("USER"), Key("USER")
    plain = common(start(f"authorization {{users: [{{nkey: {key.public}}}]}}").url)
    for name, each in (("right", key), ("wrong", other)):
        (folder / name).write_text(each.seed + "\n")
    right, wrong = (replace(plain, nkey_file=str(folder / name)) for name in ("right", "wrong"))
    return right, wrong


def by_jwt(start: StartNats, folder: Path) -> tuple[NatsSettings, NatsSettings]:
    operator, account, stranger = Key("OPERATOR"), Key("ACCOUNT"), Key("ACCOUNT")
    plain = common(start(*server_lines(operator, account)).url)
    write_credentials(folder / "right", account, Key("USER"))
    write_credentials(folder / "wrong", stranger, Key("USER"))
    right, wrong = (
        replace(plain, credentials_file=str(folder / name)) for name in ("right", "wrong")
    )
    return right, wrong


def by_certificate(start: StartNats, folder: Path) -> tuple[NatsSettings, NatsSettings]:
    make_certificate(folder, "authority", None)
    make_certificate(folder, "server", "authority", "subjectAltName=IP:127.0.0.1")
    make_certificate(folder, "client", "authority", "extendedKeyUsage=clientAuth")
    files = f'cert_file: "{folder}/server.pem", key_file: "{folder}/server.key"'
    trusted = f'ca_file: "{folder}/authority.pem", verify: true'
    plain = common(start(f"tls {{{files}, {trusted}}}").url)
    tls = TlsSettings(
        ca_file=str(folder / "authority.pem"),
        cert_file=str(folder / "client.pem"),
        key_file=str(folder / "client.key"),
    )
    return replace(plain, tls=tls), replace(plain, tls=replace(tls, cert_file=None, key_file=None))


LOG_INS = pytest.mark.parametrize(
    "log_in", [by_user, by_token, by_nkey, by_jwt, by_certificate], ids=lambda each: each.__name__
)


@LOG_INS
def test_a_log_in_carries_messages_and_a_wrong_one_does_not(
    start_nats: StartNats, tmp_path: Path, log_in: Start
) -> None:
    right, wrong = log_in(start_nats, tmp_path)
    sink, source = make_sink(right), make_source(right, [Subscription("t.>")])
    with opened(sink, source):
        message = Message("t.x", b"1", Headers(mode=DeliveryMode.AT_LEAST_ONCE))
        assert send(sink, message) == [ACCEPTED]
        assert len(collect(source, 1)) == 1

    with pytest.raises(EndpointError):
        make_sink(wrong).open()


@pytest.mark.parametrize(
    "log_in", [by_user, by_token, by_nkey, by_jwt], ids=lambda each: each.__name__
)
def test_a_wrong_log_in_is_no_outage(start_nats: StartNats, tmp_path: Path, log_in: Start) -> None:
    _, wrong = log_in(start_nats, tmp_path)

    with pytest.raises(EndpointError) as caught:
        make_sink(wrong).open()

    assert not isinstance(caught.value, NotConnectedError)
    assert "wrong" not in str(caught.value)


def test_a_server_that_is_not_trusted_is_refused(start_nats: StartNats, tmp_path: Path) -> None:
    right, _ = by_certificate(start_nats, tmp_path)
    make_certificate(tmp_path, "stranger", None)
    assert right.tls is not None
    wrong = replace(right, tls=replace(right.tls, ca_file=str(tmp_path / "stranger.pem")))

    with pytest.raises(EndpointError, match="certificate verify failed"):
        make_sink(wrong).open()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        pytest.param(None, "No such file or directory", id="absent"),
        pytest.param(b"", "no key of a user", id="empty"),
        pytest.param(b"\xff\xfe", "it is no text", id="no-text"),
        pytest.param(b"SUABC", "no key of a user", id="short"),
        pytest.param(b"-----BEGIN NATS USER JWT-----", "no key of a user", id="begin-alone"),
        pytest.param(
            b"SAANTFXEFKQO7C5ZKYTBZGAX4KZSFHF4UVNWF2L4YMMSHL2DIWQ26DNGWU",
            "no key of a user",
            id="of-an-account",
        ),
    ],
)
@pytest.mark.parametrize("key", ["nkey_file", "credentials_file"])
def test_a_file_without_a_key_is_named(
    nats_server: NatsServer, tmp_path: Path, content: bytes | None, reason: str, key: str
) -> None:
    file = tmp_path / "key"
    if content is not None:
        file.write_bytes(content)
    settings = replace(NatsSettings(url=nats_server.url), **{key: str(file)})  # type: ignore[arg-type]  # of a text

    with pytest.raises(EndpointError, match=f"{file}: .*{reason}; check the file") as caught:
        make_sink(settings).open()
    assert not isinstance(caught.value, NotConnectedError)


@pytest.mark.parametrize(("nkey", "credentials"), [("", None), (None, ""), ("key", "")])
def test_an_empty_name_of_a_file_is_no_log_in_without_it(
    nats_server: NatsServer, nkey: str | None, credentials: str | None
) -> None:
    settings = NatsSettings(url=nats_server.url, nkey_file=nkey, credentials_file=credentials)

    with pytest.raises(EndpointError, match=r": : Is a directory; check the file"):
        make_sink(settings).open()


@pytest.mark.parametrize("says_tls", [False, True], ids=["without-tls", "that-breaks-off"])
def test_a_server_without_tls_never_gets_the_password(says_tls: bool) -> None:
    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(1)
        thread = threading.Thread(target=listen, args=(listening, heard, says_tls), daemon=True)
        thread.start()
        port = listening.getsockname()[1]
        settings = NatsSettings(url=f"tls://127.0.0.1:{port}", username="gw", password="secret")  # noqa: S106  # of a test
        with pytest.raises(EndpointError):
            make_sink(settings).open()
    thread.join(PATIENCE)

    assert b"secret" not in b"".join(heard)
    assert b"CONNECT" not in b"".join(heard)


def listen(listening: socket.socket, heard: list[bytes], says_tls: bool) -> None:
    """Greet each client as a server without TLS does, and note what it sends."""
    info = {"server_id": "x", "version": "2.9.10", "max_payload": 1 << 20, "tls_required": says_tls}
    with suppress(OSError):
        while True:
            client, _ = listening.accept()
            with client, suppress(OSError):
                client.settimeout(1)
                client.sendall(b"INFO " + json.dumps(info).encode() + b"\r\n")
                while data := client.recv(65_536):
                    heard.append(data)


RIGHTS = (
    "authorization {users: [{user: gw, password: right, permissions: {"
    'publish: {deny: ["t.Denied"]}, subscribe: {deny: ["t.secret.>"]}}}]}'
)


@pytest.mark.parametrize("jetstream", [True, False], ids=["jetstream", "core"])
def test_a_subject_without_permission_is_a_refusal(
    start_nats: StartNats, *, jetstream: bool
) -> None:
    url = start_nats(RIGHTS).url
    plain = common(url) if jetstream else NatsSettings(url=url, jetstream=False)
    sink = make_sink(replace(plain, username="gw", password="right"))  # noqa: S106  # of a test
    messages = [
        Message(name, b"1", Headers(mode=plain.mode)) for name in ("t.a", "t.Denied", "t.b")
    ]
    with opened(sink):
        first, denied, last = send(sink, *messages)

    assert (first, last) == (ACCEPTED, ACCEPTED)
    assert (denied.outcome, denied.rule) == (Outcome.REJECTED, "not-authorised")


def test_a_subscription_without_permission_is_a_refusal(start_nats: StartNats) -> None:
    settings = NatsSettings(
        url=start_nats(RIGHTS).url,
        jetstream=False,
        username="gw",
        password="right",  # noqa: S106  # of a test
    )
    source = make_source(settings, [Subscription("t.secret.>")])

    with pytest.raises(EndpointError, match="permissions violation for subscription") as caught:
        source.open()
    assert not isinstance(caught.value, NotConnectedError)


def test_an_api_without_permission_is_a_refusal(start_nats: StartNats) -> None:
    rights = RIGHTS.replace('"t.Denied"', '"$JS.API.CONSUMER.>"')
    settings = replace(
        common(start_nats(rights).url),
        username="gw",
        password="right",  # noqa: S106  # of a test
        answer_timeout=1.0,
    )
    source = make_source(settings, [Subscription("t.>")])

    with pytest.raises(EndpointError, match="permissions violation for publish") as caught:
        source.open()
    assert not isinstance(caught.value, NotConnectedError)


def test_a_sink_that_may_not_hear_the_answers_is_a_refusal(start_nats: StartNats) -> None:
    """The stream would store each message again and again."""
    url = start_nats(RIGHTS.replace("t.secret.>", "_INBOX.>")).url
    sink = make_sink(NatsSettings(url=url, username="gw", password="right"))  # noqa: S106  # of a test

    with pytest.raises(EndpointError, match="permissions violation for subscription") as caught:
        sink.open()
    assert not isinstance(caught.value, NotConnectedError)


def test_a_source_that_may_not_answer_says_so(start_nats: StartNats) -> None:
    url = start_nats(RIGHTS.replace("t.Denied", "$JS.ACK.>")).url
    settings = replace(common(url), username="gw", password="right")  # noqa: S106  # of a test
    source, sink = make_source(settings, [Subscription("t.>")]), make_sink(settings)
    with opened(source, sink):
        send(sink, Message("t.x", b"1", Headers(mode=settings.mode)))
        collect(source, 1)
        with pytest.raises(NotConnectedError, match="permissions violation for publish to"):
            source.receive(PATIENCE)


def test_a_subscription_that_loses_its_permission_is_noticed(start_nats: StartNats) -> None:
    server = start_nats(RIGHTS)
    settings = NatsSettings(url=server.url, jetstream=False, username="gw", password="right")  # noqa: S106  # of a test
    source = make_source(settings, [Subscription("t.x")])
    with opened(source):
        server.reload(("t.secret.>", "t.x"))
        with pytest.raises(NotConnectedError, match="permissions violation for subscription"):
            source.receive(PATIENCE)
        with pytest.raises(EndpointError, match="permissions violation for subscription"):
            source.open()
