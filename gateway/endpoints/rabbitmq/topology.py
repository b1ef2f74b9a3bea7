"""Exchange, queues and bindings of an endpoint at the server."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from functools import partial
from typing import Any, Final

from pika.exceptions import ChannelClosedByBroker

from gateway.endpoints.rabbitmq.connection import NOT_FOUND, RabbitmqConnection, refusal
from gateway.endpoints.rabbitmq.headers import STREAM_OFFSET
from gateway.errors import EndpointError
from gateway.untyped import Untyped

log = logging.getLogger(__name__)

Binding = tuple[str, str]  # exchange and pattern
# Without an argument it drops a message of a quorum queue that was returned 20 times, and each stop
# of a reader returns what is unsettled. Version 3 has no limit, and takes -1 for the smallest one.
RETURNS_LIMITED: Final = 4
_OTHER_TYPE: Final = "inequivalent arg 'type'"


def find_exchange(connection: RabbitmqConnection, *, binds: bool = False) -> bool:
    """Look for the endpoint's exchange, or create it when the settings ask for that.

    Return whether it was there.

    Raises:
        EndpointError: there is none; or one to bind a queue to is not a topic exchange.
    """
    settings = connection.settings
    name = settings.exchange
    declare = partial(_attempt, connection, "exchange_declare", name)
    absent = declare(passive=True)
    if absent is not None:
        if absent.reply_code != NOT_FOUND:
            raise refusal(settings, absent) from absent
        if not settings.create_exchange:
            reason = f"there is no exchange {name!r}; create it, or set `create_exchange`"
            raise EndpointError(f"{settings.name}: {reason}") from absent
    # an equal exchange stays as it is; a user without the permission is not told its type
    error = declare("topic", durable=True) if absent is not None or binds else None
    if error is not None:
        if binds and _OTHER_TYPE in error.reply_text:
            reason = f"{name!r} is no topic exchange, so that no pattern selects its messages"
            raise EndpointError(f"{settings.name}: {reason}") from error
        if (
            absent is not None and declare(passive=True) is not None
        ):  # another client did not make it just now
            raise refusal(settings, error) from error
    return absent is None


def find_queue(connection: RabbitmqConnection, queue: str) -> bool:
    """Return whether the queue of a source is there.

    Raises:
        EndpointError: the server does not tell.
    """
    error = _attempt(connection, "queue_declare", queue, passive=True)
    if error is not None and error.reply_code != NOT_FOUND:
        raise refusal(connection.settings, error) from error
    return error is None


def make_queue(connection: RabbitmqConnection, queue: str) -> bool:
    """Make the queue of a source; return False where somebody else has just made it.

    Raises:
        EndpointError: the server does not create it.
    """
    settings = connection.settings
    declare = partial(_attempt, connection, "queue_declare", queue)
    arguments: dict[str, Any] = {"x-queue-type": settings.queue_type}
    if settings.queue_type != "stream":  # two readers would divide a subject, and its order
        arguments["x-single-active-consumer"] = True
    if settings.queue_type == "quorum" and connection.version >= RETURNS_LIMITED:
        arguments["x-delivery-limit"] = -1
    error = declare(durable=True, arguments=arguments)
    if error is not None and declare(passive=True) is not None:
        raise refusal(settings, error) from error
    return error is None


def is_stream(connection: RabbitmqConnection, queue: str) -> bool:
    """Return whether a queue is a stream: only then a consumer may have an offset.

    The server says it in no other way, and notes the refusal in its log (RabbitMQ 3.10 and later).
    """
    consume = partial(_attempt, connection, "basic_consume", queue, prefetch=1)
    return consume(lambda *_: None, arguments={STREAM_OFFSET: "next"}) is None


def count_messages(connection: RabbitmqConnection, queue: str) -> int:
    """Return how many messages wait in a queue that exists."""
    asked = connection.ask(partial(connection.channel.queue_declare, queue, passive=True))
    return int(asked.method.message_count)


def delete_queue(connection: RabbitmqConnection, queue: str) -> None:
    """Delete a queue, which may be absent.

    Raises:
        EndpointError: the server refuses.
    """
    error = _attempt(connection, "queue_delete", queue)
    if error is not None and error.reply_code != NOT_FOUND:
        raise refusal(connection.settings, error) from error


def bind(connection: RabbitmqConnection, queue: str, bindings: Collection[Binding]) -> None:
    """Bind the queue.

    Raises:
        EndpointError: the server refuses a binding.
    """
    channel = connection.open_channel()
    for exchange, pattern in bindings:
        try:
            connection.ask(partial(channel.queue_bind, queue, exchange, pattern), channel)
        except ChannelClosedByBroker as error:
            raise refusal(connection.settings, error) from error
    close_channel(connection, channel)


def unbind(
    connection: RabbitmqConnection, queue: str, bindings: Collection[Binding]
) -> list[Binding]:
    """Remove bindings; return those that the server refused to remove."""
    left: list[Binding] = []
    for exchange, pattern in bindings:
        error = _attempt(connection, "queue_unbind", queue, exchange, pattern)
        if error is not None and error.reply_code != NOT_FOUND:
            log.warning("a binding of %r stays: %s", queue, error.reply_text)
            left.append((exchange, pattern))
    return left


def _attempt(
    connection: RabbitmqConnection,
    method: str,
    *arguments: object,
    prefetch: int = 0,
    **options: object,
) -> ChannelClosedByBroker | None:
    """Call a method of a channel of its own, which a refusal closes; return the refusal."""
    channel = connection.open_channel(prefetch)
    try:
        connection.ask(partial(getattr(channel, method), *arguments, **options), channel)
    except ChannelClosedByBroker as error:
        return error
    close_channel(connection, channel)
    return None


def close_channel(connection: RabbitmqConnection, channel: Untyped) -> None:
    """Close a channel that `open_channel` returned."""

    def close(callback: Callable[[Any], None]) -> None:
        channel.add_on_close_callback(lambda _channel, _error: callback(None))
        channel.close()

    connection.ask(close)
