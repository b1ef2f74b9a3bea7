"""A non-blocking socket that takes fewer bytes than it is given."""

from __future__ import annotations

import random
import socket
from collections.abc import Iterator

import pytest

from gateway.endpoints.sockets import NonBlockingSocket
from tests.waiting import PATIENCE


@pytest.fixture
def ends() -> Iterator[tuple[NonBlockingSocket, socket.socket]]:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    theirs.settimeout(PATIENCE)
    yield NonBlockingSocket(ours), theirs
    ours.close()
    theirs.close()


def test_pieces_that_the_socket_does_not_take_at_once_arrive_in_order(
    ends: tuple[NonBlockingSocket, socket.socket],
) -> None:
    stream, peer = ends
    pieces = [random.Random(size).randbytes(size) for size in (3, 400_000, 1, 0, 900_000, 7)]  # noqa: S311
    whole = b"".join([*pieces, *pieces[:2]])

    assert not stream.write(pieces)
    assert not stream.write(pieces[:2])
    assert stream.backlog == len(whole) - stream.written > 0

    got = bytearray()
    while len(got) < len(whole):
        got += peer.recv(65_536)
        stream.flush()

    assert bytes(got) == whole
    assert (stream.backlog, stream.written) == (0, len(whole))
    assert stream.flush()
    assert stream.write([b"more"])
    assert peer.recv(10) == b"more"


def test_received_bytes_are_acknowledged_before_the_next_write() -> None:
    """Otherwise a broker without TCP_NODELAY delays its next message (RFC 1122, 4.2.3)."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        ours = socket.create_connection(server.getsockname())
        peer, _ = server.accept()
        with ours, peer:
            ours.setblocking(False)
            ours.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 0)
            NonBlockingSocket(ours).acknowledge()

            assert ours.getsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK) == 1
