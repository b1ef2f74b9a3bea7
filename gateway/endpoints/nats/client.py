"""The client of nats-py, with the faults mended that a bridge meets."""

from __future__ import annotations

import re
from contextlib import suppress
from ssl import SSLContext
from typing import Any, Final

from nats.aio.client import Client
from nats.errors import Error as NatsError
from nats.protocol import parser

from gateway.endpoints.tls import EXPECTS_TLS, WITHOUT_TLS

_TEXT: Final = rb"([^ \t\r\n]+)"  # the server takes other control characters in a subject
_MESSAGE: Final = rb"[ \t]+%b[ \t]+%b[ \t]+(%b[ \t]+)?" % (_TEXT, _TEXT, _TEXT)
_LINE: Final = re.compile(rb"\AMSG%b(\d+)\r\n" % _MESSAGE)
_LINE_WITH_HEADERS: Final = re.compile(rb"\AHMSG%b(\d+)[ \t]+(\d+)\r\n" % _MESSAGE)


class GatewayClient(Client):
    """Reads whatever a server delivers, logs in over the wanted TLS alone, and frees its socket.

    The library reads no subject with a form feed or outside UTF-8 and no malformed headers: its
    connection ends, or goes silent, at each delivery of such a message. It asks the server whether
    it has TLS, and sends a password without it to one that says no, or to somebody on the way who
    says so. Its `close` waits for a peer that reads.
    """

    def __init__(self, *, encrypted: bool) -> None:
        super().__init__()
        self.encrypted = encrypted
        parser.MSG_RE, parser.HMSG_RE = _LINE, _LINE_WITH_HEADERS

    async def log_in(self, url: str, public_nkey: str | None = None, **options: Any) -> None:  # noqa: ANN401
        """Connect; the library itself reads NKeys from files alone, and hangs at some of them."""
        self._public_nkey = public_nkey
        if "signature_cb" in options:
            self._auth_configured = True
        await self.connect(url, **options)

    async def request(  # the library's
        self,
        subject: str,
        payload: bytes = b"",
        timeout: float = 10,  # noqa: ASYNC109
        old_style: bool = False,
        headers: dict[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401
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

    def _connect_command(self) -> Any:  # noqa: ANN401  # the library's
        if self.encrypted and not self._server_info.get("tls_required"):
            raise NatsError(f"the server {WITHOUT_TLS}; no log-in was sent")
        return super()._connect_command()

    async def _process_headers(self, headers: bytes | None) -> Any:  # noqa: ANN401  # as above
        with suppress(IndexError, ValueError):
            return await super()._process_headers(headers)
        return None

    def _build_message(
        self, sid: int, subject: bytes, reply: bytes, data: bytes, headers: dict[str, str] | None
    ) -> Any:  # noqa: ANN401  # the library's message
        return self.msg_class(
            subject=subject.decode(errors="surrogateescape"),
            reply=reply.decode(errors="surrogateescape"),
            data=data,
            headers=headers,
            _client=self,
            _sid=sid,
        )
