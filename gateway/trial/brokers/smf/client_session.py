"""The connection of one client; a protocol error ends this connection only."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, cast

from gateway.errors import WireError
from gateway.trial.brokers.serving import without_delay
from gateway.trial.brokers.smf.queues import ConsumerFlow
from gateway.trial.brokers.smf.vpn import PublisherFlow, ShareGroup, Vpn
from gateway.trial.brokers.smf.write_buffer import WriteBuffer
from gateway.wire.smf.assured_control import (
    AssuredControl,
    ControlField,
    ControlType,
    encode_control,
    encode_control_reply,
    encode_fields,
)
from gateway.wire.smf.frames import MAX_HEADER, SmfDecoder
from gateway.wire.smf.responses import OK, SmfResponse

if TYPE_CHECKING:
    from gateway.trial.brokers.smf.dispatcher import MessageDispatcher

log = logging.getLogger(__name__)

_MAX_LOGIN_BYTES = 65_536  # of a message before the login


class ClientSession(asyncio.Protocol):
    """A connection, from its first byte to its last.

    Mutable: owned by the broker's event loop.
    """

    transport: asyncio.Transport
    output: WriteBuffer

    def __init__(self, broker: MessageDispatcher) -> None:
        self._broker = broker
        self._decoder = SmfDecoder(broker.options.max_message + MAX_HEADER)
        self.vpn: Vpn | None = None  # set by the login
        self.name = ""
        self.keepalive = 0
        self.is_over = False
        self._incomplete = 0  # bytes of a message that has not arrived completely
        loop = asyncio.get_running_loop()
        self.connected_at = self.last_received = loop.time()
        self.subscriptions: dict[bytes, ShareGroup | None] = {}
        self.publishers: dict[int, PublisherFlow] = {}
        self.flows: dict[int, ConsumerFlow] = {}
        self.acks: dict[int, PublisherFlow] = {}  # publisher flows with messages to acknowledge

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        without_delay(transport)
        broker = self._broker
        self.output = WriteBuffer(self.transport, broker, self._deliver_waiting)
        if len(broker.sessions) >= broker.options.max_connections:
            self.end("too many connections")
        else:
            broker.sessions[self] = None

    def data_received(self, data: bytes) -> None:
        if self.is_over:
            return
        self.last_received = asyncio.get_running_loop().time()
        before = self._decoder.held
        try:
            frames = self._decoder.feed(data)
            self._count_incomplete(self._decoder.held - before)
            self._broker.receive(self, frames)
        except WireError as error:
            self._broker.flush()  # before `end` writes acknowledgements
            self.end(str(error))
        self._broker.flush()

    def resume_writing(self) -> None:
        self.output.flush()
        self._broker.flush()

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        if not self.is_over:
            log.info("smf broker: %s disconnected", self.name or "a connection without a login")
        self.is_over = True
        self._broker.memory.held -= self._incomplete
        self.output.close()
        self._broker.drop(self)
        self._broker.flush()

    def _deliver_waiting(self) -> None:
        """Deliver waiting messages after the buffer has room again."""
        if not self.is_over:
            for flow in self.flows.values():
                flow.queue.deliver_waiting()

    def _count_incomplete(self, more: int) -> None:
        """Count bytes of incomplete messages.

        Raises:
            WireError: this client or all clients together hold too many.
        """
        memory, held = self._broker.memory, self._decoder.held
        self._incomplete += more
        memory.held += more
        if held > _MAX_LOGIN_BYTES and self.vpn is None:
            raise WireError(f"smf: more than {_MAX_LOGIN_BYTES} bytes before the login")
        if held and memory.is_full:
            raise WireError("smf: the broker's memory is used up")

    def answer(
        self,
        request: AssuredControl,
        response: SmfResponse,
        *fields: tuple[ControlField, int | bytes],
    ) -> None:
        """Answer an assured control message."""
        if response != OK:
            log.info("smf broker: refused to %s: %s", self.name, response.text)
        self.output.post(encode_control_reply(request, response, encode_fields(*fields)))

    def end(self, reason: str, *, at_once: bool = False) -> None:
        """Write pending answers and close; later input is ignored.

        `at_once` is for a client that may read nothing: a write to it would never end.
        """
        if not self.is_over:
            self.is_over = True
            log.info("smf broker: closing %s: %s", self.name or "a connection", reason)
            if at_once:
                self.transport.abort()
            else:
                self.output.flush()
                self.transport.close()


def notify(
    output: WriteBuffer,
    kind: ControlType,
    flow_id: int,
    *fields: tuple[ControlField, int | bytes],
    response: SmfResponse | None = None,
) -> None:
    """Send an assured control message about a flow that answers none."""
    encoded = encode_fields((ControlField.FLOW_ID, flow_id), *fields)
    output.post(encode_control(AssuredControl(kind, fields=encoded, response=response)))
