"""The HTTP server: an asyncio event loop in its own thread, and three threads for responses."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import ssl
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from traceback import clear_frames
from typing import Any, Final

from gateway.config.process import WebSettings
from gateway.errors import WebError
from gateway.web.application import PROBE_PATHS, SLOW_PATHS, WebApplication
from gateway.web.connection_limits import Connections, PeerConnection, address_of
from gateway.web.exchange import HttpRequest, HttpResponse, as_json
from gateway.web.http_connection import serve
from gateway.web.rate_history import SAMPLE_INTERVAL

log = logging.getLogger(__name__)

HANDSHAKE_TIMEOUT: Final = 5.0  # seconds
CLOSE_TIMEOUT: Final = 5.0  # seconds for a client to take the end of a response
ACCEPT_PAUSE: Final = 0.2  # seconds, when the process has no free descriptor
STOP_TIMEOUT: Final = 2.0  # seconds for responses in progress


class WebServer:
    """Serves `application` at the address of `settings`.

    One thread owns the connections. One answers health probes, one makes fast responses and one
    makes slow responses, so that no request delays a probe.
    Mutable: counters are owned by the event loop's thread.
    """

    def __init__(self, application: WebApplication, settings: WebSettings) -> None:
        """Listen; requests are answered after `start`.

        Raises:
            WebError: the address is in use, or a certificate cannot be used.
        """
        self._application = application
        self._settings = settings
        self._connections = Connections()
        self._tasks: set[asyncio.Task[None]] = set()
        self._busy = False  # a slow request is in progress
        probes, slow = ThreadPoolExecutor(1, "web-probe"), ThreadPoolExecutor(1, "web-explain")
        self._quick = ThreadPoolExecutor(1, "web-answer")
        self._pools = dict.fromkeys(PROBE_PATHS, probes) | dict.fromkeys(SLOW_PATHS, slow)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping = asyncio.Event()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="web", daemon=True)
        self._tls = None if settings.cert_file is None else _context(settings)
        self._listening = _listen(settings)

    def prepared(self, settings: WebSettings) -> Callable[[], None]:
        """Read the certificates of `settings`; the result takes them and the tokens into use.

        Open connections stay. Settings in `WebSettings.fixed` need a restart.

        Raises:
            WebError: a certificate cannot be used.
        """
        same = settings.fixed == self._settings.fixed
        tls = _context(settings) if same and settings.cert_file is not None else self._tls

        def use() -> None:
            self._tls = tls
            if same and settings.tokens:
                self._application.use_tokens(settings.tokens)

        return use

    def start(self) -> None:
        """Start to answer requests."""
        self._thread.start()
        self._ready.wait()
        log.info("the page is at %s", self.url)

    @property
    def url(self) -> str:
        address = self._settings.address
        host = f"[{address}]" if ":" in address else address
        return f"http{'s' if self._tls else ''}://{host}:{self.port}"

    @property
    def port(self) -> int:
        return int(self._listening.getsockname()[1])

    def stop(self) -> None:
        """Stop listening and close every connection; a second call does nothing."""
        if self._loop is None or not self._thread.is_alive():
            self._listening.close()
            return
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join(STOP_TIMEOUT)
        for pool in (self._quick, *self._pools.values()):
            pool.shutdown(wait=False, cancel_futures=True)

    def _run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._loop.set_exception_handler(_on_fault)
        self._listening.setblocking(False)
        tasks = [asyncio.create_task(self._accept()), asyncio.create_task(self._sample())]
        self._ready.set()
        with self._listening:
            await self._stopping.wait()
            for task in tasks:  # before the socket that `_accept` uses is closed
                task.cancel()

    async def _sample(self) -> None:
        """Sample the rates, whether a page is open or not."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(SAMPLE_INTERVAL)
            try:
                await loop.run_in_executor(self._quick, self._application.sample)
            except Exception:  # the next sample has its messages
                log.exception("cannot sample the rates")

    async def _accept(self) -> None:
        """Accept connections; each is counted before its first byte is read."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                peer, address = await loop.sock_accept(self._listening)
            except OSError as error:  # no free descriptor
                log.warning("cannot accept a connection: %s", error.strerror or error)
                await asyncio.sleep(ACCEPT_PAUSE)
                continue
            if (connection := self._connections.admit(address_of(address[0]))) is None:
                peer.close()
            else:
                task = loop.create_task(self._serve_connection(peer, connection))
                connection.close = task.cancel
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
            await asyncio.sleep(0)  # the other connections, while more of them arrive

    async def _serve_connection(self, peer: socket.socket, connection: PeerConnection) -> None:
        """Serve one connection until it is closed; it is counted until its socket is free."""
        try:
            await self._serve_peer(peer, connection)
        except BaseException as error:
            # The error and the frames refer to each other. Such a cycle holds 300 KB of a TLS
            # connection, and the process seldom collects cycles.
            clear_frames(error.__traceback__)
            if not isinstance(error, TimeoutError | OSError):
                raise
            log.debug("a connection failed: %s", error)  # the client has closed, or is too slow
        finally:
            self._connections.remove(connection)

    async def _serve_peer(self, peer: socket.socket, connection: PeerConnection) -> None:
        """Serve one connection.

        Raises:
            OSError: the client has closed.
            TimeoutError: the client is too slow.
        """
        reader, writer = await self._open_streams(peer)
        try:
            await serve(reader, writer, partial(self._respond, connection))
            async with asyncio.timeout(CLOSE_TIMEOUT):
                writer.close()
                await writer.wait_closed()
        finally:
            writer.transport.abort()

    async def _open_streams(
        self, peer: socket.socket
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Return the streams of an accepted connection, after its TLS handshake.

        Raises:
            OSError: the handshake failed or took too long.
        """
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(loop=loop)
        protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
        timeout = None if self._tls is None else HANDSHAKE_TIMEOUT
        transport, _ = await loop.connect_accepted_socket(
            lambda: protocol, peer, ssl=self._tls, ssl_handshake_timeout=timeout
        )
        return reader, asyncio.StreamWriter(transport, protocol, reader, loop)

    async def _respond(self, connection: PeerConnection, request: HttpRequest) -> HttpResponse:
        if not self._connections.begin(connection, probe=request.path in PROBE_PATHS):
            return as_json({"error": "too many requests are in progress; try again"}, 503)
        try:
            return await self._answer(replace(request, peer=connection))
        finally:
            self._connections.end(connection)

    async def _answer(self, request: HttpRequest) -> HttpResponse:
        loop = asyncio.get_running_loop()
        slow = request.path in SLOW_PATHS
        if slow and self._busy:
            return as_json({"error": "another lookup is in progress; try again"}, 503)
        self._busy = self._busy or slow
        try:
            pool = self._pools.get(request.path, self._quick)
            return await loop.run_in_executor(pool, self._application.answer, request)
        except Exception:  # a fault must not end the server
            log.exception("request failed", extra={"path": request.path[:100]})
            return as_json({"error": "internal error of the gateway; see its log"}, 500)
        finally:
            self._busy = self._busy and not slow


