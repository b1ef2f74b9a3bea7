"""Addresses of a server: a routing key of the endpoint's exchange, or `queue:` and a name."""

from __future__ import annotations

from gateway.endpoints.settings.rabbitmq import MAX_SHORT, QUEUE
from gateway.errors import TranslationError


def write_address(address: str, exchange: str) -> tuple[str, str]:
    """Return the exchange and the routing key of a message.

    Raises:
        TranslationError: no message can be sent there; the dialect has the rules of keys.
    """
    name = address.removeprefix(QUEUE)
    if not name:
        raise TranslationError("rabbitmq", address, "empty-name", "it is empty")
    try:
        size = len(name.encode())
    except UnicodeEncodeError as error:
        raise TranslationError("rabbitmq", address, "surrogate", "it has no UTF-8") from error
    if size > MAX_SHORT:
        raise TranslationError("rabbitmq", address, "too-long", f"is {size} bytes, limit 255")
    if name is not address:
        return "", name
    if not {"*", "#"}.isdisjoint(name.split(".")):
        raise TranslationError("rabbitmq", address, "wildcard-in-name", "a word is a wildcard")
    return exchange, name


def read_key(key: str | bytes) -> str:
    """Return a received routing key; one that is no UTF-8 gets surrogates, which no name has."""
    return key if isinstance(key, str) else key.decode("utf-8", "surrogateescape")
