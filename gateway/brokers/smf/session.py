"""One client's connection: bytes in, answers out; a broken protocol ends it and nobody else's."""

from __future__ import annotations

import asyncio
import logging
import socket
from typing import Protocol, cast

from gateway.brokers.smf.outbox import Memory, Outbox
from gateway.brokers.smf.queues import Flow
from gateway.brokers.smf.vpn import Group, Publisher, Vpn
from gateway.errors import WireError
from gateway.wire.smf.frames import FrameDecoder

log = logging.getLogger(__name__)

_BEFORE_LOGIN = 65_536  # bytes of a message from somebody we do not know


class Broker(Protocol):
    """What a connection needs from the broker."""

    dirty: list[Outbox]
    memory: Memory
    sessions: dict[Session, None]

    @property
    def peer_bytes(self) -> int: ...

    @property
    def max_frame(self) -> int: ...

    @property
    def is_full(self) -> bool: ...

    def receive(self, session: Session, frames: list[bytes]) -> None: ...

    def drop(self, session: Session) -> None: ...

    def flush(self) -> None: ...


class Session(asyncio.Protocol):
    """Mutable: a connection, from the first byte to the last."""

    transport: asyncio.Transport
    outbox: Outbox

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._decoder = FrameDecoder(broker.max_frame)
        self.vpn: Vpn | None = None  # set by the login
        self.name = ""
        self.keepalive = 0
        self.is_over = False
        self._incomplete = 0  # bytes of a message that has not arrived whole
        loop = asyncio.get_running_loop()
        self.since = self.heard = loop.time()
        self.subscriptions: dict[bytes, Group | None] = {}
        self.publishers: dict[int, Publisher] = {}
        self.flows: dict[int, Flow] = {}
        self.acks: dict[int, Publisher] = {}  # publisher flows with something to acknowledge

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        connection: socket.socket = transport.get_extra_info("socket")
        # asyncio leaves it out for sockets of a listener that was made without a protocol number
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        broker = self._broker
        self.outbox = Outbox(
            self.transport, broker.peer_bytes, broker.memory, broker.dirty, self._go_on
        )
        if broker.is_full:
            self.end("too many connections")
        else:
            broker.sessions[self] = None

    def data_received(self, data: bytes) -> None:
        if self.is_over:
            return
        self.heard = asyncio.get_running_loop().time()
        before = self._decoder.held
        try:
            frames = self._decoder.feed(data)
            self._book(self._decoder.held - before)
            self._broker.receive(self, frames)
        except WireError as error:
            self._broker.flush()  # what is acknowledged must be stored before `end` writes it
            self.end(str(error))
        self._broker.flush()

    def pause_writing(self) -> None:
        self.outbox.pause()

    def resume_writing(self) -> None:
        self.outbox.resume()
        self._broker.flush()

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self.is_over = True
        self._broker.memory.held -= self._incomplete
        self.outbox.close()
        self._broker.drop(self)
        self._broker.flush()

    def _go_on(self) -> None:
        """There is room again for what waits in queues."""
        if not self.is_over:
            for flow in self.flows.values():
                flow.queue.pump()

    def _book(self, more: int) -> None:
        """Count what waits for its end.

        Raises:
            WireError: it is too much, of this client or of all.
        """
        memory, held = self._broker.memory, self._decoder.held
        self._incomplete += more
        memory.held += more
        if held > _BEFORE_LOGIN and self.vpn is None:
            raise WireError(f"smf: more than {_BEFORE_LOGIN} bytes before the login")
        if held and memory.held > memory.limit:
            raise WireError("smf: the broker's memory is used up")

    def end(self, reason: str) -> None:
        """Write what is due and close; what still arrives is not looked at."""
        if not self.is_over:
            self.is_over = True
            log.info("smf broker: closing %s: %s", self.name or "a connection", reason)
            self.outbox.flush()
            self.transport.close()
