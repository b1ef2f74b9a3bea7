"""Settings common to several kinds of endpoint, and the interface of every settings class."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from gateway.model.message import DeliveryMode
from gateway.setting import setting

_URL = re.compile(
    r"(?P<scheme>[a-z][a-z0-9+.-]*)://(?:[^/@\s,()]*@)?(?P<host>\[[^\]]*\]|[^:/?,()\s]*)"
)
U16 = 65_535
U32 = 4_294_967_295

ALL_FIELDS = frozenset(
    {
        "mode", "retained", "redelivered", "priority", "expiry", "time", "content_type",
        "correlation_id", "reply_to", "source_id", "origin", "properties",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsSettings:
    """Encryption of a connection, and the certificates of both sides."""

    ca_file: str | None = setting(
        "file of trusted CA certificates (PEM); the system's trust store when absent",
        default=None,
        path="file",
    )
    cert_file: str | None = setting(
        "client certificate (PEM), for mutual TLS", default=None, path="file"
    )
    key_file: str | None = setting(
        "private key of the client certificate (PEM); read from `cert_file` when absent",
        default=None,
        path="file",
    )
    key_password: str | None = setting("password of the private key", default=None, secret=True)
    verify: bool = setting(
        "verify the broker's certificate and host name; turn it off for trials only", default=True
    )
    server_hostname: str | None = setting(
        "host name expected in the broker's certificate; the host of the address when absent",
        default=None,
    )


def first_backoff() -> float:
    """Declare the setting `backoff_min`."""
    return setting(
        "seconds before the first attempt to reconnect; each further wait is twice as long",
        default=0.5,
        minimum=0.01,
    )


def longest_backoff() -> float:
    """Declare the setting `backoff_max`."""
    return setting(
        "longest wait between two attempts to reconnect, in seconds", default=30.0, minimum=0.01
    )


def send_rate() -> float:
    """Declare the setting `rate`."""
    return setting(
        "most messages a second that the gateway sends, for example so that a target that was away"
        " is not flooded with its backlog; 0: no limit",
        default=0.0,
        minimum=0,
    )


class SettingFault(NamedTuple):
    """A setting that makes every connection fail: its key, the reason, and what to do."""

    key: str
    reason: str
    hint: str
    position: int | None = None  # in a list


class EndpointSettings(Protocol):
    """Properties of the settings of every kind, for the runtime.

    Eight members are optional; the functions below have their values: `dialects`, `for_gateway`,
    `kind_prefixes`, `faults`, `group`, `selector`, `default_kind` and `rate`.
    """

    @property
    def name(self) -> str: ...

    @property
    def dialect(self) -> str: ...

    @property
    def broker_key(self) -> str:
        """Address of the broker; equal for two endpoints of the same broker."""
        ...

    @property
    def addresses(self) -> tuple[str, ...]: ...

    @property
    def backoff_min(self) -> float: ...

    @property
    def backoff_max(self) -> float: ...

    @property
    def carries(self) -> frozenset[str]:
        """Fields of `Headers` that survive a round trip through the system."""
        ...

    @property
    def mode(self) -> DeliveryMode:
        """Strongest delivery mode of the endpoint."""
        ...


def dialects_of(settings: EndpointSettings) -> tuple[str, ...]:
    """All dialects whose rules bind the endpoint's names; the first one spells them."""
    found: tuple[str, ...] = getattr(settings, "dialects", (settings.dialect,))
    return found


def settings_for(settings: EndpointSettings, gateway: str) -> EndpointSettings:
    """Return the settings with the default client id of the gateway with this name."""
    name_client = getattr(settings, "for_gateway", None)
    named: EndpointSettings = settings if name_client is None else name_client(gateway)
    return named


def kinds_of(settings: EndpointSettings) -> tuple[str, ...]:
    """Return the beginnings of addresses that choose a kind of destination, such as a queue."""
    found: tuple[str, ...] = getattr(settings, "kind_prefixes", ())
    return found


def group_of(settings: EndpointSettings, pattern: str) -> str:
    """Return a name of the readers that divide the messages of `pattern`; empty without others."""
    find_group = getattr(settings, "group", None)
    return "" if find_group is None else str(find_group(pattern))


def selector_of(settings: EndpointSettings) -> str:
    """Return the selector with which the broker leaves out messages; empty without one."""
    return str(getattr(settings, "selector", ""))


def default_kind_of(settings: EndpointSettings) -> str:
    """Return the kind of a destination whose address names none; empty where there is one kind."""
    return str(getattr(settings, "default_kind", ""))


def rate_of(settings: EndpointSettings) -> float:
    """Return the most messages a second to send; 0 without a limit."""
    return float(getattr(settings, "rate", 0.0))


def scheme_and_host_of(settings: EndpointSettings) -> Iterator[tuple[str, str]]:
    """Yield scheme and host of every address; a URL may contain several (JMS failover)."""
    for url in settings.addresses:
        for found in _URL.finditer(url):
            yield found["scheme"], found["host"]


def faults_of(settings: EndpointSettings) -> Iterator[SettingFault]:
    """Yield the faults of settings that only a connection would show."""
    find_faults = getattr(settings, "faults", None)
    yield from () if find_faults is None else find_faults()


def address_faults(
    key: str, texts: Iterable[str], form: re.Pattern[str], shown: str
) -> Iterator[SettingFault]:
    """Yield a fault for each address of the setting `key` without this form."""
    for text in texts:
        if form.fullmatch(text.strip()) is None:
            yield SettingFault(key, f"{text!r} is no address", f"write {shown}")
