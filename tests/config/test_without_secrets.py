"""References stand for placeholders that are legal where they stand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gateway.check.examine import examine
from gateway.check.mapping_tests import run_tests
from gateway.cli import main
from gateway.config.load import Configuration, load
from gateway.endpoints.settings.mqtt import MqttSettings
from gateway.errors import ConfigErrors

EVERY_TYPE = """\
gateway: {name: "${env:SITE}-1", stop_seconds: "${env:STOP}"}
archive: {path: "${env:ARCHIVE}", seal_key: "${file:/run/seal}", sync: "${env:SYNC}",
          keep_days: "${env:DAYS}"}
spool: {path: "${env:SPOOL}", when_full: "${env:FULL}"}
web: {address: "0.0.0.0", token: "${file:/run/secrets/token}", port: "${env:WEB_PORT}"}
tracing: {otlp: "${env:COLLECTOR}", token: "${env:TRACES}"}
endpoints:
  plant:
    kind: mqtt
    host: "${env:PLANT}"
    port: "${env:PLANT_PORT}"
    version: "${env:VERSION}"
    qos: "${env:QOS}"
    no_local: "${env:LOCAL}"
    username: gateway
    password: "${env:PLANT_PASSWORD}"
    tls: {ca_file: "${env:CA}", key_password: "${env:KEY}", verify: "${env:VERIFY}"}
    limits: {bytes: "${env:BYTES}"}
  ems:
    kind: jms
    dialect: "${env:DIALECT}"
    classpath: ["${env:JARS}", lib/tibjms.jar]
    urls: ["${env:EMS}", "tcp://${env:EMS_HOST}:${env:EMS_PORT}"]
    acknowledge: "${env:ACK}"
    username: "${env:EMS_USER}"
    password: "${env:EMS_PASSWORD}"
  solace: {kind: solace, url: "${env:SOLACE}", password: "${env:SMF_PASSWORD}"}
  tags: {kind: yami4, url: "tcp://${env:TAGS}:${env:TAGS_PORT}", rate: "${env:RATE}"}
  other: {kind: mqtt, host: "${env:OTHER}", broker_id: "${env:OTHER_ID}"}
routes:
  orders:
    from: {endpoint: plant, pattern: "orders/{rest...}"}
    to:
      - {endpoint: ems, template: "${env:SITE}.orders.{rest...}", lossy: "${env:LOSSY}"}
      - {endpoint: solace, template: "${env:SITE}/orders/{rest...}"}
      - {endpoint: tags, template: "${env:SITE}.orders.{rest...}"}
    direction: "${env:DIRECTION}"
  back:
    from: {endpoint: other, pattern: "${env:SITE}/prices/{rest...}"}
    to: {endpoint: plant, template: "prices/{rest...}", on_unmappable: "${env:UNMAPPABLE}"}
tests:
  order:
    given: {endpoint: plant, name: orders/1}
    expect:
      - {endpoint: ems, name: "${env:SITE}.orders.1"}
      - {endpoint: solace, name: "${env:SITE}/orders/1"}
      - {endpoint: tags, name: "${env:SITE}.orders.1"}
"""
PLACEHOLDER = re.compile(r"[A-Za-z]-[0-9a-f]{8}")


def read(folder: Path, text: str) -> Configuration:
    (folder / "gateway.yaml").write_text(text)
    return load(folder / "gateway.yaml", {}, without_secrets=True)


def test_references_of_every_type(tmp_path: Path) -> None:
    configuration = read(tmp_path, EVERY_TYPE)

    rules = [(each.rule, each.severity) for each in examine(configuration)]
    assert "error" not in [severity for _, severity in rules]
    assert len(configuration.endpoints) == 5
    plant, other = (configuration.endpoints[name].settings for name in ("plant", "other"))
    assert isinstance(plant, MqttSettings)
    assert (plant.port, plant.version, plant.qos) == (0, "5", 1)  # the defaults
    keys = {each.settings.broker_key for each in configuration.endpoints.values()}
    assert len(keys) == 5  # two unknown hosts are not one broker
    assert plant.broker_key != other.broker_key
    assert [each.passed for each in run_tests(configuration)] == [True]


def test_no_placeholder_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "gateway.yaml").write_text(EVERY_TYPE)

    for form in ("text", "json", "github"):
        assert main([
            "check", str(tmp_path / "gateway.yaml"), "--without-secrets", "--format", form,
        ]) == 0  # fmt: skip
        printed = "".join(capsys.readouterr())
        assert not PLACEHOLDER.search(printed), printed
        assert form != "text" or "${env:SITE}.orders.{rest...}" in printed


def test_a_fault_beside_a_reference_is_found(tmp_path: Path) -> None:
    with pytest.raises(ConfigErrors) as caught:
        read(
            tmp_path, EVERY_TYPE.replace('.orders.{rest...}", lossy', '.orders.{other...}", lossy')
        )

    rules = {each.rule for each in caught.value.findings if each.severity == "error"}
    assert rules == {"unknown-capture"}
    assert not PLACEHOLDER.search(str(caught.value))


def test_a_plain_secret_is_found(tmp_path: Path) -> None:
    with pytest.raises(ConfigErrors) as caught:
        read(tmp_path, EVERY_TYPE.replace("${env:PLANT_PASSWORD}", "hunter2"))

    rules = [each.rule for each in caught.value.findings if each.severity == "error"]
    assert rules == ["plain-secret"]


@pytest.mark.parametrize(
    ("text", "column"),
    [
        pytest.param(EVERY_TYPE, 17, id="a-url-of-no-known-form"),
        pytest.param(
            EVERY_TYPE.replace("endpoint: other", 'endpoint: "${env:WHICH}"'),
            22,
            id="an-endpoint-by-reference",
        ),
    ],
)
def test_a_value_that_cannot_be_checked_has_a_note(tmp_path: Path, text: str, column: int) -> None:
    found = examine(read(tmp_path, text))

    notes = [each for each in found if each.rule == "unknown-value"]
    assert column in [each.column for each in notes]
    assert {each.severity for each in notes} == {"note"}
    assert "not checked: the value is not known without secrets" in str(notes[0])


ENDPOINT = """\
endpoints:
  plant: {%s}
  other: {kind: memory, dialect: ems}
