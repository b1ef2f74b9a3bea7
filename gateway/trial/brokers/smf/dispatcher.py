"""Dispatch of SMF messages in the broker, and the end of a connection."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Callable, Mapping
from itertools import count

from gateway.errors import WireError
from gateway.trial.brokers.serving import MemoryBudget
from gateway.trial.brokers.smf import consumer_flows, publisher_flows
from gateway.trial.brokers.smf.client_session import ClientSession
from gateway.trial.brokers.smf.login import log_in
from gateway.trial.brokers.smf.store import BrokerStore
from gateway.trial.brokers.smf.subscription_changes import change_subscription, remove_all
from gateway.trial.brokers.smf.vpn import BrokerState, Vpn
from gateway.trial.brokers.smf.write_buffer import WriteBuffer
from gateway.wire.smf.assured_control import AssuredControl, ControlType, decode_control
from gateway.wire.smf.frames import GUARANTEED, Protocol, encode_frame, protocol_of

log = logging.getLogger(__name__)

_KEEPALIVE = encode_frame(Protocol.KEEPALIVE, b"")
_ACTIONS: Mapping[int, Callable[[ClientSession, Vpn, AssuredControl], None]] = {
    ControlType.ACK: consumer_flows.acknowledge,
    ControlType.CLOSE_PUBLISHER: publisher_flows.close_publisher,
    ControlType.UNBIND: consumer_flows.unbind,
    ControlType.CREATE: consumer_flows.create_queue,
    ControlType.DELETE: consumer_flows.delete_queue,
}
_MAX_MISSED_KEEPALIVES = 3


class MessageDispatcher:
    """Dispatches messages; keeps the connections and, in `state`, what outlives them.

    Mutable: owned by the broker's event loop.
    """

    def __init__(
        self, state: BrokerState, store: BrokerStore | None, stop: Callable[[], None]
    ) -> None:
        """Keep `stop`, which ends the broker when `store` cannot be written."""
        self.options, self.state = state.options, state
        self.store, self.stop = store, stop
        self.sessions: dict[ClientSession, None] = {}
        self.memory = MemoryBudget(self.options.total_bytes)
        self.unflushed: list[WriteBuffer] = []
        self._flow_ids = count(1)

    def receive(self, session: ClientSession, frames: list[bytes]) -> None:
        """Act on whole messages of one client, in order.

        Raises:
            WireError: a message breaks the protocol; the earlier ones took effect.
        """
        try:
            for frame in frames:
                vpn = session.vpn
                if vpn is not None and frame[1] & 0x3F == Protocol.MESSAGE:
                    if frame[0] & GUARANTEED:
                        publisher_flows.spool_message(session, vpn, frame)
                    else:
                        vpn.relay_direct(frame)
                elif not session.is_over:
                    self._control(session, vpn, frame)
        finally:
            if session.acks and session.vpn is not None:
                publisher_flows.acknowledge_all(session, session.vpn)

    def flush(self) -> None:
        """Write the effects of the last messages: first to the store, then to the clients."""
        while self.store is None or self._is_stored(self.store):
            buffers = self.unflushed.copy()
            self.unflushed.clear()
            for output in buffers:
                output.flush()
            if not self.unflushed:  # a flush that made room queues more messages
                return

    def _is_stored(self, store: BrokerStore) -> bool:
        """Store the changes, or stop without an answer: no message is acknowledged unstored."""
        try:
            store.commit()
        except sqlite3.Error as error:
            log.error("smf broker: stopping: the store cannot be written: %s", error)  # noqa: TRY400  # the reason is enough
            self.unflushed.clear()
            for session in list(self.sessions):
                session.is_over = True
                session.transport.abort()
            self.stop()
            return False
        return True

    def drop(self, session: ClientSession) -> None:
        """Remove a connection; its queues and publisher names stay."""
        self.sessions.pop(session, None)
        vpn = session.vpn
        if vpn is None:
            return
        if vpn.clients.get(session.name) is session:
            del vpn.clients[session.name]
        remove_all(session, vpn)
        for flow in session.flows.values():
            if flow in flow.queue.flows:
                consumer_flows.release(flow)
            if not flow.queue.durable:
                later = self.options.temporary_seconds
                asyncio.get_running_loop().call_later(later, vpn.remove_unused, flow.queue)
        session.flows.clear()

    def drop_silent(self) -> None:
        """End connections without a login in time, and connections whose keepalives stopped."""
        now = asyncio.get_running_loop().time()
        for session in list(self.sessions):
            if session.vpn is None:
                if now - session.connected_at > self.options.login_timeout:
                    session.end("no login in time")
            elif (
                session.keepalive
                and now - session.last_received > _MAX_MISSED_KEEPALIVES * session.keepalive + 1
            ):
                session.end("silent for too long", at_once=True)

    def _control(self, session: ClientSession, vpn: Vpn | None, frame: bytes) -> None:
        match protocol_of(frame):
            case Protocol.CLIENT_CONTROL:
                log_in(session, frame, self.state)
            case _ if vpn is None:
                raise WireError("smf: the first message is not a login")
            case Protocol.KEEPALIVE:
                session.output.post(_KEEPALIVE)
            case Protocol.SUBSCRIPTION:
                change_subscription(session, vpn, frame)
            case Protocol.ASSURED_CONTROL:
                self._assured(session, vpn, frame)
            case unknown:
                raise WireError(f"smf: protocol 0x{unknown:02x} is not known")

    def _assured(self, session: ClientSession, vpn: Vpn, frame: bytes) -> None:
        request = decode_control(frame)
        if request.kind in {ControlType.OPEN_PUBLISHER, ControlType.BIND}:
            self._open_flow(session, vpn, request)
        elif request.kind in _ACTIONS:
            _ACTIONS[request.kind](session, vpn, request)
        elif request.kind != ControlType.FLOW_CHANGE:  # a flow change from a client confirms ours
            raise WireError(f"smf: assured control type {request.kind} is not supported")

    def _open_flow(self, session: ClientSession, vpn: Vpn, request: AssuredControl) -> None:
        if request.response is not None:
            return  # a client answers a flow change with this type too
        if len(session.flows) + len(session.publishers) >= self.options.max_flows:
            raise WireError(f"smf: more than {self.options.max_flows} flows")
        is_bind = request.kind == ControlType.BIND
        open_flow = consumer_flows.bind if is_bind else publisher_flows.open_publisher
        open_flow(session, vpn, request, next(self._flow_ids))
