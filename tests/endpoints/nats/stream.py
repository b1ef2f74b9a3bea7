"""Sources, messages and an administrator of the stream `T`."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

from gateway.endpoints.base import Source, Subscription
from gateway.endpoints.registry import make_source
from gateway.endpoints.settings.nats import NatsSettings
from gateway.model.message import DeliveryMode, Headers, Message

MODE = DeliveryMode.AT_LEAST_ONCE


def source_of(settings: NatsSettings, *patterns: str) -> Source:
    wanted = [Subscription(each) for each in patterns or ("t.>",)]
    return make_source(settings, wanted, instance="r")


def say(number: int, subject: str = "t.x", source_id: str | None = None) -> Message:
    return Message(subject, str(number).encode(), Headers(mode=MODE, source_id=source_id))


def ask(settings: NatsSettings, work: Callable[[Any], Coroutine[Any, Any, Any]]) -> Any:  # noqa: ANN401  # the library's
    """Have an administrator's connection do something with JetStream; return the answer."""
    from gateway.endpoints.nats.connection import NatsConnection  # noqa: PLC0415  # skips without it

    connection = NatsConnection(settings, lambda _failure: None)
    try:
        return connection.call(work(connection.jetstream))
    finally:
        connection.close()


@contextmanager
def answering(settings: NatsSettings, subject: str, answer: object) -> Iterator[None]:
    """Give this answer, as JSON, to each message of a subject that no stream has."""
    from gateway.endpoints.nats.connection import NatsConnection  # noqa: PLC0415  # as above

    connection = NatsConnection(settings, lambda _failure: None)

    async def give(message: Any) -> None:  # noqa: ANN401  # the driver's
        await connection.client.publish(message.reply, json.dumps(answer).encode())

    async def listen() -> None:
        await connection.client.subscribe(subject, cb=give)
        await connection.client.flush()

    try:
        connection.call(listen())
        yield
    finally:
        connection.close()


def numbers(messages: list[Message]) -> list[int]:
    return [int(bytes(each.payload)) for each in messages]  # type: ignore[arg-type]  # bytes were sent
