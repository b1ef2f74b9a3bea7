"""The kinds of endpoint: for each its settings, the package that implements it, and its driver.

A new kind is one row here. A package is imported when its first source or sink is made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from types import MappingProxyType, ModuleType
from typing import cast

from gateway.endpoints.base import Sink, Source, Subscription
from gateway.endpoints.settings.base import EndpointSettings
from gateway.endpoints.settings.jms import JmsSettings
from gateway.endpoints.settings.memory import MemorySettings
from gateway.endpoints.settings.mqtt import MqttSettings
from gateway.endpoints.settings.solace import SolaceSettings
from gateway.endpoints.settings.yami4 import Yami4Settings
from gateway.errors import DriverMissingError, EndpointError
from gateway.extras import install_command

NO_VARIANTS: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class EndpointKind:
    """One kind of endpoint.

    `module` has the functions `open_source` and `open_sink`. Without `typed_properties` the
    properties of a message are texts, unless another gateway sent it. `delivery_variants` gives, by
    name, the keys that select each guarantee of delivery, as YAML; `docs/delivery.md` has a column
    each. `payload_encoding` says how a driver changes payloads behind the hash of a delivered row,
    as a clause: then only a tap at the target proves them. Empty when the bytes of the hash are
    sent. `gives_identity`: a message has the same id at each delivery, whoever published it.
    """

    name: str
    settings: type[EndpointSettings]
    module: str
    extra: str | None = None  # the optional dependencies with the driver
    evaluates_selectors: bool = False  # its brokers evaluate JMS message selectors
    typed_properties: bool = True
    gives_identity: bool = False
    payload_encoding: str = ""
    delivery_variants: Mapping[str, str] = field(default_factory=lambda: NO_VARIANTS)


ENDPOINT_KINDS: dict[str, EndpointKind] = {
    kind.name: kind
    for kind in (
        EndpointKind(
            "jms",
            JmsSettings,
            "gateway.endpoints.jms",
            extra="jms",
            evaluates_selectors=True,
            gives_identity=True,
            payload_encoding="the JMS library encodes texts and maps",
            delivery_variants={
                "jms-persistent": "delivery: persistent",
                "jms-reliable": "delivery: reliable",
            },
        ),
        EndpointKind("memory", MemorySettings, "gateway.endpoints.memory"),
        EndpointKind(
            "mqtt",
            MqttSettings,
            "gateway.endpoints.mqtt",
            typed_properties=False,
            delivery_variants={"mqtt-2": "qos: 2", "mqtt-1": "qos: 1", "mqtt-0": "qos: 0"},
        ),
        EndpointKind(
            "solace",
            SolaceSettings,
            "gateway.endpoints.solace",
            extra="solace",
            gives_identity=True,
            payload_encoding="the Solace library encodes texts and maps (SDT)",
            delivery_variants={
                "solace-guaranteed": "guaranteed: true",
                "solace-direct": "guaranteed: false",
            },
        ),
        EndpointKind(
            "yami4",
            Yami4Settings,
            "gateway.endpoints.yami4",
            payload_encoding="a YAMI4 message encodes every payload as parameters",
            delivery_variants={
                "yami4-reject": "overflow_policy: reject_message",
                "yami4-drop": "overflow_policy: drop_update",
            },
        ),
    )
}


def make_source(
    settings: EndpointSettings, subscriptions: Sequence[Subscription], *, instance: str = ""
) -> Source:
    """Return a closed source with all `subscriptions` on one connection.

    `instance` distinguishes the sources of one endpoint, for example by the name of the route. It
    becomes part of the client id or of the queue's name, so keep it the same from run to run.

    Raises:
        DriverMissingError: the driver is not installed; the text names the extra.
    """
    make = _load(settings).open_source
    return cast(Source, make(settings, tuple(subscriptions), instance=instance))


def make_sink(settings: EndpointSettings, *, instance: str = "") -> Sink:
    """Return a closed sink; `instance` and errors as in `make_source`."""
    return cast(Sink, _load(settings).open_sink(settings, instance=instance))


def find_kind(settings: EndpointSettings) -> EndpointKind:
    """Return the kind whose settings these are."""
    for kind in ENDPOINT_KINDS.values():
        if type(settings) is kind.settings:
            return kind
    raise EndpointError(f"{settings.name}: no kind of endpoint has {type(settings).__name__}")


def _load(settings: EndpointSettings) -> ModuleType:
    kind = find_kind(settings)
    try:
        return import_module(kind.module)
    except ModuleNotFoundError as error:
        if error.name and error.name.startswith("gateway"):
            raise
        remedy = install_command(kind.extra) if kind.extra else "install the gateway again"
        raise DriverMissingError(
            f"{settings.name}: the module {error.name!r} is not installed; run: {remedy}"
        ) from error
