"""Listens for a site in a thread of its own, on an event loop of its own."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from gateway.config.process import WebRef
from gateway.errors import WebError
from gateway.web.connection import serve
from gateway.web.exchange import Request, Response, as_json
from gateway.web.site import SLOW, Site

log = logging.getLogger(__name__)

CONNECTIONS: Final = 32  # at once; one more is closed
HANDSHAKE: Final = 5.0  # seconds for TLS
CLOSING: Final = 2.0  # seconds for what is being answered when it stops


class WebServer:
    """Serves `site` as `ref` says; mutable, it owns a socket and three threads.

    One thread has the connections, one makes quick answers and one those that may take seconds,
    so that nobody's question keeps a probe waiting.
    """

    def __init__(self, site: Site, ref: WebRef) -> None:
        """Listen; nobody is answered yet.

        Raises:
            WebError: the address is taken, or a certificate cannot be used.
        """
        self._site = site
        self._ref = ref
        self._open = 0
        self._busy = False  # somebody's slow question is being answered
        self._quick = ThreadPoolExecutor(1, "web-answer")
        self._slow = ThreadPoolExecutor(1, "web-explain")
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Event | None = None
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="web", daemon=True)
        self._tls = None if ref.cert_file is None else _context(ref)
        self._listening = _listen(ref)

    def start(self) -> None:
        """Answer, from when this returns."""
        self._thread.start()
        self._ready.wait()
        log.info("the page is at %s", self.url)

    @property
    def url(self) -> str:
        host = f"[{self._ref.address}]" if ":" in self._ref.address else self._ref.address
        return f"http{'s' if self._tls else ''}://{host}:{self.port}"

    @property
    def port(self) -> int:
        port: int = self._listening.getsockname()[1]
        return port

    def stop(self) -> None:
        """Stop listening and close every connection; a second call does nothing."""
        if self._loop is None or self._stopping is None or not self._thread.is_alive():
            self._listening.close()
            return
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join(CLOSING)
        self._quick.shutdown(wait=False, cancel_futures=True)
        self._slow.shutdown(wait=False, cancel_futures=True)

    def _run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._loop.set_exception_handler(_on_fault)
        self._stopping = asyncio.Event()
        patience = None if self._tls is None else HANDSHAKE
        server = await asyncio.start_server(
            self._connected, sock=self._listening, ssl=self._tls, ssl_handshake_timeout=patience
        )
        self._ready.set()
        async with server:
            await self._stopping.wait()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._open >= CONNECTIONS:
            writer.transport.abort()
            return
        self._open += 1
        try:
            await serve(reader, writer, self._answer)
        except (TimeoutError, OSError):  # the client is gone, or too slow
            writer.transport.abort()
        finally:
            self._open -= 1
            writer.close()

    async def _answer(self, request: Request) -> Response:
        loop = asyncio.get_running_loop()
        slow = request.path in SLOW
        if slow and self._busy:
            return as_json({"error": "another question is being answered; ask again"}, 503)
        self._busy = self._busy or slow
        try:
            pool = self._slow if slow else self._quick
            return await loop.run_in_executor(pool, self._site.answer, request)
        except Exception:  # whatever is wrong, the next request may be answered
            log.exception("a fault while answering", extra={"path": request.path[:100]})
            return as_json({"error": "a fault of the gateway; its log says more"}, 500)
        finally:
            self._busy = self._busy and not slow


def _listen(ref: WebRef) -> socket.socket:
    """A socket that listens where `ref` says.

    Raises:
        WebError: the address is taken, or none of this machine's.
    """
    try:
        family = socket.getaddrinfo(ref.address, ref.port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((ref.address, ref.port), family=family)
    except OSError as error:
        said = error.strerror or error
        raise WebError(f"web: cannot listen at {ref.address}:{ref.port}: {said}") from error


def _context(ref: WebRef) -> ssl.SSLContext:
    """TLS as `ref` says.

    Raises:
        WebError: a file cannot be read, or does not hold what it should.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(str(ref.cert_file), ref.key_file)
        if ref.client_ca_file is not None:
            context.load_verify_locations(ref.client_ca_file)
            context.verify_mode = ssl.CERT_REQUIRED
    except (OSError, ssl.SSLError) as error:
        files = ", ".join(filter(None, (ref.cert_file, ref.key_file, ref.client_ca_file)))
        said = error.strerror or error
        raise WebError(f"web: cannot use the certificates {files}: {said}") from error
    return context


def _on_fault(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Clients that break a handshake, mostly."""
    log.debug("a connection failed: %s", context.get("message", ""))
