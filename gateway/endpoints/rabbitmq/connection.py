"""A connection of pika with an event loop in a thread of its own."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from threading import Thread, current_thread
from time import monotonic
from typing import Any, Final
from urllib.parse import urlsplit

import pika
from pika.adapters.select_connection import IOLoop
from pika.exceptions import ChannelClosedByBroker

from gateway.endpoints.rabbitmq.blocks import FRAME, Confirm
from gateway.endpoints.rabbitmq.client import AmqpClient
from gateway.endpoints.settings.base import TlsSettings, server_of
from gateway.endpoints.settings.rabbitmq import RabbitmqSettings
from gateway.endpoints.tls import client_context, connect_error, joined
from gateway.errors import EndpointError, NotConnectedError, first_line
from gateway.setting import current
from gateway.untyped import Untyped

log = logging.getLogger(__name__)

CLOSE_TIMEOUT: Final = 2.0  # seconds for the answer, without which the last answers are lost
SAY_INTERVAL: Final = 10.0  # seconds between log lines about a full server
ACCESS_REFUSED: Final = 403
NOT_FOUND: Final = 404
PORTS: Final = {False: 5672, True: 5671}  # by whether TLS is spoken
_ANSWER: Final = re.compile(r"\((\d{3})\) \\?['\"](.*?)\\?['\"]")  # in the texts of pika's errors
_REFUSALS: Final = frozenset({403, 406, 530})  # access refused, precondition failed, not allowed


class RabbitmqConnection:
    """One log-in with one channel; `on_end` is called once, in any thread, when it ends by itself.

    The library is used only in its own thread: `ask` and `spawn` go there. `blocked` is true
    while the server takes no messages (connection.blocked). Mutable.
    """

    def __init__(
        self,
        settings: RabbitmqSettings,
        on_end: Callable[[NotConnectedError], None],
        max_body: int,
    ) -> None:
        """Connect; a message that is longer than `max_body` comes without its body.

        Raises:
            NotConnectedError: no server answers.
            EndpointError: the log-in or the vhost is refused, or a file cannot be used.
        """
        logging.getLogger("pika").setLevel(logging.CRITICAL)  # it logs what it also raises
        self.settings, self._on_end, self._max_body = settings, on_end, max_body
        self.is_over, self._reason = False, ""
        self.blocked, self._quiet_until, self._is_told = False, 0.0, False
        self.channel: Any = None
        self._amqp: Any = None
        self.address = ""  # HOST:PORT of the server
        self._asked: Future[Any] | None = None
        self._closed: Future[None] = Future()
        self.loop = IOLoop()
        self._thread = Thread(target=self._run, name=f"{settings.name}-rabbitmq", daemon=True)
        self._thread.start()
        try:
            self._connect()
            self.channel = self.open_channel()
            self.channel.add_on_close_callback(self._channel_closed)
        except BaseException:
            self.close()
            raise

    @property
    def max_header(self) -> int:
        """Bytes of the longest header frame: properties, and 12 before them."""
        frame: int = self._amqp.params.frame_max
        return frame - FRAME.size - 1

    @property
    def version(self) -> int:
        """The first number of the server's version; 0 where it does not tell."""
        told = str((self._amqp.server_properties or {}).get("version", ""))
        number = told.partition(".")[0]
        return int(number) if number.isdecimal() else 0

    def check(self) -> None:
        """Raise NotConnectedError when the connection is over."""
        if self.is_over:
            raise NotConnectedError(f"{self.settings.name}: not connected{self._reason}")

    def spawn(self, work: Callable[[], object]) -> None:
        """Run `work` in the connection's thread, behind earlier ones; nothing after the end."""
        self.loop.add_callback_threadsafe(work)

    @property
    def paused(self) -> bool:
        """Whether nothing is read."""
        return bool(self._amqp.paused)

    @property
    def skipping(self) -> bool:
        """Whether messages come without their bodies, because there was no room for long."""
        return bool(self._amqp.skipping)

    def pause(self) -> None:
        """Read nothing more; silence is not a fault then. In the connection's thread."""
        self._amqp.pause()

    def resume(self, *, skipping: bool = False) -> None:
        """Read again; `skipping` drops each body from now on. In the connection's thread."""
        self._amqp.skipping |= skipping
        self._amqp.resume()

    def open_channel(self, prefetch: int = 0) -> Untyped:
        """Return another channel, with a limit for consumers if any. Raises as `ask` does."""
        channel = self.ask(lambda callback: self._amqp.channel(on_open_callback=callback))
        if prefetch:
            self.ask(partial(channel.basic_qos, prefetch_count=prefetch))
        return channel

    def begin_channel(
        self, opened: Callable[[Any], object], refused: Callable[[ChannelClosedByBroker], object]
    ) -> None:
        """Open another channel without waiting, for `opened`; in the connection's thread."""

        def closed(_channel: object, error: Exception) -> None:
            if isinstance(error, ChannelClosedByBroker):
                refused(error)

        self._amqp.channel(on_open_callback=opened).add_on_close_callback(closed)

    def confirm(self, taken: Callable[[list[Confirm]], object]) -> None:
        """Ask for confirms, which `taken` gets in the connection's thread. Raises as `ask` does."""
        self.ask(partial(self._amqp.confirm, self.channel, taken))

    def publish(self, messages: Iterable[tuple[bytes, bytes, bytes]]) -> None:
        """Send messages, in the connection's thread: method, properties and body of each.

        Raises:
            AMQPError: the channel is not open.
        """
        self._amqp.publish(self.channel, messages)

    def ask(
        self,
        work: Callable[..., object],
        channel: Untyped = None,
    ) -> Untyped:
        """Send a request and return the answer; one thread asks at a time.

        `work` gets the function to call with the answer as `callback`, as the methods of pika do.
        `channel` is the one that a refusal closes.

        Raises:
            ChannelClosedByBroker: the server refuses, on a `channel` given.
            EndpointError: the server refuses.
            NotConnectedError: no answer in time, or the connection is lost.
        """

        def request(future: Future[Any]) -> None:
            if channel is not None:
                channel.add_on_close_callback(lambda _, error: _fail(future, error))
            work(callback=lambda answer: _answer(future, answer))

        return self._await(request)

    def _await(self, request: Callable[[Future[Untyped]], object]) -> Untyped:
        """Call `request` in the connection's thread, and return what its future gets."""
        future: Future[Any] = Future()
        self._asked = future

        def start() -> None:
            try:
                request(future)
            except Exception as error:  # noqa: BLE001  # for the thread that asks
                _fail(future, error)

        self.check()  # an end from now on fails the future
        self.spawn(start)
        try:
            return future.result(self.settings.answer_timeout)
        except TimeoutError as error:
            raise NotConnectedError(f"{self.settings.name}: no answer in time") from error
        except (ChannelClosedByBroker, EndpointError):
            raise
        except Exception as error:  # the errors of pika have no common base
            raise refusal(self.settings, error) from error

    def end(self, reason: str, cause: Exception | None = None) -> None:
        """End the connection for `reason`; the first reason counts."""
        error = NotConnectedError(f"{self.settings.name}: {reason}")
        error.__cause__ = cause
        if not self.is_over:
            self.is_over, self._reason = True, f": {reason}"
            self._on_end(error)
        if self._asked is not None:
            _fail(self._asked, error)

    def close(self) -> None:
        """Release everything, after what is already written; never raises."""
        self.is_over = True
        if not self._thread.is_alive():
            return
        self.spawn(self._leave)
        if self._thread is not current_thread():
            with suppress(TimeoutError):
                self._closed.result(CLOSE_TIMEOUT)
        self.spawn(self._drop)
        if self._thread is not current_thread():
            self._thread.join(CLOSE_TIMEOUT)

    def _leave(self) -> None:
        if self._amqp is not None and self._amqp.is_open:
            self._amqp.leave()
        elif self._amqp is None or not self._amqp.is_closing:
            _answer(self._closed, None)

    def _drop(self) -> None:
        self._forsake()
        self.spawn(self.loop.stop)

    def _forsake(self) -> None:
        if self._amqp is not None:
            self._amqp.drop()

    def _run(self) -> None:
        try:
            self.loop.start()
        except Exception as error:  # of the driver: the connection is made again
            log.debug("%s: the driver failed", self.settings.name, exc_info=True)
            self.end(f"{type(error).__name__}: {first_line(error)}")
        finally:
            _answer(self._closed, None)
            self.loop.close()

    def _connect(self) -> None:
        failures: list[EndpointError] = []
        for url, address in zip(self.settings.urls, self.settings.addresses, strict=True):
            try:
                self._try(url)
                self.address = address.partition("://")[2]
            except NotConnectedError as error:
                self.spawn(self._forsake)
                failures.append(self._connect_error(url, error))
                continue
            self._amqp.add_on_connection_blocked_callback(self._block)
            self._amqp.add_on_connection_unblocked_callback(self._unblock)
            return
        raise joined(failures)

    def _connect_error(self, url: str, error: NotConnectedError) -> EndpointError:
        """Return the error of one address; of TLS, which the driver tells in words of its own."""
        tls = self.settings.tls
        is_encrypted = tls is not None or url.startswith("amqps:")
        server = server_of(url, PORTS[is_encrypted], is_encrypted=is_encrypted)
        reason = str(error).removeprefix(f"{self.settings.name}: ")
        cause = error.__cause__
        while cause is not None and not isinstance(cause, OSError):
            cause = _inner(cause)
        return connect_error(self.settings, server, cause or OSError(reason), tls)

    def _try(self, url: str) -> None:
        """Connect to one address, and have the client in `_amqp`, also after a failure."""
        parameters = self._parameters(url)

        def begin(future: Future[Any]) -> None:
            self._amqp = AmqpClient(
                parameters,
                self._max_body,
                on_open_callback=lambda connection: _answer(future, connection),
                on_open_error_callback=lambda amqp, error: _fail(future, amqp.fault or error),
                on_close_callback=self._ended,
                custom_ioloop=self.loop,
            )

        self._await(begin)

    def _parameters(self, url: str) -> pika.ConnectionParameters:
        settings = self.settings
        found = pika.URLParameters(_with_password(url))
        if settings.login == "certificate":
            found.credentials = pika.credentials.ExternalCredentials()
        elif settings.username is not None or settings.password is not None:
            found.credentials = pika.PlainCredentials(
                settings.username or found.credentials.username,
                current(settings.password) or "",
            )
        if settings.tls is not None or url.startswith("amqps:"):
            tls = settings.tls or TlsSettings()
            context = client_context(settings.name, tls)
            found.ssl_options = pika.SSLOptions(context, tls.server_hostname or found.host)
        found.heartbeat = settings.heartbeat
        found.connection_attempts, found.retry_delay = 1, 0
        found.socket_timeout = settings.connect_timeout
        found.stack_timeout = settings.connect_timeout
        found.blocked_connection_timeout = None
        found.client_properties = {"connection_name": settings.name}
        return found

    def _block(self, _connection: object, frame: Untyped) -> None:
        self.blocked = True
        if monotonic() < self._quiet_until:
            return
        self._quiet_until, self._is_told = monotonic() + SAY_INTERVAL, True
        reason = frame.method.reason
        log.warning("%s: the server takes no messages now: %s", self.settings.name, reason)

    def _unblock(self, _connection: object, _frame: object) -> None:
        self.blocked = False
        if self._is_told:
            self._is_told = False
            log.info("%s: the server takes messages again", self.settings.name)

    def _channel_closed(self, _channel: object, error: Exception) -> None:
        self.end(first_line(self._amqp.fault or error), error)

    def _ended(self, amqp: AmqpClient, error: Exception) -> None:
        self.end(first_line(amqp.fault or error))
        _answer(self._closed, None)


