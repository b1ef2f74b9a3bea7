"""A plain YAMI4 client for the tests: one request at a time, messages as received."""

from __future__ import annotations

import socket
from types import TracebackType
from typing import NamedTuple, Self

from gateway.model.message import Value
from gateway.wire.yami4.frames import FrameDecoder, FrameLimits, Packet, encode_message
from gateway.wire.yami4.messages import MessageHeading, MessageKind, encode_request, read_header
from gateway.wire.yami4.parameters import EMPTY, decode_parameters, encode_parameters
from tests.waiting import PATIENCE

LIMITS = FrameLimits(payload=1 << 28, message=1 << 28, held=1 << 28)


class Received(NamedTuple):
    heading: MessageHeading
    message_id: int
    body: bytes

    @property
    def name(self) -> str:
        return self.heading.message_name.decode()

    @property
    def values(self) -> dict[str, Value]:
        return decode_parameters(self.body)


def connect_to(url: str) -> socket.socket:
    scheme, _, rest = url.partition("://")
    if scheme == "unix":
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(PATIENCE)
        connection.connect(rest)
        return connection
    host, _, port = rest.rpartition(":")
    return socket.create_connection((host, int(port)), timeout=PATIENCE)


class Client:
    """A connection; it keeps the updates that arrived before an answer. Mutable."""

    def __init__(self, url: str) -> None:
        self.connection = connect_to(url)
        self.updates: list[Received] = []
        self._decoder = FrameDecoder(LIMITS)
        self._packets: list[Packet] = []
        self._id = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.connection.close()

    def send(self, object_name: str | bytes, message_name: str, body: bytes = EMPTY) -> int:
        self._id += 1
        tags = object_name.encode() if isinstance(object_name, str) else object_name
        header = encode_request(tags, message_name.encode(), self._id)
        self.connection.sendall(encode_message(self._id, header, body))
        return self._id

    def receive(self) -> Received:
        while not self._packets:
            data = self.connection.recv(1 << 18)
            if not data:
                raise ConnectionResetError("closed by the broker")
            self._packets = self._decoder.feed(data)
        header, body = self._packets.pop(0)
        found = read_header(header)
        assert found is not None
        return Received(*found, body)

    def ask(self, object_name: str | bytes, message_name: str, body: bytes = EMPTY) -> Received:
        """Send a request and return its answer; keep the updates that arrive before it."""
        message_id = self.send(object_name, message_name, body)
        while True:
            got = self.receive()
            if got.heading.kind is MessageKind.MESSAGE:
                self.updates.append(got)
                continue
            assert got.message_id == message_id
            return got

    def subscribe(self, patterns: str | bytes, destination: str = "upd") -> Received:
        return self.ask(
            patterns, "subscribe", encode_parameters({"destination_object": destination})
        )

    def collect(self) -> list[Received]:
        """Return all updates that the broker has sent until now."""
        self.ask("stats", "get")
        updates, self.updates = self.updates, []
        return updates
