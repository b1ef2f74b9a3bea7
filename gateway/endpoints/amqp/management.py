"""Requests to RabbitMQ 4 about queues, exchanges and bindings, over AMQP 1.0 itself.

A request is a message to `/management`, and its answer has the status as its subject, as in HTTP.
Source: RabbitMQ documentation, AMQP 1.0, HTTP over AMQP 1.0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from functools import partial
from itertools import count
from typing import Any, Final, NamedTuple

from gateway.endpoints.amqp.connection import AmqpConnection, answer, fail
from gateway.endpoints.amqp.log_in import shown
from gateway.errors import EndpointError, NotConnectedError, WireError
from gateway.wire.amqp import frames, sections
from gateway.wire.amqp.session import ACCEPT, Receiver, Sender, terminus
from gateway.wire.amqp.values import (
    TRUE,
    composite,
    described,
    encode_value,
    map_of,
    read_value,
    string,
    symbol,
    ulong,
)

NODE: Final = "/management"
CREDIT: Final = 100  # answers
OK, CREATED, BAD, DENIED, ABSENT, CONFLICT = 200, 201, 400, 403, 404, 409
_SUBJECT, _CORRELATION = 3, 5  # fields of the properties


class Answer(NamedTuple):
    """The answer to a request: its status, and what it says."""

    status: int
    body: Any

    @property
    def text(self) -> str:
        return self.body if isinstance(self.body, str) else f"status {self.status}"


class Management:
    """The link pair of a connection to `/management`. Mutable: owned by the connection's thread."""

    def __init__(self, connection: AmqpConnection) -> None:
        """Ask for the links, and wait for them. Raises as `AmqpConnection.ask` does."""
        self._connection = connection
        self.name = connection.settings.name
        self._numbers = count(1)
        self._asked: dict[int, Callable[[Answer], object]] = {}
        node = terminus(frames.SOURCE, NODE), terminus(frames.TARGET, NODE)
        self._sender = Sender(NODE, node, self._detached, settled=True)
        self._receiver = Receiver(
            NODE, node, self._detached, arrived=self._arrived, max_size=frames.MIN_FRAME << 8
        )
        connection.ask(self._attach)

    def request(
        self, method: str, path: str, body: object = None, *, accepts: tuple[int, ...] = ()
    ) -> Answer:
        """Return the answer to a request; `accepts` are statuses that are not an error.

        Raises:
            EndpointError: the server refuses.
            NotConnectedError: no answer in time, or the connection is lost.
        """

        def begin(future: Future[Answer]) -> None:
            self.begin(method, path, body, partial(answer, future))

        found: Answer = self._connection.ask(begin)
        if found.status >= BAD and found.status not in accepts:
            raise EndpointError(f"{self.name}: {found.text}")
        return found

    def begin(
        self, method: str, path: str, body: object, answered: Callable[[Answer], object]
    ) -> None:
        """Send a request without waiting; in the connection's thread."""
        number = next(self._numbers)
        self._asked[number] = answered
        texts = string(path), string(method), string("$me")
        data = composite(sections.PROPERTIES, [ulong(number), None, *texts])
        data += described(sections.VALUE, encode_value(body))
        self._connection.session.send(self._sender, [(number, data)])

    def _attach(self, future: Future[Any]) -> None:
        waiting = [self._sender, self._receiver]

        def attached(link: Sender | Receiver) -> None:
            waiting.remove(link)
            if not waiting:
                self._connection.session.grant(self._receiver, CREDIT, CREDIT)
                answer(future, None)

        def refused(condition: str, text: str) -> None:
            error = NotConnectedError(f"{self.name}: {shown(condition, text)}")
            fail(future, error)
            self._detached(condition, text)

        paired = map_of({symbol("paired"): TRUE})
        for link in (self._sender, self._receiver):
            link.attached, link.detached = partial(attached, link), refused
            self._connection.session.attach(link, paired)

    def _detached(self, condition: str, text: str) -> None:
        self._connection.end(shown(condition, text) or "the server ended the link of requests")

    def _arrived(self, number: int, data: bytes, _size: int) -> None:
        session = self._connection.session
        session.settle(number, number, ACCEPT)
        session.grant(self._receiver, CREDIT, max(CREDIT, session.window))
        asked, found = _read_answer(data)
        if (answered := self._asked.pop(asked, None)) is not None:
            answered(found)


def _read_answer(data: bytes) -> tuple[int, Answer]:
    """Return the number of the request, and its answer.

    Raises:
        WireError: it is none.
    """
    parts = sections.find_parts(data)
    fields = [*sections.read_head(parts.head).properties, *[None] * 6]
    number, status = fields[_CORRELATION], str(fields[_SUBJECT])
    if not isinstance(number, int) or not status.isdecimal():
        raise WireError("amqp: the server gave an answer without a number")
    body = read_value(data, parts.body[0].at)[0] if parts.body else None
    return number, Answer(int(status), body)


def as_map(found: object) -> Mapping[str, Any]:
    """Return the body of an answer, where it is a map."""
    return found if isinstance(found, dict) else {}
