"""Settings, subscriptions, class files and what an installation lacks; no broker is needed."""

from __future__ import annotations

import shutil
import subprocess
import sys
import textwrap
import zipfile
from dataclasses import replace
from pathlib import Path

import jpype
import pytest

from gateway.endpoints.base import Subscription
from gateway.endpoints.jms import build, open_source
from gateway.endpoints.jms.jakarta import rewrite_class, rewrite_jar
from gateway.endpoints.jms.jvm import find_jars, start_jvm
from gateway.endpoints.jms.provider import SSL, ems_tls, read_pairs, server_urls
from gateway.endpoints.jms.subscriptions import read_subscriptions
from gateway.endpoints.settings.base import TlsSettings
from gateway.endpoints.settings.jms import JmsSettings
from gateway.errors import DriverMissingError, EndpointError, WireError
from gateway.model.message import DeliveryMode

EMS = JmsSettings(name="ems")


@pytest.mark.parametrize(
    ("urls", "factory", "expected"),
    [
        pytest.param(
            ("tcp://a:7222",), EMS.factory, ("tcp://a:7222,tcp://a:7222",), id="one-stands-twice"
        ),
        pytest.param(
            ("tcp://a:1", "tcp://b:1"), EMS.factory, ("tcp://a:1,tcp://b:1",), id="a-pair-is-one"
        ),
        pytest.param(("tcp://a:1,tcp://b:1",), EMS.factory, ("tcp://a:1,tcp://b:1",), id="joined"),
        pytest.param(("tcp://a:1", "tcp://b:1"), "x.Y", ("tcp://a:1", "tcp://b:1"), id="in-turn"),
    ],
)
def test_ems_takes_its_servers_in_one_text(
    urls: tuple[str, ...], factory: str, expected: tuple[str, ...]
) -> None:
    assert server_urls(replace(EMS, urls=urls, factory=factory)) == expected


def test_tls_becomes_the_keys_of_ems() -> None:
    tls = TlsSettings(ca_file="ca.pem", cert_file="me.pem", key_file="key.pem", verify=False)

    assert ems_tls(tls) == {
        f"{SSL}enable_verify_host": "false",
        f"{SSL}enable_verify_hostname": "false",
        f"{SSL}trusted_certs": "ca.pem",
        f"{SSL}identity": "me.pem",
        f"{SSL}private_key": "key.pem",
    }


def test_a_property_is_a_pair() -> None:
    assert read_pairs(replace(EMS, properties=("port = 1414", "a=b=c"))) == {
        "port": "1414",
        "a": "b=c",
    }
    with pytest.raises(EndpointError, match="name=value"):
        read_pairs(replace(EMS, properties=("port",)))


@pytest.mark.parametrize(
    ("patterns", "changes", "text"),
    [
        pytest.param([], {}, "0 subscriptions", id="none"),
        pytest.param(["queue:a.*"], {}, "no wildcards in a queue", id="queue-wildcard"),
        pytest.param(["$a"], {}, "begin with", id="dollar"),
        pytest.param(["a..b"], {}, "empty elements", id="empty-element"),
        pytest.param(
            ["_x.>"], {"dialects": ("ems", "rv")}, "Rendezvous keeps", id="not-of-rendezvous"
        ),
        pytest.param(["tempqueue:x"], {}, "nobody but its maker", id="temporary"),
        pytest.param(["a"], {"durable": "d"}, "needs `client_id`", id="durable-without-identity"),
        pytest.param(
            ["a", "b"], {"durable": "d", "client_id": "c"}, "put {pattern}", id="one-name-for-two"
        ),
    ],
)
def test_a_subscription_that_cannot_be_is_refused(
    patterns: list[str], changes: dict[str, object], text: str
) -> None:
    settings = replace(EMS, **changes)  # type: ignore[arg-type]  # of any setting's type
    with pytest.raises(EndpointError, match=text):
        open_source(settings, [Subscription(each) for each in patterns])


def test_durable_names_tell_patterns_apart() -> None:
    settings = replace(EMS, durable="gw-{pattern}", client_id="c")
    patterns = [Subscription(each) for each in ("a.*", "a.>", "a._2a_", "queue:q")]
    names = [each.durable for each in read_subscriptions(settings, patterns)]

    assert names == ["gw-a._2a_", "gw-a._3e_", "gw-a._5f_2a_5f_", ""]


def test_what_ems_says_of_itself_can_be_received() -> None:
    patterns = [Subscription("queue:$sys.undelivered"), Subscription("$sys.monitor.>")]

    assert [each.name for each in read_subscriptions(EMS, patterns)] == [
        "$sys.undelivered",
        "$sys.monitor.>",
    ]


@pytest.mark.parametrize("classpath", [(), ("/no/such.jar",), ("/no/*.jar",)])
def test_a_missing_jar_says_what_to_put_where(classpath: tuple[str, ...]) -> None:
    with pytest.raises(DriverMissingError, match=r"tibjms\.jar in `classpath`|tibjms\.jar"):
        find_jars(classpath)


