"""The client of nats-py, with the faults mended that a bridge meets."""

from __future__ import annotations

import asyncio
import re
from contextlib import suppress
from ssl import SSLContext
from typing import Any, Final

from nats.aio.client import Client
from nats.errors import Error as NatsError
from nats.errors import ProtocolError
from nats.protocol import parser

from gateway.endpoints.settings.nats import MAX_MESSAGE
from gateway.endpoints.tls import EXPECTS_TLS, WITHOUT_TLS
from gateway.errors import first_line
from gateway.model.message import DroppedPayload
from gateway.untyped import Untyped

# The library's errors at what no server of NATS sends.
MALFORMED: Final = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)
MAX_LINE: Final = 65_536  # bytes; a server's own limit is 4,096 by default
MAX_ANNOUNCED: Final = (1 << 31) - 1  # bytes; `max_payload` is an int32 of the server

_TEXT: Final = rb"([^ \t\r\n]+)"  # the server takes other control characters in a subject
_MESSAGE: Final = rb"[ \t]+%b[ \t]+%b[ \t]+(%b[ \t]+)?" % (_TEXT, _TEXT, _TEXT)
_LINE: Final = re.compile(rb"\AMSG%b(\d+)\r\n" % _MESSAGE)
_LINE_WITH_HEADERS: Final = re.compile(rb"\AHMSG%b(\d+)[ \t]+(\d+)\r\n" % _MESSAGE)


class BoundedParser(parser.Parser):
    """Ends a connection, in place of buffering, at a line or a message that is too long.

    The library waits for the end of either, whatever a server announces, and stops reading without
    a word at some malformed lines. A payload past the limit of its subscription is dropped as it
    comes, and its message has a `DroppedPayload`.
    """

    _left = 0  # bytes to drop, of the payload that arrives

    async def parse(self, data: bytes = b"") -> None:
        dropped = min(self._left, len(data))
        self._left -= dropped
        data = data[dropped:]
        try:
            await super().parse(data)
        except MALFORMED as error:
            await self._refuse(f"malformed line ({first_line(error)})")
        if self.state == parser.AWAITING_CONTROL_LINE:
            if len(self.buf) > MAX_LINE:
                await self._refuse(f"line of more than {MAX_LINE} bytes")
        elif not self.header_needed <= self.needed <= MAX_MESSAGE:
            await self._refuse(f"message of {self.needed} bytes, limit {MAX_MESSAGE}")
        elif self.needed - self.header_needed > self.nc.limit_of(self.msg_arg["sid"]):
            self._drop_payload()

    def _drop_payload(self) -> None:
        """Keep the headers of the message that arrives, and what is behind its payload."""
        if len(self.buf) > self.header_needed:
            self.nc.dropped = self.needed - self.header_needed
            self._left = max(0, self.needed - len(self.buf))
            del self.buf[self.header_needed : self.needed]
            self.needed = self.header_needed

    async def _refuse(self, fault: str) -> None:
        self.buf.clear()
        self.nc.fault = ProtocolError(f"the server sent a {fault}")
        raise self.nc.fault


