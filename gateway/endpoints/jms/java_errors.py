"""Java exceptions as errors of the gateway: one line of text, permanent or not."""

from __future__ import annotations

from gateway.errors import DriverMissingError, EndpointError, GatewayError, NotConnectedError

_PERMANENT = frozenset(  # exceptions after which another attempt fails as well
    {"JMSSecurityException", "InvalidDestinationException", "InvalidSelectorException"}
)

DUPLICATE_ID = (
    "perhaps another client uses this id; give each client an id of its own (`client_id`)"
)


def describe(error: BaseException) -> str:
    """Return a Java exception in one line, its class without the package."""
    name = type(error).__name__.rpartition(".")[2]
    text = " ".join(str(error).split())
    return text if text.startswith(name) else f"{name}: {text}"


def is_permanent(error: BaseException) -> bool:
    """Return whether another attempt would fail in the same way."""
    return type(error).__name__.rpartition(".")[2] in _PERMANENT


def gateway_error(where: str, error: BaseException, hint: str = "") -> GatewayError:
    """Return the gateway's error for a Java exception raised on connecting or subscribing."""
    if isinstance(error, TypeError):
        return DriverMissingError(f"{where}: {error}")
    if type(error).__name__.endswith("InvalidClientIDException"):
        hint = f"; {DUPLICATE_ID}"
    error_class = EndpointError if is_permanent(error) else NotConnectedError
    return error_class(f"{where}: {describe(error)}{hint}")
