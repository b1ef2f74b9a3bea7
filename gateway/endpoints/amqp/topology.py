"""Queue and bindings of a source at RabbitMQ."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

from gateway.endpoints.amqp.addresses import encoded
from gateway.endpoints.amqp.management import (
    ABSENT,
    BAD,
    CONFLICT,
    CREATED,
    DENIED,
    OK,
    Management,
    as_map,
)
from gateway.endpoints.settings.amqp import AmqpSettings
from gateway.errors import EndpointError

log = logging.getLogger(__name__)

EXCHANGE_GONE: Final = "somebody deleted the exchange, and with it the bindings of the queue"
_NO_EXCHANGE: Final = "no exchange"  # begins the text of a refused binding


def make_queue(management: Management, settings: AmqpSettings, queue: str) -> bool:
    """Make the queue of a source; return False where somebody else has just made it.

    Raises:
        EndpointError: the server does not create it.
    """
    arguments = {"x-queue-type": settings.queue_type, "x-single-active-consumer": True}
    if settings.queue_type == "quorum":  # else it drops what was returned 20 times
        arguments["x-delivery-limit"] = -1
    body = {"durable": True, "arguments": arguments}
    return management.request("PUT", _queue(queue), body, accepts=(CONFLICT,)).status == CREATED


def find_queue(management: Management, queue: str) -> int:
    """Return how many messages wait in a queue; -1 if it is absent.

    Raises:
        EndpointError: it is a stream, or the server does not tell.
    """
    found = management.request("GET", _queue(queue), accepts=(ABSENT,))
    if found.status != OK:
        return -1
    if as_map(found.body).get("type") == "stream":
        reason = f"the queue {queue!r} is a stream; read it with the kind `rabbitmq`"
        raise EndpointError(f"{management.name}: {reason}")
    return int(as_map(found.body).get("message_count") or 0)


def delete_queue(management: Management, queue: str) -> None:
    """Delete a queue, which may be absent.

    Raises:
        EndpointError: the server refuses.
    """
    management.request("DELETE", _queue(queue), accepts=(ABSENT,))


def make_exchange(management: Management, settings: AmqpSettings, *, binds: bool = False) -> None:
    """Make the exchange, or leave it as it is; one to bind a queue to has to be a topic exchange.

    Raises:
        EndpointError: it is of another type, or the server does not create it.
    """
    body = {
        "type": "topic",
        "durable": True,
        "auto_delete": False,
        "internal": False,
        "arguments": {},
    }
    path = f"/exchanges/{encoded(settings.exchange)}"
    found = management.request("PUT", path, body, accepts=(CONFLICT, DENIED))
    if binds and found.status == CONFLICT and "arg 'type'" in found.text:
        reason = f"{settings.exchange!r} is no topic exchange"
        raise EndpointError(f"{settings.name}: {reason}, so that no pattern selects its messages")


def bind(
    management: Management, settings: AmqpSettings, queue: str, patterns: Sequence[str]
) -> bool:
    """Bind the queue to the exchange; return whether the exchange was there.

    Raises:
        EndpointError: there is none and none is made, or the server refuses a binding.
    """
    was_there = True
    for pattern in patterns:
        found = management.request(
            "POST", "/bindings", binding(settings, queue, pattern), accepts=(BAD,)
        )
        if found.status == BAD:
            if not found.text.startswith(_NO_EXCHANGE) or not settings.create_exchange:
                hint = "; create it, or set `create_exchange`"
                is_absent = found.text.startswith(_NO_EXCHANGE)
                raise EndpointError(f"{settings.name}: {found.text}{hint if is_absent else ''}")
            was_there = False
            make_exchange(management, settings, binds=True)
            management.request("POST", "/bindings", binding(settings, queue, pattern))
    make_exchange(management, settings, binds=True)
    return was_there


def binding(settings: AmqpSettings, queue: str, pattern: str) -> dict[str, object]:
    """Return the body of a request for a binding."""
    return {
        "source": settings.exchange,
        "destination_queue": queue,
        "binding_key": pattern,
        "arguments": {},
    }


def is_bound(
    management: Management, settings: AmqpSettings, queue: str, patterns: Sequence[str]
) -> bool:
    """Return whether the queue has all these bindings. Raises EndpointError: the server refuses."""
    asked = (asked_binding(settings, queue, each) for each in patterns)
    return all(management.request("GET", path).body != [] for path in asked)


def unbind(
    management: Management, queue: str, bindings: Sequence[tuple[str, str]]
) -> list[tuple[str, str]]:
    """Remove bindings by exchange and pattern; return those that the server refused to remove."""
    left: list[tuple[str, str]] = []
    for exchange, pattern in bindings:
        parts = f"src={encoded(exchange)};dstq={encoded(queue)};key={encoded(pattern)};args="
        found = management.request("DELETE", f"/bindings/{parts}", accepts=(ABSENT, DENIED, BAD))
        if found.status == DENIED:
            log.warning("a binding of %r stays: %s", queue, found.text)
            left.append((exchange, pattern))
    return left


def asked_binding(settings: AmqpSettings, queue: str, pattern: str) -> str:
    """Return the path of a question whether a binding is there."""
    source, key = encoded(settings.exchange), encoded(pattern)
    return f"/bindings?src={source}&dstq={encoded(queue)}&key={key}"


def _queue(name: str) -> str:
    return f"/queues/{encoded(name)}"