def _with_password(url: str) -> str:
    """Return an address whose user has a password, if an empty one: the library reads no other."""
    parts = urlsplit(url)
    if parts.username is None or parts.password is not None:
        return url
    user, _, host = parts.netloc.rpartition("@")
    return parts._replace(netloc=f"{user}:@{host}").geturl()


def _answer(future: Future[Untyped], answer: Untyped) -> None:
    if not future.done():
        future.set_result(answer)


def _fail(future: Future[Any], error: BaseException) -> None:
    if not future.done():
        future.set_exception(error)


def refusal(settings: RabbitmqSettings, error: BaseException) -> EndpointError:
    """Return the error of a failed log-in or request: lost, or refused for good."""
    while (inner := _inner(error)) is not None:
        error = inner
    found = _ANSWER.search(repr(error))
    if found is None:
        return NotConnectedError(f"{settings.name}: {first_line(error)}")
    kind = EndpointError if int(found[1]) in _REFUSALS else NotConnectedError
    return kind(f"{settings.name}: {found[2]}")


def _inner(error: BaseException) -> BaseException | None:
    """Return the error that one of pika wraps."""
    wrapped = [*getattr(error, "exceptions", ()), getattr(error, "exception", None), *error.args]
    return next((each for each in reversed(wrapped) if isinstance(each, BaseException)), None)
