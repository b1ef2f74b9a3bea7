"""A connection of AMQP 1.0: its session, and the thread that reads and writes it."""

from __future__ import annotations

import heapq
import logging
import os
import select
import socket
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from itertools import count
from threading import Lock, Thread, current_thread
from time import monotonic
from typing import Any, Final

from gateway.endpoints.amqp.log_in import log_in, shown
from gateway.endpoints.settings.amqp import PORTS, AmqpSettings
from gateway.endpoints.settings.base import Server, TlsSettings, server_of
from gateway.endpoints.sockets import NonBlockingSocket
from gateway.endpoints.source_shell import not_open
from gateway.endpoints.tls import client_context, connect_error, joined
from gateway.errors import EndpointError, NotConnectedError, WireError, first_line
from gateway.untyped import Untyped
from gateway.wire.amqp import frames
from gateway.wire.amqp.frames import Frame, encode_frame, error_text
from gateway.wire.amqp.session import Session

log = logging.getLogger(__name__)

CLOSE_TIMEOUT: Final = 2.0  # seconds for the answers, without which the last outcomes are lost


class AmqpConnection:
    """One log-in with one session; `on_end` is called once, in any thread, when it ends by itself.

    The session is used only in the connection's thread: `ask` and `spawn` go there. Mutable.
    """

    def __init__(self, settings: AmqpSettings, on_end: Callable[[NotConnectedError], None]) -> None:
        self.settings, self._on_end = settings, on_end
        self.is_over, self._reason = False, ""
        self.address = ""  # HOST:PORT of the server
        self._work: deque[Callable[[], object]] = deque()
        self._later: list[tuple[float, int, Callable[[], object]]] = []
        self._order = count()
        self._out: list[bytes] = []
        self._asked: Future[Any] | None = None
        self._raw: socket.socket | None = None  # while it connects
        self._socket: NonBlockingSocket
        self._leave_by = 0.0  # monotonic seconds; 0 while it does not leave
        self._finished = False  # the answer to the end has come
        self._wake_lock = Lock()
        self._wake_read = self._wake_write = -1
        self._thread = Thread(target=self._run, name=f"{settings.name}-amqp", daemon=True)

    def open(self) -> None:
        """Connect, and begin a session.

        Raises:
            NotConnectedError: no server answers.
            EndpointError: the log-in is refused, or a file cannot be used.
        """
        failures: list[EndpointError] = []
        for url in self.settings.urls:
            try:
                found = self._try(url)
            except EndpointError as error:
                failures.append(error)
                continue
            self._start(found)
            return
        raise joined(failures)

    def check(self) -> None:
        """Raise NotConnectedError when the connection is over."""
        if self.is_over:
            raise NotConnectedError(f"{self.settings.name}: not connected{self._reason}")

    def spawn(self, work: Callable[[], object]) -> None:
        """Run `work` in the connection's thread, behind earlier ones; nothing after the end."""
        self._work.append(work)
        if self._thread is not current_thread():
            self._wake()

    def call_later(self, seconds: float, work: Callable[[], object]) -> None:
        """Run `work` after some seconds; in the connection's thread."""
        heapq.heappush(self._later, (monotonic() + seconds, next(self._order), work))

    def ask(self, request: Callable[[Future[Untyped]], object]) -> Untyped:
        """Call `request` in the connection's thread, and return what its future gets.

        One thread asks at a time.

        Raises:
            NotConnectedError: no answer in time, or the connection is lost.
            EndpointError: as the future gets it.
        """
        future: Future[Any] = Future()
        self._asked = future
        self.check()  # an end from now on fails the future
        self.spawn(lambda: request(future))
        try:
            return future.result(self.settings.answer_timeout)
        except TimeoutError as error:
            raise NotConnectedError(f"{self.settings.name}: no answer in time") from error

    def end(self, reason: str) -> None:
        """End the connection for `reason`; the first reason counts."""
        error = NotConnectedError(f"{self.settings.name}: {reason}")
        if not self.is_over:
            self.is_over, self._reason = True, f": {reason}"
            self._on_end(error)
        if self._asked is not None:
            fail(self._asked, error)

    def close(self) -> None:
        """Release everything, after what is already written; never raises."""
        self.is_over = True
        if (raw := self._raw) is not None:
            with suppress(OSError):
                raw.shutdown(socket.SHUT_RDWR)
        if self._thread.is_alive():
            self.spawn(self._leave)
            if self._thread is not current_thread():
                self._thread.join(2 * CLOSE_TIMEOUT)

    def _start(self, found: list[Frame]) -> None:
        self._wake_read, self._wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._last_read = self._last_write = monotonic()
        self.spawn(lambda: self._handle(found))
        self._thread.start()

    def _try(self, url: str) -> list[Frame]:
        """Log in at one address; return the frames behind the answer to `open`."""
        settings = self.settings
        is_encrypted = settings.tls is not None or url.startswith("amqps:")
        server = server_of(
            url, PORTS["amqps" if is_encrypted else "amqp"], is_encrypted=is_encrypted
        )
        label = f"{settings.name}: {server.host}:{server.port}"
        until = monotonic() + settings.connect_timeout
        try:
            raw = self._connect(server)
            terms = log_in(settings, raw, url, label, until)
            raw.setblocking(False)
            self._socket = NonBlockingSocket(raw)
        except (OSError, WireError) as error:
            self._drop()
            raise connect_error(settings, server, error, settings.tls) from error
        except BaseException:
            self._drop()
            raise
        self.address, self._raw = f"{server.host}:{server.port}", None
        self._decoder, self._beat = terms.decoder, terms.beat
        self.session = Session(self._out.append, terms.max_frame, self._session_ended)
        self.session.begin()
        return terms.found

    def _drop(self) -> None:
        raw, self._raw = self._raw, None
        if raw is not None:
            raw.close()

    def _connect(self, server: Server) -> socket.socket:
        settings = self.settings
        tls = settings.tls or TlsSettings()
        context = client_context(settings.name, tls) if server.is_encrypted else None
        address = (server.host, server.port or 0)
        raw = socket.create_connection(address, settings.connect_timeout)
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if context is not None:
            try:
                raw = context.wrap_socket(raw, server_hostname=tls.server_hostname or server.host)
            except BaseException:
                raw.close()
                raise
        self._raw = raw
        if self.is_over:  # `close` has seen no socket
            raise not_open(settings.name)
        return raw

    def _run(self) -> None:
        reason = "is closed"
        try:
            poll = select.poll()
            while not self._finished and not (0 < self._leave_by < monotonic()):
                self._serve(poll)
        except (OSError, WireError) as error:
            reason = first_line(error)
        except Exception as error:  # ours: the connection is made again
            log.warning("%s: the connection failed", self.settings.name, exc_info=True)
            reason = f"{type(error).__name__}: {first_line(error)}"
        finally:
            self.end(reason)
            self._socket.close()
            with self._wake_lock:
                os.close(self._wake_read)
                os.close(self._wake_write)
                self._wake_write = -1

    def _serve(self, poll: select.poll) -> None:
        """Do what is due, write, and wait for the socket or for more work."""
        while self._work:
            self._work.popleft()()
        due = self._check_clock(monotonic())
        if self.is_over and not self._leave_by:
            self._leave()
        self._write()
        wait = 0.0 if self._work or self._socket.more else max(0.0, due - monotonic())
        writing = select.POLLOUT if self._socket.backlog else 0
        poll.register(self._socket.fileno, select.POLLIN | writing)
        poll.register(self._wake_read, select.POLLIN)
        events = dict(poll.poll(wait * 1_000))
        if self._wake_read in events:
            os.read(self._wake_read, 4_096)
        if events.get(self._socket.fileno, 0) & select.POLLOUT:
            self._socket.flush()
        if self._socket.fileno in events or self._socket.more:
            self._read()

    def _check_clock(self, now: float) -> float:
        """Do what is due at this time; return the time of what is due next.

        Raises:
            OSError: the server gives no sign.
        """
        while self._later and self._later[0][0] <= now:
            heapq.heappop(self._later)[2]()
        if now - self._last_write >= self._beat:
            self._out.append(frames.EMPTY)
        silent, beat = self._last_read + self.settings.heartbeat, self._last_write + self._beat
        if now > silent:
            raise ConnectionError(f"no sign of the server for {self.settings.heartbeat} s")
        if self._out:
            beat = now + self._beat
        times = [silent + 0.01, beat, *(each[0] for each in self._later[:1])]
        return min([*times, self._leave_by] if self._leave_by else times)

    def _write(self) -> None:
        if self._out:
            pieces = b"".join(self._out)
            self._out.clear()
            self._last_write = monotonic()
            self._socket.write([pieces])

    def _read(self) -> None:
        data = self._socket.read()
        if data is None:
            return
        if not data:
            if self._leave_by:
                self._finished = True
                return
            raise ConnectionError("the server ended the connection")
        self._last_read = monotonic()
        self._handle(self._decoder.feed(data))

    def _handle(self, found: list[Frame]) -> None:
        for frame in found:
            performative = frame.performative
            if isinstance(performative, frames.Close):
                self._closed(performative)
                return
            if isinstance(performative, frames.Open) or frame.channel:
                raise WireError(
                    f"amqp: the server sent {type(performative).__name__} on channel"
                    f" {frame.channel}"
                )
            self.session.receive(frame)

    def _closed(self, close: frames.Close) -> None:
        self._finished = True
        if not self._leave_by:
            self._out.append(encode_frame(frames.CLOSE, []))
            self._write()
            self.end(shown(*error_text(close.error)) or "the server closed the connection")

    def _session_ended(self, condition: str, text: str) -> None:
        """Close the connection: the session is over, of both sides."""
        if not self._leave_by:
            self.end(shown(condition, text) or "the server ended the session")
            self._leave_by = monotonic() + CLOSE_TIMEOUT
        self._out.append(encode_frame(frames.CLOSE, []))

    def _leave(self) -> None:
        """End the session, and the connection once that is answered: all outcomes have arrived."""
        if not self._leave_by:
            self._leave_by = monotonic() + CLOSE_TIMEOUT
            self.session.end()

    def _wake(self) -> None:
        with self._wake_lock, suppress(BlockingIOError):
            if self._wake_write >= 0:
                os.write(self._wake_write, b"\0")


def answer(future: Future[Untyped], found: Untyped) -> None:
    if not future.done():
        future.set_result(found)


def fail(future: Future[Any], error: BaseException) -> None:
    if not future.done():
        future.set_exception(error)
