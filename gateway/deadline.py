"""A time for the whole of an answer: the time-out of a socket begins again with each byte."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


@contextmanager
def answered_within(seconds: float, peer: socket.socket) -> Iterator[None]:
    """Shut the connection down where the block takes longer.

    Raises:
        TimeoutError: it took longer; what the block has read is a part.
    """
    late = threading.Event()

    def shut_down() -> None:
        late.set()
        with suppress(OSError):
            peer.shutdown(socket.SHUT_RDWR)

    end = threading.Timer(seconds, shut_down)
    end.daemon = True
    end.start()
    try:
        yield
    finally:
        end.cancel()
        if late.is_set():
            raise TimeoutError(f"no whole answer within {seconds:g} s")
