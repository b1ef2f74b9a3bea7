"""Errors of the library by subcode: permanent or temporary, and the rule of a refusal."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, Final

from solace.messaging.errors.pubsubplus_client_error import (
    AuthenticationError,
    PubSubPlusClientError,
)

from gateway.endpoints.settings.solace import SolaceSettings
from gateway.endpoints.tls import authority_hint, encryption_hint, handshake_error
from gateway.errors import EndpointError, NotConnectedError
from gateway.model.dead_letter_rule import (
    LIBRARY,
    MESSAGE_BYTES,
    NO_SUBSCRIPTION,
    PUBLISH_ACL,
    QUEUE,
    TOPIC,
    TOPIC_BYTES,
)
from gateway.model.outcome import NO_ROOM, RETRY, Outcome, Settlement, rejected

_SUBCODE: Final = re.compile("SOLCLIENT_SUBCODE_([A-Z_0-9]*)")
_PERMANENT: Final = frozenset(
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
_REJECTION_RULES: Final = {  # refusals of one message
    "PUBLISH_ACL_DENIED": PUBLISH_ACL,
    "NO_SUBSCRIPTION_MATCH": NO_SUBSCRIPTION,
    "MESSAGE_TOO_LARGE": MESSAGE_BYTES,
    "INVALID_TOPIC_SYNTAX": TOPIC,
    "TOPIC_TOO_LARGE": TOPIC_BYTES,
    "QUEUE_NOT_FOUND": QUEUE,
    "UNKNOWN_QUEUE_NAME": QUEUE,
    "PARAM_OUT_OF_RANGE": LIBRARY,  # this one and the next: refused before sending
    "PARAM_CONFLICT": LIBRARY,
    "PARAM_NULL_PTR": LIBRARY,
    "INSUFFICIENT_SPACE": LIBRARY,
}
_NO_ANSWER: Final = frozenset(  # errors that are not an answer of the broker
    {"", "OK", "COMMUNICATION_ERROR", "KEEP_ALIVE_FAILURE", "PROTOCOL_ERROR", "TIMEOUT"}
)
_NO_ROOM: Final = frozenset({"SPOOL_OVER_QUOTA", "LOW_PRIORITY_MSG_CONGESTION", "QUEUE_SHUTDOWN"})
_PERMANENT_TEXTS: Final = (
    "Untrusted certificate",
    "Failed to load trust store",
    "Failed to load certificate",
)


def connect_error(settings: SolaceSettings, error: Exception) -> EndpointError:
    """Return the gateway's error for a failure to connect, bind or subscribe."""
    text = f"{settings.name}: {settings.url}: {error_text(error)}"
    if subcode(error) == "COMMUNICATION_ERROR":
        hint = encryption_hint(settings)
        for server in settings.servers() if settings.tls and not hint else ():
            if refused := server.is_encrypted and handshake_error(
                settings, server, settings.tls, error
            ):
                return refused
        text += hint
    elif subcode(error) == "UNTRUSTED_CERTIFICATE" and settings.trust_store is None:
        text += authority_hint(settings.tls)
    permanent = (
        isinstance(error, AuthenticationError | ValueError)
        or subcode(error) in _PERMANENT
        or any(text_part in str(error) for text_part in _PERMANENT_TEXTS)
    )
    return EndpointError(text) if permanent else NotConnectedError(text)


def publish_refusal(error: Exception) -> Settlement:
    """Return the settlement for the broker's refusal of one message; temporary ones are retried."""
    code = subcode(error)
    if code in _NO_ANSWER:
        return RETRY
    reason = f"solace: the broker refuses the message: {error_text(error)}"
    if code in _NO_ROOM:
        return replace(NO_ROOM, reason=reason)
    if code in _REJECTION_RULES:
        return rejected(_REJECTION_RULES[code], reason)
    return Settlement(Outcome.RETRY, code.lower().replace("_", "-"), reason)


def library_refusal(error: str) -> Settlement | None:
    """Return the settlement of a message that the library refuses with the text `error`.

    None: the connection failed.
    """
    rule = _REJECTION_RULES.get(subcode(PubSubPlusClientError(error)))
    return rejected(rule, f"solace: the library refuses the message: {error}") if rule else None


def subcode(error: Exception) -> str:
    """Return the C library's subcode without its prefix, or an empty text."""
    found = (_SUBCODE.search(str(part)) for part in _chain(error))
    return next((each[1] for each in found if each), "")


def error_text(error: Exception) -> str:
    """Return the error in one line, with the broker's text if there is one."""
    for part in _chain(error):
        text = str(part)
        _, found, rest = text.partition("'error_info_contents': ")
        if found and len(rest) > 2:  # more than two quotes
            contents = rest.rpartition(rest[0])[0][1:]
            return f"{contents} ({subcode(error)})"
    return str(error) or type(error).__name__


def _chain(error: Exception) -> list[Any]:
    found: list[Any] = []
    part: BaseException | None = error
    while part is not None and part not in found:
        found.append(part)
        part = part.__cause__
    return found
