"""The compose file conforms to the specification, and its configuration to `gateway check`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from compose_spec import PyCompose

from gateway.check.examine import examine
from gateway.config.load import load

FOLDER = Path(__file__).parents[2] / "deploy"
TEXT = (FOLDER / "compose.yaml").read_text()
SERVICES: Mapping[str, Mapping[str, Any]] = yaml.safe_load(TEXT)["services"]
WRONG = [
    pytest.param("read_only: true", "read_onyl: true", id="misspelled"),
    pytest.param("activemq-lib:\n", "activemq-libs:\n", id="no-such-volume"),
    pytest.param("mem_limit: 1280m", "mem_limit: lots", id="no-size"),
]


def check(text: str) -> None:
    """Validate `text`.

    Raises:
        ValueError: it violates the specification.
    """
    composition = PyCompose.from_yaml(text)
    composition.validate()


def test_the_compose_file_conforms_to_the_specification() -> None:
    check(TEXT)


@pytest.mark.parametrize(("right", "wrong"), WRONG)
def test_the_validation_detects_a_mistake(right: str, wrong: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        check(TEXT.replace(right, wrong))


def test_the_configuration_passes_the_strict_check(tmp_path: Path) -> None:
    environment = {"GATEWAY_TOKEN": "0123456789abcdef", "ACTIVEMQ_PASSWORD": "x"}
    (tmp_path / "client.jar").write_bytes(b"")  # of ActiveMQ's volume
    file = tmp_path / "gateway.yaml"
    text = (FOLDER / "compose" / "gateway.yaml").read_text()
    file.write_text(text.replace("/opt/activemq/lib", str(tmp_path)))

    findings = examine(load(file, environment))

    assert [each.rule for each in findings if each.severity != "note"] == []
    asked = SERVICES["gateway"]["environment"].keys()
    assert asked == environment.keys()


def test_every_broker_of_the_configuration_is_a_service() -> None:
    endpoints = yaml.safe_load((FOLDER / "compose" / "gateway.yaml").read_text())["endpoints"]
    text = str(endpoints)

    for broker in ("mosquitto", "activemq", "solace"):
        assert broker in SERVICES
        assert broker in text


def test_the_gateway_has_the_least_privileges() -> None:
    gateway = SERVICES["gateway"]

    assert gateway["read_only"] is True
    assert gateway["cap_drop"] == ["ALL"]
    assert gateway["security_opt"] == ["no-new-privileges:true"]
    assert [each for each in gateway["volumes"] if not each.endswith(":ro")] == [
        "state:/var/lib/gateway"
    ]


@pytest.mark.parametrize("name", SERVICES)
def test_ports_are_published_on_loopback_only(name: str) -> None:
    assert all(port.startswith("127.0.0.1:") for port in SERVICES[name].get("ports", []))


def test_every_mounted_and_built_file_exists() -> None:
    gateway = SERVICES["gateway"]
    context = FOLDER / gateway["build"]["context"]

    assert (context / gateway["build"]["dockerfile"]).is_file()
    for name in ("gateway", "mosquitto"):
        assert (FOLDER / SERVICES[name]["volumes"][0].partition(":")[0]).is_file()
