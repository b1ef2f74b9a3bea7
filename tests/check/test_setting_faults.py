"""Settings with which no connection succeeds are errors of `gateway check`."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.check.examine import examine
from gateway.config.load import load

CONFIG = """\
endpoints:
  plant: {{kind: memory, dialect: mqtt}}
  office:
    {settings}
routes:
  a:
    from: {{endpoint: plant, pattern: a}}
    to: {{endpoint: office, template: a}}
"""
JARS = "classpath: [office.jar]"


def faults(folder: Path, settings: str) -> list[tuple[int, str, str]]:
    (folder / "office.jar").touch()
    file = folder / "gateway.yaml"
    file.write_text(CONFIG.format(settings=settings.replace(", ", "\n    ")))
    return [
        (each.line, each.reason, each.hint)
        for each in examine(load(file))
        if each.rule == "setting"
    ]


@pytest.mark.parametrize(
    ("settings", "line", "reason", "hint"),
    [
        pytest.param(
            "kind: solace, url: tcps//host:55443", 5, "'tcps//host:55443'", "tcp://", id="solace"
        ),
        pytest.param(
            "kind: solace, url: 'tcp://a:1,b:x'", 5, "'b:x'", "tcp://", id="solace-second"
        ),
        pytest.param(
            "kind: solace, url: 'tcp://host:1/'", 5, "host:1/'", "tcp://", id="solace-path"
        ),
        pytest.param("kind: solace, url: 'smf://h'", 5, "'smf://h'", "", id="solace-scheme"),
        pytest.param("kind: solace, url: '::1'", 5, "'::1'", "", id="solace-no-brackets"),
        pytest.param(
            "kind: yami4, url: tcp://host", 5, "'tcp://host'", "tcp://host:port", id="yami4"
        ),
        pytest.param(
            f"kind: jms, {JARS}, urls: [tcp//h:7222]", 6, "'tcp//h:7222'", "ssl://", id="jms"
        ),
        pytest.param(
            f"kind: jms, {JARS}, urls: [localhost:7222]", 6, "no address", "", id="jms-bare"
        ),
        pytest.param(f"kind: jms, {JARS}, urls: []", 6, "no server", "", id="jms-none"),
        pytest.param(
            "kind: jms, classpath: []", 5, "`classpath`: it names no jar", "/lib/*.jar", id="empty"
        ),
        pytest.param(
            "kind: jms", 3, "`classpath`: it names no jar", "/lib/*.jar", id="no-class-path"
        ),
        pytest.param("kind: nats, url: 'nats://[::1'", 5, "no address", "nats://", id="nats"),
        pytest.param("kind: rabbitmq, url: 'amqp://[::1'", 5, "no address", "amqp://", id="amqp"),
        pytest.param("kind: rabbitmq, url: 'amqp://[x]:1]'", 5, "no address", "", id="amqp-host"),
        pytest.param(
            "kind: kafka, servers: ['kafka://h:9092']", 5, "no address", "HOST:PORT", id="kafka"
        ),
        pytest.param("kind: kafka, servers: []", 5, "no server", "HOST:PORT", id="kafka-none"),
        pytest.param(
            "kind: kafka, start: yesterday", 5, "no time", "earliest, latest", id="kafka-start"
        ),
        pytest.param("kind: kafka, username: a", 5, "both", "`password`", id="kafka-password"),
        pytest.param(
            "kind: mqtt, host: 'tcp://plant:1883'", 5, "no host name", "`port`", id="mqtt"
        ),
    ],
)
def test_a_setting_that_no_connection_survives_is_an_error(
    tmp_path: Path, settings: str, line: int, reason: str, hint: str
) -> None:
    ((at, text, remedy),) = faults(tmp_path, settings)

    assert at == line
    assert reason in text
    assert hint in remedy


def test_equal_faults_are_one_finding(tmp_path: Path) -> None:
    assert len(faults(tmp_path, "kind: solace, url: 'tcp//h,tcp//h'")) == 1


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param("kind: solace, url: 'tcp://a:55555,tcps://b:55443'", id="solace"),
        pytest.param("kind: solace, url: 'localhost:55555'", id="solace-bare"),
        pytest.param("kind: solace, url: 'plant'", id="solace-host"),
        pytest.param("kind: solace, url: 'tcps:a:1,[::1]:2,tcp://[::1]'", id="solace-forms"),
        pytest.param("kind: solace, url: 'https://a:1/smf,ws://b'", id="solace-web"),
        pytest.param("kind: yami4, url: unix:///run/broker", id="yami4"),
        pytest.param(f"kind: jms, {JARS}, urls: ['tcp://a:7222,ssl://b:7243']", id="ems"),
        pytest.param(
            f"kind: jms, {JARS}, urls: ['failover:(tcp://a:1,tcp://b:2)?x=1']", id="activemq"
        ),
        pytest.param(f"kind: jms, {JARS}, urls: [q], properties: [hostName=mq1]", id="ibm"),
        pytest.param(f"kind: jms, {JARS}, urls: [q], jndi_factory: com.F", id="jndi"),
        pytest.param("kind: mqtt, host: '::1'", id="mqtt"),
        pytest.param("kind: kafka, servers: '[::1]:9092'", id="kafka"),
        pytest.param("kind: kafka, start: 2026-01-31T00:00:00Z", id="kafka-start"),
    ],
)
def test_an_address_that_a_library_accepts_is_none(tmp_path: Path, settings: str) -> None:
    assert faults(tmp_path, settings) == []
