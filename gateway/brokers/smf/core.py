"""What the SMF broker does with a message: the dispatch, and what ends with a connection."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from itertools import count

from gateway.brokers.smf.consuming import (
    acknowledge,
    bind,
    create_queue,
    delete_queue,
    release,
    unbind,
)
from gateway.brokers.smf.journal import Journal
from gateway.brokers.smf.login import log_in
from gateway.brokers.smf.outbox import Memory, Outbox
from gateway.brokers.smf.publishing import (
    acknowledge_all,
    close_publisher,
    open_publisher,
    take_message,
)
from gateway.brokers.smf.queues import Queue
from gateway.brokers.smf.session import Session
from gateway.brokers.smf.store import tidy
from gateway.brokers.smf.subscribing import change_subscription, find_fault, remove_all
from gateway.brokers.smf.vpn import State, Vpn
from gateway.errors import WireError
from gateway.wire.smf.assured import Control, Kind, decode_control
from gateway.wire.smf.frames import GUARANTEED, MAX_HEADER, Protocol, encode_frame, protocol_of
from gateway.wire.smf.messages import read_topic

log = logging.getLogger(__name__)

_KEEPALIVE = encode_frame(Protocol.KEEPALIVE, b"")
_ACTIONS: Mapping[int, Callable[[Session, Vpn, Control], None]] = {
    Kind.ACK: acknowledge,
    Kind.CLOSE_PUBLISHER: close_publisher,
    Kind.UNBIND: unbind,
    Kind.CREATE: create_queue,
    Kind.DELETE: delete_queue,
}
_MISSED = 3  # keepalives a client may miss


class Core:
    """Mutable: the connections, and through `state` all that outlives them."""

    def __init__(self, state: State, journal: Journal | None, stop: Callable[[], None]) -> None:
        """`stop` ends the broker; it is called when `journal` cannot be written."""
        self.options, self.state = state.options, state
        self.journal, self.stop = journal, stop
        self.sessions: dict[Session, None] = {}
        self.memory = Memory(self.options.total_bytes)
        self.dirty: list[Outbox] = []
        self._flow_ids = count(1)

    @property
    def peer_bytes(self) -> int:
        return self.options.peer_bytes

    @property
    def max_frame(self) -> int:
        return self.options.max_message + MAX_HEADER

    @property
    def is_full(self) -> bool:
        return len(self.sessions) >= self.options.max_connections

    def receive(self, session: Session, frames: list[bytes]) -> None:
        """Act on whole messages of one client, in order.

        Raises:
            WireError: one of them breaks the protocol; what came before it counts.
        """
        try:
            for frame in frames:
                vpn = session.vpn
                if vpn is not None and frame[1] & 0x3F == Protocol.MESSAGE:
                    if frame[0] & GUARANTEED:
                        take_message(session, vpn, frame)
                    else:
                        self._relay(vpn, frame)
                elif not session.is_over:
                    self._control(session, vpn, frame)
        finally:
            if session.acks and session.vpn is not None:
                acknowledge_all(session, session.vpn)

    def flush(self) -> None:
        """Write what the last messages caused: into the store, and then to the clients."""
        while self.journal is None or self._is_stored(self.journal):
            outboxes = self.dirty.copy()
            self.dirty.clear()
            for outbox in outboxes:
                outbox.flush()
            if not self.dirty:  # else there was room for more
                return

    def tidy(self) -> None:
        """Keep the store small."""
        if self.journal is not None:
            try:
                tidy(self.journal, self.state.vpns)
            except OSError as error:
                self._give_up(error)

    def _is_stored(self, journal: Journal) -> bool:
        try:
            journal.commit()
        except OSError as error:
            self._give_up(error)
            return False
        return True

    def _give_up(self, error: OSError) -> None:
        """Nobody may be told that a message is safe when it is not: end without a word."""
        log.error("smf broker: it stops: the store cannot be written: %s", error)
        self.dirty.clear()
        for session in list(self.sessions):
            session.is_over = True
            session.transport.abort()
        self.stop()

    def drop(self, session: Session) -> None:
        """Forget a connection; its queues and publisher names stay."""
        self.sessions.pop(session, None)
        vpn = session.vpn
        if vpn is None:
            return
        if vpn.clients.get(session.name) is session:
            del vpn.clients[session.name]
        remove_all(session, vpn)
        for flow in session.flows.values():
            if flow in flow.queue.flows:
                release(flow)
            if not flow.queue.durable:
                self._remove_later(vpn, flow.queue)
        session.flows.clear()

    def drop_silent(self) -> None:
        """End connections that never logged in, and those whose keepalives stopped."""
        now = asyncio.get_running_loop().time()
        for session in list(self.sessions):
            if session.vpn is None:
                if now - session.since > self.options.login_timeout:
                    session.end("no login in time")
            elif session.keepalive and now - session.heard > _MISSED * session.keepalive + 1:
                session.end("silent for too long")

    def _relay(self, vpn: Vpn, frame: bytes) -> None:
        if vpn.faults.publish and find_fault(vpn.faults.publish, read_topic(frame)):
            return  # nobody is told: direct messages have no answer
        vpn.relay(frame)

    def _control(self, session: Session, vpn: Vpn | None, frame: bytes) -> None:
        match protocol_of(frame):
            case Protocol.CLIENT_CONTROL:
                log_in(session, frame, self.state)
            case _ if vpn is None:
                raise WireError("smf: the first message is not a login")
            case Protocol.KEEPALIVE:
                session.outbox.post(_KEEPALIVE)
            case Protocol.SUBSCRIPTION:
                change_subscription(session, vpn, frame)
            case Protocol.ASSURED_CONTROL:
                self._assured(session, vpn, frame)
            case unknown:
                raise WireError(f"smf: protocol 0x{unknown:02x} is not known")

    def _assured(self, session: Session, vpn: Vpn, frame: bytes) -> None:
        request = decode_control(frame)
        if request.kind in {Kind.OPEN_PUBLISHER, Kind.BIND}:
            self._open_flow(session, vpn, request)
        elif request.kind in _ACTIONS:
            _ACTIONS[request.kind](session, vpn, request)
        elif request.kind != Kind.FLOW_CHANGE:  # that one confirms ours
            raise WireError(f"smf: assured control type {request.kind} is not supported")

    def _open_flow(self, session: Session, vpn: Vpn, request: Control) -> None:
        if request.response is not None:
            return  # a client answers our flow change with this type too
        if len(session.flows) + len(session.publishers) >= self.options.max_flows:
            raise WireError(f"smf: more than {self.options.max_flows} flows")
        opens = bind if request.kind == Kind.BIND else open_publisher
        opens(session, vpn, request, next(self._flow_ids))

    def _remove_later(self, vpn: Vpn, queue: Queue) -> None:
        def remove() -> None:
            if not queue.flows:
                vpn.remove_queue(queue)

        asyncio.get_running_loop().call_later(self.options.temporary_seconds, remove)
