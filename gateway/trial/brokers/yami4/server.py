"""The YAMI4 broker: its listening socket and its clients."""

from __future__ import annotations

import socket
from pathlib import Path

from gateway.errors import EndpointError
from gateway.trial.brokers.serving import ServedBroker
from gateway.trial.brokers.yami4.client import ClientConnection
from gateway.trial.brokers.yami4.core import DEFAULT_OPTIONS, BrokerCore, Yami4BrokerOptions


class Yami4Broker(ServedBroker):
    """Listens once it is made; serves in `run`, or in a thread inside `with`.

    `url` is `tcp://host:port` or `unix:///path`. Port 0 takes a free port, which the attribute
    `url` then names.
    """

    def __init__(
        self, url: str = "tcp://127.0.0.1:0", options: Yami4BrokerOptions = DEFAULT_OPTIONS
    ) -> None:
        listener, self.url, path = _listen(url)
        self._core = core = BrokerCore(options)
        super().__init__(listener, lambda: ClientConnection(core), core.clients)
        if path is not None:
            self.resources.callback(path.unlink, missing_ok=True)

    async def _serve(self) -> None:
        warm_up = self._core.options.warm_up
        self._loop.call_later(warm_up, setattr, self._core, "warming_up", False)
        await super()._serve()


def _listen(url: str) -> tuple[socket.socket, str, Path | None]:
    scheme, _, rest = url.partition("://")
    try:
        if scheme == "unix":
            return _listen_unix(Path(rest))
        if scheme == "tcp":
            return _listen_tcp(rest)
    except (OSError, ValueError) as error:
        raise EndpointError(f"yami4 broker: cannot listen at {url!r}: {error}") from error
    raise EndpointError(f"yami4 broker: {url!r} is neither tcp:// nor unix://")


def _listen_tcp(rest: str) -> tuple[socket.socket, str, None]:
    host, _, port = rest.rpartition(":")
    host = "0.0.0.0" if host in {"", "*"} else host  # noqa: S104  # asked for by name
    number = 0 if port == "*" else int(port)
    listener = socket.create_server((host, number))
    address = listener.getsockname()
    return listener, f"tcp://{address[0]}:{address[1]}", None


def _listen_unix(path: Path) -> tuple[socket.socket, str, Path]:
    if path.is_socket():
        path.unlink()
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind(str(path))
        listener.listen()
    except OSError:
        listener.close()
        raise
    return listener, f"unix://{path}", path
