"""Kind of endpoint -> settings class, driver's import path, extra; it loads drivers on demand.

Adding an endpoint is one row here. Nothing is imported until a source or sink is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import cast

from gateway.endpoints.base import Sink, Source, Subscription
from gateway.endpoints.settings.base import EndpointSettings
from gateway.endpoints.settings.jms import JmsSettings
from gateway.endpoints.settings.memory import MemorySettings
from gateway.endpoints.settings.mqtt import MqttSettings
from gateway.endpoints.settings.solace import SolaceSettings
from gateway.endpoints.settings.yami4 import Yami4Settings
from gateway.errors import DriverMissingError, EndpointError


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of endpoint: `module` has the functions `open_source` and `open_sink`."""

    name: str
    settings: type[EndpointSettings]
    module: str
    extra: str | None = None
    selects: bool = False  # its brokers evaluate JMS message selectors themselves


KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind("jms", JmsSettings, "gateway.endpoints.jms", "jms", selects=True),
        Kind("memory", MemorySettings, "gateway.endpoints.memory"),
        Kind("mqtt", MqttSettings, "gateway.endpoints.mqtt"),
        Kind("solace", SolaceSettings, "gateway.endpoints.solace", "solace"),
        Kind("yami4", Yami4Settings, "gateway.endpoints.yami4"),
    )
}


def make_source(
    settings: EndpointSettings, subscriptions: Sequence[Subscription], *, instance: str = ""
) -> Source:
    """A closed source with all of `subscriptions` on one connection; call its `open`.

    `instance` tells apart several sources of one endpoint, by the route's name say: it becomes
    part of the client id or of the queue's name, so keep it the same from run to run.

    Raises:
        DriverMissingError: the driver is not installed; the text names the extra.
    """
    make = _load(settings).open_source
    return cast(Source, make(settings, tuple(subscriptions), instance=instance))


def make_sink(settings: EndpointSettings, *, instance: str = "") -> Sink:
    """A closed sink; `instance` and errors as in `make_source`."""
    return cast(Sink, _load(settings).open_sink(settings, instance=instance))


def find_kind(settings: EndpointSettings) -> Kind:
    """The row that `settings` belongs to."""
    for kind in KINDS.values():
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
        extra = f"[{kind.extra}]" if kind.extra else ""
        raise DriverMissingError(
            f"{settings.name}: the module {error.name!r} is not installed;"
            f" run `pip install 'gateway{extra}'`"
        ) from error
