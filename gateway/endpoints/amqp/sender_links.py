"""Links of a sink: made, asked for, and used to look for the exchange of RabbitMQ."""

from __future__ import annotations

from concurrent.futures import Future
from functools import partial
from typing import Any

from gateway.endpoints.amqp.addresses import EXCHANGES, encoded
from gateway.endpoints.amqp.connection import AmqpConnection, answer, fail
from gateway.endpoints.amqp.log_in import NOT_FOUND, UNAUTHORISED, refusal
from gateway.errors import EndpointError, NotConnectedError
from gateway.wire.amqp import frames
from gateway.wire.amqp.session import Sender, terminus


def new_sender(name: str, target: bytes) -> Sender:
    """Return a link to a target, which is not attached."""
    return Sender(name, (terminus(frames.SOURCE, None), target), lambda _condition, _text: None)


def attach_sender(connection: AmqpConnection, link: Sender, future: Future[Any]) -> None:
    """Ask for a link; `future` gets the answer. Its refusal is the future's."""
    later = link.detached

    def attached() -> None:
        link.detached = later
        answer(future, None)

    def refused(condition: str, text: str) -> None:
        fail(future, refusal(connection.settings.name, condition, text))

    link.attached, link.detached = attached, refused
    connection.session.attach(link)


def look_for_exchange(connection: AmqpConnection) -> None:
    """Look for the exchange by a link to it.

    Raises:
        EndpointError: there is none, or the user may not write to it.
    """
    name, exchange = connection.settings.name, connection.settings.exchange
    path = f"{EXCHANGES}{encoded(exchange)}"
    try:
        probe = new_sender(path, terminus(frames.TARGET, path))
        connection.ask(partial(attach_sender, connection, probe))
    except NotConnectedError as error:
        if NOT_FOUND in str(error):
            reason = f"there is no exchange {exchange!r}"
            hint = "create it, or set `create_exchange`"
        elif UNAUTHORISED in str(error):
            reason = f"the user may not write to the exchange {exchange!r}"
            hint = "give it that permission at the server"
        else:
            raise
        raise EndpointError(f"{name}: {reason}; {hint}") from error
