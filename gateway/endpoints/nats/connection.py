"""A connection of nats-py with an event loop in a thread of its own."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from threading import Thread, current_thread
from typing import Any, Final, TypeVar

from nats.errors import Error as NatsError
from nats.js.client import JetStreamContext
from nats.js.errors import APIError, NotFoundError

from gateway.endpoints.nats.client import MALFORMED, GatewayClient
from gateway.endpoints.nats.log_in import key_options
from gateway.endpoints.settings.base import TlsSettings, server_of
from gateway.endpoints.settings.nats import NatsSettings
from gateway.endpoints.tls import client_context, connect_error, joined
from gateway.errors import EndpointError, NotConnectedError, first_line
from gateway.setting import current

log = logging.getLogger(__name__)
T = TypeVar("T")

PORT: Final = 4222
CLOSE_TIMEOUT: Final = 2.0  # seconds
_FORSAKEN: Final = 0.2  # seconds
_QUESTIONS: Final = 10  # of one call at most; each has `answer_timeout`
_KEPT: Final = 20  # the last errors
_LOOK: Final = 0.2  # seconds between looks at the connection
_MISSED: Final = 2  # unanswered questions that are tolerated
_DENIED: Final = "permissions violation"
_PUBLISH_DENIED: Final = re.compile(f'{_DENIED} for publish to "([^"]+)"')
_NO_PEERS: Final = 10_005  # server/errors.json: servers are away, or not known yet
_REFUSALS: Final = ("authorization", "authentication", "user credentials", "permissions")


class NatsConnection:
    """One log-in; `on_end` is called once, in any thread, when it ends by itself.

    Thread-safe: the library is used only in its own thread; `call` and `spawn` go there.
    """

    def __init__(
        self,
        settings: NatsSettings,
        on_end: Callable[[NotConnectedError], None],
        on_denied: Callable[[str], None] | None = None,
    ) -> None:
        """Connect; `on_denied` gets each subject, in small letters, that may not be published to.

        Without it such a subject ends the connection, as a subscription without permission does:
        the server answers nothing to it, and the endpoint would wait for ever.

        Raises:
            NotConnectedError: no server answers.
            EndpointError: the log-in is refused, or a file cannot be used.
        """
        self._settings, self._on_end, self._on_denied = settings, on_end, on_denied
        self._reason = "the server closed the connection"
        self._calls: set[Future[Any]] = set()
        self._noted: deque[Exception] = deque(maxlen=_KEPT)
        self.is_over = False
        self.client: Any = None
        self.address = ""  # HOST:PORT of the server
        self.jetstream: Any = None
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._run, name=f"{settings.name}-nats", daemon=True)
        self._thread.start()
        try:
            each = settings.connect_timeout + 2 * _FORSAKEN
            self.call(self._connect(), len(settings.addresses) * each + 1)
        except BaseException:
            self.close()
            raise

    def check(self) -> None:
        """Raise NotConnectedError when the connection is over."""
        if self.is_over:
            raise NotConnectedError(f"{self._settings.name}: not connected: {self._reason}")

    def call(self, work: Coroutine[Any, Any, T], timeout: float | None = None) -> T:
        """Run `work` in the connection's thread and return its result.

        Raises:
            NotConnectedError: the server does not answer in time, or the connection ends.
            EndpointError: the server refuses.
        """
        name = self._settings.name
        future = self.spawn(work)
        self._calls.add(future)
        try:
            return future.result(timeout or _QUESTIONS * self._settings.answer_timeout)
        except (TimeoutError, CancelledError) as error:
            future.cancel()
            self.refuse_denied()
            reason = self._reason if isinstance(error, CancelledError) else str(error)
            raise NotConnectedError(f"{name}: {reason or 'no answer in time'}") from error
        except (NatsError, OSError) as error:
            raise refusal(name, error) from error
        except MALFORMED as error:
            log.debug("%s: malformed answer", name, exc_info=error)
            reason = f"the server gave a malformed answer ({first_line(error)})"
            raise NotConnectedError(f"{name}: {reason}") from error
        finally:
            self._calls.discard(future)

    def spawn(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Start `work` in the connection's thread.

        Raises:
            NotConnectedError: the connection is closed.
        """
        try:
            return asyncio.run_coroutine_threadsafe(work, self._loop)
        except RuntimeError as error:
            work.close()
            raise NotConnectedError(f"{self._settings.name}: not connected") from error

    def refuse_denied(self) -> None:
        """Raise EndpointError when the server denied a subject; it answers such a request not."""
        for error in self._noted:
            if _DENIED in str(error).lower():
                raise refusal(self._settings.name, error) from error

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        """Start `work` as `spawn` does; its error ends the connection."""
        self.spawn(work).add_done_callback(self._check)

    def end(self, reason: str) -> None:
        """End the connection, and each call, for `reason`; the first reason counts."""
        if not self.is_over:
            self.is_over, self._reason = True, reason
            for call in tuple(self._calls):
                call.cancel()
            self._on_end(NotConnectedError(f"{self._settings.name}: {reason}"))

    def close(self) -> None:
        """Release everything, after what is already written; never raises."""
        if not self.is_over:
            self.is_over, self._reason = True, "is closed"
        loop = self._loop
        if loop.is_closed():
            return
        if self.client is not None:
            try:
                self.call(self._leave(), CLOSE_TIMEOUT)
            except EndpointError as error:
                log.debug("%s: closing: %s", self._settings.name, error)
        loop.call_soon_threadsafe(loop.stop)
        if self._thread is not current_thread():
            self._thread.join(CLOSE_TIMEOUT)

    def _check(self, future: Future[None]) -> None:
        if not future.cancelled() and (error := future.exception()) is not None:
            self.end(first_line(error))

    async def make_stream(self) -> None:
        """Create the stream when the settings ask for it and it does not exist."""
        settings = self._settings
        if not settings.create_stream:
            return
        try:
            await self.jetstream.stream_info(settings.stream)
        except NotFoundError:
            await self._add_stream()

    async def _add_stream(self) -> None:
        settings = self._settings
        try:
            await self.jetstream.add_stream(
                name=settings.stream,
                subjects=list(settings.subjects),
                num_replicas=settings.replicas,
                duplicate_window=settings.duplicate_window,
            )
        except APIError as refused:  # also where another connection has just made it
            try:
                await self.jetstream.stream_info(settings.stream)
            except NotFoundError:
                raise refused from None

    async def find_streams(self, subject: str) -> list[str]:
        """Return the streams that have subjects of a pattern."""
        question, name = json.dumps({"subject": subject}).encode(), "$JS.API.STREAM.NAMES"
        timeout = self._settings.answer_timeout
        answer = json.loads((await self.client.request(name, question, timeout)).data)
        if "error" in answer:
            APIError.from_error(answer["error"])  # it raises
        return [str(each) for each in answer["streams"] or ()]

    def _run(self) -> None:
        loop = self._loop
        try:
            loop.run_forever()
            if self.client is not None:
                self.client.abort()
            loop.run_until_complete(_cancel_all())
        finally:
            loop.close()

    async def _connect(self) -> None:
        failures: list[EndpointError] = []
        for url in self._settings.addresses:
            self._noted.clear()
            client = GatewayClient(encrypted=url.startswith("tls://"))
            try:
                await asyncio.wait_for(
                    client.log_in(url, **self._options(url)), self._settings.connect_timeout
                )
            except (TimeoutError, NatsError, OSError) as error:
                failure: Exception = self._noted[-1] if self._noted else error
                if isinstance(failure, TimeoutError):
                    silence = f"no answer within {self._settings.connect_timeout:g} s"
                    failure = OSError(f"{url}: {silence}; is it a server of NATS?")
                with suppress(TimeoutError):  # after a failed handshake its close never ends
                    await asyncio.wait_for(client.close(), _FORSAKEN)
                client.abort()
                failures.append(await self._connect_error(url, failure))
                continue
            self.client, self.address = client, url.partition("://")[2]
            self.run(self._watch())
            self.jetstream = JetStreamContext(client, timeout=self._settings.answer_timeout)
            return
        raise joined(failures)

    async def _connect_error(self, url: str, error: Exception) -> EndpointError:
        """Return the error of one address; of TLS, which the driver tells in words of its own."""
        settings = self._settings
        refused = refusal(settings.name, error)
        if not isinstance(error, OSError) or not refused.retryable:
            return refused
        is_encrypted = settings.tls is not None or url.startswith("tls://")
        server = server_of(url, PORT, is_encrypted=is_encrypted)
        return await asyncio.to_thread(connect_error, settings, server, error, settings.tls)

    def _options(self, url: str) -> dict[str, Any]:
        settings = self._settings
        found: dict[str, Any] = {
            "user": settings.username,
            "password": current(settings.password),
            "token": current(settings.token),
        } | key_options(settings)
        if settings.tls is not None or url.startswith("tls://"):
            tls = settings.tls or TlsSettings()
            found["tls"] = client_context(settings.name, tls)
            found["tls_hostname"] = tls.server_hostname
        return {key: value for key, value in found.items() if value is not None} | {
            "name": settings.name,
            "inbox_prefix": settings.inbox_prefix,
            "allow_reconnect": False,
            "max_reconnect_attempts": 1,  # it tries twice, and then the next address
            "reconnect_time_wait": 0,
            "connect_timeout": settings.connect_timeout,
            "ping_interval": settings.keepalive,
            "max_outstanding_pings": _MISSED,
            "error_cb": self._note,
            "closed_cb": self._ended,
            "disconnected_cb": self._ended,
        }

    async def _note(self, error: Exception) -> None:
        log.debug("%s: %s", self._settings.name, error)
        self._noted.append(error)
        self._reason = first_line(error)
        denied = _PUBLISH_DENIED.search(self._reason)
        if denied and self._on_denied:
            self._on_denied(denied[1])
        elif _DENIED in self._reason:  # also a reload of the server may end a subscription
            self.end(self._reason)

    async def _watch(self) -> None:
        """Notice the end of the connection, which the library may forget to tell.

        An error while it writes what is left ends its reading thread of work without a call.
        """
        while self.client.is_connected:  # noqa: ASYNC110  # the library has no event for it
            await asyncio.sleep(_LOOK)
        await self._ended()

    async def _ended(self) -> None:
        if self.client is not None:
            error = self.client.last_error
            self.end(self._reason if error is None else first_line(error))

    async def _leave(self) -> None:
        if self.client.is_connected:
            await self.client.flush(CLOSE_TIMEOUT / 2)
        await self.client.close()


async def _cancel_all() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.sleep(0)  # for the end of an aborted transport
    await asyncio.gather(*tasks, return_exceptions=True)


def refusal(name: str, error: Exception) -> EndpointError:
    """Return the error of a failed connection or request: lost, or refused for good."""
    text = f"{name}: {getattr(error, 'description', None) or first_line(error)}"
    code = getattr(error, "code", None)
    of_request = isinstance(code, int) and 0 < code < 500  # as HTTP's
    is_bad = of_request and getattr(error, "err_code", None) != _NO_PEERS
    if is_bad or any(word in text.lower() for word in _REFUSALS):
        return EndpointError(text)
    return NotConnectedError(text)
