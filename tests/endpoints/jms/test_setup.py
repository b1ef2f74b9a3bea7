"""JMS settings, subscriptions and error texts for missing parts; without a broker."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import jpype
import pytest

from gateway.endpoints.base import Subscription
from gateway.endpoints.continuity import Retention
from gateway.endpoints.jms import open_source
from gateway.endpoints.jms.connection import server_urls
from gateway.endpoints.jms.connection_factory import EMS_SSL, bounded_url, ems_tls, read_properties
from gateway.endpoints.jms.consumers import read_subscriptions
from gateway.endpoints.jms.jvm import find_jars, start_jvm
from gateway.endpoints.settings.base import TlsSettings
from gateway.endpoints.settings.jms import JmsSettings
from gateway.errors import DriverMissingError, EndpointError
from gateway.model.message import DeliveryMode

EMS = JmsSettings(name="ems")


@pytest.mark.parametrize(
    ("urls", "factory", "expected"),
    [
        pytest.param(
            ("tcp://a:7222",),
            EMS.factory,
            ("tcp://a:7222,tcp://a:7222",),
            id="single-server-listed-twice",
        ),
        pytest.param(
            ("tcp://a:1", "tcp://b:1"), EMS.factory, ("tcp://a:1,tcp://b:1",), id="pair-in-one-text"
        ),
        pytest.param(("tcp://a:1,tcp://b:1",), EMS.factory, ("tcp://a:1,tcp://b:1",), id="joined"),
        pytest.param(("tcp://a:1", "tcp://b:1"), "x.Y", ("tcp://a:1", "tcp://b:1"), id="in-turn"),
    ],
)
def test_ems_gets_all_servers_in_one_text(
    urls: tuple[str, ...], factory: str, expected: tuple[str, ...]
) -> None:
    assert server_urls(replace(EMS, urls=urls, factory=factory)) == expected


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("tcp://a:1", "tcp://a:1?soTimeout=30000&wireFormat.maxFrameSize=9"),
        (
            "ssl://a:1?wireFormat.maxFrameSize=5",
            "ssl://a:1?wireFormat.maxFrameSize=5&soTimeout=30000",
        ),
        ("nio://a:1?soTimeout=1", "nio://a:1?soTimeout=1&wireFormat.maxFrameSize=9"),
        ("failover:(tcp://a:1)", "failover:(tcp://a:1)"),  # its servers have options of their own
    ],
)
def test_reads_from_a_server_of_activemq_are_bounded(url: str, expected: str) -> None:
    assert bounded_url(url, 9) == expected


def test_tls_settings_become_parameters_of_ems() -> None:
    tls = TlsSettings(ca_file="ca.pem", cert_file="me.pem", key_file="key.pem", verify=False)

    assert ems_tls(tls) == {
        f"{EMS_SSL}enable_verify_host": "false",
        f"{EMS_SSL}enable_verify_hostname": "false",
        f"{EMS_SSL}trusted_certs": "ca.pem",
        f"{EMS_SSL}identity": "me.pem",
        f"{EMS_SSL}private_key": "key.pem",
    }


def test_a_property_is_a_name_and_a_value() -> None:
    assert read_properties(replace(EMS, properties=("port = 1414", "a=b=c"))) == {
        "port": "1414",
        "a": "b=c",
    }
    with pytest.raises(EndpointError, match="name=value"):
        read_properties(replace(EMS, properties=("port",)))


@pytest.mark.parametrize(
    ("patterns", "changes", "text"),
    [
        pytest.param([], {}, "0 subscriptions", id="none"),
        pytest.param(["queue:a.*"], {}, "no wildcards in a queue", id="queue-wildcard"),
        pytest.param(["$a"], {}, "begin with", id="dollar"),
        pytest.param(["a..b"], {}, "empty elements", id="empty-element"),
        pytest.param(
            ["_x.>"],
            {"dialects": ("ems", "rv")},
            "Rendezvous reserves",
            id="reserved-by-rendezvous",
        ),
        pytest.param(["tempqueue:x"], {}, "only its creator", id="temporary"),
        pytest.param(["a"], {"durable": "d"}, "needs `client_id`", id="durable-without-identity"),
        pytest.param(
            ["a", "b"], {"durable": "d", "client_id": "c"}, "put {pattern}", id="one-name-for-two"
        ),
    ],
)
def test_an_impossible_subscription_is_refused(
    patterns: list[str], changes: dict[str, object], text: str
) -> None:
    settings = replace(EMS, **changes)  # type: ignore[arg-type]  # of any setting's type
    with pytest.raises(EndpointError, match=text):
        open_source(settings, [Subscription(each) for each in patterns])


@pytest.mark.parametrize(
    ("pattern", "changes", "retention"),
    [
        pytest.param("queue:q", {}, Retention.KEPT, id="queue"),
        pytest.param("t", {"durable": "d", "client_id": "c"}, Retention.KEPT, id="durable"),
        pytest.param("t", {"shared": "s", "durable": "d"}, Retention.KEPT, id="shared-durable"),
        pytest.param("t", {"shared": "s"}, Retention.NOTHING, id="shared"),
        pytest.param("t", {}, Retention.NOTHING, id="topic"),
    ],
)
def test_a_queue_or_a_durable_subscription_keeps_messages(
    pattern: str, changes: dict[str, object], retention: Retention
) -> None:
    settings = replace(EMS, **changes)  # type: ignore[arg-type]  # of any setting's type
    assert open_source(settings, [Subscription(pattern)]).continuity.retention is retention


@pytest.mark.parametrize(
    ("settings", "patterns", "removing", "own"),
    [
        pytest.param(EMS, ["queue:q", "a.>"], ["queue:q"], ["a.b"], id="a-queue-beside-a-topic"),
        pytest.param(
            replace(EMS, destination="queue"),
            ["q", "topic:a.>"],
            ["q"],
            ["topic:a.b"],
            id="default",
        ),
        pytest.param(EMS, ["queue:q"], ["queue:q", "a.b"], [], id="a-bridge-from-a-topic"),
        pytest.param(replace(EMS, shared="s"), ["a.>"], ["a.b"], [], id="shared"),
        pytest.param(replace(EMS, durable="d", client_id="c"), ["a.>"], [], ["a.b"], id="durable"),
    ],
)
def test_a_queue_and_a_shared_subscription_are_removed_from(
    settings: JmsSettings, patterns: list[str], removing: list[str], own: list[str]
) -> None:
    source = open_source(settings, [Subscription(each) for each in patterns], instance="")

    assert [each for each in [*removing, *own] if source.removes(each)] == removing


def test_each_pattern_gets_its_own_durable_name() -> None:
    settings = replace(EMS, durable="gw-{pattern}", client_id="c")
    patterns = [Subscription(each) for each in ("a.*", "a.>", "a._2a_", "queue:q")]
    names = [each.durable for each in read_subscriptions(settings, patterns)]

    assert names == ["gw-a._2a_", "gw-a._3e_", "gw-a._5f_2a_5f_", ""]


def test_destinations_of_the_ems_server_itself_can_be_received() -> None:
    patterns = [Subscription("queue:$sys.undelivered"), Subscription("$sys.monitor.>")]

    assert [each.name for each in read_subscriptions(EMS, patterns)] == [
        "$sys.undelivered",
        "$sys.monitor.>",
    ]


@pytest.mark.parametrize("classpath", [(), ("/no/such.jar",), ("/no/*.jar",)])
def test_the_error_for_a_missing_jar_names_the_jar(classpath: tuple[str, ...]) -> None:
    with pytest.raises(DriverMissingError, match=r"tibjms\.jar in `classpath`|tibjms\.jar"):
        find_jars(classpath)


def test_a_class_path_may_contain_patterns(tmp_path: Path) -> None:
    for name in ("b.jar", "a.jar"):
        (tmp_path / name).write_bytes(b"")

    assert find_jars((f"{tmp_path}/*.jar", f"{tmp_path}/a.jar")) == (
        str(tmp_path / "a.jar"),
        str(tmp_path / "b.jar"),
    )


def test_the_error_for_missing_java_names_the_package_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def start(*_options: str, **_options_by_name: object) -> None:
        raise jpype.JVMNotFoundException

    monkeypatch.setattr(jpype, "isJVMStarted", lambda: False)
    monkeypatch.setattr(jpype, "startJVM", start)
    with pytest.raises(DriverMissingError, match="default-jre-headless"):
        start_jvm(EMS.jvm_options)


def java_started_with(*options: str) -> list[str]:
    """Return the heap in MB and all options of a JVM started in another process."""
    program = f"""
        import jpype
        from gateway.endpoints.jms.jvm import max_heap, start_jvm
        start_jvm({options!r})
        machine = jpype.java.lang.management.ManagementFactory.getRuntimeMXBean()
        print(max_heap() >> 20, *machine.getInputArguments())
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    found = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603  # ours
    return found.stdout.split()


