"""Settings are plain data with their facts; drivers load only when they are asked for."""

from __future__ import annotations

import dataclasses
import subprocess
import sys

import pytest

from gateway.endpoints import registry
from gateway.endpoints.registry import KINDS, Kind, make_sink
from gateway.endpoints.settings.base import ALL_FIELDS, TlsSettings
from gateway.endpoints.settings.memory import MemorySettings
from gateway.endpoints.settings.mqtt import MqttSettings
from gateway.errors import DriverMissingError
from gateway.model.message import Headers


@pytest.mark.parametrize("cls", [MqttSettings, MemorySettings, TlsSettings])
def test_every_field_has_its_facts(
    cls: type[MqttSettings | MemorySettings | TlsSettings],
) -> None:
    for item in dataclasses.fields(cls):
        assert item.metadata["doc"]
        default, facts = item.default, item.metadata
        if facts.get("minimum") is not None:
            assert default >= facts["minimum"]
        if facts.get("maximum") is not None:
            assert default <= facts["maximum"]
        if facts.get("choices"):
            assert default in facts["choices"]


def test_secrets_stay_out_of_sight() -> None:
    tls = TlsSettings(key_password="hidden")  # noqa: S106
    shown = repr(MqttSettings(password="hidden", tls=tls))  # noqa: S106

    assert "hidden" not in shown


def test_what_a_system_carries_are_headers() -> None:
    assert {item.name for item in dataclasses.fields(Headers)} == ALL_FIELDS
    assert MqttSettings(version="3.1.1").carries < MqttSettings(version="5").carries < ALL_FIELDS


def test_a_missing_driver_names_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    kind = Kind("memory", MemorySettings, "no_such_driver", extra="jms")
    monkeypatch.setitem(KINDS, "memory", kind)

    with pytest.raises(DriverMissingError, match=r"'no_such_driver'.*pip install 'gateway\[jms\]'"):
        make_sink(MemorySettings())


def test_looking_things_up_loads_no_driver() -> None:
    code = f"import sys, {registry.__name__}; sys.exit('paho' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0  # noqa: S603