def test_a_class_path_takes_patterns(tmp_path: Path) -> None:
    for name in ("b.jar", "a.jar"):
        (tmp_path / name).write_bytes(b"")

    assert find_jars((f"{tmp_path}/*.jar", f"{tmp_path}/a.jar")) == (
        str(tmp_path / "a.jar"),
        str(tmp_path / "b.jar"),
    )


def test_a_machine_without_java_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(*_options: str, **_facts: object) -> None:
        raise jpype.JVMNotFoundException

    monkeypatch.setattr(jpype, "isJVMStarted", lambda: False)
    monkeypatch.setattr(jpype, "startJVM", start)
    with pytest.raises(DriverMissingError, match="default-jre-headless"):
        start_jvm(EMS.jvm_options)


def java_started_with(*options: str) -> list[str]:
    """MB of the heap of a Java machine of another process, and all options it was started with."""
    program = f"""
        import jpype
        from gateway.endpoints.jms.jvm import heap, start_jvm
        start_jvm({options!r})
        machine = jpype.java.lang.management.ManagementFactory.getRuntimeMXBean()
        print(heap() >> 20, *machine.getInputArguments())
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    found = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603  # ours
    return found.stdout.split()


def test_options_of_a_user_add_to_ours_and_count_where_both_say_something() -> None:
    heap, *options = java_started_with("-Xmx96m")

    assert 80 < int(heap) <= 96
    assert {"-Xrs", "-XX:+ExitOnOutOfMemoryError", "-XX:+UseSerialGC"} <= set(options)


def test_a_collector_of_a_user_takes_the_place_of_ours() -> None:
    _, *options = java_started_with("-XX:+UseParallelGC")

    assert "-Xrs" in options
    assert "-XX:+UseSerialGC" not in options


def test_an_option_java_does_not_know_is_no_missing_driver(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def start(*_options: str, **_facts: object) -> None:
        raise RuntimeError("unrecognized option: -Xnonsense")

    monkeypatch.setattr(jpype, "isJVMStarted", lambda: False)
    monkeypatch.setattr(jpype, "startJVM", start)
    with pytest.raises(EndpointError, match="-Xnonsense: unrecognized"):
        start_jvm(("-Xnonsense",))


def test_the_promise_follows_the_delivery_mode() -> None:
    assert EMS.mode is DeliveryMode.AT_LEAST_ONCE
    assert replace(EMS, delivery="reliable").mode is DeliveryMode.AT_MOST_ONCE
    assert "s3cret" not in repr(replace(EMS, password="s3cret"))  # noqa: S106  # a sample


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        pytest.param(
            {"urls": ("tcp://b:2,tcp://a:1", "tcp://a:1")}, "tcp://a:1,tcp://b:2", id="set"
        ),
        pytest.param({"urls": ("tcp://a:1", "tcp://b:2")}, "tcp://a:1,tcp://b:2", id="list"),
        pytest.param(
            {"jndi_factory": "x.Y", "jndi_url": "ldap://d", "lookup": "cf"},
            "ldap://d#cf",
            id="jndi",
        ),
        pytest.param(
            {"properties": ("queueManager=ERP", "hostName=mq1", "Port=1414", "transportType=1")},
            "hostname=mq1,port=1414,queuemanager=ERP",
            id="setters",
        ),
    ],
)
def test_a_broker_is_known_however_its_servers_are_listed(
    changes: dict[str, object], key: str
) -> None:
    assert replace(EMS, **changes).broker_key == key  # type: ignore[arg-type]  # of any type


def test_the_settings_load_no_driver() -> None:
    code = "import sys, gateway.endpoints.settings.jms; sys.exit('jpype' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0  # noqa: S603  # this interpreter


def test_classes_are_moved_to_jakarta() -> None:
    jar = build.jar_path("javax").read_bytes()

    assert rewrite_jar(jar) == build.jar_path("jakarta").read_bytes()
    with zipfile.ZipFile(build.jar_path("jakarta")) as made:
        for name in made.namelist():
            assert b"javax/jms" not in made.read(name)


@pytest.mark.parametrize("data", [b"", b"PK", b"\xca\xfe\xba\xbe\0\0\0\x34\0\x02\xff\0\0"])
def test_what_is_no_class_is_not_rewritten(data: bytes) -> None:
    with pytest.raises(WireError, match="class"):
        rewrite_class(data)


def _compiler() -> int:
    javac = shutil.which("javac")
    if javac is None:
        return 0
    said = subprocess.run([javac, "-version"], capture_output=True, text=True, check=True)  # noqa: S603  # the compiler itself
    return int((said.stdout or said.stderr).split()[1].partition(".")[0])


@pytest.mark.skipif(_compiler() != build.COMPILER, reason=f"no javac {build.COMPILER}")
@pytest.mark.skipif(not build.API.exists(), reason=f"no {build.API}")
def test_the_jars_are_what_their_sources_compile_to(tmp_path: Path) -> None:
    build.main(tmp_path)

    for package in ("javax", "jakarta"):
        made, kept = build.jar_path(package, tmp_path), build.jar_path(package)
        assert made.read_bytes() == kept.read_bytes()
