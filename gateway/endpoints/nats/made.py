"""A consumer that a source left at its server: what it holds, and its end."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from nats.js.errors import NotFoundError

from gateway.endpoints.made import ABSENT, Held, Made
from gateway.endpoints.nats.connection import NatsConnection
from gateway.endpoints.nats.consumer import checked
from gateway.endpoints.settings.nats import NatsSettings
from gateway.untyped import Untyped

T = TypeVar("T")


def count_held(settings: NatsSettings, made: Made) -> Held:
    """Count what was not delivered, and what was and has no answer."""

    async def count(jetstream: Untyped) -> Held:
        try:
            info = await jetstream.consumer_info(made.within, made.name)
        except NotFoundError:
            return ABSENT
        return Held(checked(info.num_pending or 0) + checked(info.num_ack_pending or 0))

    return _ask(settings, count)


def end_made(settings: NatsSettings, made: Made) -> None:
    """Delete the consumer; its stream stays."""

    async def delete(jetstream: Untyped) -> None:
        try:
            await jetstream.delete_consumer(made.within, made.name)
        except NotFoundError:
            return

    _ask(settings, delete)


def _ask(settings: NatsSettings, question: Callable[[Any], Coroutine[Any, Any, T]]) -> T:
    connection = NatsConnection(settings, lambda _failure: None)
    try:
        return connection.call(question(connection.jetstream))
    finally:
        connection.close()