routes:
  r:
    from: {endpoint: plant, pattern: %s, selector: "%s"}
    to: {endpoint: other, template: a.b}
"""
ADDRESSES = [
    "tcp://${env:HOST_AND_PORT}", "${env:SCHEME}://host:123", "tcp://${env:HOST}:80${env:PORT}",
    "${env:HOST}${env:PORT}", "tcp://host${env:PORT}",
]  # fmt: skip


def severities(folder: Path, endpoint: str, selector: str = "TRUE") -> list[tuple[str, str]]:
    try:
        pattern = "a/b" if "mqtt" in endpoint or "solace" in endpoint else "a.b"
        found = examine(read(folder, ENDPOINT % (endpoint, pattern, selector)))
    except ConfigErrors as errors:
        found = errors.findings
    rules = {"setting", "syntax", "unknown-value", "impossible-selector", "doubtful-selector"}
    return [(each.rule, each.severity) for each in found if each.rule in rules]


@pytest.mark.parametrize("address", ADDRESSES)
def test_an_address_with_a_reference_is_no_error(tmp_path: Path, address: str) -> None:
    for endpoint in ("kind: yami4, url: '%s'", "kind: solace, url: '%s'",
                     "kind: jms, classpath: [a.jar], urls: ['%s']",
                     "kind: jms, classpath: [a.jar], urls: '%s'"):  # fmt: skip
        found = severities(tmp_path, endpoint % address)

        assert set(found) <= {("unknown-value", "note")}
    assert severities(tmp_path, f"kind: mqtt, host: '{address}/'") == [("unknown-value", "note")]


def test_an_address_beside_one_with_a_reference_is_checked(tmp_path: Path) -> None:
    urls = "urls: ['${env:HOST}${env:PORT}', tcp//h]"

    found = severities(tmp_path, f"kind: jms, classpath: [a.jar], {urls}")

    assert found == [("unknown-value", "note"), ("setting", "error")]


@pytest.mark.parametrize(
    "selector",
    [
        "size BETWEEN ${env:LEAST} AND ${env:MOST}",
        "${env:ONE} AND ${env:OTHER}",
        "JMSDeliveryMode = '${env:MODE}'",
        "size > ${env:LEAST}",
    ],
)
def test_a_selector_with_a_reference_is_no_error(tmp_path: Path, selector: str) -> None:
    found = severities(tmp_path, "kind: mqtt, host: a", selector)

    assert found == [("unknown-value", "note")]


@pytest.mark.parametrize("command", ["run", "replay", "dead-letters"])
def test_no_command_that_runs_a_configuration_has_the_option(command: str) -> None:
    with pytest.raises(SystemExit) as caught:
        main([command, "gateway.yaml", "--without-secrets"])

    assert caught.value.code == 2


def test_the_environment_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that the result is the same on every machine."""
    monkeypatch.setenv("SITE", "not legal /#+")
    (tmp_path / "gateway.yaml").write_text(EVERY_TYPE)

    assert main(["check", str(tmp_path / "gateway.yaml"), "--without-secrets"]) == 0
    assert main(["test", str(tmp_path / "gateway.yaml"), "--without-secrets"]) == 0
