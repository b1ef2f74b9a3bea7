"""A test client that sends single SMF messages, invalid ones included."""

from __future__ import annotations

import socket
import ssl
from base64 import b64encode
from types import TracebackType
from typing import Self

from gateway.wire.smf.assured_control import (
    AckOutcome,
    AckRange,
    AssuredControl,
    ControlField,
    ControlType,
    decode_control,
    encode_control,
    encode_field,
)
from gateway.wire.smf.frames import (
    GUARANTEED,
    Protocol,
    SmfDecoder,
    encode_frame,
    protocol_of,
    split_frame,
)
from gateway.wire.smf.parameters import (
    FLOW_ID,
    MESSAGE_ID,
    PREVIOUS_ID,
    RESPONSE,
    TOPIC,
    encode_parameter,
    read_parameters,
)
from gateway.wire.smf.relayed_message import PublishedMessage, decode_published
from gateway.wire.smf.responses import SmfResponse, decode_response
from gateway.wire.smf.subscriptions import SubscriptionChange, SubscriptionRequest
from tests.waiting import PATIENCE
from tests.wire.smf_requests import encode_subscription

PASSWORD = "p"  # noqa: S105  # of the test broker
TAG = b"\0\0\x07"


def encode_ack_range(ack: AckRange) -> tuple[int, bytes]:
    value = ack.low.to_bytes(8, "big") + ack.high.to_bytes(8, "big")
    if ack.outcome is not AckOutcome.ACCEPTED:
        value += bytes((ack.outcome,))
    return ControlField.APP_ACK, value


def direct(topic: str, payload: bytes = b"x") -> bytes:
    parameters = encode_parameter(TOPIC, topic.encode() + b"\0", handling=2)
    return encode_frame(Protocol.MESSAGE | 0x80, parameters, payload, time_to_live=255)


def login(name: str, user: str, password: str, vpn: str = "default", keepalive: int = 3) -> bytes:
    fields = b"".join(
        bytes((kind,)) + (len(value) + 5).to_bytes(4, "big") + value
        for kind, value in (
            (0x05, name.encode() + b"\0"),
            (0x86, vpn.encode() + b"\0"),
            (0x18, keepalive.to_bytes(4, "big")),
        )
    )
    body = b"\1\0" + (len(fields) + 6).to_bytes(4, "big") + fields
    who = encode_parameter(6, b64encode(user.encode()))
    secret = encode_parameter(7, b64encode(password.encode()))
    return encode_frame(Protocol.CLIENT_CONTROL | 0x80, who + secret, body)


class SmfClient:
    """A connection; every wait has a timeout.

    Mutable: owned by the test.
    """

    def __init__(self, port: int, name: str = "", tls: ssl.SSLContext | None = None) -> None:
        self.connection = socket.create_connection(("127.0.0.1", port), PATIENCE)
        if tls is not None:
            self.connection = tls.wrap_socket(self.connection)
        self._decoder = SmfDecoder()
        self._frames: list[bytes] = []
        self.published = 0
        if name:
            assert self.log_in(name) == SmfResponse(200, "OK")

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
        """Return the next message, or None when the broker closed the connection."""
        while not self._frames:
            try:
                data = self.connection.recv(262_144)
            except ConnectionError:
                return None
            if not data:
                return None
            self._frames += self._decoder.feed(data)
        return self._frames.pop(0)

    def response(self) -> SmfResponse:
        frame = self.read()
        assert frame is not None
        for parameter in read_parameters(split_frame(frame)[0]):
            if parameter.kind == RESPONSE:
                return decode_response(parameter.value)
        raise AssertionError(f"no response in {frame.hex()}")

    def log_in(
        self, name: str, user: str = "u", password: str = PASSWORD, vpn: str = "default"
    ) -> SmfResponse:
        self.send(login(name, user, password, vpn))
        return self.response()

    def subscribe(
        self, topic: str, change: SubscriptionChange = SubscriptionChange.ADD, queue: str = ""
    ) -> SmfResponse:
        request = SubscriptionRequest(change, topic.encode(), queue.encode(), tag=TAG)
        self.send(encode_subscription(request))
        return self.response()

    def is_alive(self) -> bool:
        """Return whether the broker answers a keepalive; earlier messages are dropped."""
        self.send(encode_frame(Protocol.KEEPALIVE | 0x80, b""))
        while (frame := self.read()) is not None:
            if protocol_of(frame) == Protocol.KEEPALIVE:
                return True
        return False

    def control(
        self, kind: ControlType, *fields: tuple[int, bytes], answered: bool = True
    ) -> AssuredControl:
        self.send(encode_control(AssuredControl(kind, 2, fields, TAG)))
        return self.next_control() if answered else AssuredControl(kind)

    def next_control(self) -> AssuredControl:
        frame = self.read()
        assert frame is not None
        assert protocol_of(frame) == Protocol.ASSURED_CONTROL
        return decode_control(frame)

    def open_publisher(self, name: bytes = b"") -> AssuredControl:
        return self.control(
            ControlType.OPEN_PUBLISHER,
            encode_field(ControlField.WINDOW, 255),
            encode_field(ControlField.FLOW_NAME, name),
        )

    def publish(self, flow: int, topic: str, payload: bytes = b"x", number: int = 0) -> None:
        """Send a guaranteed message with the next id of the flow, or with `number`."""
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

    def bind(self, queue: str, window: int = 255) -> AssuredControl:
        """Bind, and open the window if the bind is accepted."""
        bound = self.control(
            ControlType.BIND,
            encode_field(ControlField.QUEUE, queue.encode()),
            encode_field(ControlField.WINDOW, 0),
            encode_field(ControlField.DURABILITY, 1),
            encode_field(ControlField.WANTS_CHANGES, 1),
        )
        if bound.response == SmfResponse(200, "OK") and bound.get_int(ControlField.ACTIVE):
            self.acknowledge(bound.get_int(ControlField.FLOW_ID), 0, window=window)
        return bound

    def acknowledge(self, flow: int, last: int, *acks: AckRange, window: int = 255) -> None:
        self.control(
            ControlType.ACK,
            encode_field(ControlField.FLOW_ID, flow),
            encode_field(ControlField.LAST_ACKED, last),
            encode_field(ControlField.WINDOW, window),
            *map(encode_ack_range, acks),
            answered=False,
        )

    def delivery(self) -> PublishedMessage:
        frame = self.read()
        assert frame is not None
        assert protocol_of(frame) == Protocol.MESSAGE
        return decode_published(frame)
