"""Servers that lie about lengths and classes, or break off, and TLS.

`tests/hostile` has those that need neither a real broker nor an end of the process.
"""

from __future__ import annotations

import ssl
import subprocess
import zipfile
from pathlib import Path

import pytest

from gateway.endpoints.jms.connection_factory import open_factory
from gateway.endpoints.jms.jvm import find_jars, open_library
from gateway.endpoints.settings.jms import JmsSettings
from gateway.trial.brokers.activemq import FACTORY, client_jars
from tests.brokers.controlled_activemq import ActiveMq
from tests.brokers.hostile_servers import (
    keep_silent,
    openwire_frame,
    openwire_info,
    openwire_text,
    relaying,
    say,
    serving,
    tls_relaying,
)
from tests.brokers.test_mqtt_tls import make_certificate, openssl
from tests.brokers.victim_process import STORE_PASSWORD, TOLD, Victim, check_refused, victim

__all__ = ["victim"]  # a fixture

pytestmark = pytest.mark.broker

HUGE = b"\x7f\xff\xff\xff"  # as a length or a count
ANSWER_CHECK = "org/apache/activemq/openwire/OpenWireUtil.class"
WHOLE_ANSWERS = 400  # bytes with which a connection may be open; paths of the broker add to them


def test_a_frame_of_two_gigabytes_ends_the_connection_at_once(victim: Victim) -> None:
    with serving(say(openwire_info() + HUGE)) as port:
        found = victim.ask(f"tcp://127.0.0.1:{port}")

    check_refused(
        found,
        "larger than max allowed 127 MB",
        "Disposed due to prior exception",
        "channel has already failed",  # the thread that sends learns it first
    )


@pytest.mark.parametrize("kind", ["java.io.FileOutputStream", "java.io.FileWriter"])
def test_a_server_makes_no_object_of_a_class_that_it_names(
    victim: Victim, tmp_path: Path, kind: str
) -> None:
    """The attack of CVE-2023-46604; these classes create the file of their argument."""
    planted = tmp_path / "planted"
    texts = b"".join(b"\x01" + openwire_text(each) for each in (kind, str(planted)))
    answer = openwire_frame(b"\x1f\0\0\0\x01\0\0\0\0\x01\x01" + texts)  # ExceptionResponse
    with serving(say(openwire_info() + answer)) as port:
        check_refused(victim.ask(f"tcp://127.0.0.1:{port}"))

    assert not planted.exists()


def test_a_library_that_makes_them_is_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    old = tmp_path / "activemq-client-old.jar"
    jars = []
    for jar in find_jars(client_jars()):
        with zipfile.ZipFile(jar) as new:
            if ANSWER_CHECK not in new.namelist():
                jars.append(jar)
                continue
            with zipfile.ZipFile(old, "w") as stripped:
                for name in set(new.namelist()) - {ANSWER_CHECK}:
                    stripped.writestr(name, new.read(name))
            jars.append(str(old))

    for classpath, warned in ((client_jars(), False), (tuple(jars), True)):
        caplog.clear()
        settings = JmsSettings(name="plant", classpath=classpath, factory=FACTORY)
        open_factory(settings, open_library(settings), "tcp://127.0.0.1:1")
        assert ("plant: the ActiveMQ library lets a server run code" in caplog.text) is warned


def test_a_length_before_the_login_ends_the_process_with_code_3() -> None:
    """A library without the check of lengths; its supervisor starts the gateway again."""
    exhausted = Victim()
    with (
        serving(say(openwire_info(HUGE))) as port,
        pytest.raises(AssertionError, match="OutOfMemoryError"),
    ):
        exhausted.ask(f"tcp://127.0.0.1:{port}")

    assert exhausted.code() == 3


