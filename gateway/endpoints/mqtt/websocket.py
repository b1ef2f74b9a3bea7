"""MQTT in the binary frames of a WebSocket (MQTT 5.0, 6; RFC 6455).

The frames are a stream: a packet may span several, and one may have many packets. A frame is given
to the decoder of packets as it arrives, so that none is kept here. No extension is offered, so that
nothing is compressed.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from time import monotonic
from typing import Final

import h11
from wsproto import ConnectionType, WSConnection
from wsproto.connection import ConnectionState
from wsproto.events import (
    AcceptConnection,
    BytesMessage,
    CloseConnection,
    Event,
    Ping,
    RejectConnection,
    Request,
    TextMessage,
)
from wsproto.frame_protocol import CloseReason
from wsproto.utilities import LocalProtocolError, RemoteProtocolError

from gateway.endpoints.mqtt.connection_errors import ConnectionErrors
from gateway.endpoints.settings.mqtt import MqttSettings, WebSocketSettings
from gateway.endpoints.sockets import NonBlockingSocket
from gateway.errors import EndpointError, GatewayError, WireError
from gateway.setting import current

SUBPROTOCOL: Final = "mqtt"  # MQTT 5.0, 6.0.0-3
BLOCK: Final = 4_096  # bytes
LEAST_TIMEOUT: Final = 0.001  # seconds; 0 would mean a socket that does not wait
DEFAULT_PORTS: Final = {False: 80, True: 443}
_REFUSED_LOG_IN: Final = (401, 403)


def shake_hands(
    sock: socket.socket, settings: MqttSettings, errors: ConnectionErrors, deadline: float
) -> WSConnection:
    """Ask the server at `sock` for a WebSocket with the subprotocol `mqtt`.

    Args:
        sock: a blocking socket, plain or TLS.
        settings: with one address, and with `websocket`.
        errors: makes the errors of the connection.
        deadline: monotonic seconds at which the server must have answered.

    Raises:
        NotConnectedError: the server does not answer in time, or refuses for now.
        EndpointError: the server refuses the log-in, or is not a broker of MQTT.
    """
    wanted = settings.websocket or WebSocketSettings()
    connection = WSConnection(ConnectionType.CLIENT)
    try:
        request = connection.send(_request(settings, wanted))
    except (LocalProtocolError, h11.LocalProtocolError, UnicodeError) as error:
        reason = f"WebSocket: {error}; see `path` and `headers` of `websocket`"
        raise EndpointError(f"{errors.label}: {reason}") from error
    try:
        sock.settimeout(max(deadline - monotonic(), LEAST_TIMEOUT))
        sock.sendall(request)
        return _accepted(sock, connection, wanted, errors, deadline)
    except TimeoutError as error:
        raise errors.no_answer("the WebSocket handshake") from error
    except (RemoteProtocolError, ValueError) as error:
        reason = f"the server does not answer as a WebSocket does: {error}"
        hint = f"is port {settings.port} its port for WebSockets?"
        raise errors.not_connected(f"WebSocket: {reason}; {hint}") from error
    except OSError as error:
        reason = f"WebSocket: the server ended the handshake: {error}"
        raise errors.broken(reason, connected=False) from error


def _request(settings: MqttSettings, wanted: WebSocketSettings) -> Request:
    host, port = settings.address.rpartition(":")[::2]
    is_default = int(port) == DEFAULT_PORTS[settings.tls is not None]
    headers = [
        (name.encode("ascii"), current(value).encode("latin-1"))
        for name, value in wanted.headers.items()
    ]
    return Request(
        host=host if is_default else f"{host}:{port}",
        target=current(wanted.path),
        subprotocols=[SUBPROTOCOL],
        extra_headers=headers,
    )


def _accepted(
    sock: socket.socket,
    connection: WSConnection,
    wanted: WebSocketSettings,
    errors: ConnectionErrors,
    deadline: float,
) -> WSConnection:
    while (left := deadline - monotonic()) > 0:
        sock.settimeout(max(left, LEAST_TIMEOUT))
        if not (data := sock.recv(BLOCK)):
            raise ConnectionError("it closed the connection")
        connection.receive_data(data)  # h11 bounds the head of the answer
        for event in connection.events():
            if isinstance(event, AcceptConnection):
                if event.subprotocol != SUBPROTOCOL:
                    hint = "is there a broker of MQTT at `websocket.path`?"
                    reason = f"WebSocket: the server does not take the subprotocol mqtt; {hint}"
                    raise EndpointError(f"{errors.label}: {reason}")
                return connection
            if isinstance(event, RejectConnection):
                raise _rejected(event.status_code, wanted, errors)
    raise TimeoutError


def _rejected(status: int, wanted: WebSocketSettings, errors: ConnectionErrors) -> GatewayError:
    path = wanted.shown_path
    if status in _REFUSED_LOG_IN:
        reason = f"WebSocket: the server refuses {path} with {status}; see `headers` of `websocket`"
        return EndpointError(f"{errors.label}: {reason}")
    return errors.not_connected(
        f"WebSocket: the server answers {status} to {path}; see `path` of `websocket`"
    )


class WebSocketStream(NonBlockingSocket):
    """The bytes in the frames of a WebSocket, as a socket has them.

    Mutable: as its socket; self._frame_lock guards `WSConnection.send`.
    """

    def __init__(self, sock: socket.socket, connection: WSConnection, max_frame: int) -> None:
        super().__init__(sock)
        self._connection = connection
        self._max_frame = max_frame
        self._frame = 0  # bytes of the frame that arrives
        self._frame_lock = threading.Lock()
        self._pong: Event | None = None  # the answer to the last ping that has none
        self.more = True  # frames may have come with the handshake

    def read(self) -> bytes | None:
        """Return the payloads of frames; None when there are none, b"" at the end of the stream.

        Raises:
            OSError: the connection broke.
            WireError: the server broke the protocol.
        """
        data = super().read()
        if data == b"":
            return b""
        self._connection.receive_data(data or b"")
        payload = b"".join(self._payloads())
        self._answer_ping()
        if not self._ended:
            return payload or None
        self.more = True  # the next read tells of the end
        return payload

    def _payloads(self) -> Iterator[bytes]:
        for event in self._connection.events():
            if isinstance(event, BytesMessage):
                self._frame += len(event.data)
                if self._frame > self._max_frame:
                    raise self._refused(
                        CloseReason.MESSAGE_TOO_BIG,
                        f"a WebSocket frame of more than {self._max_frame} bytes; raise"
                        " `max_packet_in`",
                    )
                if event.frame_finished:
                    self._frame = 0
                yield bytes(event.data)
            elif isinstance(event, TextMessage):
                reason = "a WebSocket frame of text; MQTT is binary"
                raise self._refused(CloseReason.UNSUPPORTED_DATA, reason)
            elif isinstance(event, Ping):
                self._pong = event.response()  # only the last ping needs one (RFC 6455, 5.5.3)
            elif isinstance(event, CloseConnection):
                self._note_close(event)
                return

    def _note_close(self, event: CloseConnection) -> None:
        if self._connection.state is not ConnectionState.REMOTE_CLOSING:
            reason = f"the server broke the WebSocket protocol: {event.reason}"
            raise self._refused(event.code, reason)
        self._ended = True
        if event.code not in {CloseReason.NORMAL_CLOSURE, CloseReason.NO_STATUS_RCVD}:
            self.end_reason = f"WebSocket close {int(event.code)} {event.reason or ''}".rstrip()
        self._write_event(event.response())

    def _refused(self, code: int, reason: str) -> WireError:
        """Tell the server why the connection ends; return the error."""
        self._write_event(CloseConnection(code=code))
        return WireError(reason)

    def _answer_ping(self) -> None:
        """Answer the last ping unless bytes wait to be written: a flood of pings keeps one."""
        if self._pong is not None and not self.backlog:
            pong, self._pong = self._pong, None
            self._write_event(pong)

    def _write_event(self, event: Event) -> None:
        with suppress(OSError, LocalProtocolError), self._frame_lock:
            super().write([self._connection.send(event)])

    def write(self, pieces: Sequence[bytes]) -> bool:
        try:
            with self._frame_lock:
                data = b"".join(pieces)  # mosquitto 2.1.2 takes an empty frame for the last packet
                return super().write([self._connection.send(BytesMessage(data))] if data else [])
        except LocalProtocolError as error:
            raise BrokenPipeError("the WebSocket is closed") from error

    def flush(self) -> bool:
        done = super().flush()
        if done:
            self._answer_ping()
        return done

    def close(self) -> None:
        self._write_event(CloseConnection(code=CloseReason.NORMAL_CLOSURE))
        super().close()
