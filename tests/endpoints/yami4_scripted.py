"""A YAMI4 peer on a plain socket whose answers the test scripts."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Thread
from typing import TypeAlias

from gateway.errors import WireError
from gateway.wire.yami4.frames import FrameDecoder, encode_message
from gateway.wire.yami4.messages import (
    MessageHeading,
    encode_exception,
    encode_reply,
    encode_request,
    read_header,
)
from gateway.wire.yami4.parameters import EMPTY
from tests.waiting import PATIENCE

Answer: TypeAlias = Callable[[MessageHeading, int], bytes]  # bytes to write for a message


def reply(message_id: int) -> bytes:
    return encode_message(message_id, encode_reply(message_id), EMPTY)


def refuse(message_id: int, reason: str) -> bytes:
    return encode_message(message_id, encode_exception(message_id, reason.encode()), EMPTY)


def update(destination: bytes, tags: bytes, body: bytes, max_frame: int = 4096) -> bytes:
    header = encode_request(destination, b"update " + tags, 1)
    return encode_message(1_000, header, body, max_frame)


@contextmanager
def scripted(answer: Answer) -> Iterator[str]:
    """Serve one connection after the other; yields the URL. `answer` may raise to hang up."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = Thread(target=_serve, args=(listener, answer), daemon=True)
        thread.start()
        host, port = listener.getsockname()
        yield f"tcp://{host}:{port}"
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
    thread.join(PATIENCE)


def _serve(listener: socket.socket, answer: Answer) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        # A client of another test may still call a port that the system has given us since.
        with connection, suppress(OSError, WireError):
            _talk(connection, answer)


def _talk(connection: socket.socket, answer: Answer) -> None:
    decoder = FrameDecoder()
    while data := connection.recv(65_536):
        for header, _ in decoder.feed(data):
            found = read_header(header)
            assert found is not None
            if out := answer(*found):
                connection.sendall(out)
