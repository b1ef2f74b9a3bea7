"""The way to a broker: TCP or a proxy, then TLS, then a WebSocket."""

from __future__ import annotations

import socket
import ssl
from time import monotonic

from gateway.endpoints.mqtt.connection_errors import ConnectionErrors
from gateway.endpoints.proxy import connect_through
from gateway.endpoints.settings.mqtt import MqttSettings
from gateway.endpoints.sockets import NonBlockingSocket
from gateway.endpoints.tls import client_context, encryption_hint


def connect(settings: MqttSettings, errors: ConnectionErrors, deadline: float) -> NonBlockingSocket:
    """Return a connected non-blocking socket, after the handshakes of TLS and of a WebSocket.

    Args:
        settings: with one address, and its port (`MqttSettings.each_address`).
        errors: makes the errors of the connection.
        deadline: monotonic seconds at which a proxy and a WebSocket must have answered.

    Raises:
        NotConnectedError: no broker answers there now.
        EndpointError: the certificates are wrong, or somebody on the way refuses a log-in.
    """
    context = client_context(settings.name, settings.tls) if settings.tls else None
    sock = _connected(settings, errors, deadline)
    try:
        if context is not None and settings.tls is not None:
            name = settings.tls.server_hostname or settings.host
            sock.settimeout(max(deadline - monotonic(), 0.1))
            sock = context.wrap_socket(sock, server_hostname=name)
    except (ssl.SSLError, TimeoutError, ConnectionError, ValueError) as error:
        sock.close()
        raise errors.of_handshake(error, lambda: encryption_hint(settings)) from error
    try:
        return _stream(sock, settings, errors, deadline)
    except BaseException:
        sock.close()
        raise


def _connected(settings: MqttSettings, errors: ConnectionErrors, deadline: float) -> socket.socket:
    if settings.proxy is not None:
        label, host, port = errors.label, settings.host, settings.port
        return connect_through(label, settings.proxy, host, port, deadline)
    try:
        sock = socket.create_connection((settings.host, settings.port), settings.connect_timeout)
    except OSError as error:
        raise errors.not_connected(f"cannot connect: {error}") from error
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def _stream(
    sock: socket.socket, settings: MqttSettings, errors: ConnectionErrors, deadline: float
) -> NonBlockingSocket:
    if settings.websocket is None:
        sock.setblocking(False)
        return NonBlockingSocket(sock)
    from gateway.endpoints.mqtt.websocket import (  # noqa: PLC0415  # loads wsproto
        WebSocketStream,
        shake_hands,
    )

    connection = shake_hands(sock, settings, errors, deadline)
    sock.setblocking(False)
    return WebSocketStream(sock, connection, settings.max_packet_in)