def _listen(settings: WebSettings) -> socket.socket:
    """Return a listening socket.

    Raises:
        WebError: the address is in use, or not an address of this machine.
    """
    try:
        family = socket.getaddrinfo(settings.address, settings.port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((settings.address, settings.port), family=family)
    except OSError as error:
        reason = str(error.strerror or error).partition(" (while")[0]  # it repeats the address
        if error.errno == errno.EADDRINUSE:
            reason += "; stop the other process, such as a second gateway, or change `web.port`"
        address = f"{settings.address}:{settings.port}"
        raise WebError(f"web: cannot listen at {address}: {reason}") from error


def _context(settings: WebSettings) -> ssl.SSLContext:
    """Return the TLS context of the server.

    Raises:
        WebError: a certificate or key file cannot be read or used.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(str(settings.cert_file), settings.key_file)
        if settings.client_ca_file is not None:
            context.load_verify_locations(settings.client_ca_file)
            context.verify_mode = ssl.CERT_REQUIRED
    except (OSError, ssl.SSLError) as error:
        files = ", ".join(
            filter(None, (settings.cert_file, settings.key_file, settings.client_ca_file))
        )
        reason = error.strerror or error
        raise WebError(f"web: cannot use the certificates {files}: {reason}") from error
    return context


def _on_fault(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log faults of connections, mostly failed handshakes."""
    log.debug("a connection failed: %s", context.get("message", ""))
