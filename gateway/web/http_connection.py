"""Serves HTTP/1.1 on one connection, with limits in size and time."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Final, TypeAlias

import h11

from gateway.web.application import HEADERS
from gateway.web.exchange import HttpRequest, HttpResponse, request_of_event

Handler: TypeAlias = Callable[[HttpRequest], Awaitable[HttpResponse]]
MAX_HEAD_BYTES: Final = 64 << 10  # of a request's first line and headers
MAX_BODY_BYTES: Final = 1 << 10  # of a request's body, which is discarded
CHUNK_BYTES: Final = 16 << 10  # read at once
READ_TIMEOUT: Final = 10.0  # seconds to receive a request; also the idle time-out
WRITE_TIMEOUT: Final = 20.0  # seconds to send a response
_HEAD_END: Final = re.compile(rb"\n\r?\n")
_AMBIGUOUS: Final = re.compile(rb"(?<!\r)\n|\n[ \t]")  # a bare LF, or a folded header line


async def serve(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, handler: Handler
) -> None:
    """Answer requests until the client closes, breaks the protocol or is too slow.

    The caller closes `writer`.

    Raises:
        TimeoutError: a request or a response takes too long.
    """
    peer = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEAD_BYTES)
    while True:
        try:
            async with asyncio.timeout(READ_TIMEOUT):
                request = await _read(peer, reader)
        except h11.RemoteProtocolError as error:
            await _refuse(peer, writer, error.error_status_hint)
            return
        if request is None:
            return
        response = await handler(request)
        async with asyncio.timeout(WRITE_TIMEOUT):
            await _write(peer, writer, response, with_body=request.method != "HEAD")
        if peer.our_state is not h11.DONE or peer.their_state is not h11.DONE:
            return
        peer.start_next_cycle()


async def _read(peer: h11.Connection, reader: asyncio.StreamReader) -> HttpRequest | None:
    """Return the next request without its body; None when the client has closed."""
    request: HttpRequest | None = None
    size = 0
    while True:
        if peer.their_state is h11.IDLE:
            _require_plain_head(peer.trailing_data[0])
        event = peer.next_event()
        if event is h11.NEED_DATA:
            peer.receive_data(await reader.read(CHUNK_BYTES))
        elif isinstance(event, h11.Request):
            request = request_of_event(event)
        elif isinstance(event, h11.Data):
            size += len(event.data)
            if size > MAX_BODY_BYTES:
                raise h11.RemoteProtocolError("body too large", error_status_hint=413)
        elif isinstance(event, h11.EndOfMessage):
            return request
        else:  # ConnectionClosed, or an upgrade, which is not offered
            return None


def _require_plain_head(received: bytes) -> None:
    """Refuse a head that is too long, or whose lines a proxy may split in another way.

    The library looks at the length of incomplete heads only.

    Raises:
        RemoteProtocolError: a line ends with a bare LF, or is folded (RFC 9112, 2.2 and 5.2).
    """
    end = _HEAD_END.search(received)
    if end and end.end() > MAX_HEAD_BYTES:
        raise h11.RemoteProtocolError("head too large", error_status_hint=431)
    if _AMBIGUOUS.search(received, 0, end.end() if end else len(received)):
        raise h11.RemoteProtocolError("bare LF or folded line", error_status_hint=400)


async def _refuse(peer: h11.Connection, writer: asyncio.StreamWriter, status: int) -> None:
    if peer.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
        async with asyncio.timeout(WRITE_TIMEOUT):
            # No body: the refused request may be a HEAD, whose response has none.
            response = HttpResponse(status, b"", headers={"Connection": "close"})
            await _write(peer, writer, response, with_body=False)


async def _write(
    peer: h11.Connection, writer: asyncio.StreamWriter, response: HttpResponse, *, with_body: bool
) -> None:
    headers = {"Content-Type": response.type, "Content-Length": str(len(response.body))}
    headers |= {**HEADERS, **response.headers}
    reason = HTTPStatus(response.status).phrase
    head = h11.Response(status_code=response.status, reason=reason, headers=list(headers.items()))
    parts = [peer.send(head)]
    if with_body:
        parts.append(peer.send(h11.Data(data=response.body)))
    parts.append(peer.send(h11.EndOfMessage()))
    writer.write(b"".join(part for part in parts if part))
    await writer.drain()
