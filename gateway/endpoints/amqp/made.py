"""A queue that a source left at RabbitMQ: what it holds, and its end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from gateway.endpoints.amqp import topology
from gateway.endpoints.amqp.connection import AmqpConnection
from gateway.endpoints.amqp.management import Management
from gateway.endpoints.made import ABSENT, Held, Made
from gateway.endpoints.settings.amqp import AmqpSettings


def count_held(settings: AmqpSettings, made: Made) -> Held:
    """Count what waits in the queue."""
    with _connected(settings) as management:
        messages = topology.find_queue(management, made.name)
        return ABSENT if messages < 0 else Held(messages)


def end_made(settings: AmqpSettings, made: Made) -> None:
    """Delete the queue with its bindings; its exchange stays."""
    with _connected(settings) as management:
        topology.delete_queue(management, made.name)


@contextmanager
def _connected(settings: AmqpSettings) -> Iterator[Management]:
    connection = AmqpConnection(settings, lambda _failure: None)
    try:
        connection.open()
        yield Management(connection)
    finally:
        connection.close()
