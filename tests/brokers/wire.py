"""A TCP relay before a broker that cuts, stalls and half-closes connections."""

from __future__ import annotations

import socket
import struct
import threading
from contextlib import suppress

ABORT = struct.pack("ii", 1, 0)  # a linger time of zero: closing sends a reset


class Wire:
    """A relay of TCP connections to one port. Mutable."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._open: list[socket.socket] = []
        self._lock = threading.Lock()
        self._flows = threading.Event()
        self._flows.set()
        self.carried = 0  # bytes, both ways
        self.delay = 0.0  # seconds before what a client sends goes on
        self.poison = b""  # ends the connection of a client that sends it
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> int:
        """Reset every connection; return the number of closed sockets."""
        ends = self._take()
        for end in ends:
            with suppress(OSError):
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, ABORT)
                end.shutdown(socket.SHUT_RD)
        for end in ends:
            end.close()
        return len(ends)

    def stall(self) -> None:
        """Relay nothing, not even the end of a connection, until `flow`; new ones likewise."""
        self._flows.clear()

    def flow(self) -> None:
        self._flows.set()

    def half_close(self, *, broker: bool) -> None:
        """Close the sending direction towards each client, or towards the broker."""
        with self._lock:
            ends = self._open[int(broker) :: 2]
        for end in ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        self._listener.close()
        self.flow()
        self.cut()

    def _take(self) -> list[socket.socket]:
        with self._lock:
            ends, self._open = self._open, []
        return ends

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(("127.0.0.1", self._target))
            except OSError:
                near.close()
                continue
            with self._lock:
                self._open += [near, far]
            for one, other, client in ((near, far, True), (far, near, False)):
                arguments = one, other, client
                threading.Thread(target=self._copy, args=arguments, daemon=True).start()

    def _copy(self, one: socket.socket, other: socket.socket, client: bool) -> None:
        with suppress(OSError):
            while data := one.recv(65_536):
                self._flows.wait()
                if client and self.delay:
                    threading.Event().wait(self.delay)
                if client and self.poison and self.poison in data:
                    break
                other.sendall(data)
                self.carried += len(data)
        self._flows.wait()
        for end in (one, other):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
