"""A queue that a source left at its server: what it holds, and its end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from gateway.endpoints.made import ABSENT, UNKNOWN, Held, Made
from gateway.endpoints.rabbitmq import topology
from gateway.endpoints.rabbitmq.connection import RabbitmqConnection
from gateway.endpoints.settings.rabbitmq import RabbitmqSettings


def count_held(settings: RabbitmqSettings, made: Made) -> Held:
    """Count what waits in the queue; a stream tells an old number, or 0 (RabbitMQ 3.10)."""
    with _connected(settings) as connection:
        if not topology.find_queue(connection, made.name):
            return ABSENT
        if topology.is_stream(connection, made.name):
            return UNKNOWN
        return Held(topology.count_messages(connection, made.name))


def end_made(settings: RabbitmqSettings, made: Made) -> None:
    """Delete the queue with its bindings; its exchange stays."""
    with _connected(settings) as connection:
        topology.delete_queue(connection, made.name)


@contextmanager
def _connected(settings: RabbitmqSettings) -> Iterator[RabbitmqConnection]:
    connection = RabbitmqConnection(settings, lambda _failure: None, settings.max_message_in)
    try:
        yield connection
    finally:
        connection.close()
