"""Settings of every kind of endpoint, and the members that other parts read from them."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple
from urllib.parse import unquote

from gateway.model.message import DeliveryMode
from gateway.setting import file_path, optional, seconds, secret, setting

_ADDRESS = re.compile(
    r"(?P<scheme>[a-z][a-z0-9+.-]*)://(?:[^/@\s,()]*@)?(?P<host>\[[^\]]*\]|[^:/?,()\s]*)"
    r"(?::(?P<port>[0-9]+))?"
)
U16 = 65_535
U32 = 4_294_967_295

ALL_FIELDS = frozenset(
    {
        "mode",
        "retained",
        "redelivered",
        "priority",
        "expiry",
        "time",
        "content_type",
        "correlation_id",
        "reply_to",
        "source_id",
        "origin",
        "properties",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsSettings:
    """Encryption of a connection, and the certificates of both sides."""

    ca_file: str | None = file_path(
        "file of trusted CA certificates (PEM); the system's trust store when absent"
    )
    cert_file: str | None = file_path("client certificate (PEM), for mutual TLS")
    key_file: str | None = file_path(
        "private key of the client certificate (PEM); read from `cert_file` when absent"
    )
    key_password: str | None = secret("password of the private key")
    verify: bool = setting(
        "verify the broker's certificate and host name; turn it off for trials only", True
    )
    server_hostname: str | None = optional(
        "host name expected in the broker's certificate; the host of the address when absent"
    )


class SettingFault(NamedTuple):
    """A setting that makes every connection fail: its key, the reason, and what to do."""

    key: str
    reason: str
    hint: str
    position: int | None = None  # in a list


class Server(NamedTuple):
    """A server in the address of an endpoint; `port` is None where the address has none."""

    host: str
    port: int | None
    is_encrypted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointSettings(ABC):
    """Settings of an endpoint; each kind adds its own, and overrides the members that differ.

    `encrypted_schemes` are the schemes in `addresses` that stand for TLS, also as a part, such as
    nio+ssl. A server that `greets` sends a line before it turns to TLS. `client_key` is the setting
    with the client id, `durable_key` the one with the durable queue or consumer of a source: two
    gateways at one broker need different ones.
    """

    encrypted_schemes: ClassVar[tuple[str, ...]] = ("ssl", "tls", "tcps")
    greets: ClassVar[bool] = False
    client_key: ClassVar[str] = ""
    durable_key: ClassVar[str] = ""
    rate: float = setting(
        "most messages a second that the gateway sends, for example so that a target that was away"
        " is not flooded with its backlog; 0: no limit",
        0.0,
        minimum=0,
    )
    backoff_min: float = seconds(
        "seconds before the first attempt to reconnect; each further wait is twice as long",
        0.5,
        minimum=0.01,
    )
    backoff_max: float = seconds(
        "longest wait between two attempts to reconnect, in seconds", 30.0, minimum=0.01
    )

    @property
    @abstractmethod
    def name(self) -> str: ...

    @property
    @abstractmethod
    def dialect(self) -> str:
        """Dialect that spells the names."""

    @property
    @abstractmethod
    def broker_key(self) -> str:
        """Address of the broker; equal for two endpoints of the same broker."""

    @property
    def name_space(self) -> str:
        """The space of its broker in which its topics stand; two spaces share no message."""
        return ""

    @property
    def broker_keys(self) -> tuple[str, ...]:
        """The key of each single server, where the address names several."""
        return (self.broker_key,)

    @property
    @abstractmethod
    def addresses(self) -> tuple[str, ...]:
        """URLs of the brokers; a URL may contain several (JMS failover)."""

    @property
    def way(self) -> str:
        """WebSocket and proxy between the gateway and the broker, as a text; empty without."""
        return ""

    @property
    @abstractmethod
    def carries(self) -> frozenset[str]:
        """Fields of `Headers` that survive a round trip through the system."""

    @property
    def loses(self) -> frozenset[str]:
        """Fields that the broker does not pass on to a source with every message."""
        return frozenset()

    @property
    @abstractmethod
    def mode(self) -> DeliveryMode:
        """Strongest delivery mode of the endpoint."""

    @property
    def dialects(self) -> tuple[str, ...]:
        """All dialects whose rules bind the endpoint's names; the first one spells them."""
        return (self.dialect,)

    @property
    def kind_prefixes(self) -> tuple[str, ...]:
        """Beginnings of addresses that choose the kind of a destination, such as a queue."""
        return ()

    @property
    def default_kind(self) -> str:
        """Kind of a destination whose address names none; empty where there is one kind."""
        return ""

    @property
    def selector(self) -> str:
        """Selector with which the broker leaves out messages; empty without one."""
        return ""

    @property
    def evaluates_selectors(self) -> bool:
        """Whether its brokers evaluate the JMS selector of a subscription."""
        return False

    @property
    def repeat_window(self) -> float:
        """Seconds in which the target keeps a repeated message once; 0 where it does not."""
        return 0.0

    def for_gateway(self, gateway: str, endpoint: str) -> EndpointSettings:  # noqa: ARG002  # for kinds with names
        """Return the settings with the default names of what this gateway has at the broker.

        `endpoint` is the name of the endpoint, or the earlier one that it `was`.
        """
        return self

    def group(self, pattern: str) -> str:  # noqa: ARG002  # for kinds with groups
        """Return a name of the readers that divide the messages of `pattern`; empty without."""
        return ""

    @property
    def named_by_headers(self) -> bool:
        """Whether a received message has the name that its producer wrote into a header."""
        return False

    def removes(self, pattern: str) -> bool:  # noqa: ARG002  # for kinds with queues or groups
        """Return whether others put messages into what `pattern` names, or divide them.

        What a reader takes from there is gone for the others. False for messages that the broker
        keeps only for this endpoint: its own subscriptions, and the queue that they fill.
        """
        return False

    def durable_name(self, route: str) -> str:
        """Return the durable queue or consumer that a source for `route` reads; empty without."""
        name = str(getattr(self, self.durable_key)) if self.durable_key else ""
        return name.replace("{instance}", route)

    def faults(self) -> Iterator[SettingFault]:
        """Yield the faults that only a connection would show."""
        yield from ()

    def servers(self) -> Iterator[Server]:
        """Yield the servers in `addresses`."""
        for found in (each for url in self.addresses for each in _ADDRESS.finditer(url)):
            is_encrypted = any(word in found["scheme"] for word in self.encrypted_schemes)
            port = int(found["port"]) if found["port"] else None
            yield Server(found["host"].strip("[]"), port, is_encrypted)


