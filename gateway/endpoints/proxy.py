"""A connection to a broker that a proxy makes: HTTP CONNECT (RFC 9110, 9.3.6), SOCKS5 (RFC 1928).

The proxy gets the broker's name as it is written, and looks it up. Nothing of the environment
counts. Every answer is bounded, and the deadline is that of the whole exchange.
"""

from __future__ import annotations

import base64
import ipaddress
import socket
from time import monotonic
from typing import Final

import h11

from gateway.endpoints.settings.proxy import MAX_SOCKS_TEXT, ProxySettings
from gateway.errors import EndpointError, NotConnectedError
from gateway.setting import current

BLOCK: Final = 4_096  # bytes
MAX_HEAD: Final = 16_384  # bytes of the head of an answer to CONNECT
LEAST_TIMEOUT: Final = 0.001  # seconds; 0 would mean a socket that does not wait
_NO_LOG_IN, _BY_PASSWORD, _NONE_FITS = 0, 2, 255  # methods (RFC 1928, 3)
_IPV4, _NAME, _IPV6 = 1, 3, 4  # types of an address
_ADDRESS_BYTES: Final = {_IPV4: 4, _IPV6: 16}
_REPLIES: Final = {
    1: "general failure",
    2: "not allowed by its rules",
    3: "network unreachable",
    4: "host unreachable",
    5: "connection refused",
    6: "the time to live expired",
    7: "it knows no CONNECT",
    8: "it takes no such address",
}
_LOG_IN_HINT: Final = "see `username` and `password` of `proxy`"


class RefusedByProxyError(Exception):
    """The answer of a proxy that makes no connection; `permanent` if it refuses the log-in."""

    def __init__(self, text: str, *, permanent: bool = False) -> None:
        super().__init__(text)
        self.permanent = permanent


def connect_through(
    label: str, proxy: ProxySettings, host: str, port: int, deadline: float
) -> socket.socket:
    """Return a blocking socket that the proxy has connected to `host` at `port`.

    Args:
        label: the begin of an error's text: the endpoint and its address.
        proxy: the proxy.
        host: name or IP address of the broker; the proxy looks up a name.
        port: the broker's port.
        deadline: monotonic seconds at which the proxy must have answered.

    Raises:
        NotConnectedError: the proxy is away, does not answer in time, or makes no connection now.
        EndpointError: the proxy refuses the log-in.
    """
    label = f"{label}: proxy {proxy.address}"
    try:
        sock = socket.create_connection((proxy.host, proxy.port), _left(deadline))
    except (OSError, UnicodeError) as error:
        raise NotConnectedError(f"{label}: cannot connect to it: {error}") from error
    try:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        ask = _ask_http if proxy.scheme == "http" else _ask_socks
        ask(sock, proxy, host, port, deadline)
    except RefusedByProxyError as error:
        sock.close()
        kind = EndpointError if error.permanent else NotConnectedError
        raise kind(f"{label}: {error}") from error
    except TimeoutError as error:
        sock.close()
        raise NotConnectedError(f"{label}: no answer in time") from error
    except (OSError, UnicodeError, h11.ProtocolError) as error:
        sock.close()
        raise NotConnectedError(f"{label}: {error}") from error
    except BaseException:
        sock.close()
        raise
    return sock


def _ask_http(
    sock: socket.socket, proxy: ProxySettings, host: str, port: int, deadline: float
) -> None:
    target = f"[{host}]:{port}" if ":" in host else f"{_wire_name(host)}:{port}"
    headers = [("Host", target)]
    if proxy.username is not None:
        pair = f"{current(proxy.username)}:{current(proxy.password or '')}"
        headers.append(("Proxy-Authorization", f"Basic {base64.b64encode(pair.encode()).decode()}"))
    http = h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_HEAD)
    _write(sock, http.send(h11.Request(method="CONNECT", target=target, headers=headers)), deadline)
    http.send(h11.EndOfMessage())
    while (event := http.next_event()) is h11.NEED_DATA or _is_interim(event):
        if event is h11.NEED_DATA:
            http.receive_data(_read(sock, BLOCK, deadline))
    if not isinstance(event, h11.Response):
        raise RefusedByProxyError("it ended the connection")
    if not 200 <= event.status_code < 300:  # RFC 9110, 9.3.6: every 2xx connects
        reason = bytes(event.reason).decode("ascii", "replace")
        text = f"it answers {event.status_code} {reason}".rstrip() + f" to CONNECT {target}"
        if event.status_code == 407:  # it wants a log-in
            raise RefusedByProxyError(f"{text}; {_LOG_IN_HINT}", permanent=True)
        raise RefusedByProxyError(text)
    if http.trailing_data[0]:
        raise RefusedByProxyError("bytes came before the broker was asked for anything")


