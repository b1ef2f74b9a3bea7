"""One client connection of the YAMI4 broker: messages received, and bytes to be written."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from gateway.errors import WireError
from gateway.trial.brokers.serving import UnwrittenBytes, without_delay
from gateway.trial.brokers.yami4.matching import PatternList
from gateway.wire.yami4.frames import FrameDecoder

if TYPE_CHECKING:
    from gateway.trial.brokers.yami4.core import BrokerCore

log = logging.getLogger(__name__)

_PAUSE_ABOVE = 4 << 20  # unwritten bytes of a client above which it is not read


@dataclass(slots=True, eq=False)
class SubscriptionRow:
    """A row of the subscription table; `pending` counts updates that are not fully written.

    Mutable: its counters change with each update.
    """

    patterns: PatternList
    destination: bytes
    client: ClientConnection
    pending: int = 0
    sent_messages: int = 0
    sent_bytes: int = 0


class ClientConnection(asyncio.Protocol):
    """A connection with its unwritten bytes; `failed` once it is over.

    Mutable: owned by the broker's event loop.
    """

    transport: asyncio.Transport
    output: UnwrittenBytes

    def __init__(self, core: BrokerCore) -> None:
        self._core, self._memory = core, core.memory
        self.location = f"unix://${next(core.numbers)}"  # of a client without a port
        self.failed = False
        self._is_refused = len(core.clients) >= core.options.max_connections
        core.clients.add(self)
        self._decoder = FrameDecoder(core.options.frames)
        self._posted = 0  # bytes in total
        # the end of each update, counted in posted bytes
        self._ends: deque[tuple[int, SubscriptionRow]] = deque()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.transport.set_write_buffer_limits(high=_PAUSE_ABOVE)
        self.output = UnwrittenBytes(self.transport, self._memory)
        if isinstance(address := transport.get_extra_info("peername"), tuple):
            without_delay(transport)
            self.location = f"tcp://{address[0]}:{address[1]}"
        log.info("yami4 broker: %s connected", self.location)
        if self._is_refused:
            self.fail("too many connections")

    def data_received(self, data: bytes) -> None:
        before = self._decoder.held
        try:
            packets = self._decoder.feed(data)
        except WireError:
            packets = []
        self._memory.held += self._decoder.held - before
        is_too_much = self._memory.is_full and self._decoder.held > 0
        is_over = self._decoder.fault is not None or is_too_much
        self._core.receive(self, packets)
        if is_over:
            self.fail(str(self._decoder.fault or "the memory of the broker is used up"))

    def eof_received(self) -> None:
        self.fail()

    def pause_writing(self) -> None:
        self.transport.pause_reading()

    def resume_writing(self) -> None:
        self.transport.resume_reading()
        self.flush()

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self.fail()

    def post(self, data: bytes, subscription: SubscriptionRow | None = None) -> None:
        """Queue bytes for the client; `flush` writes them."""
        if self.failed:
            return
        self.output.add(data)
        self._posted += len(data)
        if subscription is not None:
            subscription.pending += 1
            self._ends.append((self._posted, subscription))

    def flush(self) -> None:
        """Write as much as the socket takes now."""
        self.output.flush()
        written, ends = self._posted - self.output.unwritten, self._ends
        while ends and ends[0][0] <= written:
            ends.popleft()[1].pending -= 1

    def fail(self, reason: str = "") -> None:
        """Close the connection; drop its unwritten bytes and its subscriptions.

        Without a `reason` the client closed it.
        """
        if not self.failed:
            self.failed = True
            if reason:
                log.info("yami4 broker: closing %s: %s", self.location, reason)
            else:
                log.info("yami4 broker: %s disconnected", self.location)
            self._memory.held -= self._decoder.held
            self.output.close()
            self._core.drop(self)
