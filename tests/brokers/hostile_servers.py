"""Servers that are not brokers, or break off: sockets on loopback, each connection in a thread."""

from __future__ import annotations

import random
import select
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

Behaviour = Callable[[socket.socket], None]
BLOCK = 65_536


@contextmanager
def serving(behave: Behaviour) -> Iterator[int]:
    """Run `behave` for each connection; yield the port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        open_sockets: list[socket.socket] = []

        def accept() -> None:
            with suppress(OSError):
                while True:
                    client, _ = listener.accept()
                    open_sockets.append(client)
                    threading.Thread(target=answer, args=(client,), daemon=True).start()

        def answer(client: socket.socket) -> None:
            with suppress(OSError, ssl.SSLError), client:
                behave(client)

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            for each in open_sockets:
                with suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)
            thread.join(10)


def close(client: socket.socket) -> None:
    client.close()


def keep_silent(client: socket.socket) -> None:
    while client.recv(BLOCK):
        pass


def say(data: bytes) -> Behaviour:
    def behave(client: socket.socket) -> None:
        client.sendall(data)
        keep_silent(client)

    return behave


def say_for_ever(block: bytes) -> Behaviour:
    def behave(client: socket.socket) -> None:
        while True:
            client.sendall(block)

    return behave


def noise(seed: int) -> bytes:
    return random.Random(seed).randbytes(BLOCK)  # noqa: S311  # no secret


def negotiated(then: Behaviour) -> Behaviour:
    """Agree to the wire format that the client asks for, and go on with `then`."""

    def behave(client: socket.socket) -> None:
        head = client.recv(4, socket.MSG_WAITALL)
        client.sendall(head + client.recv(int.from_bytes(head, "big"), socket.MSG_WAITALL))
        then(client)

    return behave


def openwire_frame(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + body


def openwire_text(text: str) -> bytes:
    return len(text).to_bytes(2, "big") + text.encode()


def openwire_info(properties: bytes | None = None) -> bytes:
    """Return the WireFormatInfo of a server that allows frames of any size and nothing else."""
    if properties is None:
        any_size = openwire_text("MaxFrameSize") + b"\x06\x7f" + b"\xff" * 7  # a long
        properties = (1).to_bytes(4, "big") + any_size
        properties = len(properties).to_bytes(4, "big") + properties
    return openwire_frame(b"\x01ActiveMQ\0\0\0\x0c\x01" + properties)


def relaying(port: int, limit: int, *, frozen: bool) -> Behaviour:
    """Relay to a broker; close, or keep silent, after `limit` bytes from it."""

    def behave(client: socket.socket) -> None:
        with socket.create_connection(("127.0.0.1", port)) as broker:
            threading.Thread(target=_copy, args=(client, broker), daemon=True).start()
            left = limit
            while left and (data := broker.recv(min(left, BLOCK))):
                client.sendall(data)
                left -= len(data)
            if frozen:
                keep_silent(broker)

    return behave


def tls_relaying(port: int, context: ssl.SSLContext) -> Behaviour:
    """End TLS in front of a broker without it."""

    def behave(client: socket.socket) -> None:
        with (
            context.wrap_socket(client, server_side=True) as inner,
            socket.create_connection(("127.0.0.1", port)) as broker,
        ):
            # One thread: a TLS socket is not for two. A block holds a TLS record, so none waits.
            while True:
                for each in select.select([inner, broker], [], [])[0]:
                    if not (data := each.recv(BLOCK)):
                        return
                    (broker if each is inner else inner).sendall(data)

    return behave


def _copy(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError, ssl.SSLError):
        while data := source.recv(BLOCK):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_RDWR)
