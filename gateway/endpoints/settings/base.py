"""Declared fields of endpoint settings, and the interface that every settings class has.

Every field carries its documentation and its bounds in `field.metadata`, so that the
configuration loader, the JSON Schema and the documentation come from the same lines:
`doc`, `minimum`, `maximum`, `choices`, `secret`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from gateway.model.message import DeliveryMode

T = TypeVar("T")

U16 = 65_535
U32 = 4_294_967_295

ALL_FIELDS = frozenset(
    {
        "mode", "retained", "redelivered", "priority", "expiry", "time", "content_type",
        "correlation_id", "reply_to", "source_id", "origin", "properties",
    }
)  # fmt: skip


def setting(  # noqa: PLR0913  # the facts of one field
    default: T,
    doc: str,
    *,
    minimum: float | None = None,
    maximum: float | None = None,
    choices: tuple[object, ...] = (),
    secret: bool = False,
) -> T:
    """A dataclass field with its facts; a secret stays out of `repr`."""
    facts: dict[str, object] = {"doc": doc}
    if minimum is not None:
        facts["minimum"] = minimum
    if maximum is not None:
        facts["maximum"] = maximum
    if choices:
        facts["choices"] = choices
    if secret:
        facts["secret"] = True
    return field(default=default, repr=not secret, metadata=facts)


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsSettings:
    """How a connection is encrypted and who proves what to whom."""

    ca_file: str | None = setting(
        None, "file of trusted authorities (PEM); the system's own when absent"
    )
    cert_file: str | None = setting(None, "our certificate (PEM), for mutual TLS")
    key_file: str | None = setting(None, "the key of our certificate; in `cert_file` when absent")
    key_password: str | None = setting(None, "what unlocks the key", secret=True)
    verify: bool = setting(
        default=True, doc="check the broker's certificate and its name; off only for trials"
    )
    server_hostname: str | None = setting(
        None, "the name to expect in the broker's certificate; `host` when absent"
    )


class EndpointSettings(Protocol):
    """What the settings of every kind tell the runtime."""

    @property
    def name(self) -> str: ...

    @property
    def dialect(self) -> str: ...

    @property
    def broker_key(self) -> str: ...

    @property
    def backoff_min(self) -> float: ...

    @property
    def backoff_max(self) -> float: ...

    @property
    def carries(self) -> frozenset[str]: ...

    @property
    def mode(self) -> DeliveryMode: ...


def dialects_of(settings: EndpointSettings) -> tuple[str, ...]:
    """Every system whose rules the endpoint's names keep to; the first one spells them."""
    found: tuple[str, ...] = getattr(settings, "dialects", (settings.dialect,))
    return found
