"""The addresses of a product for names, and the name of a message that came.

target, source   of a link, or `to` of a message: the product's form of a name
name             of a message: RabbitMQ tells it in an annotation, others in `to`
filter           of a source: a JMS selector, as the registered filter of Apache's projects
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote, unquote

from gateway.endpoints.settings.amqp import MAX_NAME, QUEUE, AmqpSettings
from gateway.errors import TranslationError
from gateway.model.dead_letter_rule import EMPTY_NAME, SURROGATE, TOO_LONG, WILDCARD_IN_NAME
from gateway.wire.amqp.values import Described, described, map_of, string, symbol, symbols

EXCHANGES: Final = "/exchanges/"
QUEUES: Final = "/queues/"
ROUTING_KEY: Final = "x-routing-key"  # an annotation
SELECTOR: Final = "apache.org:selector-filter:string"
_SELECTOR_CODE: Final = 0x0000468C_00000004  # the same descriptor as a number
_FILTER: Final = 7  # field of a source


def address_of(name: str, settings: AmqpSettings) -> str:
    """Return the address of a name, or of a pattern."""
    product, own = settings.product, name.removeprefix(QUEUE)
    if product.has_exchanges:
        if own is not name:
            return QUEUES + encoded(own)
        return f"{EXCHANGES}{encoded(settings.exchange)}/{encoded(name)}"
    return f"{product.queue}{own}" if own is not name else f"{product.topic}{name}"


def capabilities(name: str, settings: AmqpSettings) -> bytes | None:
    """Return what tells a server whether an address is a queue or a topic; None where it is."""
    if not settings.product.capabilities:
        return None
    return symbols(["queue" if name.startswith(QUEUE) else "topic"])


def selector_filter(selector: str) -> bytes | None:
    """Return the filters of a source; None without a selector."""
    if not selector:
        return None
    return map_of({symbol(SELECTOR): described(_SELECTOR_CODE, string(selector))})


def has_selector(source: Described | None) -> bool:
    """Return whether a server's answer says that it filters by a selector."""
    fields = source.value if source is not None and isinstance(source.value, list) else []
    found = next(iter(fields[_FILTER : _FILTER + 1]), None)
    filters = found.values() if isinstance(found, dict) else ()
    codes = (each.descriptor for each in filters if isinstance(each, Described))
    return any(each in {SELECTOR, _SELECTOR_CODE} for each in codes)


def name_of(annotations: Mapping[Any, Any], address: object, settings: AmqpSettings) -> str:
    """Return the name of a message with these annotations that was sent to `address`.

    Empty if neither tells it.
    """
    product = settings.product
    if isinstance(key := annotations.get(ROUTING_KEY), str):
        return key
    if not isinstance(address, str):
        return ""
    if not product.has_exchanges:
        if product.queue and address.startswith(product.queue):
            return QUEUE + address.removeprefix(product.queue)
        return address.removeprefix(product.topic)
    if address.startswith(QUEUES):
        return QUEUE + unquote(address.removeprefix(QUEUES))
    exchange, _, key = address.removeprefix(EXCHANGES).partition("/")
    is_ours = address.startswith(EXCHANGES) and unquote(exchange) == settings.exchange
    return unquote(key) if is_ours else ""


def refuse_name(name: str, settings: AmqpSettings) -> None:
    """Raise TranslationError for a name that no message can have."""
    own = name.removeprefix(QUEUE)
    if not own:
        raise TranslationError("amqp", name, EMPTY_NAME, "it is empty")
    try:
        size = len(own.encode())
    except UnicodeEncodeError as error:
        raise TranslationError("amqp", name, SURROGATE, "it has no UTF-8") from error
    if not settings.product.has_exchanges:
        return
    if size > MAX_NAME:
        raise TranslationError("amqp", name, TOO_LONG, f"is {size} bytes, limit {MAX_NAME}")
    if own is name and not {"*", "#"}.isdisjoint(name.split(".")):
        raise TranslationError("amqp", name, WILDCARD_IN_NAME, "a word is a wildcard")


def encoded(text: str) -> str:
    """Return a part of an address of RabbitMQ."""
    return quote(text, safe="")
