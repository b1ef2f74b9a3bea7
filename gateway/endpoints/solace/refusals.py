"""The library's errors by their subcode: what is for good, what passes, and which rule it is."""

from __future__ import annotations

from typing import Any, Final

from solace.messaging.errors.pubsubplus_client_error import (
    AuthenticationError,
    PubSubPlusClientError,
)

from gateway.endpoints.settings.solace import SolaceSettings
from gateway.errors import EndpointError, NotConnectedError
from gateway.model.outcome import RETRY, Outcome, Settlement, rejected

_PREFIX: Final = "SOLCLIENT_SUBCODE_"
_FOR_GOOD: Final = frozenset(
    {
        "LOGIN_FAILURE",
        "MSG_VPN_NOT_ALLOWED",
        "CLIENT_USERNAME_IS_SHUTDOWN",
        "DYNAMIC_CLIENTS_NOT_ALLOWED",
        "CLIENT_ACL_DENIED",
        "CLIENT_NAME_INVALID",
        "SUBSCRIPTION_ACL_DENIED",
        "SUBSCRIPTION_INVALID",
        "SUBSCRIPTION_TOO_MANY",
        "INVALID_TOPIC_SYNTAX",
        "TOPIC_TOO_LARGE",
        "UNKNOWN_QUEUE_NAME",
        "QUEUE_NOT_FOUND",
        "PERMISSION_NOT_ALLOWED",
        "ENDPOINT_PROPERTY_MISMATCH",
        "CANNOT_BIND_TO_QUEUE",
        "UNTRUSTED_CERTIFICATE",
        "FAILED_LOADING_TRUSTSTORE",
        "FAILED_LOADING_CERTIFICATE_AND_KEY",
        "PARAM_OUT_OF_RANGE",
        "FLOW_ACTIVE_FLOW_INDICATION_UNSUPPORTED",
    }
)
_REJECTED: Final = {  # refusals of one message
    "PUBLISH_ACL_DENIED": "publish-acl",
    "NO_SUBSCRIPTION_MATCH": "no-subscription",
    "MESSAGE_TOO_LARGE": "message-bytes",
    "INVALID_TOPIC_SYNTAX": "topic",
    "TOPIC_TOO_LARGE": "topic-bytes",
    "QUEUE_NOT_FOUND": "queue",
    "UNKNOWN_QUEUE_NAME": "queue",
    "PARAM_OUT_OF_RANGE": "library",  # and those that the library refuses before it sends them
    "PARAM_CONFLICT": "library",
    "PARAM_NULL_PTR": "library",
    "INSUFFICIENT_SPACE": "library",
}
_NO_ANSWER: Final = frozenset(  # it is not the broker who speaks
    {"", "OK", "COMMUNICATION_ERROR", "KEEP_ALIVE_FAILURE", "PROTOCOL_ERROR", "TIMEOUT"}
)
_WORDS: Final = (
    "Untrusted certificate",
    "Failed to load trust store",
    "Failed to load certificate",
)


def connect_error(settings: SolaceSettings, error: Exception) -> EndpointError:
    """What kept a connection, a queue or a subscription from being made."""
    text = f"{settings.name}: {settings.url}: {explain(error)}"
    for_good = (
        isinstance(error, AuthenticationError | ValueError)
        or subcode(error) in _FOR_GOOD
        or any(word in str(error) for word in _WORDS)
    )
    return EndpointError(text) if for_good else NotConnectedError(text)


def publish_refusal(error: Exception) -> Settlement:
    """How the broker's answer to one message ends it; what may pass is tried again."""
    code = subcode(error)
    if code in _NO_ANSWER:
        return RETRY
    reason = f"solace: the broker refuses the message: {explain(error)}"
    if code in _REJECTED:
        return rejected(_REJECTED[code], reason)
    return Settlement(Outcome.RETRY, code.lower().replace("_", "-"), reason)


def local_refusal(said: str) -> Settlement | None:
    """What ends a message that the library itself refuses, saying `said`.

    None when it is the connection that is at fault.
    """
    rule = _REJECTED.get(subcode(PubSubPlusClientError(said)))
    return rejected(rule, f"solace: the library refuses the message: {said}") if rule else None


def subcode(error: Exception) -> str:
    """The C library's word for what went wrong, without its prefix; empty when it has none."""
    for part in _chain(error):
        text = str(part)
        start = text.find(_PREFIX)
        if start >= 0:
            rest = text[start + len(_PREFIX) :]
            return rest[: next((i for i, c in enumerate(rest) if c not in _LETTERS), len(rest))]
    return ""


def explain(error: Exception) -> str:
    """One line of it: the broker's own words where there are some."""
    for part in _chain(error):
        text = str(part)
        _, found, rest = text.partition("'error_info_contents': ")
        if found and len(rest) > 2:  # noqa: PLR2004  # two quotes and something
            contents = rest.rpartition(rest[0])[0][1:]
            return f"{contents} ({subcode(error)})"
    return str(error) or type(error).__name__


_LETTERS: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789")


def _chain(error: Exception) -> list[Any]:
    found: list[Any] = []
    part: BaseException | None = error
    while part is not None and part not in found:
        found.append(part)
        part = part.__cause__
    return found
