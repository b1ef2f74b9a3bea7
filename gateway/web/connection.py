"""One client's connection: requests in, responses out, each with bounds in size and time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Final, TypeAlias

import h11

from gateway.web.exchange import Request, Response, as_text, request_of
from gateway.web.site import HEADERS

Answering: TypeAlias = Callable[[Request], Awaitable[Response]]
HEAD: Final = 64 << 10  # bytes of a request's first line and headers
BODY: Final = 1 << 10  # bytes of a request's body; no request needs one
CHUNK: Final = 16 << 10  # bytes read at once
READING: Final = 10.0  # seconds for a request to come, and for a kept connection to be idle
WRITING: Final = 20.0  # seconds for a client to take a response


async def serve(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, answering: Answering
) -> None:
    """Answer requests until the client closes, errs or is too slow; the caller closes."""
    peer = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD)
    while True:
        try:
            async with asyncio.timeout(READING):
                request = await _read(peer, reader)
        except h11.RemoteProtocolError as error:
            await _refuse(peer, writer, error.error_status_hint)
            return
        if request is None:
            return
        response = await answering(request)
        async with asyncio.timeout(WRITING):
            await _write(peer, writer, response, with_body=request.method != "HEAD")
        if peer.our_state is not h11.DONE or peer.their_state is not h11.DONE:
            return
        peer.start_next_cycle()


async def _read(peer: h11.Connection, reader: asyncio.StreamReader) -> Request | None:
    """The next request, its body thrown away; None when the client has closed."""
    request: Request | None = None
    size = 0
    while True:
        event = peer.next_event()
        if event is h11.NEED_DATA:
            peer.receive_data(await reader.read(CHUNK))
        elif isinstance(event, h11.Request):
            request = _request(event)
        elif isinstance(event, h11.Data):
            size += len(event.data)
            if size > BODY:
                raise h11.RemoteProtocolError("body too large", error_status_hint=413)
        elif isinstance(event, h11.EndOfMessage):
            return request
        else:  # ConnectionClosed, or an upgrade that nobody offered
            return None


def _request(event: h11.Request) -> Request:
    """Header names are in lower case, as h11 gives them; of a repeated one the last counts."""
    headers = {name.decode("ascii"): value.decode("latin-1") for name, value in event.headers}
    return request_of(event.method.decode("ascii"), event.target.decode("latin-1"), headers)


async def _refuse(peer: h11.Connection, writer: asyncio.StreamWriter, status: int) -> None:
    if peer.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
        reason = HTTPStatus(status).phrase.lower()
        async with asyncio.timeout(WRITING):
            await _write(peer, writer, as_text(f"{reason}\n", status), with_body=True, last=True)


async def _write(
    peer: h11.Connection,
    writer: asyncio.StreamWriter,
    response: Response,
    *,
    with_body: bool,
    last: bool = False,
) -> None:
    headers = {"Content-Type": response.type, "Content-Length": str(len(response.body))}
    headers |= {**HEADERS, **response.headers} | ({"Connection": "close"} if last else {})
    reason = HTTPStatus(response.status).phrase
    head = h11.Response(status_code=response.status, reason=reason, headers=list(headers.items()))
    parts = [peer.send(head)]
    if with_body:
        parts.append(peer.send(h11.Data(data=response.body)))
    parts.append(peer.send(h11.EndOfMessage()))
    writer.write(b"".join(part for part in parts if part))
    await writer.drain()