def test_the_users_java_options_are_added_and_override_the_defaults() -> None:
    heap, *options = java_started_with("-Xmx96m")

    assert 80 < int(heap) <= 96
    assert {"-Xrs", "-XX:+ExitOnOutOfMemoryError", "-XX:+UseSerialGC"} <= set(options)


def test_the_users_garbage_collector_replaces_the_default() -> None:
    _, *options = java_started_with("-XX:+UseParallelGC")

    assert "-Xrs" in options
    assert "-XX:+UseSerialGC" not in options


def test_an_unknown_java_option_is_not_reported_as_a_missing_driver(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def start(*_options: str, **_options_by_name: object) -> None:
        raise RuntimeError("unrecognized option: -Xnonsense")

    monkeypatch.setattr(jpype, "isJVMStarted", lambda: False)
    monkeypatch.setattr(jpype, "startJVM", start)
    with pytest.raises(EndpointError, match="-Xnonsense: unrecognized"):
        start_jvm(("-Xnonsense",))


def test_the_best_delivery_mode_follows_the_setting() -> None:
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
def test_equal_brokers_have_equal_keys_however_their_servers_are_listed(
    changes: dict[str, object], key: str
) -> None:
    assert replace(EMS, **changes).broker_key == key  # type: ignore[arg-type]  # of any type


def test_the_settings_import_no_driver() -> None:
    code = "import sys, gateway.endpoints.settings.jms; sys.exit('jpype' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0  # noqa: S603  # this interpreter


FULL_HEAP = """\
import ctypes, jpype
from gateway.endpoints.jms.jvm import start_jvm
libc = ctypes.CDLL(None)
libc["__cxa_atexit"](libc["abort"], None, None)
start_jvm(["-Xmx64m"])
jpype.JArray(jpype.JByte)(1 << 30)
"""


def test_a_full_heap_ends_the_process_with_code_3_whatever_exit_handlers_do() -> None:
    """A handler of a C++ library aborts when it destroys what a thread uses."""
    command = [sys.executable, "-c", FULL_HEAP]
    found = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603  # ours

    assert (found.returncode, "OutOfMemoryError" in found.stdout) == (3, True)