def _is_interim(event: object) -> bool:
    return isinstance(event, h11.InformationalResponse)


def _ask_socks(
    sock: socket.socket, proxy: ProxySettings, host: str, port: int, deadline: float
) -> None:
    by_password = proxy.username is not None
    methods = bytes((_NO_LOG_IN, _BY_PASSWORD) if by_password else (_NO_LOG_IN,))
    _write(sock, bytes((5, len(methods))) + methods, deadline)
    version, method = _exactly(sock, 2, deadline)
    if version != 5:  # SOCKS5
        raise RefusedByProxyError("it does not speak SOCKS5")
    if method == _NONE_FITS or method not in methods:
        raise RefusedByProxyError(f"it wants another log-in; {_LOG_IN_HINT}", permanent=True)
    if method == _BY_PASSWORD:
        name, password = (
            _socks_text(word, current(text or ""))
            for word, text in (("username", proxy.username), ("password", proxy.password))
        )
        _write(sock, b"\1" + name + password, deadline)
        if _exactly(sock, 2, deadline)[1]:
            raise RefusedByProxyError(f"it refuses the log-in; {_LOG_IN_HINT}", permanent=True)
    _write(sock, b"\5\1\0" + _socks_address(host) + port.to_bytes(2, "big"), deadline)
    version, reply, _, kind = _exactly(sock, 4, deadline)
    if version != 5:  # SOCKS5
        raise RefusedByProxyError("it does not speak SOCKS5")
    if reply:
        text = _REPLIES.get(reply, f"failure {reply}")
        raise RefusedByProxyError(f"it does not connect to {host}:{port}: {text}")
    size = _ADDRESS_BYTES.get(kind) or _exactly(sock, 1, deadline)[0]
    _exactly(sock, size + 2, deadline)  # its own address and port


def _socks_address(host: str) -> bytes:
    """Return type and bytes of an address; a name stays one, so that the proxy looks it up."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return bytes((_NAME,)) + _socks_text("host", _wire_name(host))
    return bytes((_IPV4 if address.version == 4 else _IPV6,)) + address.packed


def _socks_text(word: str, text: str) -> bytes:
    data = text.encode()
    if not 0 < len(data) <= MAX_SOCKS_TEXT:
        limit = f"SOCKS5 takes 1 to {MAX_SOCKS_TEXT}"
        raise RefusedByProxyError(f"`{word}` has {len(data)} bytes, {limit}", permanent=True)
    return bytes((len(data),)) + data


def _wire_name(host: str) -> str:
    """Return a host name as the DNS has it. Raises UnicodeError for one without such a form."""
    return host if host.isascii() else host.encode("idna").decode()


def _left(deadline: float) -> float:
    return max(deadline - monotonic(), LEAST_TIMEOUT)


def _write(sock: socket.socket, data: bytes | None, deadline: float) -> None:
    sock.settimeout(_left(deadline))
    sock.sendall(data or b"")


def _read(sock: socket.socket, size: int, deadline: float) -> bytes:
    """Return bytes, at least one. Raises TimeoutError, or ConnectionError at the end."""
    if monotonic() >= deadline:
        raise TimeoutError
    sock.settimeout(_left(deadline))
    data = sock.recv(size)
    if not data:
        raise ConnectionError("it closed the connection")
    return data


def _exactly(sock: socket.socket, size: int, deadline: float) -> bytes:
    data = b""
    while len(data) < size:
        data += _read(sock, size - len(data), deadline)
    return data
