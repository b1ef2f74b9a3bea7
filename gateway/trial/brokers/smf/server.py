"""The SMF broker: its socket, its state and its store."""

from __future__ import annotations

import socket
import ssl
from pathlib import Path

from gateway.errors import EndpointError
from gateway.trial.brokers.serving import ServedBroker
from gateway.trial.brokers.smf.client_session import ClientSession
from gateway.trial.brokers.smf.dispatcher import MessageDispatcher
from gateway.trial.brokers.smf.options import DEFAULT_OPTIONS, BrokerOptions
from gateway.trial.brokers.smf.store import BrokerStore
from gateway.trial.brokers.smf.vpn import BrokerState


class SmfBroker(ServedBroker):
    """Listens from its creation; serves in `run`, or in its own thread inside `with`.

    `url` is its address; port 0 takes a free port. `state` holds the queues and the options: a new
    broker with the same `state` behaves like a restarted one. With `store`, a folder, guaranteed
    messages are on disk before they are acknowledged, and the next broker with that folder has
    them. With `tls` it serves TLS only.
    Thread-safe: `stop` may be called by any thread.
    """

    def __init__(  # most of them by name
        self,
        port: int = 0,
        options: BrokerOptions = DEFAULT_OPTIONS,
        *,
        host: str = "127.0.0.1",
        state: BrokerState | None = None,
        store: Path | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """Listen.

        Raises:
            EndpointError: the port or the store cannot be used.
        """
        self.state = state or BrokerState(options)
        self.faults = self.state.faults
        try:
            listener = socket.create_server((host, port))
        except OSError as error:
            raise EndpointError(f"smf broker: cannot listen at {host}:{port}: {error}") from error
        self.host, self.port = host, int(listener.getsockname()[1])
        self.url = f"{'tcps' if tls else 'tcp'}://{host}:{self.port}"
        try:
            self.store = BrokerStore(store) if store else None
            if self.store is not None:
                for name, vpn in self.state.vpns.items():
                    vpn.keep_in(self.store, name)
        except EndpointError:
            listener.close()
            raise
        self._dispatcher = MessageDispatcher(self.state, self.store, self.stop)
        super().__init__(
            listener,
            lambda: ClientSession(self._dispatcher),
            self._dispatcher.sessions,
            tls,
            self._dispatcher.drop_silent,
        )
        if self.store is not None:
            self.resources.callback(self.store.close)
