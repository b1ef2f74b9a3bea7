"""The place of a source in one stream, over one connection.

    memory     token of the stream, offset and checksum of the last settled message, and how far
               messages may have been received (`endpoints.source_memory`)
    attached   at the last settled message: it has to come first, with that checksum
    refuted    another message, or none: the stream was made again, or lost its end in a crash.
               It is read from its first message, and what may have been read before is marked

The end of a stream is never asked: no answer of the server has it in every version.
"""

from __future__ import annotations

from concurrent.futures import Future
from functools import partial
from secrets import token_hex
from typing import Final
from zlib import crc32

from gateway.endpoints.continuity import Continuity
from gateway.endpoints.rabbitmq.connection import RabbitmqConnection
from gateway.endpoints.rabbitmq.headers import STREAM_OFFSET
from gateway.endpoints.rabbitmq.topology import count_messages
from gateway.endpoints.source_memory import ALL_THERE, Position
from gateway.model.message import Payload
from gateway.untyped import Untyped

DROPPED: Final = "the stream's retention removed messages before they were read"
MADE_AGAIN: Final = "the stream was made again, or lost its end: the last message read is not in it"
FIRST: Final = "first"


class StreamPlace:
    """The place in the stream `queue`; `begin` says where a source without a place begins.

    Owned by the connection's thread once it is attached.
    """

    def __init__(self, queue: str, position: Position, begin: str) -> None:
        self._queue, self._position, self._begin = queue, position, begin
        position.begin()
        self.is_new = position.is_new
        if not position.is_known:
            position.begin_anew(token_hex(4), ALL_THERE)
            self._begin = FIRST
        elif self.is_new:
            position.begin_anew(token_hex(4))
        self._token, _, self._checksum = position.proof.partition(" ")
        self._proven: Future[bool] = Future()  # whether the stream is the one that is remembered
        self._come = False  # a message over this connection
        if not self._checksum:
            self._proven.set_result(True)

    @property
    def skips_messages(self) -> bool:
        """Whether messages that are there are not read, since `start` says so."""
        return self.is_new and self._begin != FIRST

    def attach(self, connection: RabbitmqConnection, take: Untyped, continuity: Continuity) -> None:
        """Consume from the last settled message on, or from the first one of another stream.

        Raises as `RabbitmqConnection.ask` does.
        """
        settled = self._position.settled
        start: str | int = self._begin
        if settled >= 0:
            start = settled if self._checksum else settled + 1
        consumer = self._consume(connection, take, start)
        if self._is_proven(connection):
            return
        continuity.report_loss(MADE_AGAIN)
        connection.ask(partial(connection.channel.basic_cancel, consumer), connection.channel)
        self._come = False
        self._position.begin_anew(token_hex(4), self._position.seen)
        self._token, self._checksum = self._position.proof, ""
        self._proven = Future()
        self._proven.set_result(True)
        self._consume(connection, take, FIRST)

    def arrived(self, offset: int, payload: bytes, continuity: Continuity) -> str:
        """Take note of a message; return its identity, empty for one that is not handed out."""
        settled = self._position.settled
        if not self._proven.done() and offset >= settled:
            self._proven.set_result(offset > settled or str(crc32(payload)) == self._checksum)
        if not self._proven.done() or not self._proven.result():
            return ""
        if not self._come and settled >= 0 and offset > settled + 1:
            continuity.report_loss(DROPPED)  # without a number: the server's entries have offsets
        self._come = True
        if offset <= settled:
            return ""
        if settled < 0:  # after a crash from now on, the next process begins here
            self._position.settle(offset - 1)
        return f"rabbitmq {self._queue} {self._token} {offset}"

    def is_doubtful(self, offset: int) -> bool:
        """Note that a message is handed out; return whether it may have been before."""
        return self._position.received(offset)

    def settled(self, offset: int, payload: Payload) -> None:
        """Note the last settled message."""
        checksum = crc32(payload) if isinstance(payload, bytes) else 0  # AMQP has no others
        self._position.settle(offset, f"{self._token} {checksum}")

    def _consume(self, connection: RabbitmqConnection, take: Untyped, start: str | int) -> str:
        channel = connection.channel
        arguments = {STREAM_OFFSET: start}
        consume = partial(channel.basic_consume, self._queue, take, arguments=arguments)
        return str(connection.ask(consume, channel).method.consumer_tag)

    def _is_proven(self, connection: RabbitmqConnection) -> bool:
        """Wait for the first message; none is a stream that ends before the place."""
        timeout = connection.settings.answer_timeout
        for _ in range(2):
            try:
                return self._proven.result(timeout)
            except TimeoutError:
                count_messages(connection, self._queue)  # a server that answers is not just slow
        return False
