"""A client for tests that speaks SMF by hand, wrongly too when it is told to."""

from __future__ import annotations

import socket
import ssl
from base64 import b64encode
from types import TracebackType
from typing import Self

from gateway.wire.smf.assured import (
    AppAck,
    Control,
    Field,
    Kind,
    decode_control,
    encode_ack,
    encode_control,
    field,
)
from gateway.wire.smf.frames import (
    GUARANTEED,
    FrameDecoder,
    Protocol,
    encode_frame,
    protocol_of,
    split_frame,
)
from gateway.wire.smf.messages import Published, decode_published
from gateway.wire.smf.parameters import (
    FLOW_ID,
    MESSAGE_ID,
    PREVIOUS_ID,
    RESPONSE,
    TOPIC,
    Response,
    decode_response,
    encode_parameter,
    read_parameters,
)
from gateway.wire.smf.subscriptions import Change, SubscriptionRequest, encode_subscription
from tests.waiting import PATIENCE

PASSWORD = "p"  # noqa: S105  # of the test broker
TAG = b"\0\0\x07"


def direct(topic: str, payload: bytes = b"x") -> bytes:
    parameters = encode_parameter(TOPIC, topic.encode() + b"\0", handling=2)
    return encode_frame(Protocol.MESSAGE | 0x80, parameters, payload, time_to_live=255)


def login(name: str, user: str, password: str, vpn: str = "default") -> bytes:
    fields = b"".join(
        bytes((kind,)) + (len(value) + 5).to_bytes(4, "big") + value
        for kind, value in (
            (0x05, name.encode() + b"\0"),
            (0x86, vpn.encode() + b"\0"),
            (0x18, (3).to_bytes(4, "big")),
        )
    )
    body = b"\1\0" + (len(fields) + 6).to_bytes(4, "big") + fields
    who = encode_parameter(6, b64encode(user.encode()))
    secret = encode_parameter(7, b64encode(password.encode()))
    return encode_frame(Protocol.CLIENT_CONTROL | 0x80, who + secret, body)


class SmfClient:
    """Mutable: a connection. Every wait has an end."""

    def __init__(self, port: int, name: str = "", tls: ssl.SSLContext | None = None) -> None:
        self.connection = socket.create_connection(("127.0.0.1", port), PATIENCE)
        if tls is not None:
            self.connection = tls.wrap_socket(self.connection)
        self._decoder = FrameDecoder()
        self._frames: list[bytes] = []
        self.published = 0
        if name:
            assert self.log_in(name) == Response(200, "OK")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.connection.close()

    def send(self, data: bytes) -> None:
        self.connection.sendall(data)

    def read(self) -> bytes | None:
        """The next message, or None when the broker has closed."""
        while not self._frames:
            try:
                data = self.connection.recv(262_144)
            except ConnectionError:
                return None
            if not data:
                return None
            self._frames += self._decoder.feed(data)
        return self._frames.pop(0)

    def response(self) -> Response:
        frame = self.read()
        assert frame is not None
        for parameter in read_parameters(split_frame(frame)[0]):
            if parameter.kind == RESPONSE:
                return decode_response(parameter.value)
        raise AssertionError(f"no response in {frame.hex()}")

    def log_in(
        self, name: str, user: str = "u", password: str = PASSWORD, vpn: str = "default"
    ) -> Response:
        self.send(login(name, user, password, vpn))
        return self.response()

    def subscribe(self, topic: str, change: Change = Change.ADD, queue: str = "") -> Response:
        request = SubscriptionRequest(change, topic.encode(), queue.encode(), tag=TAG)
        self.send(encode_subscription(request))
        return self.response()

    def is_alive(self) -> bool:
        """Whether the broker still answers; reads over what came before."""
        self.send(encode_frame(Protocol.KEEPALIVE | 0x80, b""))
        while (frame := self.read()) is not None:
            if protocol_of(frame) == Protocol.KEEPALIVE:
                return True
        return False

    def control(self, kind: Kind, *fields: tuple[int, bytes], answered: bool = True) -> Control:
        self.send(encode_control(Control(kind, 2, fields, TAG)))
        return self.next_control() if answered else Control(kind)

    def next_control(self) -> Control:
        frame = self.read()
        assert frame is not None
        assert protocol_of(frame) == Protocol.ASSURED_CONTROL
        return decode_control(frame)

    def open_publisher(self, name: bytes = b"") -> Control:
        return self.control(
            Kind.OPEN_PUBLISHER, field(Field.WINDOW, 255), field(Field.FLOW_NAME, name)
        )

    def publish(self, flow: int, topic: str, payload: bytes = b"x", number: int = 0) -> None:
        """A guaranteed message with the next id of the flow, or with `number`."""
        self.published = number or self.published + 1
        parameters = (
            encode_parameter(TOPIC, topic.encode() + b"\0", handling=2)
            + encode_parameter(FLOW_ID, flow.to_bytes(4, "big"), handling=2)
            + encode_parameter(PREVIOUS_ID, (self.published - 1).to_bytes(8, "big"), handling=2)
            + encode_parameter(MESSAGE_ID, self.published.to_bytes(8, "big"), handling=2)
        )
        self.send(
            encode_frame(
                Protocol.MESSAGE | 0x80, parameters, payload, flags=GUARANTEED | 8, time_to_live=255
            )
        )

    def bind(self, queue: str, window: int = 255) -> Control:
        """Bind and, when it is allowed, open the window."""
        bound = self.control(
            Kind.BIND,
            field(Field.QUEUE, queue.encode()),
            field(Field.WINDOW, 0),
            field(Field.DURABILITY, 1),
            field(Field.WANTS_CHANGES, 1),
        )
        if bound.response == Response(200, "OK") and bound.number(Field.ACTIVE):
            self.acknowledge(bound.number(Field.FLOW_ID), 0, window=window)
        return bound

    def acknowledge(self, flow: int, last: int, *acks: AppAck, window: int = 255) -> None:
        self.control(
            Kind.ACK,
            field(Field.FLOW_ID, flow),
            field(Field.LAST_ACKED, last),
            field(Field.WINDOW, window),
            *map(encode_ack, acks),
            answered=False,
        )

    def delivery(self) -> Published:
        frame = self.read()
        assert frame is not None
        assert protocol_of(frame) == Protocol.MESSAGE
        return decode_published(frame)