class GatewayClient(Client):
    """Reads whatever a server delivers, logs in only over the wanted TLS, and frees its socket.

    The library reads no subject with a form feed or outside UTF-8 and no malformed headers: its
    connection ends, or goes silent, at each delivery of such a message. It asks the server whether
    it has TLS, and sends a password without it to one that says no, or to somebody on the way who
    says so. Its `close` waits for a peer that reads.
    """

    def __init__(self, *, encrypted: bool) -> None:
        super().__init__()
        self.encrypted = encrypted
        self.fault: Exception | None = None  # the server's, of the protocol
        self.dropped = 0  # bytes of the payload that was dropped last, until its message is made
        self._limits: dict[int, int] = {}  # of payloads, by subscription
        self._ps = BoundedParser(self)
        parser.MSG_RE, parser.HMSG_RE = _LINE, _LINE_WITH_HEADERS

    def limit_of(self, sid: int) -> int:
        """Bytes of the longest payload that a subscription keeps."""
        return self._limits.get(sid, MAX_MESSAGE)

    def limit(self, subscription: Untyped, most: int) -> None:
        """Keep no payload of a subscription that has more bytes than `most`."""
        self._limits[subscription._id] = most  # noqa: SLF001

    async def log_in(self, url: str, public_nkey: str | None = None, **options: Untyped) -> None:
        """Connect; the library itself reads NKeys only from files, and hangs at some of them."""
        self._public_nkey = public_nkey
        if "signature_cb" in options:
            self._auth_configured = True
        try:
            await self.connect(url, **options)
        except MALFORMED as error:
            raise NatsError(f"{url}: malformed greeting ({first_line(error)})") from error

    async def request(  # the library's
        self,
        subject: str,
        payload: bytes = b"",
        timeout: float = 10,  # noqa: ASYNC109
        old_style: bool = False,
        headers: dict[str, Any] | None = None,
    ) -> Untyped:
        """Return the answer; the library does not name a question that has none."""
        try:
            return await super().request(subject, payload, timeout, old_style, headers)
        except TimeoutError as error:
            raise TimeoutError(f"no answer to {subject!r} within {timeout:g} s") from error

    async def flush(self, timeout: float = 10) -> None:  # noqa: ASYNC109  # the library's
        """Wait until the server has read everything; the library's PING overtakes what waits."""
        if self._transport and self._pending:
            self._transport.writelines(self._pending)
            self._pending, self._pending_data_size = [], 0
        try:
            await super().flush(timeout)  # type: ignore[arg-type]  # it takes any number
        except TimeoutError as error:
            raise TimeoutError(f"no answer to a PING within {timeout:g} s") from error

    async def _send_ping(self, future: Untyped = None) -> None:
        """Ask, and wait for no room; in the library a server that reads nothing is never silent."""
        self._pongs.append(future or asyncio.get_running_loop().create_future())
        if self._transport:
            self._transport.write(parser.PING)

    def abort(self) -> None:
        """Close the socket at once; what is not written is dropped."""
        writer = getattr(self._transport, "_io_writer", None)
        if writer is not None:
            with suppress(AttributeError):  # of a transport with TLS that is closed
                writer.transport.abort()

    @property
    def ssl_context(self) -> SSLContext:
        """The context of a server that asks for TLS; the library would make one of its own."""
        if not self.encrypted:
            raise NatsError(f"the server {EXPECTS_TLS}")
        context: SSLContext = super().ssl_context
        return context

    def _connect_command(self) -> Untyped:
        most = self.max_payload
        if type(most) is not int or not 0 < most <= MAX_ANNOUNCED:
            raise NatsError(f"the server announces {most!r:.40} bytes for `max_payload`")
        if self.encrypted and not self._server_info.get("tls_required"):
            raise NatsError(f"the server {WITHOUT_TLS}; no log-in was sent")
        return super()._connect_command()

    async def _process_op_err(self, error: Exception) -> None:
        """End the connection; the library forgets what was wrong with the protocol."""
        await super()._process_op_err(self.fault or error)

    async def _process_headers(self, headers: bytes | None) -> Untyped:
        with suppress(IndexError, ValueError):
            return await super()._process_headers(headers)
        return None

    def _build_message(
        self, sid: int, subject: bytes, reply: bytes, data: bytes, headers: dict[str, str] | None
    ) -> Untyped:
        full, self.dropped = self.dropped or len(data), 0
        return self.msg_class(
            subject=subject.decode(errors="surrogateescape"),
            reply=reply.decode(errors="surrogateescape"),
            data=DroppedPayload(full) if full > self.limit_of(sid) else data,
            headers=headers,
            _client=self,
            _sid=sid,
        )