@pytest.mark.parametrize("frozen", [False, True], ids=["closes", "freezes"])
@pytest.mark.parametrize(
    "limit", [0, 300, *(pytest.param(n, marks=pytest.mark.nightly) for n in range(20, 700, 20))]
)
def test_a_broker_that_breaks_off_on_connecting_is_never_open(
    activemq: ActiveMq, victim: Victim, limit: int, frozen: bool
) -> None:
    with serving(relaying(activemq.port, limit, frozen=frozen)) as port:
        found = victim.ask(f"tcp://127.0.0.1:{port}")

    for side in ("source", "sink"):
        told = str(found[side]["told"])
        assert told.startswith(TOLD) or (told == "open" and limit > WHOLE_ANSWERS), told


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("certificates")
    make_certificate(folder, "authority", None)
    make_certificate(folder, "broker", "authority", "subjectAltName=DNS:localhost")
    make_certificate(folder, "elsewhere", "authority", "subjectAltName=DNS:other.example")
    make_certificate(folder, "expired", "authority", "subjectAltName=DNS:localhost")
    openssl(
        "x509",
        "-req",
        "-in",
        folder / "expired.csr",
        "-CA",
        folder / "authority.pem",
        "-CAkey",
        folder / "authority.key",
        "-days",
        "-1",
        "-extfile",
        folder / "expired.ext",
        "-out",
        folder / "expired.pem",
    )
    subprocess.run(  # noqa: S603
        [  # noqa: S607
            "keytool",
            "-importcert",
            "-noprompt",
            "-file",
            folder / "authority.pem",
            "-keystore",
            folder / "trusted.p12",
            "-storetype",
            "PKCS12",
            "-storepass",
            STORE_PASSWORD,
        ],
        check=True,
        capture_output=True,
    )
    return folder


def over_tls(victim: Victim, port: int, certificates: Path) -> dict[str, dict[str, object]]:
    return victim.ask(
        f"ssl://localhost:{port}",
        factory="org.apache.activemq.ActiveMQSslConnectionFactory",
        properties=[
            f"trustStore={certificates}/trusted.p12",
            f"trustStorePassword={STORE_PASSWORD}",
        ],
        connect_timeout=5.0,
        answer_timeout=10.0,
    )


def tls_context(certificates: Path, name: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates / f"{name}.pem", certificates / f"{name}.key")
    return context


def test_a_broker_with_a_trusted_certificate_is_used(
    activemq: ActiveMq, victim: Victim, certificates: Path
) -> None:
    with serving(tls_relaying(activemq.port, tls_context(certificates, "broker"))) as port:
        found = over_tls(victim, port, certificates)

    assert [found[side]["told"] for side in ("source", "sink")] == ["open", "open"]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        pytest.param("expired", "validity check failed", id="expired"),
        pytest.param("elsewhere", "No subject alternative DNS name matching", id="wrong-name"),
    ],
)
def test_a_broker_with_another_certificate_is_refused(
    activemq: ActiveMq, victim: Victim, certificates: Path, name: str, reason: str
) -> None:
    with serving(tls_relaying(activemq.port, tls_context(certificates, name))) as port:
        # After the failed handshake, the library may report the closed connection instead.
        check_refused(over_tls(victim, port, certificates), reason, "has closed", "already failed")


def test_tls_older_than_1_2_is_refused(
    activemq: ActiveMq, victim: Victim, certificates: Path
) -> None:
    context = tls_context(certificates, "broker")
    context.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
    with serving(tls_relaying(activemq.port, context)) as port:
        check_refused(over_tls(victim, port, certificates))


@pytest.mark.nightly
def test_tls_and_plain_text_do_not_meet(
    activemq: ActiveMq, victim: Victim, certificates: Path
) -> None:
    check_refused(over_tls(victim, activemq.port, certificates))
    with serving(tls_relaying(activemq.port, tls_context(certificates, "broker"))) as port:
        check_refused(victim.ask(f"tcp://localhost:{port}"))


@pytest.mark.nightly  # it waits for half a minute twice
def test_a_server_that_is_silent_in_the_handshake_is_given_up(
    victim: Victim, certificates: Path
) -> None:
    with serving(keep_silent) as port:
        check_refused(over_tls(victim, port, certificates))