def server_of(url: str, port: int, *, is_encrypted: bool) -> Server:
    """Return the server of a URL with one; `port` is the default."""
    found = _ADDRESS.search(url)
    host = found["host"].strip("[]") if found else ""
    own = int(found["port"]) if found and found["port"] else port
    return Server(host, own, is_encrypted)


def server_key(addresses: Iterable[str], ports: Mapping[str, int]) -> str:
    """Return hosts with ports, equal however the addresses of the servers are written.

    `ports` has the default of each scheme.
    """
    found = (each for text in addresses for each in _ADDRESS.finditer(text))
    return ",".join(
        sorted({f"{m['host'].lower()}:{m['port'] or ports.get(m['scheme'], 0)}" for m in found})
    )


def split_url(url: str) -> tuple[str, str, str]:
    """Return scheme, host with port, and vhost of any text of AMQP, which may be no URL."""
    scheme, _, rest = url.partition("://")
    server, _, path = rest.partition("/")
    return scheme, server.rpartition("@")[2], unquote(path.partition("?")[0])


def address_faults(
    key: str, texts: Iterable[str], form: re.Pattern[str], shown: str
) -> Iterator[SettingFault]:
    """Yield a fault for each address of the setting `key` without this form."""
    for text in texts:
        if form.fullmatch(text.strip()) is None:
            yield SettingFault(key, f"{text!r} is no address", f"write {shown}")
