"""Settings are data with their facts; a driver loads when its first source or sink is made."""

from __future__ import annotations

import dataclasses
import shlex
import subprocess
import sys
from collections.abc import Iterator

import pytest

from gateway.config.build_endpoint import setting_faults
from gateway.endpoints import registry
from gateway.endpoints.kind import EndpointKind
from gateway.endpoints.registry import ENDPOINT_KINDS, find_kind, make_sink
from gateway.endpoints.settings.base import (
    ALL_FIELDS,
    EndpointSettings,
    SettingFault,
    TlsSettings,
)
from gateway.endpoints.settings.memory import MemorySettings
from gateway.endpoints.settings.mqtt import MqttSettings, MqttTlsSettings
from gateway.errors import DriverMissingError
from gateway.model.message import HEADER_FIELDS
from gateway.setting import setting

SETTINGS = [*(kind.settings for kind in ENDPOINT_KINDS.values()), TlsSettings]


@pytest.mark.parametrize("cls", SETTINGS)
def test_every_field_has_its_facts(cls: type) -> None:
    for item in dataclasses.fields(cls):
        assert item.metadata["doc"]
        default, facts = item.default, item.metadata
        if facts.get("minimum") is not None:
            assert default >= facts["minimum"]
        if facts.get("maximum") is not None:
            assert default <= facts["maximum"]
        if facts.get("choices") and not isinstance(default, tuple):
            assert default in facts["choices"]


@pytest.mark.parametrize("kind", ENDPOINT_KINDS.values(), ids=lambda kind: kind.name)
def test_the_settings_of_a_kind_find_it(kind: EndpointKind) -> None:
    settings = kind.settings()

    assert find_kind(settings) is kind
    assert settings.name == kind.name
    assert settings.carries <= ALL_FIELDS


def test_secrets_are_not_in_the_repr() -> None:
    tls = MqttTlsSettings(key_password="hidden")  # noqa: S106
    shown = repr(MqttSettings(password="hidden", tls=tls))  # noqa: S106

    assert "hidden" not in shown


def test_the_fields_that_a_system_carries_are_headers() -> None:
    assert {*HEADER_FIELDS} == ALL_FIELDS
    assert MqttSettings(version="3.1.1").carries < MqttSettings(version="5").carries < ALL_FIELDS


class WithFault(MemorySettings):
    """Settings of a plug-in, which chooses its prefixes and counts the items of a list."""

    @property
    def kind_prefixes(self) -> tuple[str, ...]:
        return (f"{self.broker}:",)

    def faults(self) -> Iterator[SettingFault]:
        yield SettingFault("urls", "no address", "write one", 2)
        yield SettingFault("path", "no folder", "write one")


def test_a_fault_of_a_setting_has_the_key_of_its_item() -> None:
    keys = [at for at, _, _ in setting_faults("bus", WithFault())]

    assert keys == [("endpoints", "bus", "urls", 2), ("endpoints", "bus", "path")]


class Undriven(MemorySettings):
    """Settings of a kind whose driver is absent."""


@pytest.fixture
def undriven() -> Iterator[Undriven]:
    ENDPOINT_KINDS.register(EndpointKind("undriven", Undriven, "no_such_driver", extra="jms"))
    yield Undriven()
    ENDPOINT_KINDS.unregister("undriven")


def test_a_missing_driver_names_what_to_install(undriven: Undriven) -> None:
    with pytest.raises(DriverMissingError, match="pip install 'jpype1>=") as caught:
        make_sink(undriven)

    command = str(caught.value).partition("run: ")[2]
    dry = subprocess.run(  # noqa: S603  # the command that the error names, and everything is there
        [*shlex.split(command), "--dry-run", "--no-index"],
        check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert "already satisfied: jpype1" in dry.stdout.lower()


def test_importing_the_registry_loads_no_driver() -> None:
    code = (
        f"import sys, {registry.__name__};"
        " sys.exit(any(name in sys.modules for name in ('jpype', 'solace', 'paho')))"
    )

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0  # noqa: S603


@dataclasses.dataclass(frozen=True)
class Undeclared(MemorySettings):
    extra: str = ""


@dataclasses.dataclass(frozen=True)
class Stray:
    name: str = setting("name of the endpoint", default="stray")


@dataclasses.dataclass(frozen=True)
class Bare(EndpointSettings):
    name: str = setting("name of the endpoint", default="bare")


UNREADABLE = [
    pytest.param(Undeclared, "json", "Undeclared.extra is not declared by setting", id="field"),
    pytest.param(Stray, "json", "Stray does not inherit from EndpointSettings", id="base"),
    pytest.param(Bare, "json", "Bare has no 'addresses'", id="member"),
    pytest.param(MemorySettings, "no_such_module", "No module named 'no_such_module'", id="module"),
]


@pytest.mark.parametrize(("settings", "module", "reason"), UNREADABLE)
def test_a_row_that_nothing_can_read_is_refused(
    settings: type[EndpointSettings], module: str, reason: str
) -> None:
    with pytest.raises((TypeError, ModuleNotFoundError), match=reason):
        registry.check(EndpointKind("of-a-test", settings, module))


@pytest.mark.parametrize("kind", ENDPOINT_KINDS.values(), ids=lambda kind: kind.name)
def test_every_own_row_can_be_read(kind: EndpointKind) -> None:
    registry.check(kind)
